/* SPDX-License-Identifier: MIT */
/*
 * lanes.h - the recorder's part of a board, seen from outside: who records, how full it is.
 * Reads only; every number is bounded before it is used.
 */
#ifndef BUS_LANES_H
#define BUS_LANES_H

#include "board/bus/bus.h"

struct lanes_view {
	int32_t recorder_pid; /* 0: none, and all below is 0 */
	bool orphaned;        /* there was one; it was killed and left samples */
	bool constant_time;
	uint32_t bus;           /* enum kron_bus */
	uint32_t live, started; /* processes */
	uint32_t free, owned, full, chunks_max;
	uint64_t lost; /* samples, of processes that are in the table still and of none */
	uint64_t counts[KRON_COUNTERS]; /* bus lane: what probes have counted */
	char dir[1024];
};

/* Lane bus: the counters so far, as segment.h says how they are kept. */
void lanes_count(const struct kron_ctl *ctl, uint64_t out[KRON_COUNTERS]);
/* Entries of their table that may be in use. */
uint32_t lanes_counts_used(const struct kron_ctl *ctl);

void lanes_look(const struct bus *b, struct lanes_view *l); /* an exact bus; else zeroes */
/* The lanes of a recorder wait or discard, too; a flight recorder goes on going round. */
void lanes_set_wait(struct bus *b, bool wait);
/* Gates were closed or opened: the recorder, if there is one, should look when that was. */
void lanes_tell_gates(struct bus *b);
const char *lanes_bus_word(uint32_t bus);

#endif
