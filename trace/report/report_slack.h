/* SPDX-License-Identifier: MIT */
/* report_slack.h - how reports say by how much times may be off where samples share a reading of the clock (slack.h). */
#ifndef TRACE_REPORT_SLACK_H
#define TRACE_REPORT_SLACK_H

#include <stdio.h>

#include "base/json.h"
#include "trace/analysis/slack.h"

/*
 * At the end of a row with these sums: "  total +-1.2 us, self +-0.3 us", or ">" and the least that they are where the end
 * is not known; nothing if s is NULL, or they are exact.
 */
void report_slack_put(const struct trace *t, const struct slack *s, uint64_t total, uint64_t self,
		      FILE *out);
/* The same of a row with one sum, whose error is s->sum: "  total +-1.2 us". */
void report_slack_put_sum(const struct trace *t, const struct slack *s, uint64_t sum, FILE *out);
/* One of these. */
void report_slack_put_off(const struct trace *t, const struct slack *s, const char *what,
			  uint64_t sum, uint64_t off, FILE *out);
/* A length in 10 columns, estimated at so many ticks. */
void report_slack_put_length(const struct trace *t, uint64_t ticks, struct trace_bounds b,
			     FILE *out);
/* The same of a row's shortest and of its longest one.  s NULL: it is known. */
void report_slack_put_shortest(const struct trace *t, const struct slack *s, uint64_t ticks,
			       FILE *out);
void report_slack_put_longest(const struct trace *t, const struct slack *s, uint64_t ticks,
			      FILE *out);
/* Below a histogram of lengths: how many of them may belong in another line; nothing if s is NULL.  JSON: in another bin. */
void report_slack_put_elsewhere(const struct slack *s, const struct loghist *h, FILE *out);
void report_slack_json_elsewhere(struct json *j, const struct slack *s);
/* Below a table, where samples share a reading: what these marks mean. */
void report_slack_foot(const struct trace *t, FILE *out);

/* ... and where samples of several threads were matched in the order of their times, which are estimates. */
#define REPORT_SLACK_ORDER                                                                                           \
	"what began in one thread and ended in another is matched by estimated times: bounds hold if that is right " \
	"(functions of --timed have their own times)\n"

/* Both ends of a time in ticks; without the high one where nobody knows it. */
void report_slack_json(struct json *j, const struct trace *t, const char *low, const char *high,
		       struct trace_bounds b);
void report_slack_json_ns(struct json *j, const char *low, const char *high,
			  struct trace_bounds ns);
/* Of a row's sums, and of its shortest and longest one; nothing if s is NULL. */
void report_slack_json_sums(struct json *j, const struct trace *t, const struct slack *s,
			    uint64_t total, uint64_t self);
void report_slack_json_extremes(struct json *j, const struct trace *t, const struct slack *s);

#endif
