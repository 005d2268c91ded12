/* SPDX-License-Identifier: MIT */
/* clock.h - what the machine's time stamp counter means. */
#ifndef BUS_CLOCK_H
#define BUS_CLOCK_H

#include <stdint.h>

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
