/* SPDX-License-Identifier: MIT */
/* calibrate.h - how what a probe costs is told; board/bus/clock.h says what time is. */
#ifndef COLLECT_CALIBRATE_H
#define COLLECT_CALIBRATE_H

#include <stdbool.h>
#include <stdint.h>

#include "board/bus/clock.h"

struct probe_cost {       /* nanoseconds */
	double on;        /* a probe that takes a sample */
	double on_static; /* the same in a static program; 0: not known */
	double limit;     /* rdtsc and one store: less is not possible */
	double off;       /* a probe whose gate is closed */
};

/* The mean cost of one of this many samples, some of them from static programs. */
static inline double probe_cost_mean(const struct probe_cost *c, uint64_t samples,
				     uint64_t samples_static)
{
	if (!c->on || !c->on_static || !samples_static)
		return c->on;
	if (samples_static >= samples)
		return c->on_static;
	return c->on + (c->on_static - c->on) * ((double)samples_static / (double)samples);
}

/*
 * Who measures it has the runtime's thunk, which nothing here may know.  hz: see tsc_hz();
 * with_static: on_static is wanted.  every: so many samples share a reading of the clock, 0 or 1: none.
 */
typedef void (*probe_cost_fn)(struct probe_cost *c, double hz, unsigned every, bool with_static);

#endif
