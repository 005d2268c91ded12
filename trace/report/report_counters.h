/* SPDX-License-Identifier: MIT */
/*
 * report_counters.h - what probes of kind count:J have counted: a part of `kron info`.
 */
#ifndef TRACE_REPORT_COUNTERS_H
#define TRACE_REPORT_COUNTERS_H

#include <stdio.h>

#include "base/json.h"
#include "trace/reader.h"

/* A line for each counter that is not zero. */
void report_counters_text(const struct trace *t, FILE *out);
/* "counters": all 16 resource counters; "virtual_counters": by number, those that are not zero. */
void report_counters_json(struct json *j, const struct trace *t);

#endif
