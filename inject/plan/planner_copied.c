/* SPDX-License-Identifier: MIT */
/*
 * planner_copied.c - code that the program copies (copied.h), at planning.
 *
 * Its bytes are there for one function, while that is at work: what others put among them, landings
 * and jumps over what moves out, would lead astray in a copy.  Its own functions use jumps that hold
 * there, and nothing else.
 */
#include <string.h>

#include "inject/plan/planner.h"

static uint64_t min64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t max64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static void set_lock(struct planner *pl, uint64_t lo, uint64_t hi, bool lock)
{
	if (lo < pl->map->lo)
		lo = pl->map->lo;
	for (uint64_t at = lo; at < hi && at < pl->map->hi; at++) {
		uint8_t *taken = &pl->bytes[at - pl->map->lo];

		if (lock)
			*taken = *taken == BYTE_FREE ? BYTE_LOCKED : BYTE_TAKEN;
		else if (*taken == BYTE_LOCKED)
			*taken = BYTE_FREE;
	}
}

void planner_free_bytes(const struct planner *pl, uint64_t off, uint64_t n)
{
	uint64_t start = pl->map->lo + off;
	uint64_t lo = max64(start, pl->copied.lo), hi = min64(start + n, pl->copied.hi);

	memset(pl->bytes + off, BYTE_FREE, n);
	if (lo < hi)
		memset(pl->bytes + (lo - pl->map->lo), BYTE_LOCKED, hi - lo);
}

void planner_close_copied(struct planner *pl)
{
	set_lock(pl, pl->open_lo, pl->open_hi, true);
	pl->open_lo = pl->open_hi = 0;
}

void planner_open_copied(struct planner *pl, uint32_t i)
{
	const struct functions *fns = pl->map->functions;
	const struct function *f = &fns->v[i];
	uint64_t end = i + 1 < fns->n ? f[1].start : pl->copied.hi;

	planner_close_copied(pl);
	pl->jump = WINDOW_JUMP;
	if (!copied_has(&pl->copied, f))
		return;
	pl->jump = WINDOW_FAR;
	pl->use &= USE_JUMP | USE_ARRIVALS;
	pl->open_lo = f->start < pl->copied.lo ? pl->copied.lo : f->start;
	pl->open_hi = min64(end, pl->copied.hi); /* and the padding after it */
	set_lock(pl, pl->open_lo, pl->open_hi, false);
}
