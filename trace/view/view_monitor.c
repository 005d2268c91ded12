/* SPDX-License-Identifier: MIT */
/*
 * view_monitor.c - counters over time: the intervals that `kron monitor` has saved.
 *
 * Where they are more than there is room for, some that follow one another become one: what they count is added
 * up, so sums stay exact; of a variable the last value is kept.
 */
#include <stdlib.h>
#include <string.h>

#include "trace/monitor/monitored.h"
#include "trace/view/view_impl.h"

void view_monitor_look(struct view *v)
{
	struct monitor_row row;
	struct monitored m;

	for (uint32_t i = 0; i < trace_parts(v->t); i++) {
		if (!monitored_open(&m, trace_part(v->t, i)))
			continue;
		while (monitored_next(&m, &row))
			view_widen(v, trace_part_at(v->t, i, row.from_ns),
				   trace_part_at(v->t, i, row.to_ns));
		v->monitored += m.sum.intervals;
		monitored_close(&m);
	}
}

/* ---- intervals that become one ---- */

struct merged {
	uint64_t from, to; /* TSC */
	struct reading *v; /* a column each */
	uint64_t n;        /* rows in it */
};

/* From, to, and a value for each column. */
static void put_merged(struct view *v, const struct columns *columns, struct merged *x)
{
	struct json *j = &v->j;

	if (!x->n)
		return;
	json_open(j, '[');
	json_i64(j, view_ns(v, x->from));
	json_i64(j, view_ns(v, x->to));
	for (size_t i = 0; i < columns->v.n; i++)
		monitored_json_value(j, &columns->v.v[i], &x->v[i]);
	json_close(j, ']');
	memset(x->v, 0, columns->v.n * sizeof(*x->v));
	x->n = 0;
}

/* How many of them lie in the view. */
static uint64_t put_rows(struct view *v, uint32_t which, struct monitored *m, uint64_t each)
{
	struct merged x = {.v = xcalloc(m->columns.v.n + 1, sizeof(*x.v))};
	struct monitor_row row;
	uint64_t n = 0;

	while (monitored_next(m, &row)) {
		const uint64_t from = trace_part_at(v->t, which, row.from_ns),
			       to = trace_part_at(v->t, which, row.to_ns);

		if (to < v->from || from > v->to)
			continue;
		n++;
		x.from = x.n ? x.from : from;
		x.to = to;
		monitored_add(x.v, &m->columns, row.v);
		if (++x.n == each)
			put_merged(v, &m->columns, &x);
	}
	put_merged(v, &m->columns, &x);
	xfree(x.v);
	return n;
}

/* ---- all ---- */

static void put_columns(struct view *v, const struct columns *columns)
{
	struct json *j = &v->j;

	json_key(j, "columns");
	json_open(j, '[');
	for (size_t i = 0; i < columns->v.n; i++) {
		json_open(j, '[');
		view_put_name(j, columns->v.v[i].name);
		json_str(j, monitored_kind(columns->v.v[i].kind));
		json_bool(j, columns->v.v[i].type == VALUE_HEX);
		json_close(j, ']');
	}
	json_close(j, ']');
}

static void put_part(struct view *v, uint32_t which, struct monitored *m)
{
	const uint64_t columns = m->columns.v.n + 2, room = v->budget.readings / columns + 1;
	const uint64_t each = v->monitored / room + 1;
	const char *command = trace_session(trace_part(v->t, which), "command");
	struct json *j = &v->j;
	uint64_t n;

	json_open(j, '{');
	view_put_key_name(j, "command", command ? command : "");
	json_ku64(j, "every_ns", m->every_ns);
	json_ku64(j, "each", each);
	put_columns(v, &m->columns);
	json_key(j, "rows");
	json_open(j, '[');
	n = put_rows(v, which, m, each);
	json_close(j, ']');
	json_ku64(j, "intervals", n);
	json_close(j, '}');
}

void view_monitor_put(struct view *v)
{
	struct json *j = &v->j;
	struct monitored m;

	json_key(j, "counters");
	json_open(j, '[');
	for (uint32_t i = 0; i < trace_parts(v->t); i++) {
		if (!monitored_open(&m, trace_part(v->t, i)))
			continue;
		put_part(v, i, &m);
		monitored_close(&m);
	}
	json_close(j, ']');
}
