/* SPDX-License-Identifier: MIT */
/*
 * pictures.h - SPRA308's diagrams of what `kron monitor` reads, in characters.
 *
 *   busy        ▂▅█▇▃    63.0% [############        ]  utilisation histogram, and its meter of now
 *   busy0       ░▒█▓░    60.0%                         Gantt chart: how dark, of each processor
 *   page-faults ▁█▂▁▁     120 a second, 900 at most    over time: memory, I/O, profile
 *   and a Kiviat diagram, an axis a processor, of three of them or more
 *
 * The last intervals, as many as fit, the latest on the right.
 */
#ifndef COLLECT_MONITOR_PICTURES_H
#define COLLECT_MONITOR_PICTURES_H

#include <stdio.h>

#include "trace/monitor/reading.h"

#define PICTURES_INTERVALS_MIN 10u
#define PICTURES_INTERVALS_MAX 500u

struct pictures {
	const struct columns *columns;
	double *values; /* of each column `intervals` of them, a ring; NAN: not known */
	unsigned intervals;
	unsigned n; /* that were added */
};

/* intervals: so many are shown, between the two bounds. */
void pictures_begin(struct pictures *p, const struct columns *columns, unsigned intervals);
void pictures_add(struct pictures *p, const struct reading *v, uint64_t interval_ns);
/* How many lines it has written; each ends with `end`, which has the newline. */
unsigned pictures_print(const struct pictures *p, FILE *out, const char *end);
void pictures_free(struct pictures *p);

#endif
