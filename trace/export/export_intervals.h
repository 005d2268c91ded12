/* SPDX-License-Identifier: MIT */
/*
 * export_intervals.h - the intervals of `kron monitor` as one table: a row each, with a column for each that was watched.
 *
 *   node host command         of the monitor
 *   start_ns end_ns           since the start of the trace
 *   duration_ns               as it was measured; between the two, of several traces, by their common clock
 *   stopped stood_ns skew_ns threads      of a program that was stopped at the end of each
 *   estimates overrun         names of the columns whose values are estimates, or have overrun
 *   NAME ...                  counts, ns, bytes, percent, values of variables; null: not known
 *
 * Of several monitors the columns are all that any of them has; of one name and different types they are several.
 */
#ifndef TRACE_EXPORT_INTERVALS_H
#define TRACE_EXPORT_INTERVALS_H

#include "trace/export/parquet.h"
#include "trace/export/text_pool.h"
#include "trace/reader.h"

struct export_intervals;

/* A value for each column, that of a text its number in the pool, of a double its bits; known: whether it is one. */
typedef void (*export_intervals_fn)(void *ctx, const int64_t *values, const bool *known);

struct export_intervals *export_intervals_open(const struct trace *t, struct text_pool *pool);
size_t export_intervals_columns(const struct export_intervals *x,
				const struct parquet_column **columns);
void export_intervals_rows(struct export_intervals *x, export_intervals_fn fn, void *ctx);
void export_intervals_close(struct export_intervals *x);

#endif
