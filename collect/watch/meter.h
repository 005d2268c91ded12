/* SPDX-License-Identifier: MIT */
/*
 * meter.h - counts, by function, the events that pass to the trace, and how many calls were long: what --budget
 * chooses by.
 *
 *   drain ─► meter ─► the trace
 *              └► counts ─► collect/budget/, from another thread
 *
 * Chunks come when they are full, so counts lag by what threads have begun.  Whether a call is long is told by its entry and
 * exit in one thread, without regard to other stacks, jumps and losses: good for a choice, not for a report.
 */
#ifndef COLLECT_METER_H
#define COLLECT_METER_H

#include <stdint.h>

#include "collect/drain.h"

struct meter_count {
	uint64_t events; /* entries and exits */
	uint64_t longs;  /* calls that took as long as meter_set_long() says, or longer */
};

struct meter;
struct meter *meter_open(struct drain *d, struct sink *next);
void meter_close(struct meter *m);
struct sink *meter_sink(struct meter *m);

/* From any thread. */

/* From now on what comes is counted if it was stored from this moment on; and before that one, 0: whenever. */
void meter_begin(struct meter *m, uint64_t tsc);
void meter_end(struct meter *m, uint64_t tsc);
/* Of threads whose processes have ended, what they can have run from this moment on is of interest. */
void meter_look(struct meter *m, uint64_t tsc);
/* When the last sample was stored that has been counted, of whichever thread; 0: there is none. */
uint64_t meter_newest(const struct meter *m);
/* In ticks of the samples' clock; before it is called no call is long. */
void meter_set_long(struct meter *m, uint64_t ticks);
/* Since it was opened, of functions 0 .. n-1 by their numbers in the trace. */
void meter_read(const struct meter *m, struct meter_count *out, uint32_t n);
/* Ticks between first and last sample of chunks whose processes had ended, from meter_look() on: they ran no longer. */
uint64_t meter_ended_ticks(const struct meter *m);

#endif
