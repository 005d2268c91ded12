/* SPDX-License-Identifier: MIT */
/*
 * emit.c - turns the drafts of one function into sites and stubs.
 *
 *   stub:   probes of insn 0 | insn 0' | probes of insn 1 | insn 1' | ... | jmp back
 *                            ^ loops back to the function's start come here
 *
 * An exit at a conditional jump counts only when the jump is taken:
 *
 *           jncc 1f;  probe;  jmp target;  1:
 *
 * One probe may stand in several stubs: an exit on all the ways that lead to it.
 *
 * Decides nothing: whatever is refused was refused before.
 */
#include "inject/planner.h"

#include <string.h>

#include "inject/relocate.h"
#include "inject/stub.h"

struct emitter {
	struct planner *pl;
	const struct draft *d;
	const uint8_t *code; /* of the window */
	uint64_t loop_to;    /* as relocate_emit() wants it */
	struct stub s;
};

static void emit_conditional_exit(struct emitter *e, const struct insn *in, uint32_t probe)
{
	uint8_t condition = e->code[in->addr - e->d->w.addr + in->disp_off - 1] & 15;
	uint8_t jncc[2] = {0x70 | (condition ^ 1), STUB_PROBE_LEN + 5};

	stub_bytes(&e->s, jncc, 2);
	stub_probe(&e->s, probe);
	stub_jump(&e->s, in->target);
}

/* What stands in front of the instruction, but for an exit. */
static void emit_entry_probes(struct emitter *e, const struct insn *in)
{
	for (int i = 0; i < e->d->nprobes; i++) {
		const struct draft_probe *p = &e->d->probes[i];
		uint8_t kind = e->pl->probes.v[p->probe].kind;

		if (p->vaddr != in->addr || kind == PROBE_EXIT)
			continue;
		if (kind == PROBE_HOOK)
			stub_hook(&e->s, p->probe);
		else
			stub_probe(&e->s, p->probe);
	}
}

/* The exit probe that stands there, or UINT32_MAX. */
static uint32_t find_exit(const struct emitter *e, const struct insn *in, enum draft_where where)
{
	for (int i = 0; i < e->d->nprobes; i++) {
		const struct draft_probe *p = &e->d->probes[i];

		if (p->vaddr == in->addr && p->where == where &&
		    e->pl->probes.v[p->probe].kind == PROBE_EXIT)
			return p->probe;
	}
	return UINT32_MAX;
}

static void emit_displaced(struct emitter *e, const struct insn *in)
{
	const struct planner_function *fn = &e->pl->fn;
	unsigned off = in->addr - e->d->w.addr;
	uint32_t exit = find_exit(e, in, DRAFT_BEFORE);

	emit_entry_probes(e, in);
	if (fn->has_loops && in->addr == fn->start)
		e->loop_to = (uint64_t)e->pl->sites.n << 16 | e->s.len;
	if (exit != UINT32_MAX && in->kind == INSN_JCC) {
		stub_map(&e->s, off);
		emit_conditional_exit(e, in, exit);
		return;
	}
	if (exit != UINT32_MAX)
		stub_probe(&e->s, exit);
	stub_map(&e->s, off);
	/* an exit to the own start is a tail call, not a loop */
	relocate_emit(&e->s, in, e->code + off, fn->start,
		      fn->has_loops && exit == UINT32_MAX ? e->loop_to : RELOCATE_NO_LOOP);
}

static void emit_insn(struct emitter *e, const struct insn *in)
{
	uint32_t after = find_exit(e, in, DRAFT_AFTER);

	emit_displaced(e, in);
	if (after != UINT32_MAX)
		stub_probe(&e->s, after);
}

static void add_site(struct emitter *e, uint32_t plan_function)
{
	struct planner *pl = e->pl;
	const struct draft *d = e->d;
	struct plan_site *site = vec_push(&pl->sites);
	uint32_t index = pl->sites.n - 1;

	site->vaddr = d->w.addr;
	site->function = plan_function;
	site->code = pl->code.n;
	site->code_len = e->s.len;
	site->first_fixup = pl->fixups.n;
	site->nfixups = e->s.nfixups;
	site->first_map = pl->maps.n;
	site->nmaps = e->s.nmaps;
	site->window = d->w.len;
	site->patch_len = d->landing ? WINDOW_SHORT : WINDOW_JUMP;
	memcpy(site->old_bytes, e->code, d->w.len);
	site->landing = d->landing;
	if (d->landing)
		memcpy(site->landing_bytes, elf_image_at(pl->map->img, d->landing, PLAN_LANDING),
		       PLAN_LANDING);
	for (int i = 0; i < d->nprobes; i++) {
		struct plan_probe *p = &pl->probes.v[d->probes[i].probe];

		p->site = index;
		p->tactic = i ? TACTIC_JUMP_SHARED : d->tactic;
		if (d->probes[i].tactic)
			p->tactic = d->probes[i].tactic;
		site->has_hook |= p->kind == PROBE_HOOK;
	}
}

static void append(struct planner *pl, const struct stub *s)
{
	vec_reserve(&pl->code, pl->code.n + s->len);
	memcpy(pl->code.v + pl->code.n, s->code, s->len);
	pl->code.n += s->len;
	vec_reserve(&pl->fixups, pl->fixups.n + s->nfixups);
	memcpy(pl->fixups.v + pl->fixups.n, s->fixups, s->nfixups * sizeof(s->fixups[0]));
	pl->fixups.n += s->nfixups;
	vec_reserve(&pl->maps, pl->maps.n + s->nmaps);
	memcpy(pl->maps.v + pl->maps.n, s->maps, s->nmaps * sizeof(s->maps[0]));
	pl->maps.n += s->nmaps;
}

void planner_emit(struct planner *pl, uint32_t plan_function)
{
	struct emitter e;

	e.pl = pl;
	e.loop_to = RELOCATE_NO_LOOP;
	for (size_t i = 0; i < pl->drafts.n; i++) {
		const struct draft *d = &pl->drafts.v[i];

		if (!d->live)
			continue;
		e.d = d;
		e.code = elf_image_at(pl->map->img, d->w.addr, d->w.len);
		stub_start(&e.s);
		for (int k = 0; k < d->w.n; k++)
			emit_insn(&e, &d->w.insns[k]);
		if (!d->w.ends)
			stub_jump(&e.s, d->w.addr + d->w.code_len);
		add_site(&e, plan_function);
		append(pl, &e.s);
	}
	pl->drafts.n = 0;
}
