/* SPDX-License-Identifier: MIT */
/*
 * serve_impl.h - a connection, between serve.c (who may ask), serve_turns.c (when) and serve_answer.c
 * (one question, in a thread).
 */
#ifndef COLLECT_SERVE_IMPL_H
#define COLLECT_SERVE_IMPL_H

#include "collect/attach/peers.h"
#include "collect/attach/serve.h"

struct connection {
	TAILQ_ENTRY(connection) link; /* in the list of its state, oldest first */
	struct server *server;
	int fd;
	struct peer peer;
	uint64_t number; /* in the order in which they came */
	uint64_t since_ms;
	enum connection_state state; /* under the server's lock */
	bool working;                /* likewise: wants WORKING messages */
	bool replied;                /* likewise: a RESULT is to come */
	bool debugged;               /* it ran under a debugger when it asked */
	const char *refused;         /* why it gets no answer, and is to be noted; NULL: it does */
	struct kron_hello hello;
};

/* The question in c->hello, from WORKING to RESULT. */
void serve_answer(struct connection *c);

/* ---- serve_turns.c; all under the server's lock ---- */

bool connection_is_strangers(const struct connection *c);
/* Into the list of another state, at its end. */
void connection_move(struct connection *c, enum connection_state state);
/* Not for one that has a thread, but by it. */
void connection_close(struct connection *c);
/* Has its process more to come than one that waits for its answers ever has? */
bool connection_is_too_many(const struct connection *c);
/* It is closed without an answer; the note of it is made later, in another thread. */
void connection_turn_away(struct connection *c);
/* Threads for those that wait, as far as it is their turn. */
void turns_start(struct server *s);
/* No thread can be made, and none is there: who has waited since before then is turned away. */
void turns_give_up(struct server *s, uint64_t before_ms);
/* Of a stranger the newest one that waits, turned away: for its descriptors.  False: there is none. */
bool turns_free_stranger(struct server *s);
/* What is to be noted of those that were turned away. */
void turns_note(struct server *s);

#endif
