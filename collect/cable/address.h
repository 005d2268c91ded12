/* SPDX-License-Identifier: MIT */
/* address.h - tcp://HOST[:PORT] and unix:PATH, where a cable leads to. */
#ifndef COLLECT_CABLE_ADDRESS_H
#define COLLECT_CABLE_ADDRESS_H

#include <stdbool.h>

#include "base/err.h"

struct cable_address {
	char text[512]; /* as it was named */
	char host[256]; /* empty: all of this host's, for who listens */
	char port[16];
	char path[108]; /* of a Unix socket; empty: it is TCP */
};

/* Is it one, and no directory? */
bool cable_is_address(const char *text);
/* bare: HOST:PORT without tcp:// is one, too.  0 or -EINVAL with a sentence. */
int cable_address_parse(struct cable_address *a, const char *text, bool bare, struct err *err);
/*
 * A socket, or -errno with a sentence.  *local: the other end is on this host, and at a Unix socket ours or root's.
 */
int cable_connect(const struct cable_address *a, bool *local, struct err *err);
int cable_listen(const struct cable_address *a, bool *local, struct err *err);

#endif
