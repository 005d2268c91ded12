/* SPDX-License-Identifier: MIT */
/*
 * jump_flow.c - follows the register of an indirect jump back to what it was made of.
 *
 * A backward search over instructions of one function and its parts, decoded again as needed:
 *
 *      jmp *%rax  <-  add %rdx,%rax  <-  %rdx: lea table(%rip)        base
 *                                    <-  %rax: movslq (%rdx,%rax,4)   load of an entry
 *
 * At a branch target the search goes on at every direct branch to it and at the instruction
 * before; at a place that an address constant names, at every indirect jump of the function.
 * Paths that cannot happen are followed too, so an answer may name too much.  Where the search
 * ends without a definition (the function's start, the return of a call) the value is a whole
 * pointer; see jump_table.c for why that is safe.  Not so in functions that are joined to others
 * (code_function.joined): there the value is lost.
 *
 * This file reads tables only to tell whether something is one, and marks nothing.
 */
#include "inject/code/jump_flow.h"
#include "base/search.h"

#include <stdlib.h>

#include "inject/elf/elf_image_impl.h"

#define STEPS_MAX 4000 /* instructions looked at for one jump */
#define DEFS_MAX 200   /* definitions of one value; interpreters merge many into one jump */
#define NO_REG (-1)
#define RAX 0
#define RDX 2

bool flow_is_own(const struct map_builder *b, uint32_t root, uint64_t vaddr)
{
	uint32_t at = map_function(b, vaddr);

	if (code_map_flags(b->m, vaddr) & CODE_INSN && at != FUNCTION_NONE &&
	    map_root(b, at) == root)
		return true;
	for (uint32_t i = root; i != FUNCTION_NONE; i = map_next_part(b, i))
		if (b->f->v[i].end == vaddr)
			return true;
	return false;
}

bool flow_entry(const struct map_builder *b, uint64_t table, uint64_t i, uint64_t base,
		uint64_t *to)
{
	const uint8_t *p = elf_image_at(b->img, table + 4 * i, 4);

	if (!p)
		return false;
	*to = base + (uint64_t)(int64_t)(int32_t)elf_read32(p);
	return true;
}

static bool decode(const struct flow *f, uint64_t vaddr, struct insn *in)
{
	return code_map_insn(f->b->m, vaddr, in);
}

void flow_enter(struct flow *f, size_t jump)
{
	uint32_t root = map_root(f->b, f->b->jumps.v[jump].function);

	if (f->root != root)
		f->has_edges = false;
	f->root = root;
	f->joined = false;
	for (uint32_t i = root; i != FUNCTION_NONE; i = map_next_part(f->b, i))
		f->joined |= f->b->m->per_function[i].joined;
}

void flow_close(struct flow *f)
{
	vec_free(&f->edges);
	vec_free(&f->indirect);
	vec_free(&f->work);
	vec_free(&f->seen);
}

/* ---- edges inside a function ---- */

static int by_target(const void *a, const void *b)
{
	const struct flow_edge *x = a, *y = b;

	return x->to < y->to ? -1 : x->to > y->to;
}

static void add_edges(struct flow *f, const struct function *fn)
{
	struct map_builder *b = f->b;

	for (uint64_t at = fn->start; at < fn->end; at++) {
		unsigned kind = map_shape(b, at) >> 4;
		struct insn in;

		if (!(*map_flag(b, at) & CODE_INSN))
			continue;
		if (kind == INSN_JMP_INDIRECT)
			*vec_push(&f->indirect) = at;
		if (kind != INSN_JMP && kind != INSN_JCC)
			continue;
		if (insn_scan(&in, elf_image_at(b->img, at, 1), map_shape(b, at) & 15, at))
			*vec_push(&f->edges) = (struct flow_edge){.to = in.target, .from = at};
	}
}

static void find_edges(struct flow *f)
{
	if (f->has_edges)
		return;
	f->has_edges = true;
	f->edges.n = f->indirect.n = 0;
	for (uint32_t i = f->root; i != FUNCTION_NONE; i = map_next_part(f->b, i))
		add_edges(f, &f->b->f->v[i]);
	if (f->edges.n)
		qsort(f->edges.v, f->edges.n, sizeof(*f->edges.v), by_target);
}

/* Put the sources of all branches to `to` on the work list; returns how many. */
static size_t push_sources(struct flow *f, uint64_t to)
{
	size_t lo, first;

	find_edges(f);
	lo = partition_point(i, f->edges.n, f->edges.v[i].to < to);
	for (first = lo; lo < f->edges.n && f->edges.v[lo].to == to; lo++)
		*vec_push(&f->work) = f->edges.v[lo].from;
	return lo - first;
}

/* Control also arrives here from the function's indirect jumps. */
static void push_indirect(struct flow *f)
{
	find_edges(f);
	vec_for(&f->indirect, at)
		*vec_push(&f->work) = *at;
}

/* ---- definitions of a register ---- */

struct defs {
	struct insn v[DEFS_MAX];
	unsigned n;
	bool whole; /* also arrives from outside what can be followed: a whole pointer */
	bool lost;  /* too many definitions or steps */
};

static bool is_conditional_move(const struct insn *in, const uint8_t *code)
{
	unsigned i = 0;

	while (i < 4 && (code[i] == 0x66 || (code[i] & 0xf0) == 0x40))
		i++;
	return in->len > i + 1u && code[i] == 0x0f && (code[i + 1] & 0xf0) == 0x40;
}

static bool was_seen(struct flow *f, uint64_t at)
{
	vec_for(&f->seen, s)
		if (*s == at)
			return true;
	*vec_push(&f->seen) = at;
	return false;
}

static void add_def(struct defs *d, const struct insn *in)
{
	for (unsigned i = 0; i < d->n; i++)
		if (d->v[i].addr == in->addr)
			return;
	if (d->n == DEFS_MAX)
		d->lost = true;
	else
		d->v[d->n++] = *in;
}

/* Go on at the places that control may come from; false when `at` has been passed before. */
static bool follow_arrivals(struct flow *f, struct defs *d, uint64_t at, int reg)
{
	uint8_t flags = *map_flag(f->b, at);

	if (at == f->b->f->v[f->root].start)
		d->whole = true;
	if (!(flags & (CODE_TARGET | CODE_CONSTANT)))
		return true;
	if (was_seen(f, at))
		return false;
	if (flags & CODE_TARGET && !push_sources(f, at))
		d->whole = true;
	if (flags & CODE_CONSTANT && at != f->b->f->v[f->root].start) {
		f->lost |= f->joined;
		push_indirect(f);
		/* a landing pad gets these two from the unwinder */
		d->whole |= reg == RAX || reg == RDX;
	}
	return true;
}

/*
 * Walk back from `at`, which is not looked at itself, until something defines reg.  Calls are
 * passed: if the value is used after one, the callee keeps it (-fipa-ra), or returns it.
 */
static void walk_back(struct flow *f, struct defs *d, uint64_t at, int reg)
{
	struct map_builder *b = f->b;

	while (follow_arrivals(f, d, at, reg)) {
		struct insn in;
		uint64_t prev = code_map_previous(b->m, at);

		if (!prev || !map_falls_through(b, prev))
			return;
		if (++f->steps > STEPS_MAX || !decode(f, prev, &in)) {
			d->lost = true;
			return;
		}
		if (in.kind == INSN_CALL || in.kind == INSN_CALL_INDIRECT) {
			d->whole |= reg == RAX || reg == RDX;
			if (reg == RAX)
				return;
		}
		if (in.regs_written >> reg & 1) {
			add_def(d, &in);
			if (!is_conditional_move(&in, elf_image_at(b->img, prev, in.len)))
				return;
		}
		at = prev;
	}
}

/* Everything that may have defined reg when control is at `at`. */
static void find_defs(struct flow *f, struct defs *d, uint64_t at, int reg)
{
	d->n = 0; /* what follows is 20 KiB */
	d->whole = d->lost = false;
	f->work.n = f->seen.n = 0;
	*vec_push(&f->work) = at;
	while (f->work.n && !d->lost)
		walk_back(f, d, f->work.v[--f->work.n], reg);
	f->lost |= f->joined && d->whole;
}

/* ---- what a value is made of ---- */

static void add_address(uint64_t *v, unsigned *n, uint64_t value)
{
	for (unsigned i = 0; i < *n; i++)
		if (v[i] == value)
			return;
	if (*n < ORIGIN_MAX)
		v[(*n)++] = value;
}

/* Note the addresses that lea may have put into reg; a copy is followed. */
static void find_addresses(struct flow *f, uint64_t *v, unsigned *n, uint64_t at, int reg,
			   unsigned depth)
{
	struct defs d;

	find_defs(f, &d, at, reg);
	for (unsigned i = 0; i < d.n; i++) {
		const struct insn *in = &d.v[i];

		if (in->op == INSN_OP_LEA && in->rip_relative)
			add_address(v, n, in->target);
		else if (in->op == INSN_OP_MOV && in->src_reg >= 0 && !in->has_mem && depth)
			find_addresses(f, v, n, in->addr, in->src_reg, depth - 1);
		else if (in->op == INSN_OP_MOV && in->imm_size >= 4 && !in->has_mem)
			add_address(v, n, in->imm);
	}
}

/* A pointer loaded from, or a jump through, this memory operand. */
static void judge_memory(struct flow *f, struct origin *o, const struct insn *in)
{
	if (in->mem_index == NO_REG) {
		o->whole |= in->mem_base == 16 || in->mem_base == NO_REG ? WHOLE_SLOT : WHOLE_OTHER;
		return;
	}
	o->whole |= WHOLE_INDEXED;
	if (in->mem_base == NO_REG)
		add_address(o->table, &o->ntables, (uint64_t)in->mem_disp);
	else
		find_addresses(f, o->table, &o->ntables, in->addr, in->mem_base, 2);
}

/* A load of 32 bits from base + index: (%rB,%rI,4), or (%rB,%rI) as unoptimized code has it. */
static bool is_entry_load(const struct insn *in)
{
	return in->has_mem && in->mem_index != NO_REG && !in->mem_seg &&
	       (in->mem_scale == 4 || (in->mem_scale == 1 && in->mem_base != NO_REG)) &&
	       (in->op == INSN_OP_MOVSXD ||
		(in->op == INSN_OP_MOV && in->op_size == 4 && in->reads_memory));
}

/* Note the tables that an entry load may read; false when it does not look like one. */
static bool note_tables(struct flow *f, struct origin *o, const struct insn *in)
{
	unsigned before = o->ntables;

	if (in->mem_base == NO_REG)
		add_address(o->table, &o->ntables, (uint64_t)in->mem_disp);
	else
		find_addresses(f, o->table, &o->ntables, in->addr, in->mem_base, 2);
	if (in->mem_scale == 4)
		return true;
	find_addresses(f, o->table, &o->ntables, in->addr, in->mem_index, 2);
	return o->ntables > before;
}

/* Is one of reg's definitions a load of a table entry?  Notes the tables it may load from. */
static bool judge_entry(struct flow *f, struct origin *o, uint64_t at, int reg, unsigned depth)
{
	struct defs d;
	bool found = false;

	find_defs(f, &d, at, reg);
	if (d.lost)
		return false;
	for (unsigned i = 0; i < d.n; i++) {
		const struct insn *in = &d.v[i];

		if (is_entry_load(in)) {
			o->load = in->addr;
			found |= note_tables(f, o, in);
		} else if ((in->op == INSN_OP_MOVSXD || in->op == INSN_OP_MOV) && !in->has_mem &&
			   in->src_reg >= 0 && depth) {
			/* cltq, movslq %eax,%rax, mov: the entry was loaded before */
			found |= judge_entry(f, o, in->addr, in->src_reg, depth - 1);
		}
	}
	return found;
}

/* How many entries at the start of table lead into the function, counted up to most. */
static unsigned count_entries(const struct flow *f, uint64_t table, unsigned most)
{
	unsigned i;

	for (i = 0; i < most; i++) {
		uint64_t to;

		if (!flow_entry(f->b, table, i, table, &to) || !flow_is_own(f->b, f->root, to))
			break;
	}
	return i;
}

/*
 * The entry was spilled, or loaded by constant index and not recognized: then the base alone
 * must give the table away.
 */
static bool judge_base(struct flow *f, struct origin *o, uint64_t at, int reg)
{
	uint64_t v[ORIGIN_MAX];
	unsigned n = 0;
	bool found = false;

	find_addresses(f, v, &n, at, reg, 2);
	for (unsigned i = 0; i < n; i++)
		if (count_entries(f, v[i], 2) == 2) {
			add_address(o->table, &o->ntables, v[i]);
			add_address(o->base, &o->nbases, v[i]);
			found = true;
		}
	return found;
}

/* base + entry, in either order: add %b,%a  or  lea (%a,%b),%c */
static void judge_sum(struct flow *f, struct origin *o, uint64_t at, int one, int two)
{
	if (judge_entry(f, o, at, one, 2)) {
		find_addresses(f, o->base, &o->nbases, at, two, 2);
		o->sum = true;
	} else if (judge_entry(f, o, at, two, 2)) {
		find_addresses(f, o->base, &o->nbases, at, one, 2);
		o->sum = true;
	} else if (judge_base(f, o, at, one) || judge_base(f, o, at, two)) {
		o->sum = true;
	} else {
		o->other = true;
	}
}

/* entry + base, the base an address in the instruction (non-PIE) or in a spill slot */
static void judge_sum_with(struct flow *f, struct origin *o, uint64_t at, int reg, uint64_t base)
{
	if (base && judge_entry(f, o, at, reg, 2)) {
		add_address(o->base, &o->nbases, base);
		o->sum = true;
	} else if (!base && judge_base(f, o, at, reg)) {
		o->sum = true;
	} else {
		o->other = true;
	}
}

static bool is_pointer_load(const struct insn *in)
{
	return in->op == INSN_OP_MOV && in->reads_memory && in->op_size == 8;
}

/* A whole pointer that is not a load: made by lea or mov, popped, or unmangled (xor %fs:0x30). */
static bool is_whole(const struct insn *in, const uint8_t *code)
{
	unsigned rex = (code[0] & 0xf0) == 0x40;

	return (code[rex] & 0xf8) == 0x58 || (in->op == INSN_OP_LEA && in->rip_relative) ||
	       (in->op == INSN_OP_MOV && in->imm_size >= 4 && !in->has_mem) ||
	       (in->mem_seg && in->reads_memory && in->op_size == 8);
}

static bool is_copy(const struct insn *in, const uint8_t *code)
{
	return (in->op == INSN_OP_MOV || is_conditional_move(in, code)) && !in->has_mem &&
	       in->src_reg >= 0 && in->op_size == 8;
}

static bool is_lea_of_registers(const struct insn *in)
{
	return in->op == INSN_OP_LEA && in->mem_base >= 0 && in->mem_base < 16;
}

static void judge_value(struct flow *f, struct origin *o, uint64_t at, int reg, unsigned depth);

static void judge_def(struct flow *f, struct origin *o, const struct insn *in, int reg,
		      unsigned depth)
{
	const uint8_t *code = elf_image_at(f->b->img, in->addr, in->len);
	bool add = in->op == INSN_OP_ADD && in->op_size == 8;

	if (is_pointer_load(in) || (is_conditional_move(in, code) && in->has_mem))
		judge_memory(f, o, in);
	else if (is_whole(in, code))
		o->whole |= WHOLE_OTHER;
	else if (is_copy(in, code) && depth)
		judge_value(f, o, in->addr, in->src_reg, depth - 1);
	else if (add && !in->has_mem && in->src_reg >= 0)
		judge_sum(f, o, in->addr, reg, in->src_reg);
	else if (add && in->has_mem)
		judge_sum_with(f, o, in->addr, reg, 0);
	else if (add && in->imm_size == 4 && f->b->position_dependent)
		judge_sum_with(f, o, in->addr, reg, in->imm);
	else if (is_lea_of_registers(in) && in->mem_index >= 0 && in->mem_scale == 1 &&
		 !in->mem_disp)
		judge_sum(f, o, in->addr, in->mem_base, in->mem_index);
	else if (is_lea_of_registers(in) && in->mem_index == NO_REG && f->b->position_dependent)
		judge_sum_with(f, o, in->addr, in->mem_base, (uint64_t)in->mem_disp);
	else if (f->b->position_dependent && is_entry_load(in) && note_tables(f, o, in))
		o->absolute = true, o->load = in->addr;
	else
		o->other = true;
}

static void judge_value(struct flow *f, struct origin *o, uint64_t at, int reg, unsigned depth)
{
	struct defs d;

	find_defs(f, &d, at, reg);
	o->whole |= d.whole ? WHOLE_OTHER : 0;
	o->other |= d.lost;
	for (unsigned i = 0; i < d.n; i++)
		judge_def(f, o, &d.v[i], reg, depth);
}

void flow_origin(struct flow *f, struct origin *o, const struct insn *jump)
{
	*o = (struct origin){0};
	f->steps = 0;
	f->lost = false;
	if (jump->has_mem)
		judge_memory(f, o, jump);
	else
		judge_value(f, o, jump->addr, jump->reg, 4);
	/* a whole pointer in memory is one whatever its address is made of */
	o->other |= f->lost && !jump->has_mem;
}

/* ---- the bound check ---- */

/* Condition of a jcc: the low nibble of its opcode. */
static unsigned condition(const uint8_t *code)
{
	unsigned i = 0;

	while (i < 4 && (code[i] == 0x2e || code[i] == 0x3e || code[i] == 0xf2))
		i++;
	return code[i] == 0x0f ? code[i + 1] & 15 : code[i] & 15;
}

/* The register whose value `in` hands on to reg, with what it subtracts; NO_REG: another's. */
static int follow_index(const struct insn *in, int reg, uint64_t *less)
{
	if (in->op == INSN_OP_SUB && in->imm_size) {
		*less += in->imm;
		return reg;
	}
	if (in->op == INSN_OP_ADD && in->imm_size) {
		*less -= in->imm;
		return reg;
	}
	if (in->op == INSN_OP_LEA && in->mem_base >= 0 && in->mem_base < 16 &&
	    in->mem_index == NO_REG) {
		*less -= (uint64_t)in->mem_disp;
		return in->mem_base;
	}
	if (in->op == INSN_OP_LEA && in->mem_base == NO_REG && in->mem_scale == 4)
		return in->mem_index; /* unoptimized: 0(,%rax,4) */
	/* mov, movzx, movslq and the like: one register in, one out */
	if (!in->has_mem && in->src_reg >= 0 && in->op != INSN_OP_ADD && in->op != INSN_OP_SUB)
		return in->src_reg;
	return NO_REG;
}

uint64_t flow_bound(const struct flow *f, uint64_t at)
{
	struct insn in;
	unsigned cc = 16;
	uint64_t less = 0;
	int reg;

	if (!at || !decode(f, at, &in))
		return 0;
	reg = in.mem_index;
	for (unsigned i = 0; i < 16; i++) {
		uint64_t prev = code_map_previous(f->b->m, at), n;

		if (!prev || !map_falls_through(f->b, prev) || !decode(f, prev, &in))
			return 0;
		at = prev;
		if (in.kind == INSN_JCC && !in.is_loop)
			cc = condition(elf_image_at(f->b->img, at, in.len));
		if (in.regs_written >> reg & 1)
			reg = follow_index(&in, reg, &less);
		if (reg == NO_REG)
			return 0;
		if (in.op != INSN_OP_CMP || !in.imm_size || in.first_reg != reg || cc == 16)
			continue;
		n = in.op_size == 1   ? in.imm & 0xff
		    : in.op_size == 4 ? in.imm & 0xffffffff
				      : in.imm;
		n -= less;
		if (n >= TABLE_ENTRIES_MAX)
			return 0;
		return cc == 7 ? n + 1 : cc == 3 ? n : 0;
	}
	return 0;
}
