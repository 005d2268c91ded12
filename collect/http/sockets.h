/* SPDX-License-Identifier: MIT */
/*
 * sockets.h - a port of this machine that no other machine reaches: of 127.0.0.1 and of ::1.
 *
 * Both are ours, or none: what a browser makes of "localhost" is never somebody else's server.
 */
#ifndef COLLECT_HTTP_SOCKETS_H
#define COLLECT_HTTP_SOCKETS_H

#include "base/err.h"

enum { SOCKETS_V4, SOCKETS_V6, SOCKETS_N };

struct http_sockets {
	int fd[SOCKETS_N]; /* -1: this machine has no such address */
	unsigned port;
};

/* port 0: any that is free.  -errno with a sentence. */
int http_sockets_open(struct http_sockets *s, unsigned port, struct err *err);
void http_sockets_close(struct http_sockets *s);

#endif
