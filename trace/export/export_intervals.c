/* SPDX-License-Identifier: MIT */
/* export_intervals.c - see export_intervals.h.  They are read twice: for their columns, and for their rows. */
#include "trace/export/export_intervals.h"

#include <string.h>

#include "trace/export/export.h"
#include "trace/export/export_table.h"
#include "trace/monitor/monitored.h"
#include "trace/text.h"

/* X(name, type, whether it may be null) */
#define FIXED(X)                     \
	X(node, INT32, false)        \
	X(host, TEXT, false)         \
	X(command, TEXT, false)      \
	X(start_ns, INT64, false)    \
	X(end_ns, INT64, false)      \
	X(duration_ns, INT64, false) \
	X(stopped, BOOL, true)       \
	X(stood_ns, INT64, true)     \
	X(skew_ns, INT64, true)      \
	X(threads, INT32, true)      \
	X(estimates, TEXT, true)     \
	X(overrun, TEXT, true)
enum {
#define X(name, type, optional) F_##name,
	FIXED(X)
#undef X
		NFIXED
};

struct export_intervals {
	const struct trace *t;
	struct text_pool *pool;
	VEC(struct parquet_column) columns;
	VEC(char *) names; /* of those that are not fixed */
	/* of the monitor and its row */
	VEC(size_t) place; /* of its columns, in the table */
	int64_t *values;
	bool *known;
};

/* ---- columns ---- */

static enum parquet_type type_of(const struct column *c)
{
	if (c->kind == READING_PERCENT || c->type == VALUE_DOUBLE)
		return PARQUET_DOUBLE;
	return c->kind == READING_VALUE && c->type != VALUE_SIGNED ? PARQUET_UINT64 : PARQUET_INT64;
}

/* -1: there is none of this name */
static int find(const struct export_intervals *x, const char *name)
{
	for (size_t i = 0; i < x->columns.n; i++)
		if (!strcmp(x->columns.v[i].name, name))
			return (int)i;
	return -1;
}

static size_t add(struct export_intervals *x, const char *name, enum parquet_type type)
{
	char *own = xstrdup(name);

	*vec_push(&x->names) = own;
	*vec_push(&x->columns) =
		(struct parquet_column){.name = own, .type = type, .optional = true};
	return x->columns.n - 1;
}

/* Its place; is_new: it is not one of a monitor before. */
static size_t place_of(struct export_intervals *x, const struct column *c, size_t before)
{
	char *shown = text_shown(c->name), *name = xstrdup(shown);
	const enum parquet_type type = type_of(c);
	int at;

	for (unsigned turn = 2; (at = find(x, name)) >= 0; turn++) {
		/* another monitor's of the same kind is the same column */
		if ((size_t)at >= NFIXED && (size_t)at < before && x->columns.v[at].type == type)
			break;
		xfree(name);
		name = xasprintf("%s:%u", shown, turn);
	}
	if (at < 0)
		at = (int)add(x, name, type);
	xfree(shown);
	xfree(name);
	return (size_t)at;
}

/* Of a monitor's columns; the same each time it is asked. */
static void take_places(struct export_intervals *x, const struct monitored *m)
{
	const size_t before = x->columns.n;

	x->place.n = 0;
	for (size_t i = 0; i < m->columns.v.n; i++)
		*vec_push(&x->place) = place_of(x, &m->columns.v.v[i], before);
}

/* ---- rows ---- */

static int64_t pooled(struct export_intervals *x, const char *s)
{
	char *shown = text_shown(s ? s : "?");
	const int64_t n = text_pool_add(x->pool, shown);

	xfree(shown);
	return n;
}

static void set(struct export_intervals *x, size_t column, int64_t value)
{
	x->values[column] = value;
	x->known[column] = true;
}

static int64_t bits_of(double d)
{
	int64_t n;

	memcpy(&n, &d, sizeof(n));
	return n;
}

/* As the intervals have it where there is one trace, which is to the nanosecond. */
static int64_t time_of(const struct export_intervals *x, uint32_t part, uint64_t ns)
{
	if (!trace_nodes(x->t))
		return (int64_t)ns;
	return (int64_t)trace_time(x->t, trace_part_at(x->t, part, ns));
}

static void set_marked(struct export_intervals *x, size_t column, const struct monitored *m,
		       const struct reading *v, bool of_overrun)
{
	char *all = NULL;

	for (size_t i = 0; i < m->columns.v.n; i++) {
		char *more;

		if (!(of_overrun ? v[i].has_overrun : v[i].is_estimate))
			continue;
		more = xasprintf("%s%s%s", all ? all : "", all ? "," : "",
				 x->columns.v[x->place.v[i]].name);
		xfree(all);
		all = more;
	}
	if (all)
		set(x, column, pooled(x, all));
	xfree(all);
}

static void set_value(struct export_intervals *x, size_t at, const struct column *c,
		      const struct reading *r)
{
	if (!r->known || (c->kind == READING_PERCENT && !r->of))
		return;
	set(x, at,
	    c->kind == READING_PERCENT ? bits_of(100.0 * (double)r->n / (double)r->of)
				       : (int64_t)r->n);
}

static void set_row(struct export_intervals *x, uint32_t part, const struct monitored *m,
		    const struct monitor_row *row)
{
	const struct trace *t = trace_part(x->t, part);

	memset(x->known, 0, x->columns.n * sizeof(*x->known));
	set(x, F_node, export_table_node(x->t, part));
	set(x, F_host, pooled(x, trace_session(t, "hostname")));
	set(x, F_command, pooled(x, trace_session(t, "command")));
	set(x, F_start_ns, time_of(x, part, row->from_ns));
	set(x, F_end_ns, time_of(x, part, row->to_ns));
	set(x, F_duration_ns, (int64_t)(row->to_ns - row->from_ns));
	if (m->freezes) {
		set(x, F_stopped, row->was_frozen);
		set(x, F_stood_ns, (int64_t)row->stood_ns);
		set(x, F_skew_ns, (int64_t)row->skew_ns);
		set(x, F_threads, row->threads);
	}
	set_marked(x, F_estimates, m, row->v, false);
	set_marked(x, F_overrun, m, row->v, true);
	for (size_t i = 0; i < m->columns.v.n; i++)
		set_value(x, x->place.v[i], &m->columns.v.v[i], &row->v[i]);
}

/* ---- all of it ---- */

struct export_intervals *export_intervals_open(const struct trace *t, struct text_pool *pool)
{
	static const struct parquet_column fixed[] = {
#define X(name, type, optional) {#name, PARQUET_##type, optional},
		FIXED(X)
#undef X
	};
	struct export_intervals *x = xcalloc(1, sizeof(*x));
	struct monitored m;

	*x = (struct export_intervals){.t = t, .pool = pool};
	for (size_t i = 0; i < NFIXED; i++)
		*vec_push(&x->columns) = fixed[i];
	for (uint32_t i = 0; i < trace_parts(t); i++) {
		if (!monitored_open(&m, trace_part(t, i)))
			continue;
		take_places(x, &m);
		monitored_close(&m);
	}
	x->values = xcalloc(x->columns.n, sizeof(*x->values));
	x->known = xcalloc(x->columns.n, sizeof(*x->known));
	return x;
}

size_t export_intervals_columns(const struct export_intervals *x,
				const struct parquet_column **columns)
{
	*columns = x->columns.v;
	return x->columns.n;
}

void export_intervals_rows(struct export_intervals *x, export_intervals_fn fn, void *ctx)
{
	struct monitor_row row;
	struct monitored m;

	for (uint32_t i = 0; i < trace_parts(x->t); i++) {
		if (!monitored_open(&m, trace_part(x->t, i)))
			continue;
		take_places(x, &m);
		while (monitored_next(&m, &row)) {
			set_row(x, i, &m, &row);
			fn(ctx, x->values, x->known);
		}
		monitored_close(&m);
	}
}

void export_intervals_close(struct export_intervals *x)
{
	vec_for(&x->names, s)
		xfree(*s);
	vec_free(&x->names);
	vec_free(&x->columns);
	vec_free(&x->place);
	xfree(x->values);
	xfree(x->known);
	xfree(x);
}
