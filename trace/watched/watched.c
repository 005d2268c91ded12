/* SPDX-License-Identifier: MIT */
/* watched.c - see watched.h. */
#include "trace/watched/watched_impl.h"

#include <math.h>
#include <stdlib.h>

static uint64_t start_of(const struct trace *t, uint32_t node)
{
	return trace_part_time(t, node, trace_part(t, node)->start_tsc);
}

static struct watched_function *function_at(struct watched *w, uint32_t node, uint32_t function)
{
	const uint32_t i = index_of(&w->by_function, watched_key(node, function));

	if (i == w->v.n)
		*vec_push(&w->v) = (struct watched_function){
			.function = function, .node = node, .estimate = -1, .error = -1};
	return &w->v.v[i];
}

/* It is watched from its node's start on. */
static void begin(const struct trace *t, struct watched_function *f)
{
	if (!f->spans.n)
		*vec_push(&f->spans) = (struct watched_span){.from = start_of(t, f->node)};
}

static void take_row(struct watched *w, const struct trace_sleep *s, uint32_t function)
{
	struct watched_function *f = function_at(w, s->node, function);
	struct watched_span *last;

	begin(w->t, f);
	last = &f->spans.v[f->spans.n - 1];
	if (s->wakes == !f->is_asleep)
		return;
	f->is_asleep = !s->wakes;
	f->by_budget |= s->by_budget;
	if (s->wakes) {
		*vec_push(&f->spans) = (struct watched_span){.from = s->until};
		return;
	}
	last->to = s->since > last->from ? s->since : last->from;
	if (!f->since)
		f->since = s->since;
}

static uint64_t end_of(const struct trace *t, uint32_t node)
{
	uint64_t end = trace_part(t, node)->end_tsc;

	if (end)
		end = trace_part_time(t, node, end);
	for (size_t i = 0; i < t->nsleeps; i++)
		if (t->sleeps[i].node == node && t->sleeps[i].until > end)
			end = t->sleeps[i].until;
	return end;
}

static void close_spans(struct watched *w)
{
	vec_for(&w->v, f) {
		struct watched_span *last = &f->spans.v[f->spans.n - 1];
		uint64_t end = end_of(w->t, f->node);

		if (end < f->spans.v[0].from)
			end = f->spans.v[0].from;
		if (!last->to)
			last->to = end > last->from ? end : last->from;
		f->whole = end - f->spans.v[0].from;
		f->watched = 0;
		f->windows = f->spans.n - 1;
		for (size_t i = 0; i < f->spans.n; i++)
			f->watched += f->spans.v[i].to - f->spans.v[i].from;
		f->end = end;
	}
}

/* In other nodes as well, where they were watched all the time. */
static void take_other_nodes(struct watched *w)
{
	const size_t n = w->v.n;

	for (size_t i = 0; i < n; i++)
		for (uint32_t node = 0; node < trace_nodes(w->t); node++)
			begin(w->t, function_at(w, node, w->v.v[i].function));
}

void watched_open(struct watched *w, const struct trace *t)
{
	*w = (struct watched){.t = t};
	for (size_t i = 0; i < t->nsleeps; i++) {
		const struct trace_sleep *s = &t->sleeps[i];

		for (size_t k = 0; !s->of_groups && k < t->nfunctions; k++)
			if (trace_sleep_has(t, s, t->functions[k].n))
				take_row(w, s, t->functions[k].n);
	}
	take_other_nodes(w);
	close_spans(w);
}

/* ---- sums ---- */

void watched_count(struct watched *w)
{
	if (w->v.n)
		watched_estimate(w);
}

static void add(struct watched_function *sum, const struct watched_function *f)
{
	sum->by_budget |= f->by_budget;
	sum->is_asleep |= f->is_asleep;
	sum->since = sum->since && sum->since < f->since ? sum->since : f->since;
	sum->calls += f->calls;
	sum->watched += f->watched;
	sum->windows += f->windows;
	sum->whole += f->whole;
	if (f->estimate < 0 || sum->estimate < 0) {
		sum->estimate = sum->error = -1;
		return;
	}
	sum->estimate += f->estimate;
	sum->error = hypot(sum->error, f->error);
}

bool watched_of(const struct watched *w, uint32_t function, struct watched_function *out)
{
	bool any = false;

	*out = (struct watched_function){.function = function};
	for (uint32_t node = 0; w->v.n && node < trace_parts(w->t); node++) {
		const uint32_t i = index_find(&w->by_function, watched_key(node, function));

		if (i == INDEX_NONE)
			continue;
		add(out, &w->v.v[i]);
		any = true;
	}
	return any;
}

void watched_free(struct watched *w)
{
	vec_for(&w->v, f) {
		vec_free(&f->spans);
		vec_free(&f->lanes);
	}
	vec_free(&w->v);
	index_free(&w->by_function);
}
