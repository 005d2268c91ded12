/* SPDX-License-Identifier: MIT */
/*
 * emit.c - turns the drafts of one function into sites and stubs.
 *
 *   stub:   probes of insn 0 | insn 0' | probes of insn 1 | insn 1' | ... | jmp back
 *                            ^ loops back to the function's start come here
 *
 *   stub:   probes of a call that returned | probes of insn 0 | ...
 *                                          ^ whoever comes by a jump comes in here
 *
 * An exit at a conditional jump counts only when the jump is taken:
 *
 *           jncc 1f;  probe;  jmp target;  1:
 *
 * One probe may stand in several stubs: an exit on all the ways that lead to it.
 *
 * Decides nothing: whatever is refused was refused before.
 */
#include "inject/plan/emit.h"

#include <string.h>

#include "inject/plan/relocate.h"
#include "inject/plan/stub.h"

/* Lists the probes by address.  Insertion sort: they are nearly sorted already. */
static void list_probes(struct emitter *e)
{
	const struct draft_link *links = e->pl->draft_probes.v;

	e->nprobes = e->to = 0;
	for (uint32_t l = e->d->first; l != DRAFT_END; l = links[l].next) {
		unsigned k = e->nprobes++;

		for (; k && e->probes[k - 1]->vaddr > links[l].p.vaddr; k--)
			e->probes[k] = e->probes[k - 1];
		e->probes[k] = &links[l].p;
	}
}

static void find_probes(struct emitter *e, uint64_t vaddr)
{
	e->from = e->to;
	while (e->to < e->nprobes && e->probes[e->to]->vaddr == vaddr)
		e->to++;
}

static void emit_conditional_exit(struct emitter *e, const struct insn *in, uint32_t probe)
{
	uint8_t condition = e->code[in->addr - e->d->w.addr + in->disp_off - 1] & 15;
	uint8_t jncc[2] = {0x70 | (condition ^ 1), STUB_PROBE_LEN + 5};

	stub_bytes(&e->s, jncc, 2);
	stub_probe(&e->s, probe);
	stub_jump(&e->s, in->target);
}

/* The same, where the request wants something when it is taken: that may be long. */
static void emit_conditional_places(struct emitter *e, const struct insn *in, uint32_t exit)
{
	uint8_t condition = e->code[in->addr - e->d->w.addr + in->disp_off - 1] & 15;
	uint8_t jncc[6] = {0x0f, 0x80 | (condition ^ 1)};
	uint32_t from, distance;

	stub_bytes(&e->s, jncc, 6);
	from = e->s.len;
	emit_taken(e, in);
	if (exit != UINT32_MAX)
		stub_probe(&e->s, exit);
	stub_shape(&e->s, KRON_SHAPE_START);
	stub_jump(&e->s, in->target);
	distance = e->s.len - from;
	memcpy(e->s.code + from - 4, &distance, sizeof(distance));
}

/* What belongs to the function's entry; a loop back to it enters after that. */
static void emit_entry_probes(struct emitter *e, const struct insn *in)
{
	for (unsigned i = e->from; i < e->to; i++) {
		const struct draft_probe *p = e->probes[i];

		if (e->pl->probes.v[p->probe].kind != PROBE_ENTRY)
			continue;
		if (e->pl->counts_calls)
			emit_call(e, p->probe, in);
		else
			stub_probe(&e->s, p->probe);
	}
}

static void emit_hooks(struct emitter *e)
{
	for (unsigned i = e->from; i < e->to; i++)
		if (e->pl->probes.v[e->probes[i]->probe].kind == PROBE_HOOK)
			stub_hook(&e->s, e->probes[i]->probe);
}

/* The exit probe that stands there, or UINT32_MAX. */
static uint32_t find_exit(const struct emitter *e, enum draft_where where)
{
	for (unsigned i = e->from; i < e->to; i++) {
		const struct draft_probe *p = e->probes[i];

		if (p->where == where && e->pl->probes.v[p->probe].kind == PROBE_EXIT)
			return p->probe;
	}
	return UINT32_MAX;
}

/* A call whose callee reads no flags: asked where what is dead is lost anyway. */
static bool has_no_flags(const struct emitter *e, const struct insn *in)
{
	bool calls = in->kind == INSN_CALL || in->kind == INSN_CALL_INDIRECT;

	return calls && e->pl->is_counting &&
	       liveness_before(planner_liveness(e->pl), in->addr).flags;
}

/*
 * The entry, places, hooks: a hook may execute another program and never return.  But each turn of a loop comes
 * to the places, and not to the hook.
 */
static void emit_before(struct emitter *e, const struct insn *in)
{
	const struct planner_function *fn = &e->pl->fn;
	const bool is_loop = fn->has_loops && in->addr == fn->start;

	emit_entry_probes(e, in);
	if (is_loop) {
		emit_hooks(e);
		e->loop_to = (uint64_t)e->pl->sites.n << 16 | e->s.len;
	}
	emit_places(e, in, DRAFT_BEFORE);
	if (!is_loop)
		emit_hooks(e);
}

static void emit_displaced(struct emitter *e, const struct insn *in)
{
	const struct planner_function *fn = &e->pl->fn;
	unsigned off = in->addr - e->d->w.addr;
	uint32_t exit = find_exit(e, DRAFT_BEFORE);

	emit_before(e, in);
	if (in->kind == INSN_JCC && (exit != UINT32_MAX || emit_has_taken(e, in))) {
		stub_map(&e->s, off);
		if (emit_has_taken(e, in))
			emit_conditional_places(e, in, exit);
		else
			emit_conditional_exit(e, in, exit);
		stub_settle(&e->s, off);
		return;
	}
	if (exit != UINT32_MAX)
		stub_probe(&e->s, exit);
	stub_map(&e->s, off);
	/* an exit to the own start is a tail call, not a loop */
	relocate_emit(&e->s, in, e->code + off, fn->start,
		      fn->has_loops && exit == UINT32_MAX ? e->loop_to : RELOCATE_NO_LOOP,
		      has_no_flags(e, in));
}

static bool has_result(const struct emitter *e)
{
	for (unsigned i = e->from; e->pl->results && i < e->to; i++)
		if (e->probes[i]->where == DRAFT_AFTER)
			return true;
	return false;
}

/*
 * jmp *slot(%rip) whose result is wanted.  Who is called finds the stack 16 bytes deeper, and a
 * return address of ours: only for functions that mind neither (callsite.h).
 */
static void emit_result(struct emitter *e, const struct insn *in)
{
	static const uint8_t call[] = {0x48, 0x8d, 0x64, 0x24, 0xf8,  /* lea -8(%rsp),%rsp */
				       0xff, 0x15};                   /* call *slot(%rip) */
	static const uint8_t back[] = {0x48, 0x8d, 0x64, 0x24, 0x08}; /* lea 8(%rsp),%rsp */
	unsigned off = in->addr - e->d->w.addr;

	emit_places(e, in, DRAFT_BEFORE);
	stub_map(&e->s, off);
	stub_reshape(&e->s, KRON_SHAPE_RESULT);
	stub_bytes(&e->s, call, sizeof(call));
	stub_fixup32(&e->s, FIXUP_MODULE_REL32, 4, in->target);
	stub_bytes(&e->s, back, sizeof(back));
	emit_places(e, in, DRAFT_AFTER);
	stub_shape(&e->s, KRON_SHAPE_START);
	stub_settle(&e->s, off);
	stub_bytes(&e->s, "\xc3", 1); /* ret */
}

static void emit_insn(struct emitter *e, const struct insn *in)
{
	uint32_t after;

	find_probes(e, in->addr);
	if (in->addr == e->d->w.addr) {
		emit_places(e, in, DRAFT_RETURNED);
		e->entrance = (uint16_t)e->s.len;
	}
	if (has_result(e)) {
		emit_result(e, in);
		return;
	}
	after = find_exit(e, DRAFT_AFTER);
	emit_displaced(e, in);
	if (after != UINT32_MAX)
		stub_probe(&e->s, after);
	emit_places(e, in, DRAFT_AFTER);
}

static void add_site(struct emitter *e, uint32_t plan_function)
{
	struct planner *pl = e->pl;
	const struct draft *d = e->d;
	struct plan_site *site = vec_push(&pl->sites);
	uint32_t index = pl->sites.n - 1;

	*vec_push(&pl->entrances) = e->entrance;
	site->vaddr = d->w.addr;
	site->function = plan_function;
	site->code = pl->code.n;
	site->code_len = e->s.len;
	site->kept = plan_code_kept(e->s.fixups, e->s.nfixups, e->s.len);
	site->first_fixup = pl->fixups.n;
	site->nfixups = e->s.nfixups;
	site->first_map = pl->maps.n;
	site->nmaps = e->s.nmaps;
	site->window = d->w.len;
	site->patch_len = d->is_detour ? 0 : draft_head(d) + (d->prefix != 0);
	site->prefix = d->prefix;
	site->landing = d->landing;
	if (d->landing)
		memcpy(site->landing_bytes, elf_image_at(pl->map->img, d->landing, PLAN_LANDING),
		       PLAN_LANDING);
	site->nrelays = d->nrelays;
	for (uint32_t l = d->first; l != DRAFT_END; l = pl->draft_probes.v[l].next) {
		const struct draft_probe *dp = &pl->draft_probes.v[l].p;
		struct plan_probe *p = &pl->probes.v[dp->probe];

		p->site = index;
		p->tactic = l == d->first ? d->tactic : TACTIC_JUMP_SHARED;
		if (dp->tactic)
			p->tactic = dp->tactic;
		site->has_hook |= p->kind == PROBE_HOOK;
		site->has_place |= p->kind == PROBE_PLACE;
	}
}

/* What the plan keeps of the stub, and after it the window's old bytes. */
static void append(struct planner *pl, const struct stub *s, const uint8_t *old, unsigned window)
{
	unsigned kept = plan_code_kept(s->fixups, s->nfixups, s->len);

	vec_reserve(&pl->code, pl->code.n + kept + window);
	plan_code_take(pl->code.v + pl->code.n, s->code, s->fixups, s->nfixups, s->len);
	memcpy(pl->code.v + pl->code.n + kept, old, window);
	pl->code.n += kept + window;
	vec_add(&pl->fixups, s->fixups, s->nfixups);
	vec_add(&pl->maps, s->maps, s->nmaps);
}

static void append_relays(struct planner *pl, const struct draft *d)
{
	for (unsigned i = 0; i < d->nrelays; i++) {
		uint64_t vaddr = pl->relays.v[d->relays + i];
		struct plan_relay r = {.from_site = (int16_t)(vaddr - d->w.addr)};

		memcpy(r.bytes, elf_image_at(pl->map->img, vaddr, PLAN_RELAY), PLAN_RELAY);
		vec_reserve(&pl->code, pl->code.n + sizeof(r));
		memcpy(pl->code.v + pl->code.n, &r, sizeof(r));
		pl->code.n += sizeof(r);
	}
}

static void emit_window(struct emitter *e)
{
	const struct window *w = &e->d->w;
	struct insn in;
	bool goes_on;

	emit_places_begin(e);
	if (e->d->is_detour) { /* what stands there is as it was */
		emit_decode(e, w->addr, &in);
		find_probes(e, w->addr);
		emit_entry_probes(e, &in);
		emit_places(e, &in, DRAFT_BEFORE);
		emit_hooks(e);
		stub_shape(&e->s, KRON_SHAPE_BACK);
		stub_settle(&e->s, 0);
		stub_bytes(&e->s, "\xe9", 1);
		stub_fixup32(&e->s, FIXUP_MODULE_REL32, 4, w->addr);
		emit_places_end(e);
		return;
	}
	for (uint64_t at = w->addr; at < w->addr + w->code_len; at += in.len) {
		emit_decode(e, at, &in);
		emit_insn(e, &in);
	}
	goes_on = !w->ends || in.kind == INSN_TRAP; /* a handler may step over a trap */
	if (goes_on)
		stub_shape(&e->s, KRON_SHAPE_BACK);
	stub_settle(&e->s, w->code_len);
	if (goes_on)
		stub_jump(&e->s, w->addr + w->len);
	emit_places_end(e);
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
		list_probes(&e);
		stub_start(&e.s);
		e.entrance = 0;
		e.s.position_independent = pl->position_independent;
		emit_window(&e);
		add_site(&e, plan_function);
		append(pl, &e.s, e.code, d->w.len);
		append_relays(pl, d);
	}
	pl->drafts.n = 0;
	pl->draft_probes.n = 0;
	pl->relays.n = 0;
}
