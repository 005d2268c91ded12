/* SPDX-License-Identifier: MIT */
/* report_machine.h - what a trace was recorded on, for `kron info`: host, node, processors, clock. */
#ifndef TRACE_REPORT_MACHINE_H
#define TRACE_REPORT_MACHINE_H

#include <stdio.h>

#include "base/json.h"
#include "trace/reader.h"

#define REPORT_LABEL "%-14s " /* how a line of `kron info` begins */
/* The line, if there is such a text. */
void report_line(FILE *out, const char *label, const char *text);

void report_machine_put(const struct trace *t, FILE *out);
void report_machine_json(struct json *j, const struct trace *t);
/* Of several traces that are read as one: which, and how their times came to one line. */
void report_machine_nodes(const struct trace *t, FILE *out);
void report_machine_nodes_json(struct json *j, const struct trace *t);

#endif
