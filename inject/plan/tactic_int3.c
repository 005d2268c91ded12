/* SPDX-License-Identifier: MIT */
/*
 * tactic_int3.c - a trap of one byte, the last of all: the runtime's SIGTRAP handler goes on in
 * the stub (runtime/faults/faults.h).  In memory only, and only when asked for: a hit costs the
 * time of a signal, and a program that meets one while SIGTRAP is blocked is killed.
 */
#include "inject/plan/planner.h"

enum refusal tactic_int3(struct planner *pl, const struct place *place)
{
	struct window_scope scope = planner_scope(pl, place->vaddr, 1);
	struct window w;
	enum refusal r;

	if (!pl->is_long || place->probe == PLACE_NO_PROBE)
		return REFUSAL_NO_ROOM;
	r = window_make(&w, &scope, place->vaddr, place->vaddr);
	if (r)
		return r;
	w.dead = 0; /* nothing after the trap may be a landing */
	return planner_put(pl, planner_hold(pl, &w, TACTIC_INT3), place);
}

enum refusal planner_trap(struct planner *pl, uint32_t probe)
{
	struct place place = {pl->probes.v[probe].vaddr, probe, false, DRAFT_BEFORE};

	return tactic_int3(pl, &place);
}
