/* SPDX-License-Identifier: MIT */
/*
 * plan_refuse.c - what can be said of a function or a place before any tactic is tried: plan.c
 * lists, plan_rounds.c takes, and both ask here.
 */
#include "inject/plan/plan_impl.h"

#include "inject/elf/elf_image.h"
#include "inject/plan/action.h"

#define NONE UINT32_MAX

uint32_t plan_owner_of(const struct making *m, uint64_t vaddr)
{
	const struct function *f = functions_at(m->fns, vaddr);

	if (!f)
		return m->fns->n;
	return f->is_part && f->parent < m->fns->n ? f->parent : f - m->fns->v;
}

bool plan_is_hooked(const struct making *m, uint32_t i)
{
	for (int h = 0; h < KRON_HOOK_SYMBOLS; h++)
		if (m->hooks[h] == m->fns->v[i].start)
			return true;
	for (size_t k = 0; k < m->unwinds.n; k++)
		if (m->unwinds.v[k].function == i)
			return true;
	return false;
}

static bool is_undecodable(const struct making *m, uint32_t i)
{
	for (uint32_t r = i; r != NONE; r = plan_next_range(m, r))
		if (m->map->per_function[r].undecodable)
			return true;
	return false;
}

enum refusal plan_refuse_function(const struct making *m, uint32_t i)
{
	const struct function *f = &m->fns->v[i];

	if (m->map->img->has_text_relocs)
		return REFUSAL_NOT_RELOCATABLE; /* the loader changes the code */
	if (m->is_read)
		return REFUSAL_READ;
	if (!elf_image_at(m->map->img, f->start, f->end - f->start))
		return REFUSAL_OUT_OF_FILE;
	if (m->map->per_function[i].contradicted)
		return REFUSAL_CONTRADICTED;
	if (is_undecodable(m, i))
		return REFUSAL_UNDECODABLE;
	if (copied_is_template(f) || (m->opt->for_file && copied_has(&m->pl.copied, f)))
		return REFUSAL_COPIED;
	if (m->map->img->is_go && function_is_preempt(f->name))
		return REFUSAL_FOUND_BY;
	return REFUSAL_NONE;
}

/* Behind an instruction is where it falls through.  Behind a call is where it returns to. */
static enum refusal refuse_after(const struct making *m, uint32_t i, const struct insn *in)
{
	uint64_t next = in->addr + in->len;
	uint8_t flags = code_map_flags(m->map, next);

	/* the stub calls, and unwinders must get through it */
	if (m->fns->v[i].is_stub && in->kind == INSN_JMP_INDIRECT && in->rip_relative)
		return functions_at(m->fns, in->addr)->has_fde ? REFUSAL_NONE : REFUSAL_NOT_REACHED;
	if (in->kind != INSN_CALL && in->kind != INSN_CALL_INDIRECT)
		return window_insn_ends(in) ? REFUSAL_NOT_REACHED : REFUSAL_NONE;
	if (!(flags & CODE_INSN) || plan_owner_of(m, next) != plan_owner_of(m, in->addr))
		return REFUSAL_NOT_REACHED;
	return REFUSAL_NONE;
}

enum refusal plan_refuse_place(const struct making *m, uint32_t i, const struct place_request *r)
{
	enum refusal why = REFUSAL_NONE;
	struct insn in;

	if (!(code_map_flags(m->map, r->vaddr) & CODE_INSN) ||
	    !code_map_insn(m->map, r->vaddr, &in))
		return REFUSAL_NO_INSN;
	if (r->where == PLACE_AFTER)
		why = refuse_after(m, i, &in);
	if (r->where == PLACE_TAKEN && (in.kind != INSN_JCC || in.is_loop))
		why = REFUSAL_JCC_TAIL; /* it has no opposite */
	return why ? why
		   : action_refusal(&m->opt->request->actions[r->action], r->where, &in,
				    elf_image_at(m->map->img, r->vaddr, in.len));
}
