/* SPDX-License-Identifier: MIT */
/*
 * report_monitor.h - the intervals of `kron monitor` as a table, a line each, or as JSON, an object a line; totals
 * last.  As they come, and from a trace that has them.
 */
#ifndef TRACE_REPORT_MONITOR_H
#define TRACE_REPORT_MONITOR_H

#include <stdio.h>

#include "base/json.h"
#include "trace/monitor/monitored.h"

struct monitor_table {
	FILE *out;
	bool json, freezes;
	bool of_board; /* and not of a program, whose time is what it would have taken */
	const struct columns *columns;
	bool has_begun;
};
void monitor_table_row(struct monitor_table *s, const struct monitor_row *row);
void monitor_table_totals(struct monitor_table *s, const struct monitor_summary *sum,
			  const struct reading *totals);

/* Does the trace, or one of those that it was joined from, have any? */
bool report_monitor_has(const struct trace *t);
/* kron report: those of all of them, one after another; how many lines of their files make no sense. */
uint64_t report_monitor(const struct trace *t, bool json, FILE *out);
/* kron info: a line, and the key `monitor`, of a trace that has some. */
void report_monitor_put(const struct trace *t, FILE *out);
void report_monitor_json(struct json *j, const struct trace *t);
/* Up to the last reading; 0: there is none. */
uint64_t report_monitor_ns(const struct trace *t);

#endif
