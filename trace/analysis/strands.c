/* SPDX-License-Identifier: MIT */
/* strands.c - see strands.h. */
#include "trace/analysis/strands.h"

#include <string.h>

#include "base/vec.h"
#include "base/search.h"

struct strand *strand_new(struct strand_pool *pool)
{
	struct strand *s = pool->free;

	if (s) {
		struct frame *frames = s->frames;
		uint32_t cap = s->cap;

		pool->free = s->next_free;
		memset(s, 0, sizeof(*s));
		s->frames = frames;
		s->cap = cap;
	} else {
		s = xcalloc(1, sizeof(*s));
	}
	s->serial = ++pool->serial;
	s->root = s->serial;
	return s;
}

void strand_release(struct strand_pool *pool, struct strand *s)
{
	s->n = 0;
	s->serial = 0;
	s->next_free = pool->free;
	pool->free = s;
}

void strand_pool_free(struct strand_pool *pool)
{
	while (pool->free) {
		struct strand *s = pool->free;

		pool->free = s->next_free;
		xfree(s->frames);
		xfree(s);
	}
}

void strand_grow(struct strand *s)
{
	s->cap = s->cap ? s->cap * 2 : 32;
	s->frames = xrealloc(s->frames, (size_t)s->cap * sizeof(*s->frames));
}

uint32_t strand_above(const struct strand *s, uint32_t sp)
{
	uint32_t bottom = strand_bottom(s);

	return (uint32_t)partition_point(i, s->n, bottom - s->frames[i].sp < bottom - sp);
}

struct frame_ref frame_ref_to(struct strand *s, uint32_t index)
{
	return (struct frame_ref){s, s->serial, index, s->frames[index].entry};
}

struct frame *frame_ref_get(const struct frame_ref *r)
{
	if (!r->strand || r->strand->serial != r->serial || r->index >= r->strand->n ||
	    r->strand->frames[r->index].entry != r->entry)
		return NULL;
	return &r->strand->frames[r->index];
}

/* Index of the first strand whose bottom is not below sp; n if there is none. */
static uint32_t lower_bound(const struct strand_set *set, uint32_t sp)
{
	return (uint32_t)partition_point(i, set->n, strand_bottom(set->v[i]) < sp);
}

void strand_set_add(struct strand_set *set, struct strand *s)
{
	uint32_t i = lower_bound(set, strand_bottom(s));

	if (set->n == set->cap) {
		set->cap = set->cap ? set->cap * 2 : 4;
		set->v = xrealloc(set->v, (size_t)set->cap * sizeof(*set->v));
	}
	memmove(&set->v[i + 1], &set->v[i], (set->n - i) * sizeof(*set->v));
	set->v[i] = s;
	set->n++;
}

void strand_set_remove(struct strand_set *set, struct strand *s)
{
	uint32_t i = lower_bound(set, strand_bottom(s));

	memmove(&set->v[i], &set->v[i + 1], (set->n - i - 1) * sizeof(*set->v));
	set->n--;
}

struct strand *strand_set_find(const struct strand_set *set, uint32_t sp)
{
	uint32_t i;

	if (!set->n)
		return NULL;
	if (set->n == 1)
		return set->v[0];
	i = lower_bound(set, sp);
	return set->v[i == set->n ? 0 : i]; /* wraps: the lowest is the next one above */
}

struct strand *strand_set_below(const struct strand_set *set, uint32_t sp)
{
	uint32_t i;

	if (!set->n)
		return NULL;
	i = lower_bound(set, sp);
	return set->v[i ? i - 1 : set->n - 1];
}
