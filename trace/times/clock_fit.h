/* SPDX-License-Identifier: MIT */
/*
 * clock_fit.h - from readings of two clocks at once, each wrong by a known bound, the one as a function of the other.
 *
 *   reading: at this tick of ours the reference stood at `ns`, give or take half of what the way there and back took
 *   (Cristian 1989)
 *
 * One straight line through all of them, the better ones counting more, is far better than each of them; it holds if it
 * passes every reading within its bound.  Else the clocks drift, and it is straight between neighbours.
 */
#ifndef TRACE_CLOCK_FIT_H
#define TRACE_CLOCK_FIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

struct clock_reading {
	uint64_t tick; /* of the node's clock */
	uint64_t ns;   /* of the reference */
	uint64_t error_ns;
};
struct clock_knot {
	uint64_t tick;
	double ns; /* from clock_fit.base_ns on */
};
struct clock_fit {
	uint64_t base_ns;
	VEC(struct clock_knot) knots; /* two, or one a reading: by tick */
	uint64_t error_ns; /* no time from the first reading to the last is wrong by more */
	double growth;     /* before and after them: ns for each tick away from the nearest */
	bool is_line;
};

/*
 * Readings in order of time; hz: about how many ticks a second are, for a single reading, and for readings that lie too
 * close together to tell.  false: there are none that make sense.
 */
bool clock_fit_make(struct clock_fit *f, const struct clock_reading *v, size_t n, double hz);
void clock_fit_free(struct clock_fit *f);
/* No time between these ticks is wrong by more; UINT64_MAX: it is not known. */
uint64_t clock_fit_error(const struct clock_fit *f, uint64_t from_tick, uint64_t to_tick);
/* Of the reference at a tick, and the tick at which it stands so: from base_ns on. */
double clock_fit_ns(const struct clock_fit *f, uint64_t tick);
double clock_fit_ticks(const struct clock_fit *f, double ns,
		       uint64_t from_tick); /* after from_tick */

#endif
