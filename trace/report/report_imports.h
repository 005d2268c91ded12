/* SPDX-License-Identifier: MIT */
/* report_imports.h - functions that are probed where they are called: a part of `kron info`. */
#ifndef TRACE_REPORT_IMPORTS_H
#define TRACE_REPORT_IMPORTS_H

#include <stdio.h>

#include "base/json.h"
#include "trace/reader.h"

/* A table, where there are some. */
void report_imports_put(const struct trace *t, FILE *out);
/* The key `imports`. */
void report_imports_json(struct json *j, const struct trace *t);

#endif
