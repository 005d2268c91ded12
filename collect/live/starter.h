/* SPDX-License-Identifier: MIT */
/*
 * starter.h - programs that recorded processes execute are attached to in front of their first instruction:
 * static ones, because no dynamic linker brings the runtime into them; of processes that were attached to
 * themselves, all, because what a dynamic linker brings nobody can take out again.
 *
 *   process ──EXECUTES──► on_exec: a surgeon seizes the thread ──AWAITED──► execve
 *                         a thread of ours waits with it ◄──────────────── it stands: plan, attach, go
 *           ──STAYS─────► the surgeon lets it go (execve has failed)
 *
 * A surgeon for each, because it stands for as long as its plan takes.  Killed at any moment, it leaves a
 * program that runs.
 */
#ifndef COLLECT_STARTER_H
#define COLLECT_STARTER_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/queue.h>

#include "collect/live/live.h"

struct start;
TAILQ_HEAD(starts_awaited, start);

struct starter {
	struct server *server;
	const char *kron; /* to be executed: surgeon_spawn() */
	char *entry;      /* "KRON_RT=..." of kron/wire.h */
	bool leaves; /* they are to be detached from at the end, like the process that executed them */
	pthread_mutex_t lock;
	pthread_cond_t ended; /* one of them */
	struct starts_awaited awaited;
	bool stopping;
};

#define STARTER_INIT(s)                                                               \
	{                                                                             \
		.lock = PTHREAD_MUTEX_INITIALIZER, .ended = PTHREAD_COND_INITIALIZER, \
		.awaited = TAILQ_HEAD_INITIALIZER((s).awaited)                        \
	}
/* Before the recorded program starts; until then nothing is awaited.  entry becomes the starter's. */
void starter_start(struct starter *s, struct server *server, const char *kron, char *entry);
/* For server.on_exec. */
uint32_t starter_on_exec(void *ctx, const struct peer *p, const struct kron_hello *h);
/* Nothing is awaited from now on.  Before server_stop(), which waits for those that are being planned. */
void starter_stop(struct starter *s);
/* After it: until nobody attaches to one of them any more, five seconds at most. */
void starter_wait(struct starter *s);

#endif
