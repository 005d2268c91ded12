/* SPDX-License-Identifier: MIT */
/*
 * view_sleeps.c - functions whose probes were out of the program for a part of the view: no picture has what
 * they did then.
 */
#include <stdlib.h>

#include "trace/watched/watched.h"
#include "trace/text.h"
#include "trace/view/view_impl.h"

/* Ticks of the view. */
static uint64_t watched_ticks(const struct view *v, const struct watched_function *f)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < f->spans.n; i++) {
		const struct watched_span *s = &f->spans.v[i];
		const uint64_t from = s->from > v->from ? s->from : v->from;
		const uint64_t to = s->to < v->to ? s->to : v->to;

		sum += to > from ? to - from : 0;
	}
	return sum;
}

static const struct trace_function *function_of(const struct view *v, uint32_t n)
{
	return trace_function_of(v->t, KRON_EVENT_ENTRY(n));
}

/* [name, module, by --budget, node, out (ns), [from, to, ...] while it was watched] */
static void put_function(struct view *v, const struct watched_function *f, uint64_t out)
{
	const struct trace_function *named = function_of(v, f->function);
	struct json *j = &v->j;
	char buf[32];

	json_open(j, '[');
	view_put_name(j, text_function(v->t, f->function, buf, sizeof(buf)));
	json_i64(j, named ? (int64_t)named->module : -1);
	json_bool(j, f->by_budget);
	json_u64(j, f->node);
	json_u64(j, trace_ns(v->t, out));
	json_open(j, '[');
	for (size_t i = 0; i < f->spans.n && i < VIEW_SPELLS; i++) {
		json_i64(j, view_ns(v, f->spans.v[i].from));
		json_i64(j, view_ns(v, f->spans.v[i].to));
	}
	json_close(j, ']');
	json_u64(j, f->spans.n);
	json_close(j, ']');
}

void view_sleeps_put(struct view *v)
{
	struct json *j = &v->j;
	struct watched w;
	uint64_t n = 0;

	watched_open(&w, v->t);
	json_key(j, "sleeps");
	json_open(j, '[');
	vec_for(&w.v, f) {
		const uint64_t whole = v->to - v->from, here = watched_ticks(v, f);

		if (f->since && here < whole && n++ < v->budget.functions)
			put_function(v, f, whole - here);
	}
	json_close(j, ']');
	json_ku64(j, "all_sleeps", n);
	watched_free(&w);
}
