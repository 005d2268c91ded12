/* SPDX-License-Identifier: MIT */
/* calibrate.h - what the time stamp counter means, and how what a probe costs is told. */
#ifndef COLLECT_CALIBRATE_H
#define COLLECT_CALIBRATE_H

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

struct probe_cost {   /* nanoseconds */
	double on;    /* a probe that takes a sample */
	double limit; /* rdtsc and one store: less is not possible */
	double off;   /* a probe whose gate is closed */
};
/* Who measures it has the runtime's thunk, which nothing here may know.  hz: see tsc_hz(). */
typedef void (*probe_cost_fn)(struct probe_cost *c, double hz);

#endif
