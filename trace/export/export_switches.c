/* SPDX-License-Identifier: MIT */
/* export_switches.c - see export_switches.h. */
#include "trace/export/export_switches.h"

#include <stdlib.h>

#include "trace/text.h"

void export_switches_open(struct export_switches *s, const struct trace *t)
{
	*s = (struct export_switches){.t = t, .off = offcpu_open(t)};
	s->v = offcpu_with_ends(s->off, &s->n);
	for (size_t i = t->nlanes; i-- > 0;)
		export_switches_see(s, (uint32_t)i); /* at first the first one */
}

void export_switches_close(struct export_switches *s)
{
	offcpu_close(s->off);
	index_free(&s->tids);
	vec_free(&s->lanes);
}

bool export_switches_valid(const struct trace_switch *r)
{
	return r->kind >= TRACE_SWITCH_IN && r->kind <= TRACE_SWITCH_LOST;
}

static int by_cpu(const void *a, const void *b)
{
	const struct trace_switch *const *x = a, *const *y = b;

	if ((*x)->cpu != (*y)->cpu)
		return (*x)->cpu < (*y)->cpu ? -1 : 1;
	return *x < *y ? -1 : *x > *y;
}

struct trace_switch *export_switches_by_cpu(const struct export_switches *s, size_t *n)
{
	const struct trace_switch **order = xmalloc((s->n + 1) * sizeof(*order));
	struct trace_switch *v = xmalloc((s->n + 1) * sizeof(*v));
	size_t kept = 0;

	for (size_t i = 0; i < s->n; i++)
		if (export_switches_valid(&s->v[i]))
			order[kept++] = &s->v[i];
	qsort(order, kept, sizeof(*order), by_cpu);
	for (size_t i = 0; i < kept; i++)
		v[i] = *order[i];
	xfree(order);
	*n = kept;
	return v;
}

uint32_t export_switches_lane(const struct export_switches *s, uint32_t tid)
{
	uint32_t at = index_find(&s->tids, tid);

	return at == INDEX_NONE ? UINT32_MAX : s->lanes.v[at];
}

void export_switches_see(struct export_switches *s, uint32_t lane)
{
	uint32_t at = index_of(&s->tids, trace_lane_task(&s->t->lanes[lane]));

	if (at == s->lanes.n)
		vec_push(&s->lanes);
	s->lanes.v[at] = lane;
}

const char *export_switches_name(const struct export_switches *s, uint32_t tid)
{
	uint32_t lane = export_switches_lane(s, tid);
	const struct trace_proc *p;

	if (lane == UINT32_MAX)
		return "?";
	if (s->t->lanes[lane].name[0])
		return s->t->lanes[lane].name;
	p = trace_proc_of(s->t, s->t->lanes[lane].proc_uid);
	return p && p->exe[0] ? text_base(p->exe) : "?";
}

void export_switches_off(const struct export_switches *s, uint32_t lane, uint64_t first,
			 uint64_t last, export_switches_fn fn, void *ctx)
{
	struct offcpu_walk w;

	offcpu_of(s->off, trace_lane_task(&s->t->lanes[lane]), &w);
	for (size_t i = 0; i < w.n; i++) {
		struct offcpu_stretch o = w.v[i];

		if (o.out < first)
			o.out = first;
		if (o.in > last)
			o.in = last;
		if (o.out < o.in)
			fn(ctx, lane, &o);
	}
}
