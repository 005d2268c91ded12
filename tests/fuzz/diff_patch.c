/* SPDX-License-Identifier: MIT */
/*
 * diff_patch.c - plans an image, binds it, patches it where it runs; and says which probes a run
 * must have passed, from the instructions that it executed in place.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <kron/segment.h>

#include "inject/bind/bind.h"
#include "inject/code/insn.h"
#include "inject/plan/tactics.h"
#include "tests/fuzz/diff_patch.h"

#define BLOCK_MAX 0x400000u
#define LEVEL 5u
#define PLACE_EVENTS 0x100000u

_Noreturn void bail(const char *what, const char *why)
{
	printf("Bail out! %s: %s\n", what, why);
	fflush(stdout);
	_exit(2);
}

/* Numbers that registers have now and then: around zero, and any. */
static uint64_t draw_number(struct rng *r, unsigned bits)
{
	uint64_t n = below(r, 2) ? below(r, 512) - (uint64_t)256 : rnd(r);

	return bits == 64 ? n : n & ((1ull << bits) - 1);
}

static void draw_condition(struct place_condition *c, struct rng *r)
{
	*c = (struct place_condition){
		.what = below(r, 8) ? CONDITION_REG : CONDITION_CPU,
		.reg = below(r, 16),
		.compare = below(r, CONDITION_COMPARES),
		.bits = (uint8_t)(8 << below(r, 4)),
		.has_mask = below(r, 2),
	};
	c->reg = c->reg == RSP ? RAX : c->reg;
	c->is_signed = !c->has_mask && below(r, 2);
	c->mask = rnd(r) >> (64 - c->bits);
	c->number = draw_number(r, c->bits);
	if (c->is_signed) /* with its sign, as the parser gives it */
		c->number = (uint64_t)((int64_t)(c->number << (64 - c->bits)) >> (64 - c->bits));
	if (c->has_mask && c->bits == 64)
		c->number = (uint64_t)(int32_t)c->number;
	if (c->what != CONDITION_CPU)
		return;
	*c = (struct place_condition){.what = CONDITION_CPU, .bits = 32, .number = 4096};
	c->compare = below(r, 2) ? CONDITION_LT : CONDITION_GE;
}

static void draw_actions(struct patched *p, struct rng *r)
{
	p->what = below(r, ACTS_KINDS);
	for (unsigned i = 0; i < ACTIONS; i++) {
		struct place_action *a = &p->actions[i];

		*a = (struct place_action){
			.kind = p->what == ACTS_TRACE   ? below(r, 2)
				: p->what == ACTS_COUNT ? ACTION_COUNT
							: below(r, ACTION_STORE + 1),
			.level = below(r, 12),
			.payload = below(r, PAYLOAD_KINDS),
			.reg = below(r, 16),
			.ungated = below(r, 2),
			.value = (uint64_t)(int32_t)rnd(r),
		};
		a->word = below(r, a->kind == ACTION_COUNT ? 16 : 128);
		if (a->kind == ACTION_TRACE || a->kind == ACTION_RESOURCE)
			a->ungated = 0;
		a->is_wide = a->kind == ACTION_TRACE && below(r, 2);
		/* Conditions may lose dead flags, as counts do. */
		if (p->what == ACTS_TRACE || a->kind > ACTION_RESOURCE || below(r, 2))
			continue;
		a->nconditions = (uint8_t)(1 + below(r, PLACE_CONDITIONS));
		for (unsigned k = 0; k < a->nconditions; k++)
			draw_condition(&a->conditions[k], r);
	}
}

/* At instructions that the image knows: all, or some.  Which, does not depend on the others. */
static void list_places(struct patched *p, const struct image *im, uint64_t seed, unsigned one_in)
{
	for (unsigned f = 0; f < im->nfn; f++) {
		const struct code *c = &im->fn[f];

		for (unsigned i = 0; i < c->items.n; i++) {
			struct rng r = {seed ^ c->items.v[i].salt};

			if (!chance(&r, one_in))
				continue;
			*vec_push(&p->places) = (struct place_request){
				.vaddr = im->base + TEXT_OFF + c->at[i],
				.where = below(&r, 3) ? PLACE_BEFORE : PLACE_AFTER,
				.action = below(&r, ACTIONS),
				.event = p->places.n - 1,
			};
		}
	}
}

static void plan(struct patched *p, const struct image *im, enum where_probes kind, uint64_t seed)
{
	struct rng r = {seed ^ 77};
	struct plan_request request = {.actions = p->actions, .nactions = ACTIONS};
	struct plan_options opt = {
		.request = kind == PROBES_FUNCTIONS ? NULL : &request,
		.position_independent = chance(&r, 4),
		.tactics = chance(&r, 3) ? below(&r, USE_INT3) : 0,
	};
	struct elf_image *img;
	struct err err;

	memset(p, 0, sizeof(*p));
	draw_actions(p, &r);
	for (unsigned i = 0; i < ACTIONS; i++) /* within reach */
		if (p->actions[i].payload == PAYLOAD_VADDR)
			p->actions[i].value = im->base + (p->actions[i].value & 0xfff);
	if (kind == PROBES_FUNCTIONS)
		p->what = ACTS_TRACE;
	else
		list_places(p, im, seed, kind == PROBES_ALL ? 1 : 6);
	request.places = p->places.v;
	request.nplaces = p->places.n;
	request.functions = chance(&r, 2);
	if (elf_image_from_memory(&img, im->file, im->file_size, "image", &err) ||
	    plan_make(&p->plan, img, &opt, &err))
		bail("planning", err.msg);
	elf_image_close(img);
}

static void *map_block(uint64_t seed, const struct image *im)
{
	static void *blocks[3];
	static const uint64_t at[] = {0x08000000, 0x30000000};
	unsigned which = im->fixed ? seed % 2 : 2;
	uint64_t addr = im->fixed ? at[which] : im->bias + 0x40000000;

	if (!blocks[which]) {
		blocks[which] = mmap((void *)addr, BLOCK_MAX, PROT_READ | PROT_WRITE | PROT_EXEC,
				     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
		if (blocks[which] != (void *)addr)
			bail("mmap", strerror(errno));
	}
	return blocks[which];
}

static void bind(struct patched *p, const struct image *im, uint64_t seed)
{
	uint8_t *selected = memset(xmalloc(p->plan->nfunctions + 1), 1, p->plan->nfunctions + 1);
	uint32_t *events = xmalloc((p->places.n + 1) * sizeof(*events));
	struct binding b = {
		.plan = p->plan,
		.selected = selected,
		.level = 5,
		.bias = im->bias,
		.block = (uint64_t)map_block(seed, im),
		.thunk = (uint64_t)diff_thunk,
		.payload_thunk =
			(uint64_t)diff_payload_thunk, /* of wide samples, too: their low half */
		.action_thunk = (uint64_t)diff_action_thunk,
		.way = p->way,
		.counts = RUN_COUNTS,
		.events = events,
		.nevents = p->places.n,
	};
	struct err err;

	for (unsigned i = 0; i < p->places.n; i++)
		events[i] = PLACE_EVENTS + i;
	p->block = b.block;
	if (bind_make(&p->bound, &b, &err))
		bail("binding", err.msg);
	if (p->bound.block_len > BLOCK_MAX)
		bail("binding", "the block is too long");
	/* stray stores must fault, as they do in a program */
	if (mprotect((void *)p->block, BLOCK_MAX, PROT_READ | PROT_WRITE))
		abort();
	if (p->bound.block_len)
		memcpy((void *)p->block, p->bound.block, p->bound.block_len);
	if (mprotect((void *)p->block, BLOCK_MAX, PROT_READ | PROT_EXEC))
		abort();
	p->selected = selected;
	xfree(events);
}

void patch_image(struct patched *p, const struct image *im, bool on)
{
	uint8_t *text = (uint8_t *)p->bound.patch_addr;

	for (size_t i = 0; i < p->bound.npatches; i++) {
		const struct kron_patch *k = &p->bound.patches[i];

		if (on && memcmp(text + k->off, k->old_bytes, k->old_len))
			bail("patching", "the old bytes are others");
	}
	image_unlock(im, true);
	for (size_t i = 0; i < p->bound.npatches; i++) {
		const struct kron_patch *k = &p->bound.patches[i];

		memcpy(text + k->off, on ? k->new_bytes : k->old_bytes,
		       on ? k->new_len : k->old_len);
	}
	image_unlock(im, false);
}

/* In the order of the sites (bind.c): all functions are selected. */
static void find_stubs(struct patched *p)
{
	p->spans = xcalloc(p->plan->nsites + 1, sizeof(*p->spans));
	for (size_t i = 0; i < p->plan->nsites; i++) {
		const struct plan_site *s = &p->plan->sites[i];

		uint64_t at = p->block + p->bound.stub_at[i];

		p->spans[i] = (struct site_span){at, at + s->code_len, s};
	}
}

void prepare(struct patched *p, const struct image *im, enum where_probes kind, uint64_t seed)
{
	plan(p, im, kind, seed);
	p->way = run_has_fs && seed >> 8 & 1 ? KRON_THUNK_LANE : KRON_THUNK_EXACT;
	run_has_counters = seed >> 9 & 3;
	bind(p, im, seed);
	find_stubs(p);
	p->function_of = xcalloc(p->plan->nfunctions + 1, sizeof(uint32_t));
	for (size_t i = 0; i < p->plan->nfunctions; i++)
		for (unsigned f = 0; f < im->nfn; f++)
			if (p->plan->functions[i].vaddr == im->base + TEXT_OFF + im->fn[f].start)
				p->function_of[i] = f;
}

void release(struct patched *p)
{
	bound_free(&p->bound);
	plan_free(p->plan);
	xfree(p->function_of);
	xfree(p->places.v);
	xfree(p->spans);
	xfree(p->selected);
}

uint64_t original(const struct patched *p, const struct image *im, uint64_t rip)
{
	if (rip - p->block >= p->bound.block_len)
		return rip;
	for (size_t i = 0; i < p->plan->nsites; i++) {
		const struct site_span *s = &p->spans[i];
		uint64_t found = 0;

		if (rip < s->start || rip >= s->end)
			continue;
		for (uint32_t k = 0; k < s->site->nmaps; k++) {
			const struct plan_map *m = &p->plan->maps[s->site->first_map + k];

			if (s->start + m->stub_off <= rip)
				found = im->bias + s->site->vaddr + m->window_off;
		}
		return found;
	}
	return 0;
}

/* ---- which probes ---- */

unsigned function_at(const struct image *im, uint64_t rip)
{
	for (unsigned f = 0; f < im->nfn; f++)
		if (rip - im->text >= im->fn[f].start && rip - im->text < im->fn[f].end)
			return f;
	return UINT32_MAX;
}

static bool is_string(const struct insn *in, const uint8_t *code)
{
	for (unsigned i = 0; i < in->len; i++)
		if ((code[i] >= 0xa4 && code[i] <= 0xa7) || (code[i] >= 0xaa && code[i] <= 0xaf))
			return i && (memchr(code, 0xf3, i) || memchr(code, 0xf2, i));
	return false;
}

/* One more event; of a place, which register values it finds. */
static void expect(struct expected *e, const struct plan_probe *p, const uint64_t *r)
{
	uint64_t number = KRON_EVENT_ENTRY(p->function);

	if (p->kind == PROBE_EXIT)
		number = KRON_EVENT_EXIT(p->function);
	*vec_push(&e->v) = (struct event){number, r[RSP]};
}

/* Of the operand of the instruction at vaddr, from what the registers hold; false: who knows. */
static bool operand_address(const struct expected *e, uint64_t vaddr, const uint64_t *r,
			    uint64_t *out)
{
	struct insn in;

	if (!insn_decode(&in, (uint8_t *)(vaddr + e->im->bias), 15, vaddr + e->im->bias) ||
	    !in.has_mem || in.mem_seg == 0x64)
		return false;
	if (in.rip_relative) {
		*out = in.target;
	} else {
		*out = in.mem_disp;
		if (in.mem_base >= 0)
			*out += r[in.mem_base];
		if (in.mem_index >= 0)
			*out += r[in.mem_index] * in.mem_scale;
		if (in.is_narrow)
			*out = (uint32_t)*out;
	}
	if (in.mem_seg == 0x65)
		*out += SCRATCH_ADDR + 2048;
	return true;
}

static uint64_t payload(const struct expected *e, const struct plan_probe *p,
			const struct place_action *a, const uint64_t *r)
{
	uint64_t address;

	switch ((enum payload_kind)a->payload) {
	case PAYLOAD_SP:
		return (uint32_t)(r[RSP] + a->value);
	case PAYLOAD_REG:
		return (uint32_t)r[a->reg];
	case PAYLOAD_IMM:
		return (uint32_t)a->value;
	case PAYLOAD_ADDRESS:
		return operand_address(e, p->vaddr, r, &address) ? (uint32_t)address : PAYLOAD_ANY;
	case PAYLOAD_VADDR:
		return (uint32_t)(a->value + e->im->bias);
	case PAYLOAD_ZERO:
	case PAYLOAD_KINDS:
		break;
	}
	return 0;
}

static bool compares(uint8_t compare, int order)
{
	switch ((enum condition_compare)compare) {
	case CONDITION_EQ:
		return order == 0;
	case CONDITION_NE:
		return order != 0;
	case CONDITION_LE:
		return order <= 0;
	case CONDITION_GE:
		return order >= 0;
	case CONDITION_LT:
		return order < 0;
	case CONDITION_GT:
		return order > 0;
	case CONDITION_COMPARES:
		break;
	}
	return false;
}

static bool holds(const struct place_condition *c, const uint64_t *r)
{
	unsigned shift = 64u - c->bits;
	uint64_t a = c->what == CONDITION_CPU ? 0 : r[c->reg], b = c->number;

	if (c->has_mask)
		a &= c->mask;
	a <<= shift;
	b <<= shift;
	if (c->is_signed)
		return compares(c->compare, ((int64_t)a > (int64_t)b) - ((int64_t)a < (int64_t)b));
	return compares(c->compare, (a > b) - (a < b));
}

static void expect_place(struct expected *e, const struct plan_probe *p, const uint64_t *r)
{
	const struct place_action *a = &e->p->actions[p->action];
	uint64_t number = KRON_EVENT_ENTRY(PLACE_EVENTS + p->event);

	if (!a->ungated && a->level >= LEVELS_ON)
		return;
	for (unsigned i = 0; i < a->nconditions; i++)
		if (!holds(&a->conditions[i], r))
			return;
	switch ((enum action_kind)a->kind) {
	case ACTION_TRACE:
	case ACTION_RESOURCE:
		number |= 1ull << 32;
		if (a->kind == ACTION_RESOURCE)
			number |= (uint64_t)KRON_GATE_RESOURCE << 32;
		*vec_push(&e->v) = (struct event){number, payload(e, p, a, r)};
		break;
	case ACTION_COUNT:
		e->counts[a->word]++;
		break;
	case ACTION_STORE:
		number = EVENT_STORE << 32 | KRON_ACTION(a->word, a->level) |
			 (a->ungated ? 0 : KRON_ACTION_GATED);
		*vec_push(&e->v) = (struct event){number, a->value};
		break;
	case ACTION_CALLS: /* of no place */
	case ACTION_PAGES: /* tests/e2e/record/page_counts.py */
	case ACTION_KINDS:
		break;
	}
}

struct moment { /* a step, its instruction, and where it went */
	uint64_t rip, next;
	const uint64_t *r; /* registers */
	unsigned function;
	struct insn in;
	bool last;
};

/* Does control leave the function here, other than by a call? */
static bool leaves(const struct expected *e, const struct moment *m)
{
	if (m->in.kind == INSN_RET)
		return true;
	if (m->in.kind != INSN_JMP && m->in.kind != INSN_JCC && m->in.kind != INSN_JMP_INDIRECT)
		return false;
	return !m->last && function_at(e->im, m->next) != m->function;
}

static void expect_at(struct expected *e, const struct moment *m, bool arrives, uint32_t function)
{
	const struct plan_function *pf = &e->p->plan->functions[function];

	for (int pass = 0; pass < 3; pass++) {
		for (uint32_t k = 0; k < pf->nprobes; k++) {
			const struct plan_probe *p = &e->p->plan->probes[pf->first_probe + k];

			if (p->site == UINT32_MAX || p->vaddr + e->im->bias != m->rip)
				continue;
			if (pass == 0 && p->kind == PROBE_ENTRY && arrives)
				expect(e, p, m->r);
			if (pass == 1 && p->kind == PROBE_PLACE && p->where == PLACE_BEFORE)
				expect_place(e, p, m->r);
			if (pass == 2 && p->kind == PROBE_EXIT && leaves(e, m))
				expect(e, p, m->r);
		}
	}
}

/* What stands after instructions that were passed. */
static void expect_after(struct expected *e, uint64_t vaddr, uint32_t function, const uint64_t *r)
{
	const struct plan_function *pf = &e->p->plan->functions[function];

	for (uint32_t k = 0; k < pf->nprobes; k++) {
		const struct plan_probe *p = &e->p->plan->probes[pf->first_probe + k];

		if (p->site != UINT32_MAX && p->kind == PROBE_PLACE && p->where == PLACE_AFTER &&
		    p->vaddr == vaddr)
			expect_place(e, p, r);
	}
}

static uint32_t plan_function(const struct patched *p, unsigned f)
{
	for (size_t i = 0; i < p->plan->nfunctions; i++)
		if (p->function_of[i] == f)
			return i;
	return UINT32_MAX;
}

static bool is_call(const struct insn *in)
{
	return in->kind == INSN_CALL || in->kind == INSN_CALL_INDIRECT;
}

/* After a call is where it returns to. */
static void expect_behind_call(struct expected *e, const struct moment *m)
{
	for (size_t i = 0; i < e->p->plan->nprobes; i++) {
		const struct plan_probe *p = &e->p->plan->probes[i];
		struct insn in;

		if (p->site == UINT32_MAX || p->kind != PROBE_PLACE || p->where != PLACE_AFTER ||
		    m->rip - (p->vaddr + e->im->bias) > 15)
			continue;
		if (insn_decode(&in, (uint8_t *)(p->vaddr + e->im->bias), 15,
				p->vaddr + e->im->bias) &&
		    is_call(&in) && in.addr + in.len == m->rip)
			expect_place(e, p, m->r);
	}
}

static void expect_behind(struct expected *e, const struct moment *prev, const struct moment *m)
{
	const struct insn *in = &prev->in;

	if (in->addr + in->len != m->rip || prev->function != m->function || is_call(in) ||
	    in->kind == INSN_JMP || in->kind == INSN_RET || in->kind == INSN_JMP_INDIRECT)
		return;
	e->is_ambiguous |= in->kind == INSN_JCC && in->target == m->rip;
	expect_after(e, prev->rip - e->im->bias, plan_function(e->p, m->function), m->r);
}

/* Item of the function that starts at rip, or -1. */
static int item_at(const struct image *im, uint64_t rip)
{
	unsigned f = function_at(im, rip);

	for (unsigned i = 0; f < im->nfn && i < im->fn[f].items.n; i++)
		if (im->text + im->fn[f].at[i] == rip)
			return (int)i;
	return -1;
}

static bool is_known_target(const struct image *im, const struct insn *from, uint64_t rip)
{
	unsigned f = function_at(im, rip);
	int i = item_at(im, rip);
	struct insn in;

	if (i <= 0)
		return i == 0;
	if (from->kind != INSN_RET)
		return f == function_at(im, from->addr);
	return insn_decode(&in, (uint8_t *)im->text + im->fn[f].at[i - 1], 15, 0) && is_call(&in);
}

bool goes_astray(const struct image *im, const struct trail *t)
{
	struct insn in;

	for (unsigned i = 1; i < t->nsteps; i++) {
		uint64_t from = t->steps[i - 1].rip, rip = t->steps[i].rip;

		if (item_at(im, rip) < 0 || !insn_decode(&in, (uint8_t *)from, 15, from))
			return true;
		if ((in.kind == INSN_RET || in.kind == INSN_JMP_INDIRECT ||
		     in.kind == INSN_CALL_INDIRECT) &&
		    !is_known_target(im, &in, rip))
			return true;
	}
	return false;
}

/* Enters the function where it begins; a jump within it to there does not, a return does. */
static bool arrives_at(const struct expected *e, const struct moment *m, const struct moment *prev)
{
	return m->rip == e->im->text + e->im->fn[m->function].start &&
	       (prev->function != m->function || is_call(&prev->in) || prev->in.kind == INSN_RET);
}

void expect_all(struct expected *e)
{
	struct moment m = {.function = UINT32_MAX}, prev;

	for (unsigned i = 0; i < e->t->nsteps; i++) {
		bool arrives, again;
		uint32_t pf;

		prev = m;
		m.rip = e->t->steps[i].rip;
		m.r = e->t->steps[i].r;
		m.last = i + 1 == e->t->nsteps;
		m.next = m.last ? 0 : e->t->steps[i + 1].rip;
		m.function = function_at(e->im, m.rip);
		if (m.function == UINT32_MAX || !insn_decode(&m.in, (uint8_t *)m.rip, 15, m.rip))
			return;
		/* the trap comes one instruction late */
		e->is_ambiguous |= m.in.kind == INSN_SYSCALL;
		again = i && prev.rip == m.rip && is_string(&m.in, (uint8_t *)m.rip);
		if (again)
			continue;
		pf = plan_function(e->p, m.function);
		if (pf == UINT32_MAX)
			return;
		if (i)
			expect_behind(e, &prev, &m);
		if (i && prev.in.kind == INSN_RET)
			expect_behind_call(e, &m);
		arrives = arrives_at(e, &m, &prev);
		expect_at(e, &m, arrives, pf);
	}
}
