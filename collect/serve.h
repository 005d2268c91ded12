/* SPDX-License-Identifier: MIT */
/*
 * serve.h - answers the runtimes' questions (kron/wire.h) on an abstract Unix socket.
 *
 * A thread accepts and ticks: each second it tells those who wait that work goes on.  Each
 * connection has a short-lived thread of its own, at most SERVE_CONNECTIONS at once.
 */
#ifndef COLLECT_SERVE_H
#define COLLECT_SERVE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <kron/wire.h>
#include "base/vec.h"
#include "collect/answer.h"
#include "collect/journal.h"
#include "collect/segment.h"
#include "collect/tasks.h"
#include "collect/untraced.h"

#define SERVE_CONNECTIONS 32u

struct connection;

struct server {
	struct segment *seg;
	struct journal *journal;
	struct tasks *tasks;
	struct answerer *answerer;
	bool no_children;
	enum kron_thunk thunk; /* what all probes are bound to */
	int device_fd;         /* bus device: what the programs map; else -1 */
	char name[64];         /* abstract, without the leading NUL */
	uint8_t session[16];
	int fd, wake_fd;
	pthread_t thread;
	bool running;

	pthread_mutex_t lock;
	pthread_cond_t idle;
	struct connection *connections;
	uint32_t nconnections;
	bool stopping;
	pid_t first_pid; /* of the program that was started */
	uint64_t starts; /* processes that are being traced after START */
	char *debugged;  /* "process 7 runs under gdb (pid 5)": the first of them; NULL: none */
	struct untraced_list untraced;
};

int server_start(struct server *s, struct err *err);
/* Ends all connections and waits, a second at most, for their threads.  False: some plan on,
 * and what they use must not be freed. */
bool server_stop(struct server *s);
void server_free(struct server *s);

/* Note that a program, or one of its modules (its path, else NULL), stays untraced. */
void server_note_untraced(struct server *s, pid_t pid, const char *module, const char *reason);

#endif
