/* SPDX-License-Identifier: MIT */
/*
 * tactic_jump.c - a 5-byte jump over one or more whole instructions, and padding.
 *
 *   entry   [ push | mov  ... ]            forward from the function's first byte
 *   exit    [ ret | nop nop nop nop ]      with the padding behind it, else
 *           [ add $8,%rsp | ret ]          with the instructions before it, as few as it takes
 *   shared  [ xor %eax,%eax | ret | nop ]  a window that is there already holds the place,
 *                                          or can grow to hold it
 *
 * Going back stops at whatever else may be reached: the instruction that begins the window
 * may be a branch target, the exit itself then may not.
 */
#include "inject/planner.h"

static enum tactic tactic_of(const struct window *w)
{
	if (w->len > w->code_len)
		return TACTIC_JUMP_PADDING;
	return w->n > 1 ? TACTIC_JUMP_MULTI : TACTIC_JUMP;
}

/* The draft's window becomes one that also reaches over `through`. */
static enum refusal grow(struct planner *pl, uint32_t draft, uint64_t through)
{
	struct draft *d = &pl->drafts.v[draft];
	struct window_scope scope = planner_scope(pl, d->w.addr);
	struct window w;
	enum refusal r;

	if (through < d->w.addr || through - d->w.addr >= KRON_PATCH_OLD_MAX || through >= scope.hi)
		return REFUSAL_NO_ROOM;
	planner_release(pl, draft);
	r = window_make(&w, &scope, d->w.addr, through);
	if (r == REFUSAL_NONE) {
		d->w = w;
		d->tactic = tactic_of(&w);
	}
	planner_hold_again(pl, draft);
	return r;
}

static enum refusal share(struct planner *pl, uint64_t vaddr, uint32_t *draft)
{
	*draft = planner_draft_at(pl, vaddr);
	if (*draft == UINT32_MAX || window_index(&pl->drafts.v[*draft].w, vaddr) < 0)
		return REFUSAL_OVERLAP;
	return REFUSAL_NONE;
}

/*
 * Where the smallest window that goes back from the instruction at vaddr begins.  Only bytes
 * are counted here; window_make() judges the instructions.
 */
static enum refusal go_back(const struct planner *pl, const struct window_scope *scope,
			    uint64_t vaddr, uint64_t *start)
{
	struct insn in;
	unsigned have;
	uint64_t previous;
	enum refusal r;

	*start = vaddr;
	if (!window_decode(pl->map, vaddr, &in))
		return REFUSAL_UNDECODABLE;
	have = in.len;
	if (window_insn_ends(&in))
		have += window_padding(scope, vaddr + in.len);
	while (have < WINDOW_JUMP) {
		if (*start <= scope->lo)
			return REFUSAL_NO_ROOM;
		r = window_entered_at(pl->map, *start);
		if (r)
			return r;
		if (scope->one_only)
			return REFUSAL_INDIRECT_JUMP;
		previous = code_map_previous(pl->map, *start);
		if (!previous)
			return REFUSAL_NO_ROOM;
		have += *start - previous;
		*start = previous;
		if (pl->taken[*start - pl->map->lo])
			break; /* the other window's owner decides */
	}
	return REFUSAL_NONE;
}

static enum refusal take(struct planner *pl, const struct place *place, uint32_t *draft)
{
	struct window_scope scope = planner_scope(pl, place->vaddr);
	uint64_t start = place->vaddr;
	struct window w;
	enum refusal r;

	if (pl->taken[place->vaddr - pl->map->lo])
		return share(pl, place->vaddr, draft);
	if (place->may_go_back) {
		r = go_back(pl, &scope, place->vaddr, &start);
		if (r)
			return r;
	}
	if (pl->taken[start - pl->map->lo]) {
		*draft = planner_draft_at(pl, start);
		return *draft == UINT32_MAX ? REFUSAL_OVERLAP : grow(pl, *draft, place->vaddr);
	}
	r = window_make(&w, &scope, start, place->vaddr);
	if (r)
		return r;
	*draft = planner_hold(pl, &w, tactic_of(&w));
	return REFUSAL_NONE;
}

const struct tactic_ops tactic_jump = {.name = "jump", .take = take};
