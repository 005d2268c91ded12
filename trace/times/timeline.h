/* SPDX-License-Identifier: MIT */
/*
 * timeline.h - from the ticks of one clock to those of another: straight between its knots, and on as before
 * the first one and after the last.
 *
 *   to │        ___/
 *      │   ____/      each piece by its own rate
 *      │__/
 *      └──────────── from
 */
#ifndef TRACE_TIMELINE_H
#define TRACE_TIMELINE_H

#include <stdint.h>

#include "base/vec.h"

struct timeline_knot {
	uint64_t from, to;
	double excess; /* ticks of `to` that a tick of `from` is more than one, from here on */
};
struct timeline {
	VEC(struct timeline_knot) v; /* by `from`; none: the clocks are one */
};

/* The next knot, later than the one before: else nothing is added. */
void timeline_add(struct timeline *l, uint64_t from, uint64_t to);
/* After the last one.  rate: how many ticks of `to` a tick of `from` is, if there is one knot alone. */
void timeline_end(struct timeline *l, double rate);
void timeline_free(struct timeline *l);

uint64_t timeline_map_to(const struct timeline *l, uint64_t tsc);
uint64_t timeline_map_from(const struct timeline *l, uint64_t tsc);
static inline uint64_t timeline_to(const struct timeline *l, uint64_t tsc)
{
	return l->v.n ? timeline_map_to(l, tsc) : tsc;
}
static inline uint64_t timeline_from(const struct timeline *l, uint64_t tsc)
{
	return l->v.n ? timeline_map_from(l, tsc) : tsc;
}

#endif
