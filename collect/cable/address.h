/* SPDX-License-Identifier: MIT */
/* address.h - tcp://HOST[:PORT], unix:PATH and ssh://[USER@]HOST[:PORT]/DIR, where a cable leads to. */
#ifndef COLLECT_CABLE_ADDRESS_H
#define COLLECT_CABLE_ADDRESS_H

#include <stdbool.h>

#include "base/err.h"

struct cable_address {
	char text[512]; /* as it was named */
	char host[256]; /* empty: all of this host's, for who listens; with ssh:// USER@HOST */
	char port[16];
	char path[108]; /* of a Unix socket; empty: it is another */
	char dir[256];  /* at the far end of ssh; empty: it is another */
};

/* Is it one, and no directory? */
bool cable_is_address(const char *text);
/* bare: HOST:PORT without tcp:// is one, too.  0 or -EINVAL with a sentence. */
int cable_address_parse(struct cable_address *a, const char *text, bool bare, struct err *err);
static inline bool cable_address_is_ssh(const struct cable_address *a)
{
	return a->dir[0];
}
/*
 * A socket, or -errno with a sentence.  *local: the other end is on this host, and at a Unix socket ours or root's.
 */
int cable_connect(const struct cable_address *a, bool *local, struct err *err);
int cable_listen(const struct cable_address *a, bool *local, struct err *err);

#endif
