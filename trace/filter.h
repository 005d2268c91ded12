/* SPDX-License-Identifier: MIT */
/*
 * filter.h - what of a trace its readers get to see: samples for which a condition holds, and
 * those around the places where a trigger fires.
 *
 * It stands in struct trace; every cursor obeys it, so it means the same in every report.  CPU
 * and LOST records always pass.  A call of which only one end passes has no other end: readers
 * treat it as they treat one whose sample was lost.
 */
#ifndef TRACE_FILTER_H
#define TRACE_FILTER_H

#include "trace/trigger.h"

struct trace_filter;

struct filter_options {
	const char *where;      /* a condition, or NULL */
	const char *trigger;    /* a sequence, or NULL */
	const char *pre, *post; /* how much around it; NULL: 1000 samples */
};

/* Reads the whole trace once if there is a trigger.  0 or -EINVAL with the message. */
int trace_filter_set(struct trace *t, const struct filter_options *o, struct err *err);
void trace_filter_free(struct trace_filter *f);
bool trace_filter_passes(const struct trace_filter *f, const struct trace_event *e);
/* Of what follows this moment, at which something passes, all of the thread passes up to here. */
uint64_t trace_filter_until(const struct trace_filter *f, uint64_t tsc);
/* A name in the condition or the trigger that is unknown to the trace; NULL: there is none. */
const char *trace_filter_unknown_name(const struct trace_filter *f);
/* How often the trigger fired. */
uint64_t trace_filter_fired(const struct trace_filter *f);
/* How much it waited for in vain, because samples were lost. */
uint64_t trace_filter_unsure(const struct trace_filter *f);

#endif
