/* SPDX-License-Identifier: MIT */
/*
 * export.h - a trace in the formats of other tools.  Reads the trace only, writes to the FILE
 * that it is given; the caller asks ferror().
 */
#ifndef TRACE_EXPORT_H
#define TRACE_EXPORT_H

#include <stdio.h>

#include "trace/reader.h"

/* X(name, function, what it is): the words of `kron export -f`, in this order */
#define EXPORTS(X)                                                                     \
	X(folded, export_folded, "stacks for flame graphs: a;b;c and self time in ns") \
	X(callgrind, export_callgrind, "for callgrind_annotate and KCachegrind")       \
	X(chrome, export_chrome, "Chrome's trace event JSON, for about:tracing")       \
	X(speedscope, export_speedscope, "for speedscope.app")

#define X(name, function, text) void function(const struct trace *t, FILE *out);
EXPORTS(X)
#undef X

#endif
