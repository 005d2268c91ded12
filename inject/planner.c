/* SPDX-License-Identifier: MIT */
/* planner.c - the per-byte state and the drafts of the function at work (planner.h). */
#include "inject/planner.h"

#include <string.h>

struct window_scope planner_scope(const struct planner *pl, uint64_t vaddr)
{
	const struct function *holder = functions_at(pl->map->functions, vaddr);

	return (struct window_scope){
		.map = pl->map,
		.taken = pl->taken,
		.lo = holder ? holder->start : vaddr,
		.hi = holder ? holder->end : vaddr,
		.one_only = pl->fn.one_only,
	};
}

static void mark(struct planner *pl, const struct window *w, uint8_t state)
{
	memset(pl->taken + (w->addr - pl->map->lo), state, w->len);
}

uint32_t planner_hold(struct planner *pl, const struct window *w, enum tactic tactic)
{
	struct draft *d;

	vec_reserve(&pl->drafts, pl->drafts.n + 1);
	d = &pl->drafts.v[pl->drafts.n++];
	d->w = *w;
	d->nprobes = 0;
	d->tactic = tactic;
	d->live = true;
	mark(pl, w, 1);
	return pl->drafts.n - 1;
}

void planner_hold_again(struct planner *pl, uint32_t draft)
{
	struct draft *d = &pl->drafts.v[draft];

	mark(pl, &d->w, 1);
	d->live = true;
}

void planner_release(struct planner *pl, uint32_t draft)
{
	struct draft *d = &pl->drafts.v[draft];

	mark(pl, &d->w, 0);
	d->live = false;
}

uint32_t planner_draft_at(const struct planner *pl, uint64_t vaddr)
{
	/* the neighbour is nearly always the newest, or the entry */
	for (size_t i = pl->drafts.n; i-- > 0;) {
		const struct draft *d = &pl->drafts.v[i];

		if (d->live && vaddr >= d->w.addr && vaddr < d->w.addr + d->w.len)
			return i;
	}
	return UINT32_MAX;
}
