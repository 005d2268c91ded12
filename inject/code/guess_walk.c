/* SPDX-License-Identifier: MIT */
/*
 * guess_walk.c - follows the code of one function from its start, as far as its jumps lead.
 *
 *   start ─► ... jcc ─► ... call ─► ... ret        what is passed is code, if the start is one
 *                └────► ...  jmp ─► (start of another one: a tail call)
 *
 * What cannot be code, a byte that is not an instruction, an instruction inside of another one, a branch
 * to where no code is, says that the start is none.  Where a walk must stop though the code may go
 * on, the function is "open".  A walk changes nothing but the bits IS_HERE and IN_HERE, which are gone after it.
 */
#include <stdlib.h>
#include <string.h>

#include "inject/code/guess_impl.h"

#define PASSED 16u /* instructions that are remembered on a straight way */
#define CASES_MAX 4096u
#define STOPS_MAX 32u
#define LOCK_PREFIX 0xf0

/* The straight way to where the walk is. */
struct passed {
	uint64_t at[PASSED];
	unsigned n;
	uint64_t names[16]; /* the address in code that a register was given; 0: none */
	bool is_exit;       /* the number of a system call that does not return was put into rax */
	bool after_call;    /* the instruction before is a call, which may not return */
};

bool guess_decode(const struct guesser *g, uint64_t at, struct insn *in)
{
	uint64_t room = guess_has(g, at) ? elf_image_room(g->img, at) : 0;
	const uint8_t *p = room ? elf_image_at(g->img, at, room < 15 ? room : 15) : NULL;

	return p && elf_image_is_exec(g->img, at) && insn_scan(in, p, room < 15 ? room : 15, at);
}

/* Is it code that may be jumped to or called? */
static bool is_code(const struct guesser *g, uint64_t vaddr)
{
	return guess_has(g, vaddr) && elf_image_is_exec(g->img, vaddr) &&
	       elf_image_room(g->img, vaddr);
}

/* add of a byte to memory, as zeros would be: filler or data, for compilers have little use for it. */
static bool is_zeros(const struct guesser *g, uint64_t at)
{
	const uint8_t *p = elf_image_at(g->img, at, 2);

	return p && !p[0] && !p[1];
}

/* Of a kernel's or of a letter: no program has it. */
static bool is_odd(const struct guesser *g, const struct insn *in)
{
	return in->op == INSN_OP_PORT || is_zeros(g, in->addr) ||
	       (in->kind == INSN_OTHER_TRANSFER && in->op != INSN_OP_XBEGIN);
}

/* Mark the instruction's bytes; false: another instruction of this walk has some of them. */
static bool take(struct guesser *g, struct guess_walk *w, const struct insn *in, bool goes_on)
{
	bool is_new = !(*guess_state(g, in->addr) & IN_HERE);

	if (!is_new && *elf_image_at(g->img, in->addr - 1, 1) == LOCK_PREFIX)
		is_new = true;
	*guess_state(g, in->addr) |= IS_HERE;
	for (unsigned i = 1; i < in->len; i++) {
		uint16_t *s = guess_state(g, in->addr + i);

		if (*s & IS_HERE && !(i == 1 && *elf_image_at(g->img, in->addr, 1) == LOCK_PREFIX))
			is_new = false;
		*s |= IN_HERE;
	}
	*vec_push(&w->insns) =
		(struct guess_insn){.at = in->addr, .len = in->len, .goes_on = goes_on};
	return is_new;
}

/* ---- what instructions name ---- */

static void note_pointer(const struct guesser *g, struct guess_walk *w, uint64_t vaddr)
{
	if (is_code(g, vaddr))
		*vec_push(&w->pointers) = vaddr;
}

static void note_name(const struct guesser *g, struct guess_walk *w, struct passed *p,
		      const struct insn *in, uint64_t vaddr)
{
	note_pointer(g, w, vaddr);
	if ((in->op == INSN_OP_LEA || in->op == INSN_OP_MOV) && in->dest_reg >= 0)
		p->names[in->dest_reg] = is_code(g, vaddr) ? vaddr : 0;
}

static void note_read(const struct guesser *g, struct guess_walk *w, uint64_t vaddr)
{
	if (vaddr && is_code(g, vaddr))
		*vec_push(&w->reads) = vaddr;
}

/* What is read, also by way of a register that got its address before, is not a function. */
static void note_reads(const struct guesser *g, struct guess_walk *w, const struct passed *p,
		       const struct insn *in)
{
	if (!in->has_mem || in->op == INSN_OP_LEA || in->kind != INSN_PLAIN)
		return;
	if (in->rip_relative) {
		note_read(g, w, in->target);
		return;
	}
	note_read(g, w, (uint64_t)in->mem_disp);
	if (in->mem_base >= 0 && in->mem_base < 16)
		note_read(g, w, p->names[in->mem_base]);
	if (in->mem_index >= 0 && in->mem_index < 16)
		note_read(g, w, p->names[in->mem_index]);
}

static void note_pointers(const struct guesser *g, struct guess_walk *w, struct passed *p,
			  const struct insn *in)
{
	note_reads(g, w, p, in);
	if ((in->op == INSN_OP_LEA || in->op == INSN_OP_MOV) && in->dest_reg >= 0)
		p->names[in->dest_reg] = 0;
	if (in->op == INSN_OP_LEA && in->rip_relative)
		note_name(g, w, p, in, in->target);
	if (!g->position_dependent || !in->has_imm)
		return;
	note_name(g, w, p, in, in->imm);
	if (in->imm_size == 4 && in->imm >> 32)
		note_pointer(g, w, (uint32_t)in->imm);
}

static void note_call(const struct guesser *g, struct guess_walk *w, struct passed *p,
		      const struct insn *in)
{
	memset(p->names, 0, sizeof(p->names));
	if (in->kind != INSN_CALL)
		return;
	if (!is_code(g, in->target))
		w->is_wrong = true;
	else if (in->target != in->addr + in->len) /* which only asks where it is */
		*vec_push(&w->calls) = in->target;
}

/* To the start of a function: a tail call, or a loop.  Else it is a part of this one. */
static void note_jump(struct guesser *g, struct guess_walk *w, const struct insn *in)
{
	if (!is_code(g, in->target)) {
		w->is_wrong = true;
		return;
	}
	*vec_push(&w->jumps) = (struct guess_jump){in->target, in->kind == INSN_JCC};
	if (!(*guess_state(g, in->target) & IS_START) &&
	    !g->in->is_excluded(g->in->ctx, in->target))
		*vec_push(&w->work) = in->target;
}

/* ---- switches ---- */

struct cases {
	uint64_t table;
	bool is_relative; /* entries of 32 bits, counted from the table; else pointers */
};

static uint64_t passed_at(const struct passed *p, unsigned back)
{
	return p->at[(p->n - 1 - back) % PASSED];
}

static bool decode_whole(const struct guesser *g, uint64_t at, struct insn *in)
{
	uint64_t room = elf_image_room(g->img, at);

	return insn_decode(in, elf_image_at(g->img, at, room < 15 ? room : 15),
			   room < 15 ? room : 15, at);
}

/* lea table(%rip),%r1; movslq (%r1,%r2,4),%r3; add %r1,%r3; jmp *%r3, in any distance on the way. */
static bool find_relative(const struct guesser *g, const struct passed *p, struct cases *c)
{
	int base = -1;
	struct insn in;

	for (unsigned i = 1; i < p->n && i < PASSED; i++) {
		if (!decode_whole(g, passed_at(p, i), &in))
			return false;
		if (base < 0 && in.op == INSN_OP_MOVSXD && in.has_mem && in.mem_scale == 4)
			base = in.mem_base;
		if (base >= 0 && in.op == INSN_OP_LEA && in.rip_relative && in.dest_reg == base) {
			*c = (struct cases){in.target, true};
			return true;
		}
	}
	return false;
}

static bool find_cases(const struct guesser *g, const struct passed *p, const struct insn *jump,
		       struct cases *c)
{
	struct insn in = *jump;

	for (unsigned i = 0; i < 4; i++) { /* the jump itself, or the load before it */
		if (in.has_mem && in.mem_scale == 8 && in.mem_base < 0 && in.mem_index >= 0) {
			*c = (struct cases){(uint64_t)in.mem_disp, false};
			return true;
		}
		if (jump->has_mem || i + 1 >= p->n || !decode_whole(g, passed_at(p, i + 1), &in))
			break;
	}
	return find_relative(g, p, c);
}

/* How many cases the check before the jump lets pass; 0: there is none. */
static uint64_t count_cases(const struct guesser *g, const struct passed *p)
{
	unsigned cc = 16;
	struct insn in;

	for (unsigned i = 1; i < p->n && i < PASSED; i++) {
		if (!decode_whole(g, passed_at(p, i), &in))
			return 0;
		if (in.kind == INSN_JCC && cc == 16) {
			const uint8_t *code = elf_image_at(g->img, in.addr, in.len);

			cc = (*code == 0x0f ? code[1] : *code) & 15;
		} else if (cc != 16 && in.op == INSN_OP_CMP && in.imm_size) {
			return cc == 7 ? in.imm + 1 : cc == 3 ? in.imm : 0;
		}
	}
	return 0;
}

static bool follow_cases(struct guesser *g, struct guess_walk *w, const struct passed *p,
			 const struct insn *jump)
{
	uint64_t n = count_cases(g, p);
	struct cases c;

	if (!n || n > CASES_MAX || !find_cases(g, p, jump, &c))
		return false;
	for (uint64_t i = 0; i < n; i++) {
		const uint8_t *e = c.is_relative ? elf_image_at(g->img, c.table + 4 * i, 4) : NULL;
		uint64_t to;

		if (c.is_relative && !e)
			return false;
		to = e ? c.table + (uint64_t)(int32_t)(e[0] | e[1] << 8 | e[2] << 16 |
						       (uint32_t)e[3] << 24)
		       : elf_image_word(g->img, c.table + 8 * i);
		if (!is_code(g, to) || *guess_state(g, to) & IS_START)
			return false;
		*vec_push(&w->work) = to;
	}
	return true;
}

/* Through a place in memory that is not chosen by a number, or to a constant: no switch. */
static bool is_by_pointer(const struct guesser *g, const struct passed *p, const struct insn *jump)
{
	struct insn in;

	if (jump->has_mem)
		return jump->rip_relative || jump->mem_index < 0;
	for (unsigned i = 1; i < p->n && i < PASSED; i++) {
		if (!decode_whole(g, passed_at(p, i), &in))
			return false;
		if (in.regs_written >> jump->reg & 1)
			return in.op == INSN_OP_MOV &&
			       (in.has_imm || (in.has_mem && in.op_size == 8 && in.mem_index < 0));
	}
	return false;
}

static void note_indirect(struct guesser *g, struct guess_walk *w, const struct passed *p,
			  const struct insn *in)
{
	struct insn whole;

	if (!decode_whole(g, in->addr, &whole) ||
	    (!is_by_pointer(g, p, &whole) && !follow_cases(g, w, p, &whole)))
		w->is_open = w->is_lost = true;
}

/* ---- the walk ---- */

/*
 * Nobody says which calls return.  Compilers put filler after one that does only where a jump leads
 * to what follows the filler, which is at a multiple of 16 then.  Returns that place, or 0.
 */
static uint64_t after_filler(const struct guesser *g, const struct insn *in)
{
	struct insn pad = *in;

	while (pad.kind == INSN_PADDING && (pad.addr & 15 || pad.addr == in->addr))
		if (!guess_decode(g, pad.addr + pad.len, &pad))
			return 0;
	return pad.addr != in->addr && !(pad.addr & 15) ? pad.addr : 0;
}

static bool contains(const uint64_t *v, size_t n, uint64_t what)
{
	for (size_t i = 0; i < n; i++)
		if (v[i] == what)
			return true;
	return false;
}

/* Does the function end with the call before `in`, as far as anybody knows by now? */
static bool ends_after_call(const struct guesser *g, struct guess_walk *w, const struct insn *in)
{
	uint64_t next = after_filler(g, in);

	if (!next)
		return false;
	if (*guess_state(g, next) & IS_START || contains(w->stops.v, w->stops.n, next))
		return true;
	*vec_push(&w->doubts) = next;
	return false;
}

static bool goes_on(const struct insn *in, const struct passed *p)
{
	return in->kind != INSN_JMP && in->kind != INSN_JMP_INDIRECT && in->kind != INSN_RET &&
	       in->kind != INSN_TRAP && !(in->kind == INSN_SYSCALL && p->is_exit);
}

static void pass(struct passed *p, const struct insn *in)
{
	p->at[p->n++ % PASSED] = in->addr;
	p->after_call = in->kind == INSN_CALL || in->kind == INSN_CALL_INDIRECT;
	if (in->op == INSN_OP_MOV && !in->dest_reg)
		p->is_exit = in->has_imm && (in->imm == 60 || in->imm == 231);
	else if (p->after_call || in->kind == INSN_SYSCALL)
		p->is_exit = false;
}

static void note(struct guesser *g, struct guess_walk *w, struct passed *p, const struct insn *in)
{
	switch (in->kind) {
	case INSN_CALL:
	case INSN_CALL_INDIRECT:
		note_call(g, w, p, in);
		break;
	case INSN_JMP:
	case INSN_JCC:
		note_jump(g, w, in);
		break;
	case INSN_JMP_INDIRECT:
		note_indirect(g, w, p, in);
		break;
	default:
		note_pointers(g, w, p, in);
	}
}

static void walk_straight(struct guesser *g, struct guess_walk *w, uint64_t at)
{
	struct passed p = {.n = 0};
	struct insn in;
	bool is_on = true;

	for (; is_on && !w->is_wrong; at += in.len) {
		bool is_sense = guess_has(g, at) && guess_decode(g, at, &in) && !is_odd(g, &in);

		if (is_sense && *guess_state(g, at) & IS_HERE)
			return;
		if (p.after_call && (!is_sense || ends_after_call(g, w, &in))) {
			/* a text, perhaps, that the callee returns after */
			w->is_open |= !is_sense && !is_zeros(g, at);
			return;
		}
		if (p.n && guess_has(g, at) && *guess_state(g, at) & IS_START) {
			/* it falls into another one; or that call does not return */
			w->is_open |= !p.after_call;
			return;
		}
		if (!is_sense || !g->budget) {
			w->is_wrong = true;
			return;
		}
		g->budget--;
		is_on = goes_on(&in, &p);
		pass(&p, &in);
		if (!take(g, w, &in, is_on))
			w->is_wrong = true;
		note(g, w, &p, &in);
	}
}

static void wipe(const struct guesser *g, struct guess_walk *w)
{
	vec_for(&w->insns, i)
		for (unsigned k = 0; k < i->len; k++)
			*guess_state(g, i->at + k) &= (uint16_t) ~(IS_HERE | IN_HERE);
}

static void walk_once(struct guesser *g, struct guess_walk *w)
{
	w->insns.n = w->work.n = w->calls.n = w->pointers.n = w->reads.n = w->jumps.n = 0;
	w->doubts.n = 0;
	w->is_wrong = w->is_open = w->is_lost = false;
	*vec_push(&w->work) = w->start;
	while (w->work.n && !w->is_wrong)
		walk_straight(g, w, w->work.v[--w->work.n]);
	wipe(g, w);
}

static bool is_jumped_to(const struct guess_walk *w, uint64_t to)
{
	for (size_t i = 0; i < w->jumps.n; i++)
		if (w->jumps.v[i].to == to)
			return true;
	return false;
}

void guess_walk(struct guesser *g, struct guess_walk *w, uint64_t start)
{
	size_t known;

	w->start = start;
	w->stops.n = 0;
	do {
		known = w->stops.n;
		walk_once(g, w);
		for (size_t i = 0; i < w->doubts.n && w->stops.n < STOPS_MAX; i++)
			if (!is_jumped_to(w, w->doubts.v[i]))
				*vec_push(&w->stops) = w->doubts.v[i];
	} while (w->stops.n > known);
}

static int compare_insns(const void *a, const void *b)
{
	const struct guess_insn *x = a, *y = b;

	return x->at < y->at ? -1 : x->at > y->at;
}

void guess_walk_sort(struct guess_walk *w)
{
	if (w->insns.n)
		qsort(w->insns.v, w->insns.n, sizeof(*w->insns.v), compare_insns);
}

void guess_walk_free(struct guess_walk *w)
{
	vec_free(&w->insns);
	vec_free(&w->work);
	vec_free(&w->calls);
	vec_free(&w->pointers);
	vec_free(&w->reads);
	vec_free(&w->jumps);
	vec_free(&w->doubts);
	vec_free(&w->stops);
}
