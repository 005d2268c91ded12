/* SPDX-License-Identifier: MIT */
/*
 * tactic_arrivals.c - an exit that cannot be touched is probed on every way that leads to it.
 *
 *        cmp %rcx,%rax                    jncc past; probe; jmp ret
 *        je  1f           ---->           past: ...
 *        ...
 *        mov %rdx,%rax    ---->           mov %rdx,%rax; probe; jmp ret
 *   1:   ret                              stays as it is
 *
 * For a `ret` of one byte that is a branch target and is followed by code.  Sound when all ways
 * are known: direct jumps out of this function and the instruction before.  If one of them
 * cannot be taken, the place is refused; what was displaced for the others stays displaced,
 * without a probe.
 */
#include "inject/plan/planner.h"
#include "base/search.h"

#include <stdlib.h>

#define ARRIVALS_MAX 24u /* more of them are a probe each */

static enum refusal add(struct ways *w, uint64_t vaddr, enum draft_where where, uint32_t probe)
{
	if (w->n == WAYS_MAX)
		return REFUSAL_BRANCH_TARGET;
	w->v[w->n++] = (struct draft_probe){probe, where, TACTIC_ARRIVALS, vaddr};
	return REFUSAL_NONE;
}

static bool is_listed(const struct planner *pl, uint64_t vaddr)
{
	size_t lo = partition_point(i, pl->arrivals.n, pl->arrivals.v[i] < vaddr);

	return lo < pl->arrivals.n && pl->arrivals.v[lo] == vaddr;
}

static int compare_jumps(const void *a, const void *b)
{
	const struct planner_jump *x = a, *y = b;

	if (x->target != y->target)
		return x->target < y->target ? -1 : 1;
	return x->from < y->from ? -1 : x->from > y->from;
}

/* Assembly calls pieces of its own function. */
static bool is_jump(const struct insn *in, const struct function *f)
{
	return in->kind == INSN_JCC || in->kind == INSN_JMP ||
	       (in->kind == INSN_CALL && in->target > f->start && in->target < f->end);
}

/* The jumps of the function, wherever its parts lie. */
static void list_jumps(struct planner *pl)
{
	struct insn in;

	if (pl->jumps_of == pl->fn.start)
		return;
	pl->jumps_of = pl->fn.start;
	pl->jumps.n = 0;
	for (uint32_t k = 0; k < pl->fn.nranges; k++) {
		const struct function *f = &pl->map->functions->v[pl->fn.ranges[k]];

		for (uint64_t at = f->start; at < f->end; at++)
			if (code_map_flags(pl->map, at) & CODE_INSN &&
			    window_decode(pl->map, at, &in) && is_jump(&in, f))
				*vec_push(&pl->jumps) =
					(struct planner_jump){in.target, at, in.is_loop};
	}
	if (pl->jumps.n)
		qsort(pl->jumps.v, pl->jumps.n, sizeof(pl->jumps.v[0]), compare_jumps);
}

static enum refusal find_jumps(struct planner *pl, const struct place *place, struct ways *w)
{
	enum refusal r = REFUSAL_NONE;
	size_t lo;

	list_jumps(pl);
	lo = partition_point(i, pl->jumps.n, pl->jumps.v[i].target < place->vaddr);
	for (; lo < pl->jumps.n && pl->jumps.v[lo].target == place->vaddr && !r; lo++)
		r = add(w, pl->jumps.v[lo].from, DRAFT_BEFORE, place->probe);
	return r;
}

static enum refusal find_previous(const struct planner *pl, const struct place *place,
				  struct ways *w)
{
	uint64_t previous = code_map_previous(pl->map, place->vaddr);
	struct insn in;

	if (!previous || !window_decode(pl->map, previous, &in) ||
	    previous + in.len != place->vaddr)
		return REFUSAL_UNDECODABLE;
	if (window_insn_ends(&in) || code_map_flags(pl->map, previous) & CODE_PADDING)
		return REFUSAL_NONE;
	return add(w, previous, DRAFT_AFTER, place->probe);
}

enum refusal tactic_find_ways(struct planner *pl, const struct place *place, struct ways *w)
{
	uint8_t flags = code_map_flags(pl->map, place->vaddr);
	enum refusal r;

	w->n = 0;
	if (flags & CODE_AFTER_CALL && place->where != DRAFT_RETURNED)
		return REFUSAL_AFTER_CALL;
	if (flags & CODE_RSEQ)
		return REFUSAL_RSEQ;
	if (flags & CODE_CONSTANT || is_listed(pl, place->vaddr) || place->vaddr == pl->fn.start)
		return REFUSAL_BRANCH_TARGET;
	if (planner_scope(pl, place->vaddr, WINDOW_JUMP).one_only)
		return REFUSAL_INDIRECT_JUMP;
	r = find_jumps(pl, place, w);
	if (place->where == DRAFT_RETURNED) /* what stands before it is the call */
		return r || w->n ? r : REFUSAL_BRANCH_TARGET;
	return r ? r : find_previous(pl, place, w);
}

enum refusal tactic_displace(struct planner *pl, uint64_t vaddr)
{
	struct place place = {vaddr, PLACE_NO_PROBE, true, DRAFT_BEFORE};
	enum refusal r = tactic_jump(pl, &place);

	if (r && pl->use & USE_SHORT)
		r = tactic_short(pl, &place);
	if (r && pl->use & USE_RELAY)
		r = tactic_relay(pl, &place);
	if (!r && pl->drafts.v[planner_draft_at(pl, vaddr)].is_detour)
		r = REFUSAL_OVERLAP; /* probed already, and yet it runs where it stands */
	return r;
}

static bool has_loop_or_call(const struct planner *pl, const struct ways *w)
{
	struct insn in;

	for (unsigned i = 0; i < w->n; i++)
		if (window_decode(pl->map, w->v[i].vaddr, &in) &&
		    (in.is_loop || in.kind == INSN_CALL))
			return true;
	return false;
}

/* An exit at a conditional jump is one only when the jump is taken: no way there can tell. */
static bool is_conditional(const struct planner *pl, uint64_t vaddr)
{
	struct insn in;

	return !window_decode(pl->map, vaddr, &in) || in.kind == INSN_JCC;
}

enum refusal tactic_arrivals(struct planner *pl, const struct place *place)
{
	struct ways w;
	enum refusal r;

	/* a hook's site may be patched without the others; loops have a rule of their own */
	if (!place->may_go_back || place->probe == PLACE_NO_PROBE || pl->fn.has_hooks ||
	    pl->probes.v[place->probe].kind != PROBE_EXIT || is_conditional(pl, place->vaddr))
		return REFUSAL_BRANCH_TARGET;
	r = tactic_find_ways(pl, place, &w);
	if (!r && (w.n > ARRIVALS_MAX || has_loop_or_call(pl, &w)))
		r = REFUSAL_BRANCH_TARGET;
	for (unsigned i = 0; i < w.n && !r; i++)
		r = tactic_displace(pl, w.v[i].vaddr);
	for (unsigned i = 0; i < w.n && !r; i++)
		if (planner_room(pl, planner_draft_at(pl, w.v[i].vaddr)) < w.n)
			r = REFUSAL_OVERLAP;
	for (unsigned i = 0; i < w.n && !r; i++)
		r = planner_put_at(pl, planner_draft_at(pl, w.v[i].vaddr), &w.v[i]);
	return r || w.n ? r : REFUSAL_BRANCH_TARGET;
}
