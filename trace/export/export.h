/* SPDX-License-Identifier: MIT */
/*
 * export.h - a trace in the formats of other tools.  Reads the trace only.
 *
 * Two kinds: streams go to the FILE that they are given, and the caller asks ferror().  The
 * others are directories and databases: they are made beside PATH and renamed when they are
 * whole, so that PATH is never half of one.
 */
#ifndef TRACE_EXPORT_H
#define TRACE_EXPORT_H

#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "trace/reader.h"

/* X(name, function, what it is): the words of `kron export -f`, streams first */
#define EXPORT_STREAMS(X)                                                              \
	X(folded, export_folded, "stacks for flame graphs: a;b;c and self time in ns") \
	X(callgrind, export_callgrind, "for callgrind_annotate and KCachegrind")       \
	X(chrome, export_chrome, "Chrome's trace event JSON, for about:tracing")       \
	X(speedscope, export_speedscope, "for speedscope.app")                         \
	X(perfetto, export_perfetto, "for ui.perfetto.dev")                            \
	X(pprof, export_pprof, "for go tool pprof")                                    \
	X(parquet, export_parquet, "a table of calls, for DuckDB and data frames")     \
	X(csv, export_csv, "the same table as comma-separated values")                 \
	X(mk_dat, export_mkdat, "mk.dat of the MultiKron toolkit")
#define EXPORT_PATHS(X)                                                             \
	X(uftrace, export_uftrace, "a directory for uftrace replay, report, graph") \
	X(sqlite, export_sqlite, "a database")                                      \
	X(ctf, export_ctf, "CTF 1.8, for babeltrace2")                              \
	X(otf2, export_otf2, "OTF2, for otf2-print, Vampir and others")

/* Several traces in one database. */
int export_sqlite_many(const struct trace *const *traces, size_t n, const char *path,
		       struct err *err);

/* The intervals that kron monitor has saved, a row each. */
void export_intervals_csv(const struct trace *t, FILE *out);
void export_intervals_parquet(const struct trace *t, FILE *out);

/* Parquet files in folders by node and process; slices of time in files of their own, unless 0. */
int export_dataset(const struct trace *t, const char *path, uint64_t slice_ns, struct err *err);

/* What a filter level is called beside the event's value, which may be called so itself. */
static inline const char *export_level_name(const struct trace_user_event *u)
{
	return strcmp(u->payload, "level") ? "level" : "filter level";
}

#define X(name, function, text) void function(const struct trace *t, FILE *out);
EXPORT_STREAMS(X)
#undef X
#define X(name, function, text) \
	int function(const struct trace *t, const char *path, struct err *err);
EXPORT_PATHS(X)
#undef X

#endif
