/* SPDX-License-Identifier: MIT */
/*
 * serve_impl.h - a connection, between serve.c (who may ask, and when) and serve_answer.c (one
 * question, in a thread of its own).
 */
#ifndef COLLECT_SERVE_IMPL_H
#define COLLECT_SERVE_IMPL_H

#include "collect/peers.h"
#include "collect/serve.h"

enum connection_state {
	CONNECTION_SILENT, /* has not said HELLO; in the epoll set, of the listener's thread alone */
	CONNECTION_WAITS,  /* for a thread */
	CONNECTION_ASKS    /* has one */
};

struct connection {
	struct connection *next; /* under the server's lock; oldest first */
	struct server *server;
	int fd;
	struct peer peer;
	uint64_t since_ms;
	enum connection_state state; /* under the server's lock */
	bool working;                /* likewise: wants WORKING messages */
	bool replied;                /* likewise: a RESULT is to come */
	bool debugged;               /* it ran under a debugger when it asked */
	struct kron_hello hello;
};

/* The question in c->hello, from WORKING to RESULT. */
void serve_answer(struct connection *c);

#endif
