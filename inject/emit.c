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

static bool is_conditional_exit(const struct insn *in, const struct plan_probe *p)
{
	return p->kind == PROBE_EXIT && in->kind == INSN_JCC;
}

static void emit_conditional_exit(struct emitter *e, const struct insn *in, uint32_t probe)
{
	uint8_t condition = e->code[in->addr - e->d->w.addr + in->disp_off - 1] & 15;
	uint8_t jncc[2] = {0x70 | (condition ^ 1), STUB_PROBE_LEN + 5};

	stub_bytes(&e->s, jncc, 2);
	stub_probe(&e->s, probe);
	stub_jump(&e->s, in->target);
}

/* Entries and hooks come before the loop label, exits behind it. */
static bool emit_probes(struct emitter *e, const struct insn *in, bool exits)
{
	bool replaced = false;

	for (int i = 0; i < e->d->nprobes; i++) {
		uint32_t probe = e->d->probes[i];
		const struct plan_probe *p = &e->pl->probes.v[probe];

		if (p->vaddr != in->addr || (p->kind == PROBE_EXIT) != exits)
			continue;
		if (is_conditional_exit(in, p)) {
			stub_map(&e->s, in->addr - e->d->w.addr);
			emit_conditional_exit(e, in, probe);
			replaced = true;
		} else if (p->kind == PROBE_HOOK) {
			stub_hook(&e->s, probe);
		} else {
			stub_probe(&e->s, probe);
		}
	}
	return replaced;
}

static void emit_insn(struct emitter *e, const struct insn *in)
{
	const struct planner_function *fn = &e->pl->fn;
	unsigned off = in->addr - e->d->w.addr;

	emit_probes(e, in, false);
	if (fn->has_loops && in->addr == fn->start)
		e->loop_to = (uint64_t)e->pl->sites.n << 16 | e->s.len;
	if (emit_probes(e, in, true))
		return;
	stub_map(&e->s, off);
	relocate_emit(&e->s, in, e->code + off, fn->start,
		      fn->has_loops ? e->loop_to : RELOCATE_NO_LOOP);
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
	site->patch_len = WINDOW_JUMP;
	memcpy(site->old_bytes, e->code, d->w.len);
	for (int i = 0; i < d->nprobes; i++) {
		struct plan_probe *p = &pl->probes.v[d->probes[i]];

		p->site = index;
		p->tactic = i ? TACTIC_JUMP_SHARED : d->tactic;
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
