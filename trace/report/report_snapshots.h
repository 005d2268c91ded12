/* SPDX-License-Identifier: MIT */
/* report_snapshots.h - `kron record --flight`: what was kept, and why, for `kron info`. */
#ifndef TRACE_REPORT_SNAPSHOTS_H
#define TRACE_REPORT_SNAPSHOTS_H

#include <stdbool.h>
#include <stdio.h>

#include "base/json.h"
#include "trace/reader.h"

/* A flight recorder's directory: its samples are in the snapshots. */
bool report_samples_are_elsewhere(const struct trace *t);
/* Of a flight recorder's directory, and of a snapshot in it; else nothing. */
void report_snapshots_put(const struct trace *t, FILE *out);
/* The keys `flight`, `snapshots`; of a snapshot `snapshot`. */
void report_snapshots_json(struct json *j, const struct trace *t);

#endif
