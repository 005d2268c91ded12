/* SPDX-License-Identifier: MIT */
/*
 * pairs_stack.c - which of a lane's strands runs, which wait for it, and which were left; and how far
 * away its functions have their callees; and when those end that nothing ends.
 */
#include "trace/analysis/pairs_impl.h"

#include <string.h>

#define WAITING_MOST 64 /* strands that wait for one another */

/* What s has interrupted, or was begun by, and what that has: they all wait for it.  NULL: nothing. */
static struct strand *waits_for(const struct strand *s)
{
	return frame_ref_get(&s->below) ? s->below.strand : NULL;
}

bool pairs_is_waiting(const struct strand *x, const struct strand *s)
{
	for (int hops = 0; s && hops < WAITING_MOST; hops++, s = waits_for(s))
		if (s == x)
			return true;
	return false;
}

struct moment pairs_end_of(const struct lane *l, const struct strand *s,
			   const struct trace_event *e)
{
	return s->is_left ? s->left : pairs_now(l, e);
}

void pairs_make_current(struct lane *l, struct strand *s, const struct trace_event *e)
{
	struct strand *x = s, *was = l->cur;
	int hops;

	if (s == was)
		return;
	l->cur = s;
	l->switches++;
	s->aside = false;
	for (hops = 0; x && hops < WAITING_MOST; hops++, x = waits_for(x)) {
		x->is_left = false;
		x->waited = l->switches;
	}
	for (hops = 0; was && hops < WAITING_MOST; hops++, was = waits_for(was)) {
		if (was->waited == l->switches)
			break;
		was->is_left = was->was_left = true;
		was->left = pairs_now(l, e);
	}
}

struct strand *pairs_begin_strand(struct pairs *p, struct lane *l, const struct trace_event *e,
				  bool linked)
{
	struct strand *s = strand_new(&p->pool), *cur = l->cur;

	if (cur) {
		s->below = frame_ref_to(cur, cur->n - 1);
		s->base_depth = cur->base_depth + cur->n;
		s->linked = linked;
	}
	pairs_make_current(l, s, e);
	return s;
}

void pairs_cut(struct pairs *p, struct lane *l, struct strand *s, uint32_t at,
	       const struct trace_event *e)
{
	struct strand *x = strand_new(&p->pool);
	struct moment end = pairs_end_of(l, s, e);

	while (x->cap < s->n - at)
		strand_grow(x);
	x->n = s->n - at;
	memcpy(x->frames, s->frames + at, x->n * sizeof(*x->frames));
	s->n = at;
	x->root = s->root;
	x->base_depth = s->base_depth + at;
	x->below = frame_ref_to(s, at - 1);
	x->linked = true;
	x->aside = true;
	x->is_left = x->was_left = true;
	x->left = end;
	x->cut_function = s->frames[at - 1].function;
	x->cut_gap = s->frames[at - 1].sp - x->frames[0].sp;
	strand_set_add(&l->set, x);
}

void pairs_learn_reach(struct lane *l, uint32_t function, uint32_t gap)
{
	uint32_t i;

	if (gap <= APART)
		return;
	if (!l->reach)
		l->reach = xcalloc(1, sizeof(*l->reach));
	i = index_of(&l->reach->functions, function);
	while (l->reach->gap.n <= i)
		*vec_push(&l->reach->gap) = 0;
	if (l->reach->gap.v[i] < gap)
		l->reach->gap.v[i] = gap;
}

uint32_t pairs_reach_of(const struct lane *l, uint32_t function)
{
	uint32_t i = l->reach ? index_find(&l->reach->functions, function) : INDEX_NONE;

	return i == INDEX_NONE ? APART : l->reach->gap.v[i];
}

void pairs_free_reach(struct lane *l)
{
	if (!l->reach)
		return;
	index_free(&l->reach->functions);
	vec_free(&l->reach->gap);
	xfree(l->reach);
	l->reach = NULL;
}

/* ---- what sinks ask ---- */

const struct trace *pairs_trace(const struct pairs *p)
{
	return p->t;
}

uint32_t pairs_top(const struct pairs *p, uint32_t lane)
{
	const struct lane *l = &p->lanes[lane];
	const struct strand *s = l->cur ? l->cur : l->plain;

	return s && s->n ? s->frames[s->n - 1].node : PAIR_NO_NODE;
}

uint32_t pairs_below(const struct pairs *p, uint32_t lane)
{
	const struct lane *l = &p->lanes[lane];
	const struct strand *s = l->newest;
	const struct frame *f;

	if (s->n > 1)
		return s->frames[s->n - 2].node;
	f = frame_ref_get(&s->below);
	return f ? f->node : PAIR_NO_NODE;
}

uint32_t pairs_strands(const struct pairs *p, uint32_t lane)
{
	return p->lanes[lane].set.n + (p->lanes[lane].plain && p->lanes[lane].plain->n);
}

uint64_t pairs_events(const struct pairs *p, uint32_t lane)
{
	return p->lanes[lane].events;
}

const struct pair_counts *pairs_counts(const struct pairs *p)
{
	return &p->counts;
}

uint64_t pairs_lane_end(struct pairs *p, uint32_t lane)
{
	struct lane *l = &p->lanes[lane];

	if (!l->end_tsc)
		l->end_tsc = trace_lane_end(p->t, lane, l->last_tsc);
	return l->end_tsc;
}

/* Where nothing is known but the last sample, they ended then or later. */
struct moment pairs_last_moment(struct pairs *p, struct lane *l)
{
	const uint64_t tsc = pairs_lane_end(p, l->number);
	struct moment end = {.event = l->events, .tsc = tsc, .in = {tsc, tsc}};

	if (p->is_sparse && (tsc == l->last_tsc || !trace_lane_has_end(p->t, l->number)))
		end.in = (struct trace_bounds){l->last_in.lo, UINT64_MAX};
	return end;
}
