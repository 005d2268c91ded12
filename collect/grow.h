/* SPDX-License-Identifier: MIT */
/*
 * grow.h - makes the chunk pool larger while the program runs.
 *
 * A thread of its own: writing a chunk to the trace takes longer than a busy thread needs to
 * fill three, and a thread that finds no chunk loses samples or stands still.  It is woken by
 * the runtime through ctl->wake_collector whenever less than half of the pool is free.
 */
#ifndef COLLECT_GROW_H
#define COLLECT_GROW_H

#include <pthread.h>
#include <stdbool.h>

#include "collect/segment.h"

struct grow {
	struct segment *seg;
	pthread_t thread;
	bool running;
	bool stop; /* atomic */
	bool give_back;
	uint32_t wanted; /* atomic: chunks that are to be free once, then 0 */
};

int grow_start(struct grow *g, struct segment *seg, struct err *err);
/* stop() waits, ask_to_stop() does not.  give_back: nobody is left who could use the pool, so the
 * thread frees what follows its last used chunk, which the end of the segment had to. */
void grow_ask_to_stop(struct grow *g, bool give_back);
void grow_stop(struct grow *g);

/*
 * Many threads will want a chunk at once: have that many free.  Waits until they are, or as many as a quarter of the
 * limit allows; a second at most, for they come when they are asked for as well.
 */
void grow_make_room(struct grow *g, uint64_t chunks);

/* Get chunks until half of the pool is free and `wanted` chunks are, or there are no more to be had. */
void grow_pool(struct segment *seg, uint32_t wanted);

/* Waiters sleep for a free chunk or the end: wake them. */
void segment_wake_waiters(struct segment *seg);
/* The collector's own threads sleep, too. */
void segment_wake_collector(struct segment *seg);
/* Sleep until the runtime wants something, at most ms; seen is wake_collector's value. */
void segment_wait(struct segment *seg, uint32_t seen, uint32_t ms);

#endif
