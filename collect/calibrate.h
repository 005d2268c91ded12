/* SPDX-License-Identifier: MIT */
/* calibrate.h - how what a probe costs is told; bus/clock.h says what time is. */
#ifndef COLLECT_CALIBRATE_H
#define COLLECT_CALIBRATE_H

#include "bus/clock.h"

struct probe_cost {   /* nanoseconds */
	double on;    /* a probe that takes a sample */
	double limit; /* rdtsc and one store: less is not possible */
	double off;   /* a probe whose gate is closed */
};
/* Who measures it has the runtime's thunk, which nothing here may know.  hz: see tsc_hz(). */
typedef void (*probe_cost_fn)(struct probe_cost *c, double hz);

#endif
