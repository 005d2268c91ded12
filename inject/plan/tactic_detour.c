/* SPDX-License-Identifier: MIT */
/*
 * tactic_detour.c - a place that cannot be touched, when every way to it is displaced anyway.
 *
 *        cmp %rcx,%rax                    stub: cmp; je detour
 *        je  1f           ---->
 *        mov %rdx,%rax    ---->           stub: mov; jmp detour
 *   1:   ret                              stays as it is
 *
 *                                         detour: probe; jmp 1b
 *
 * Also for a place after a call that such ways lead to: they go through the trampolines and
 * enter its stub after the probe, so whoever is left to pass the probe has returned.
 *
 *        call f                           stays
 *   1:   mov %rax,%rbx    ---->           stub: probe; 2: mov %rax,%rbx ...
 *        je  1b           ---->           stub: je 2b
 *
 * For an instruction of one byte between branch targets, and for those that can run nowhere
 * else.  Sound when all ways are known: direct jumps of this function and the instruction
 * before.  What was displaced for a place that is refused then stays displaced, unprobed.
 */
#include "inject/plan/planner.h"

/* The way there is displaced, and nothing after it in its window hides the place. */
static enum refusal displace(struct planner *pl, const struct draft_probe *way, uint64_t vaddr)
{
	enum refusal r = tactic_displace(pl, way->vaddr);
	const struct draft *d;

	if (r || way->where == DRAFT_BEFORE)
		return r;
	d = &pl->drafts.v[planner_draft_at(pl, way->vaddr)];
	return d->w.addr + d->w.code_len != vaddr ? REFUSAL_OVERLAP : REFUSAL_NONE;
}

/* A finished site has it: in the second round. */
static bool is_displaced(struct planner *pl, uint64_t vaddr)
{
	const struct plan_site *s = pl->fn.second_round ? planner_site_over(pl, vaddr) : NULL;

	return s && s->patch_len;
}

enum refusal tactic_part_ways(struct planner *pl, const struct place *place)
{
	struct ways ways;
	enum refusal r = tactic_find_ways(pl, place, &ways);

	if (planner_is_landing_pad(pl, place->vaddr)) /* no call returns there */
		return REFUSAL_NOT_REACHED;
	if (!(pl->use & USE_DETOUR))
		return REFUSAL_SHARED_RETURN;
	for (unsigned i = 0; i < ways.n && !r; i++)
		if (!is_displaced(pl, ways.v[i].vaddr))
			r = tactic_displace(pl, ways.v[i].vaddr);
	return r ? REFUSAL_SHARED_RETURN : REFUSAL_NONE;
}

enum refusal tactic_detour(struct planner *pl, const struct place *place)
{
	struct window w = {.addr = place->vaddr, .n = 1};
	struct ways ways;
	struct insn in;
	enum refusal r;
	uint32_t draft;

	if (!pl->is_long || place->probe == PLACE_NO_PROBE || place->where != DRAFT_BEFORE ||
	    pl->probes.v[place->probe].kind != PROBE_PLACE)
		return REFUSAL_BRANCH_TARGET;
	if (!planner_is_free(pl, place->vaddr))
		return REFUSAL_OVERLAP;
	if (!window_decode(pl->map, place->vaddr, &in))
		return REFUSAL_UNDECODABLE;
	if (code_map_flags(pl->map, place->vaddr) & CODE_DATA)
		return REFUSAL_DATA;
	r = tactic_find_ways(pl, place, &ways);
	for (unsigned i = 0; i < ways.n && !r; i++)
		r = displace(pl, &ways.v[i], place->vaddr);
	if (r)
		return r;
	w.len = w.code_len = in.len;
	for (unsigned i = 0; i < w.len; i++) /* displaced with one of the ways? */
		if (!planner_is_free(pl, w.addr + i))
			return REFUSAL_OVERLAP;
	draft = planner_hold(pl, &w, TACTIC_DETOUR);
	return planner_put(pl, draft, place);
}
