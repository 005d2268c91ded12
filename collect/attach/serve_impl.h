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
	uint32_t ticket;             /* START: for its slot */
	const char *refused;         /* why it gets no answer, and is to be noted; NULL: it does */
	struct answerer *answerer;   /* the recording's, or that of probes that were added */
	struct kron_hello hello;
};

/* The question in c->hello, from WORKING to RESULT. */
void serve_answer(struct connection *c);

/* A stopped process has its answer and result ready, so this time passes only if it is hostile. */
#define SERVE_STOPPED_S 2

/* For serve_change.c. */
int serve_receive(int sock, void *buf, size_t size);
void serve_explain_result(uint32_t problem, uint64_t detail, char *text, size_t size);

/* Its parts, for serve_live.c.  False: the process did not say what it made of it. */
int serve_make_answer(struct connection *c, struct answer *a, struct err *err);
int serve_reply(struct connection *c, const struct answer *a);
bool serve_take_result(struct connection *c, struct answer *a, struct kron_result *out);

/* ---- serve_turns.c; all under the server's lock ---- */

bool connection_is_strangers(const struct connection *c);
/* Into the list of another state, at its end. */
void connection_move(struct connection *c, enum connection_state state);
/* A connection that has a thread is closed by that thread only. */
void connection_close(struct connection *c);
/* Has its process, or its user if a stranger, as many connections waiting as are allowed? */
bool connection_is_too_many(const struct connection *c);
/* It is closed without an answer; the note of it is made later, in another thread. */
void connection_turn_away(struct connection *c);
/* Starts threads for waiting connections whose turn it is. */
void turns_start(struct server *s);
/* No thread can be made, and none is there: who has waited since before then is turned away. */
void turns_give_up(struct server *s, uint64_t before_ms);
/* Turns away a stranger's newest waiting connection, to free its descriptors.  False: there is none. */
bool turns_free_stranger(struct server *s);
/* Writes the notes of connections that were turned away. */
void turns_note(struct server *s);

#endif
