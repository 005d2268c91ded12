/* SPDX-License-Identifier: MIT */
/*
 * export_parquet.c - a trace as one Parquet file: the table of export_table.h, thread by thread, as
 * it comes.  Tables of several hosts or ranks can be read as one.
 */
#include "trace/export/export.h"
#include "trace/export/export_intervals.h"
#include "trace/export/export_table.h"

static void put_row(void *ctx, const int64_t *row, const char *text)
{
	struct parquet *p = ctx;
	int64_t whole[EXPORT_TABLE_WIDTH];
	bool known[EXPORT_TABLE_WIDTH];

	for (unsigned i = 0; i < EXPORT_TABLE_WIDTH; i++) {
		whole[i] = row[i];
		known[i] = !export_table_is_null(row, i);
	}
	if (text)
		whole[EXPORT_TABLE_text] = parquet_passing_text(p, text);
	known[EXPORT_TABLE_text] = text;
	parquet_row(p, whole, known);
}

void export_parquet(const struct trace *t, FILE *out)
{
	struct text_pool pool = {0};
	struct parquet *p = parquet_open(out, export_table_columns, EXPORT_TABLE_WIDTH, &pool);
	struct export_table *w = export_table_open(t, &pool, put_row, p);

	export_table_notes(p, t);
	for (uint32_t lane = 0; lane < t->nlanes; lane++)
		export_table_lane(w, lane);
	export_table_close(w);
	parquet_close(p);
	text_pool_free(&pool);
}

/* ---- intervals of kron monitor ---- */

static void put_interval(void *ctx, const int64_t *values, const bool *known)
{
	parquet_row(ctx, values, known);
}

void export_intervals_parquet(const struct trace *t, FILE *out)
{
	struct text_pool pool = {0};
	struct export_intervals *x = export_intervals_open(t, &pool);
	const struct parquet_column *columns;
	const size_t n = export_intervals_columns(x, &columns);
	struct parquet *p = parquet_open(out, columns, n, &pool);

	export_table_notes(p, t);
	export_intervals_rows(x, put_interval, p);
	parquet_close(p);
	export_intervals_close(x);
	text_pool_free(&pool);
}
