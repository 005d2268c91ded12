/* SPDX-License-Identifier: MIT */
/*
 * trigger.h - a sequence of up to four conditions, in order of time:
 *
 *     A then B within 1ms then C
 *
 * It fires at the sample that completes it.  Each step but the first may have a limit: no more
 * than this long after the sample of the step before it.  Samples in between do not matter.  When
 * a step could have been met by several samples, the latest counts, so nothing that fits the words
 * is missed.  After firing it starts anew.
 */
#ifndef TRACE_TRIGGER_H
#define TRACE_TRIGGER_H

#include "trace/condition.h"

#define TRIGGER_STEPS 4u

struct trigger;

/* label as in condition_parse(). */
int trigger_parse(struct trigger **out, const char *label, const char *text, struct err *err);
void trigger_free(struct trigger *g);
void trigger_bind(struct trigger *g, const struct trace *t);
/* The next sample in order of time; true: the trigger fires at it. */
bool trigger_feed(struct trigger *g, const struct trace_event *e);

/* Does a step ask for threads by name? */
bool trigger_names_threads(const struct trigger *g);

/* "500" samples, or a time: "20us", "1.5ms".  0 or -EINVAL with the sentence. */
struct trigger_span {
	uint64_t samples, ns; /* one of them is set, or neither: nothing */
};
int trigger_parse_span(struct trigger_span *out, const char *label, const char *text,
		       struct err *err);

#endif
