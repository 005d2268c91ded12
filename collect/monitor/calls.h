/* SPDX-License-Identifier: MIT */
/*
 * calls.h - how often functions whose names match a glob have been called so far: sums of the counters that
 * `kron stat` has (collect/counts.h), while the program runs.
 */
#ifndef COLLECT_MONITOR_CALLS_H
#define COLLECT_MONITOR_CALLS_H

#include "collect/modules/modules.h"
#include "trace/monitor/reading.h"
#include "collect/segment.h"

#define CALLS_GLOBS 64 /* a bit for each */

struct calls_module {
	const struct module *module;
	uint32_t base, n;
	uint64_t *globs; /* by function: which of them match it */
};
struct calls {
	const char *globs[CALLS_GLOBS];
	size_t nglobs;
	const struct segment *seg;
	struct modules *modules;
	VEC(struct calls_module) v;
	uint64_t *counts;
};

void calls_begin(struct calls *c, const struct segment *seg, struct modules *modules);
/* out: as many as there are globs; *all: calls of all functions that are counted. */
void calls_take(struct calls *c, struct reading *out, uint64_t *all);
void calls_end(struct calls *c);
/* Of the probe of one call, in nanoseconds, on this machine: measured, where nothing is in use around it. */
double calls_cost(void);

#endif
