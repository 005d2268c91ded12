/* SPDX-License-Identifier: MIT */
/*
 * timeline.c - see timeline.h.
 *
 * A tick becomes itself, the difference of the clocks at the knot, and what the clocks have drifted apart
 * since, which is small: as a double it is exact to a tick over weeks where both count at about one rate.
 */
#include "trace/times/timeline.h"

#include "base/search.h"

#define MOST 0x1p62

void timeline_add(struct timeline *l, uint64_t from, uint64_t to)
{
	const struct timeline_knot *last = l->v.n ? &l->v.v[l->v.n - 1] : NULL;

	if (last && (from <= last->from || to <= last->to))
		return;
	*vec_push(&l->v) = (struct timeline_knot){from, to, 0};
}

void timeline_end(struct timeline *l, double rate)
{
	struct timeline_knot *k = l->v.v;

	for (size_t i = 0; i + 1 < l->v.n; i++) {
		double from = (double)(k[i + 1].from - k[i].from);

		k[i].excess = ((double)(k[i + 1].to - k[i].to) - from) / from;
	}
	if (l->v.n == 1)
		k[0].excess = rate - 1;
	else if (l->v.n)
		k[l->v.n - 1].excess = k[l->v.n - 2].excess;
}

void timeline_free(struct timeline *l)
{
	vec_free(&l->v);
}

static uint64_t moved(uint64_t base, int64_t ticks, double excess)
{
	double more = (double)ticks * excess;

	if (!(more > -MOST && more < MOST)) /* clocks that a damaged table makes up */
		return base + (uint64_t)ticks;
	return base + (uint64_t)ticks + (uint64_t)(int64_t)(more < 0 ? more - 0.5 : more + 0.5);
}

uint64_t timeline_map_to(const struct timeline *l, uint64_t tsc)
{
	size_t at = partition_point(i, l->v.n, l->v.v[i].from <= tsc);
	const struct timeline_knot *k = &l->v.v[at ? at - 1 : 0];

	return moved(k->to, (int64_t)(tsc - k->from), k->excess);
}

uint64_t timeline_map_from(const struct timeline *l, uint64_t tsc)
{
	size_t at = partition_point(i, l->v.n, l->v.v[i].to <= tsc);
	const struct timeline_knot *k = &l->v.v[at ? at - 1 : 0];

	return moved(k->from, (int64_t)(tsc - k->to), 1 / (1 + k->excess) - 1);
}
