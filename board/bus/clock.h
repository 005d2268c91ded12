/* SPDX-License-Identifier: MIT */
/* clock.h - what the machine's time stamp counter means. */
#ifndef BUS_CLOCK_H
#define BUS_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

/*
 * The counter at the moment at which something else is read, from the tightest of eight tries:
 *
 *	struct tightest t = {0};
 *
 *	while (tightest_begin(&t)) {
 *		uint64_t value = ...;
 *
 *		if (tightest_end(&t))
 *			kept = value;
 *	}
 *	... t.tsc
 */
struct tightest {
	uint64_t tsc;
	uint64_t before, width;
	int tries;
};
static inline bool tightest_begin(struct tightest *t)
{
	if (t->tries++ == 8)
		return false;
	t->before = clock_tsc();
	return true;
}
/* Is this one the tightest so far? */
static inline bool tightest_end(struct tightest *t)
{
	uint64_t width = clock_tsc() - t->before;

	if (t->tries > 1 && width >= t->width)
		return false;
	t->width = width;
	t->tsc = t->before + width / 2;
	return true;
}

struct time_point {
	uint64_t tsc, mono_ns, real_ns; /* the same moment on three clocks */
};
/* Best of several tries: right to some 20 ns. */
void time_point_take(struct time_point *t);

/*
 * Ticks per second of the counter, on the scale of CLOCK_MONOTONIC: right to a hundred
 * thousandth when the points are 4 ms apart, and better in proportion.
 */
double tsc_hz(const struct time_point *start, const struct time_point *end);

/* The same from a point in the past, once it is `ms` old: waits for that. */
uint64_t tsc_hz_since(const struct time_point *start, unsigned ms);

#endif
