/* SPDX-License-Identifier: MIT */
/* report_changes.h - probes that came and went while the program ran, and groups, for `kron info`. */
#ifndef TRACE_REPORT_CHANGES_H
#define TRACE_REPORT_CHANGES_H

#include <stdio.h>

#include "base/json.h"
#include "trace/reader.h"

/* Nothing if there were none. */
void report_changes_put(const struct trace *t, FILE *out);
/* The keys `probe_changes`, `late_modules`, `group_changes`. */
void report_changes_json(struct json *j, const struct trace *t);

#endif
