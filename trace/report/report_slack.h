/* SPDX-License-Identifier: MIT */
/* report_slack.h - how reports say by how much times may be off where samples share a reading of the clock (slack.h). */
#ifndef TRACE_REPORT_SLACK_H
#define TRACE_REPORT_SLACK_H

#include <stdio.h>

#include "base/json.h"
#include "trace/analysis/slack.h"

/* At the end of a row: "  total +-1.2 us, self +-0.3 us"; nothing if s is NULL, or they are exact. */
void report_slack_put(const struct trace *t, const struct slack *s, FILE *out);
/* A length in 10 columns, estimated at so many ticks. */
void report_slack_put_length(const struct trace *t, uint64_t ticks, struct trace_bounds b,
			     FILE *out);
/* The same of a row's shortest and of its longest one.  s NULL: it is known. */
void report_slack_put_shortest(const struct trace *t, const struct slack *s, uint64_t ticks,
			       FILE *out);
void report_slack_put_longest(const struct trace *t, const struct slack *s, uint64_t ticks,
			      FILE *out);
/* Below a table, where samples share a reading: what these marks mean. */
void report_slack_foot(const struct trace *t, FILE *out);

/* Both ends of a time in ticks; without the high one where nobody knows it. */
void report_slack_json(struct json *j, const struct trace *t, const char *low, const char *high,
		       struct trace_bounds b);
/* Of a row's sums, and of its shortest and longest one; nothing if s is NULL. */
void report_slack_json_sums(struct json *j, const struct trace *t, const struct slack *s,
			    uint64_t total, uint64_t self);
void report_slack_json_extremes(struct json *j, const struct trace *t, const struct slack *s);

#endif
