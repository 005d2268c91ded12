/* SPDX-License-Identifier: MIT */
/*
 * filter.h - what of a trace its readers get to see: samples for which a condition holds, and
 * those around the places where a trigger fires.
 *
 * It stands in struct trace, which frees it; every cursor obeys it, so it means the same in every report.  CPU
 * and LOST records always pass.  A call of which only one end passes has no other end: readers
 * treat it as they treat one whose sample was lost.  What is open at the end of a window ends there:
 * nobody knows what came before the next one.
 */
#ifndef TRACE_FILTER_H
#define TRACE_FILTER_H

#include "trace/analysis/trigger.h"

struct filter_options {
	const char *where;      /* a condition, or NULL */
	const char *trigger;    /* a sequence, or NULL */
	const char *pre, *post; /* how much around it; NULL: 1000 samples */
};

/* Reads the whole trace once if there is a trigger.  0 or -EINVAL with the message. */
int trace_filter_set(struct trace *t, const struct filter_options *o, struct err *err);
/* A name in the condition or the trigger that is unknown to the trace; NULL: there is none. */
const char *trace_filter_unknown_name(const struct trace_filter *f);
/* As condition_unsure_event(), of its condition. */
const char *trace_filter_unsure_event(const struct trace_filter *f);
/* How often the trigger fired. */
uint64_t trace_filter_fired(const struct trace_filter *f);
/* How much it waited for in vain, because samples were lost. */
uint64_t trace_filter_unsure(const struct trace_filter *f);

#endif
