/* SPDX-License-Identifier: MIT */
/*
 * net_streams.c - which bytes of a stream each call has transferred.
 *
 *   thread 1  ─[ 100 ]──────[ 30 ]────────      bytes 0..99;  100..149 belong to both, who knows how;
 *   thread 2  ────────────[ 20 ]───[ 40 ]─      150..189
 */
#include <stdlib.h>

#include "trace/messages/net_impl.h"

void net_stream_add(struct net_stream *s, const struct net_call *c)
{
	const bool is_ended = c->end != UINT64_MAX;

	if (is_ended && c->n <= 0) {
		s->has_ended = s->has_ended || (c->is_receive && !c->n && !c->is_empty);
		return;
	}
	*vec_push(&s->parts) = (struct net_part){.n = is_ended ? (uint64_t)c->n : NET_UNKNOWN,
						 .lane = c->lane,
						 .sequence = (uint32_t)s->parts.n,
						 .is_nested = c->is_nested,
						 .is_shown = c->is_shown,
						 .begin = c->begin,
						 .end = c->end,
						 .earliest = c->earliest,
						 .latest = c->latest,
						 .wait_begin = c->wait_begin,
						 .wait_end = c->wait_end};
}

static int by_begin(const void *a, const void *b)
{
	const struct net_part *x = a, *y = b;

	if (x->begin != y->begin)
		return x->begin < y->begin ? -1 : 1;
	return (x->sequence > y->sequence) - (x->sequence < y->sequence);
}

/* Calls that follow each other, of which nobody knows the order. */
struct group {
	size_t first, end;
	uint32_t lane;   /* of the one that has ended last */
	uint64_t latest; /* when that was */
	uint64_t others; /* likewise, of other lanes */
	uint64_t reach;  /* the latest of this group and those before it */
};
struct groups {
	VEC(struct group) v;
};

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Takes in what follows it. */
static void merge(struct group *g, const struct group *next)
{
	g->end = next->end;
	g->reach = later(g->reach, next->reach);
	if (next->lane == g->lane) {
		g->latest = later(g->latest, next->latest);
		g->others = later(g->others, next->others);
	} else if (next->latest > g->latest) {
		g->others = later(later(g->others, next->others), g->latest);
		g->latest = next->latest;
		g->lane = next->lane;
	} else {
		g->others = later(later(g->others, next->others), next->latest);
	}
}

/* Was one of the group in progress when the part began?  Calls of a lane follow each other. */
static bool is_beside(const struct group *g, const struct net_part *p)
{
	return (g->lane == p->lane ? g->others : g->latest) > p->earliest;
}

static void add(struct groups *all, const struct net_part *p, size_t at)
{
	const struct group own = {at, at + 1, p->lane, p->latest, 0, p->latest};
	size_t first = p->is_nested && all->v.n ? all->v.n - 1 : all->v.n;

	/* where times are bounds, others than the last group may reach so far */
	for (size_t k = all->v.n; k && all->v.v[k - 1].reach > p->earliest; k--)
		if (is_beside(&all->v.v[k - 1], p))
			first = k - 1;
	*vec_push(&all->v) = own;
	for (size_t k = first + 1; k < all->v.n; k++)
		merge(&all->v.v[first], &all->v.v[k]);
	all->v.n = first + 1;
	if (first)
		all->v.v[first].reach = later(all->v.v[first].reach, all->v.v[first - 1].reach);
}

/* What they have transferred together. */
static uint64_t sum_of(const struct net_stream *s, size_t first, size_t end)
{
	uint64_t sum = 0;

	for (size_t i = first; i < end; i++) {
		if (s->parts.v[i].n > NET_UNKNOWN / 2 - sum)
			return NET_UNKNOWN;
		sum += s->parts.v[i].n;
	}
	return sum;
}

static void place(struct net_stream *s, size_t first, size_t end)
{
	const uint64_t sum = sum_of(s, first, end);

	s->is_untold = s->is_untold || sum == NET_UNKNOWN;
	for (size_t i = first; i < end; i++) {
		struct net_part *p = &s->parts.v[i];

		p->is_unordered = end - first > 1;
		p->offset = s->is_untold ? NET_UNKNOWN : s->total;
		p->span = sum;
	}
	s->total += s->is_untold ? 0 : sum;
}

void net_stream_settle(struct net_stream *s)
{
	struct groups all = {0};

	if (!s->parts.n)
		return;
	qsort(s->parts.v, s->parts.n, sizeof(*s->parts.v), by_begin);
	for (size_t i = 0; i < s->parts.n; i++)
		add(&all, &s->parts.v[i], i);
	vec_for(&all.v, g)
		place(s, g->first, g->end);
	vec_free(&all.v);
}
