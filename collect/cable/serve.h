/* SPDX-License-Identifier: MIT */
/*
 * serve.h - the collector's end of the cable: many senders at once, one directory a node.
 *
 *   connection ─► conn: HELLO ─► OPEN ─► DONE ──┐
 *   connection ─► conn ─────────────────────────┼─► DIR/NAME: the trace, and the file `cable` with its session
 *
 * One thread, one poll(2).  A connection has one frame's room for what comes, and a fixed little for what goes.
 */
#ifndef COLLECT_CABLE_SERVE_H
#define COLLECT_CABLE_SERVE_H

#include <stdio.h>

#include "base/vec.h"
#include "collect/cable/frames.h"

struct cable_node { /* a recording, and its directory */
	uint8_t id[CABLE_ID];
	char *name;
	int dirfd; /* while somebody sends; else -1 */
	struct cable_sizes has;
	bool done;
	struct cable_conn *conn; /* who sends; NULL: nobody now */
};

enum cable_state { CABLE_WAITS, CABLE_OPEN, CABLE_ENDED };

struct cable_conn {
	int fd;
	enum cable_state state;
	char peer[128];
	uint8_t nonce[CABLE_NONCE];
	uint64_t until_ns; /* it has to have said something by then */
	struct cable_node *node;
	bool wants_ack;
	size_t nin, nout;
	uint8_t *in; /* head and rest of one frame */
	uint8_t out[4096];
};

struct cable_server {
	int dirfd;
	const char *dir;
	bool made_dir; /* it was not there before */
	struct cable_token token;
	char boot[CABLE_BOOT];
	VEC(struct cable_node *) nodes;
	VEC(struct cable_conn *) conns;
	uint8_t *buffer; /* what has come of the connection at hand */
	uint64_t received;
	uint64_t refused;
	uint64_t deaf_until_ns; /* nobody is accepted before: there was no descriptor left */
	FILE *words;            /* where lines about senders go */
	bool quiet;             /* those of what is as it should be are left out */
	bool shares;            /* others write to the folder, too: each has its nodes locked */
	bool was_locked;        /* the node that a sender wanted is another's still */
};

/* The directory is made; what an earlier collector has there is known again.  0 or -errno. */
int cable_server_open(struct cable_server *s, const char *dir, struct err *err);
void cable_server_close(struct cable_server *s);
/* Nobody will come: the directory goes if it was made here and is empty. */
void cable_server_unmake(struct cable_server *s);
/* Until *stop, which a signal sets; without a listener, -1, until the last connection ends.  0 or -errno. */
int cable_server_run(struct cable_server *s, int listener, volatile int *stop, struct err *err);

/* ---- for the above, and for who tries what comes ---- */

struct cable_conn *cable_conn_new(struct cable_server *s, int fd, const char *peer);
/* Bytes have come.  When it is CABLE_ENDED, it takes no more. */
void cable_conn_take(struct cable_server *s, struct cable_conn *c, const uint8_t *v, size_t n);
void cable_conn_end(struct cable_server *s, struct cable_conn *c, const char *why);
void cable_conn_free(struct cable_server *s, struct cable_conn *c);

/* nodes.c: the recording of this session, made if there is none; NULL: it cannot be, with a sentence. */
struct cable_node *cable_node_of(struct cable_server *s, const struct cable_hello *h,
				 struct err *err);
void cable_nodes_find(struct cable_server *s);
/* What goes on where the file ends: 0; -ERANGE: it does not; or another -errno. */
int cable_node_append(struct cable_server *s, struct cable_node *n, unsigned file, uint64_t offset,
		      const uint8_t *v, size_t size);
void cable_node_close(struct cable_node *n);
void cable_node_free(struct cable_node *n);

#endif
