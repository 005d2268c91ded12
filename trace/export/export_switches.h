/* SPDX-License-Identifier: MIT */
/*
 * export_switches.h - a trace's context switches, for formats that have a place for them.
 *
 * They say when a thread left a processor and when it came to one, and no more: who had the
 * processor in between is not known where it was not one of the traced threads.
 */
#ifndef TRACE_EXPORT_SWITCHES_H
#define TRACE_EXPORT_SWITCHES_H

#include "base/vec.h"
#include "trace/index.h"
#include "trace/analysis/offcpu.h"

struct export_switches {
	const struct trace *t;
	struct offcpu *off;
	const struct trace_switch *v; /* by time, all kinds that may be in the file */
	size_t n;

	/* private */
	struct index tids;
	VEC(uint32_t) lanes; /* by index of tid */
};

/* Nothing where the trace has none. */
void export_switches_open(struct export_switches *s, const struct trace *t);
void export_switches_close(struct export_switches *s);
/* Whether a record is one of the four kinds. */
bool export_switches_valid(const struct trace_switch *r);
/* A copy for xfree(): CPU by CPU, each by time, those that are not valid left out. */
struct trace_switch *export_switches_by_cpu(const struct export_switches *s, size_t *n);

/* The lane of a thread, UINT32_MAX without one; after an exec there are several. */
uint32_t export_switches_lane(const struct export_switches *s, uint32_t tid);
/* From here on it is this one. */
void export_switches_see(struct export_switches *s, uint32_t lane);
/* The name of a thread or of its program, "?" without one. */
const char *export_switches_name(const struct export_switches *s, uint32_t tid);

/* Each stretch that a lane's thread was off, cut to [first, last]. */
typedef void (*export_switches_fn)(void *ctx, uint32_t lane, const struct offcpu_stretch *o);
void export_switches_off(const struct export_switches *s, uint32_t lane, uint64_t first,
			 uint64_t last, export_switches_fn fn, void *ctx);

#endif
