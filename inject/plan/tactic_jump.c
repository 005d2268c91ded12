/* SPDX-License-Identifier: MIT */
/*
 * tactic_jump.c - a jump of 5 bytes, or of 7 in code that is copied, over one or more whole
 * instructions, and padding.
 *
 *   entry   [ push | mov  ... ]            forward from the function's first byte
 *   exit    [ ret | nop nop nop nop ]      with the padding after it, else
 *           [ add $8,%rsp | ret ]          with the instructions before it, as few as it takes
 *   shared  [ xor %eax,%eax | ret | nop ]  a window that is there already holds the place,
 *                                          or can grow to hold it
 *
 * Going back stops at whatever else may be reached: the instruction that begins the window
 * may be a branch target, the exit itself then may not.
 */
#include "inject/plan/planner.h"

enum tactic tactic_jump_kind(const struct window *w)
{
	if (w->len > w->code_len)
		return TACTIC_JUMP_PADDING;
	return w->n > 1 ? TACTIC_JUMP_MULTI : TACTIC_JUMP;
}

static enum refusal find(struct planner *pl, const struct place *place, uint32_t *draft)
{
	struct window_scope scope = planner_scope(pl, place->vaddr, pl->jump);
	uint64_t start = place->vaddr;
	struct window w;
	enum refusal r;

	if (!planner_is_free(pl, place->vaddr))
		return planner_share(pl, place->vaddr, draft);
	if (!(pl->use & USE_JUMP))
		return REFUSAL_SWITCHED_OFF;
	if (place->may_go_back) {
		r = planner_go_back(pl, &scope, place->vaddr, &start);
		if (r)
			return r;
	}
	if (!planner_is_free(pl, start)) {
		*draft = planner_draft_at(pl, start);
		if (*draft == UINT32_MAX)
			return REFUSAL_OVERLAP;
		r = planner_grow(pl, *draft, place->vaddr, pl->jump);
		if (r == REFUSAL_NONE)
			pl->drafts.v[*draft].tactic = tactic_jump_kind(&pl->drafts.v[*draft].w);
		return r;
	}
	r = window_make(&w, &scope, start, place->vaddr);
	if (r)
		return r;
	*draft = planner_hold(pl, &w, tactic_jump_kind(&w));
	return REFUSAL_NONE;
}

enum refusal tactic_jump(struct planner *pl, const struct place *place)
{
	uint32_t draft;
	enum refusal r = find(pl, place, &draft);

	return r ? r : planner_put(pl, draft, place);
}
