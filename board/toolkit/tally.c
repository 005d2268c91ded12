/* SPDX-License-Identifier: MIT */
/* tally.c - see tally.h. */
#define _GNU_SOURCE
#include "board/toolkit/tally.h"

#include <math.h>
#include <stdlib.h>

void tally_init(struct tally *t, const struct interval_info *info)
{
	t->first_row = xcalloc(info->defs.n + 1, sizeof(*t->first_row));
	for (size_t d = 0; d < info->defs.n; d++) {
		t->first_row[d] = t->rows.n;
		for (int part = 0; part < info->defs.v[d].nrows; part++) {
			struct tally_row *r = vec_push(&t->rows);

			r->def = &info->defs.v[d];
			r->def_number = d;
			r->part = part;
		}
	}
}

/* Welford's way: the sum of squares of large numbers would lose the small differences. */
static void add(struct tally_sum *s, int64_t begin, int64_t ticks, bool keep)
{
	long double off = (long double)ticks - s->mean;

	if (!s->count || ticks < s->min)
		s->min = ticks;
	if (!s->count || ticks > s->max)
		s->max = ticks;
	s->count++;
	s->total += ticks;
	s->mean += off / (long double)s->count;
	s->square += off * ((long double)ticks - s->mean);
	if (keep)
		*vec_push(&s->lengths) = (struct tally_length){begin, ticks};
}

static struct tally_sum *group_sum(struct tally *t, size_t row, const struct interval *i)
{
	uint32_t key = t->by == TALLY_BY_CPU ? i->cpu : i->source;
	uint32_t n = index_of(&t->group_keys, (uint64_t)row << 32 | key);
	struct tally_group *g;

	if (n == t->groups.n) {
		g = xcalloc(1, sizeof(*g));
		g->key = key;
		*vec_push(&t->groups) = g;
		*vec_push(&t->rows.v[row].groups) = g;
	}
	return &t->groups.v[n]->sum;
}

/* What NIST's program could measure without -d: the low 32 bits of timestamps. */
static int64_t narrow(int64_t ticks)
{
	uint64_t size = ticks < 0 ? -(uint64_t)ticks : (uint64_t)ticks;
	int64_t low = (int64_t)(size & UINT32_MAX);

	return ticks < 0 ? -low : low;
}

void tally_add(void *arg, size_t def, int part, const struct interval *i)
{
	struct tally *t = arg;
	size_t row = t->first_row[def] + (size_t)part;
	int64_t ticks = t->wide ? i->ticks : narrow(i->ticks);

	t->cut += ticks != i->ticks;
	t->negative += ticks < 0;
	add(&t->rows.v[row].all, i->begin, ticks, t->keep_all);
	if (t->by != TALLY_BY_NONE)
		add(group_sum(t, row, i), i->begin, ticks, t->keep_groups);
}

static int by_key(const void *a, const void *b)
{
	const struct tally_group *x = *(struct tally_group *const *)a;
	const struct tally_group *y = *(struct tally_group *const *)b;

	return x->key < y->key ? -1 : x->key > y->key;
}

void tally_sort(struct tally *t)
{
	vec_for(&t->rows, r)
		if (r->groups.n)
			qsort(r->groups.v, r->groups.n, sizeof(*r->groups.v), by_key);
}

long double tally_deviation(const struct tally_sum *s)
{
	return s->count ? sqrtl(s->square / (long double)s->count) : 0;
}

void tally_free(struct tally *t)
{
	vec_for(&t->rows, r) {
		vec_free(&r->all.lengths);
		vec_free(&r->groups);
	}
	vec_for(&t->groups, g) {
		vec_free(&(*g)->sum.lengths);
		xfree(*g);
	}
	vec_free(&t->rows);
	vec_free(&t->groups);
	index_free(&t->group_keys);
	xfree(t->first_row);
}
