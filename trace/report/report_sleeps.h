/* SPDX-License-Identifier: MIT */
/* report_sleeps.h - functions that --budget took out: how long each was watched, and how many calls it may have had. */
#ifndef TRACE_REPORT_SLEEPS_H
#define TRACE_REPORT_SLEEPS_H

#include <stdio.h>

#include "base/json.h"
#include "trace/watched/watched.h"

/* For `kron info`: each of them; nothing if there are none. */
void report_sleeps_put(const struct trace *t, FILE *out);
/* The keys `budget` and `suppressed`. */
void report_sleeps_json(struct json *j, const struct trace *t);

/* For `kron report`, which has counted: below the table; limit 0: all. */
void report_sleeps_estimates(const struct watched *w, uint64_t limit, FILE *out);
/* The key `suppressed` of a function's row; nothing if it is none of them. */
void report_sleeps_row_json(struct json *j, const struct watched *w, uint32_t function);

#endif
