/* SPDX-License-Identifier: MIT */
/*
 * export_csv.c - the tables of export_table.h and export_intervals.h as comma-separated values (RFC 4180): a line of names,
 * then a line for each row; what is null is empty.
 *
 * Lines end as those of text files do here.  A text has quotes where it has to, and where it is empty, which is not null.
 */
#include <inttypes.h>
#include <string.h>

#include "trace/export/export.h"
#include "trace/export/export_intervals.h"
#include "trace/export/export_table.h"

struct csv {
	FILE *out;
	const struct parquet_column *columns;
	size_t n;
	struct text_pool pool;
};

static void put_text(FILE *out, const char *s)
{
	const size_t n = strlen(s);

	if (n && !s[strcspn(s, "\",\r\n")] && s[0] != ' ' && s[n - 1] != ' ') {
		fputs(s, out);
		return;
	}
	putc('"', out);
	for (; *s; s++) {
		if (*s == '"')
			putc('"', out);
		putc(*s, out);
	}
	putc('"', out);
}

static void put_value(const struct csv *c, enum parquet_type type, int64_t v)
{
	double d;

	switch (type) {
	case PARQUET_TEXT:
		put_text(c->out, c->pool.texts.v[v]);
		break;
	case PARQUET_BOOL:
		fputs(v ? "true" : "false", c->out);
		break;
	case PARQUET_DOUBLE:
		memcpy(&d, &v, sizeof(d));
		fprintf(c->out, "%.17g", d);
		break;
	case PARQUET_UINT64:
		fprintf(c->out, "%" PRIu64, (uint64_t)v);
		break;
	default:
		fprintf(c->out, "%" PRId64, v);
	}
}

static void begin(struct csv *c, const struct parquet_column *columns, size_t n)
{
	c->columns = columns;
	c->n = n;
	for (size_t i = 0; i < n; i++) {
		if (i)
			putc(',', c->out);
		put_text(c->out, columns[i].name);
	}
	putc('\n', c->out);
}

/* ---- calls ---- */

static void put_row(void *ctx, const int64_t *row, const char *text)
{
	struct csv *c = ctx;

	for (size_t i = 0; i < c->n; i++) {
		if (i)
			putc(',', c->out);
		if (i == EXPORT_TABLE_text && text)
			put_text(c->out, text);
		else if (!c->columns[i].optional || !export_table_is_null(row, (unsigned)i))
			put_value(c, c->columns[i].type, row[i]);
	}
	putc('\n', c->out);
}

void export_csv(const struct trace *t, FILE *out)
{
	struct csv c = {.out = out};
	struct export_table *w = export_table_open(t, &c.pool, put_row, &c);

	begin(&c, export_table_columns, EXPORT_TABLE_WIDTH);
	for (uint32_t lane = 0; lane < t->nlanes; lane++)
		export_table_lane(w, lane);
	export_table_close(w);
	text_pool_free(&c.pool);
}

/* ---- intervals ---- */

static void put_interval(void *ctx, const int64_t *values, const bool *known)
{
	struct csv *c = ctx;

	for (size_t i = 0; i < c->n; i++) {
		if (i)
			putc(',', c->out);
		if (known[i])
			put_value(c, c->columns[i].type, values[i]);
	}
	putc('\n', c->out);
}

void export_intervals_csv(const struct trace *t, FILE *out)
{
	struct csv c = {.out = out};
	struct export_intervals *x = export_intervals_open(t, &c.pool);
	const struct parquet_column *columns;
	const size_t n = export_intervals_columns(x, &columns);

	begin(&c, columns, n);
	export_intervals_rows(x, put_interval, &c);
	export_intervals_close(x);
	text_pool_free(&c.pool);
}
