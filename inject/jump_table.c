/* SPDX-License-Identifier: MIT */
/*
 * jump_table.c - where indirect jumps go.
 *
 * Problem: `jmp *%rax` may be a switch, a computed goto or a tail call.  The planner wants to
 * know every place inside the function where it may land (to keep windows off it), and whether
 * it leaves the function (to put an exit probe in front of it).
 *
 * Example, GCC and clang, position independent:
 *
 *      lea     table(%rip), %rdx          base, may be hoisted far up, or spilled
 *      movslq  (%rdx,%rax,4), %rax        load of a 32-bit difference
 *      add     %rdx, %rax                 sum
 *      jmp     *%rax
 *
 * Soundness.  A code address that a register jump goes to comes from somewhere:
 *   1. a whole pointer that was loaded, passed, returned or made by lea: then a relocation, a
 *      data word, an immediate or a lea names it (or it is a return address), and it is marked
 *      by the other passes;
 *   2. a sum of a base and an entry of a table of 32-bit differences: then the table's address
 *      was made by a lea in the same function or one of its parts, since compilers expand a
 *      switch after they have cut functions up.  So trying *every* lea of the function as a
 *      table finds it wherever the lea has been moved to; no data flow is needed for that;
 *   3. other arithmetic.
 * Data flow only answers which of the three feeds a jump.  For 2 it must see the load (scale
 * 4, 32 bits) behind the sum, and some table must have been found; else, and for 3, the jump is
 * unresolved.  Where the flow is lost (a value that arrives over an indirect edge or from
 * before the function's start) the value is whole: nobody keeps half-made sums over those.
 *
 * How far a table reaches: while entries lead to an instruction of the function or its parts,
 * or just behind one of them (a default that cannot happen), and not into the next known table.
 * Where a bound check (cmp $n; ja) is found, the table must be at least that long, whatever
 * follows it, or the jump is unresolved.
 *
 * Passes: (1) classify each jump, noting the tables that it certainly uses; (2) for functions
 * with a sum, collect candidate tables from all leas; (3) read them and mark the targets.
 *
 * This file marks CODE_CONSTANT and sets map_jump.form; it judges no exits.
 */
#include <stdlib.h>

#include "inject/code_map_impl.h"
#include "inject/elf_image_impl.h"

#define STEPS_MAX   20000 /* instructions looked at for one jump */
#define DEFS_MAX    200   /* definitions of one value; interpreters merge many into one jump */
#define TABLES_MAX  12    /* tables or bases of one jump */
#define ENTRIES_MAX 65536
#define NO_REG      (-1)

struct edge { /* a direct branch inside the function or its parts */
	uint64_t to, from;
};

/* What one jump's value was found to be made of. */
struct origin {
	bool loaded;   /* a whole pointer */
	bool slot;     /* mem(%rip): one place */
	bool indexed;  /* loaded from an array of pointers */
	bool sum;      /* base + 32-bit entry */
	bool absolute; /* a 32-bit entry itself: non-PIE */
	bool other;    /* arithmetic */
	uint64_t table[TABLES_MAX], base[TABLES_MAX];
	unsigned ntables, nbases;
	uint64_t load; /* of the entry: the bound check is in front of it */
};

struct table {
	uint64_t at;
	uint32_t root;
};

struct resolver {
	struct map_builder *b;
	uint32_t root;
	VEC(struct edge) edges; /* of root, sorted by to */
	bool has_edges;
	VEC(struct table) tables; /* candidates, in the end of all functions, sorted by at */
	/* search for one value */
	VEC(uint64_t) work, seen;
	unsigned steps;
};

struct pending { /* a sum jump, until its function's tables are read */
	size_t jump;
	uint32_t root;
	struct origin origin;
};

/* ---- places ---- */

static bool is_in_root(const struct resolver *r, uint64_t vaddr, uint32_t root)
{
	uint32_t i = map_function(r->b, vaddr);

	return i != FUNCTION_NONE && map_root(r->b, i) == root;
}

/* Just behind the function or a part: where an impossible default goes. */
static bool is_end_of_root(const struct resolver *r, uint64_t vaddr, uint32_t root)
{
	for (uint32_t i = root; i != FUNCTION_NONE; i = map_next_part(r->b, i))
		if (r->b->f->v[i].end == vaddr)
			return true;
	return false;
}

static bool is_own_target(const struct resolver *r, uint64_t vaddr, uint32_t root)
{
	return (code_map_flags(r->b->m, vaddr) & CODE_INSN && is_in_root(r, vaddr, root)) ||
	       is_end_of_root(r, vaddr, root);
}

/*
 * Within a table any instruction will do: the .cold part that an entry leads to may not have
 * been recognized as a part of this function.
 */
static bool is_entry_target(const struct resolver *r, uint64_t vaddr, uint32_t root)
{
	return code_map_flags(r->b->m, vaddr) & CODE_INSN || is_end_of_root(r, vaddr, root);
}

static bool decode(const struct resolver *r, uint64_t vaddr, struct insn *in)
{
	return code_map_insn(r->b->m, vaddr, in);
}

/* ---- edges inside a function ---- */

static int by_target(const void *a, const void *b)
{
	const struct edge *x = a, *y = b;

	return x->to < y->to ? -1 : x->to > y->to;
}

static void add_edges(struct resolver *r, const struct function *fn)
{
	struct map_builder *b = r->b;

	for (uint64_t at = fn->start; at < fn->end; at++) {
		unsigned kind = map_shape(b, at) >> 4;
		struct insn in;

		if (!(*map_flag(b, at) & CODE_INSN) || (kind != INSN_JMP && kind != INSN_JCC))
			continue;
		if (insn_scan(&in, elf_image_at(b->img, at, 1), map_shape(b, at) & 15, at))
			*vec_push(&r->edges) = (struct edge){ .to = in.target, .from = at };
	}
}

static void find_edges(struct resolver *r)
{
	if (r->has_edges)
		return;
	r->has_edges = true;
	r->edges.n = 0;
	for (uint32_t i = r->root; i != FUNCTION_NONE; i = map_next_part(r->b, i))
		add_edges(r, &r->b->f->v[i]);
	if (r->edges.n)
		qsort(r->edges.v, r->edges.n, sizeof(*r->edges.v), by_target);
}

/* Put the sources of all branches to `to` on the work list; returns how many. */
static size_t push_sources(struct resolver *r, uint64_t to)
{
	size_t lo = 0, hi, first;

	find_edges(r);
	for (hi = r->edges.n; lo < hi;) {
		size_t mid = lo + (hi - lo) / 2;

		if (r->edges.v[mid].to < to)
			lo = mid + 1;
		else
			hi = mid;
	}
	for (first = lo; lo < r->edges.n && r->edges.v[lo].to == to; lo++)
		*vec_push(&r->work) = r->edges.v[lo].from;
	return lo - first;
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

/* rax, rcx, rdx, rsi, rdi, r8-r11 */
static bool is_caller_saved(int reg)
{
	return 0x0fc7u >> reg & 1;
}

static bool was_seen(struct resolver *r, uint64_t at)
{
	vec_for(&r->seen, s)
		if (*s == at)
			return true;
	*vec_push(&r->seen) = at;
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

/* Walk back from `at`, which is not looked at itself, until something defines reg. */
static void walk_back(struct resolver *r, struct defs *d, uint64_t at, int reg)
{
	struct map_builder *b = r->b;

	for (;;) {
		uint8_t flags = *map_flag(b, at);
		struct insn in;
		uint64_t prev;

		if (at == b->f->v[r->root].start)
			d->whole = true;
		if (flags & CODE_TARGET) {
			if (was_seen(r, at))
				return;
			if (!push_sources(r, at))
				d->whole = true;
		}
		if (flags & CODE_CONSTANT)
			d->whole = true;
		prev = code_map_previous(b->m, at);
		if (!prev || !map_falls_through(b, prev))
			return;
		if (++r->steps > STEPS_MAX || !decode(r, prev, &in)) {
			d->lost = true;
			return;
		}
		if ((in.kind == INSN_CALL || in.kind == INSN_CALL_INDIRECT) &&
		    is_caller_saved(reg)) {
			d->whole = true;
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
static void find_defs(struct resolver *r, struct defs *d, uint64_t at, int reg)
{
	*d = (struct defs){0};
	r->work.n = r->seen.n = 0;
	*vec_push(&r->work) = at;
	while (r->work.n && !d->lost)
		walk_back(r, d, r->work.v[--r->work.n], reg);
}

/* ---- what a value is made of ---- */

static void add_address(uint64_t *v, unsigned *n, uint64_t value)
{
	for (unsigned i = 0; i < *n; i++)
		if (v[i] == value)
			return;
	if (*n < TABLES_MAX)
		v[(*n)++] = value;
}

/* Note the addresses that lea may have put into reg; a copy is followed. */
static void find_addresses(struct resolver *r, uint64_t *v, unsigned *n, uint64_t at, int reg,
			   unsigned depth)
{
	struct defs d;

	find_defs(r, &d, at, reg);
	for (unsigned i = 0; i < d.n; i++) {
		const struct insn *in = &d.v[i];

		if (in->op == INSN_OP_LEA && in->rip_relative)
			add_address(v, n, in->target);
		else if (in->op == INSN_OP_MOV && in->src_reg >= 0 && !in->has_mem && depth)
			find_addresses(r, v, n, in->addr, in->src_reg, depth - 1);
		else if (in->op == INSN_OP_MOV && in->imm_size >= 4 && !in->has_mem)
			add_address(v, n, in->imm);
	}
}

/* A pointer loaded from, or a jump through, this memory operand. */
static void judge_memory(struct resolver *r, struct origin *o, const struct insn *in)
{
	o->loaded = true;
	if (in->mem_index == NO_REG) {
		o->slot |= in->mem_base == 16 || in->mem_base == NO_REG;
		return;
	}
	o->indexed = true;
	if (in->mem_base == NO_REG)
		add_address(o->table, &o->ntables, (uint64_t)in->mem_disp);
	else
		find_addresses(r, o->table, &o->ntables, in->addr, in->mem_base, 2);
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
static bool note_tables(struct resolver *r, struct origin *o, const struct insn *in)
{
	unsigned before = o->ntables;

	if (in->mem_base == NO_REG)
		add_address(o->table, &o->ntables, (uint64_t)in->mem_disp);
	else
		find_addresses(r, o->table, &o->ntables, in->addr, in->mem_base, 2);
	if (in->mem_scale == 4)
		return true;
	find_addresses(r, o->table, &o->ntables, in->addr, in->mem_index, 2);
	return o->ntables > before;
}

/* Is one of reg's definitions a load of a table entry?  Notes the tables it may load from. */
static bool judge_entry(struct resolver *r, struct origin *o, uint64_t at, int reg, unsigned depth)
{
	struct defs d;
	bool found = false;

	find_defs(r, &d, at, reg);
	if (d.lost)
		return false;
	for (unsigned i = 0; i < d.n; i++) {
		const struct insn *in = &d.v[i];

		if (is_entry_load(in)) {
			o->load = in->addr;
			found |= note_tables(r, o, in);
		} else if ((in->op == INSN_OP_MOVSXD || in->op == INSN_OP_MOV) && !in->has_mem &&
			   in->src_reg >= 0 && depth) {
			/* cltq, movslq %eax,%rax, mov: the entry was loaded before */
			found |= judge_entry(r, o, in->addr, in->src_reg, depth - 1);
		}
	}
	return found;
}

static uint64_t entry_of(const struct resolver *r, uint64_t table, uint64_t i, uint64_t base,
			 bool *readable)
{
	const uint8_t *p = elf_image_at(r->b->img, table + 4 * i, 4);

	*readable = p;
	return p ? base + (uint64_t)(int64_t)(int32_t)elf_read32(p) : 0;
}

/* How many entries at the start of table lead into the function, counted up to most. */
static unsigned count_entries(const struct resolver *r, uint64_t table, unsigned most)
{
	unsigned i;

	for (i = 0; i < most; i++) {
		bool readable;
		uint64_t to = entry_of(r, table, i, table, &readable);

		if (!readable || !is_own_target(r, to, r->root))
			break;
	}
	return i;
}

/*
 * The entry was spilled, or loaded by constant index and not recognized: then the base alone
 * must give the table away.
 */
static bool judge_base(struct resolver *r, struct origin *o, uint64_t at, int reg)
{
	uint64_t v[TABLES_MAX];
	unsigned n = 0;
	bool found = false;

	find_addresses(r, v, &n, at, reg, 2);
	for (unsigned i = 0; i < n; i++)
		if (count_entries(r, v[i], 2) == 2) {
			add_address(o->table, &o->ntables, v[i]);
			add_address(o->base, &o->nbases, v[i]);
			found = true;
		}
	return found;
}

/* base + entry, in either order: add %b,%a  or  lea (%a,%b),%c */
static void judge_sum(struct resolver *r, struct origin *o, uint64_t at, int one, int two)
{
	if (judge_entry(r, o, at, one, 2)) {
		find_addresses(r, o->base, &o->nbases, at, two, 2);
		o->sum = true;
	} else if (judge_entry(r, o, at, two, 2)) {
		find_addresses(r, o->base, &o->nbases, at, one, 2);
		o->sum = true;
	} else if (judge_base(r, o, at, one) || judge_base(r, o, at, two)) {
		o->sum = true;
	} else {
		o->other = true;
	}
}

static bool is_pointer_load(const struct insn *in)
{
	return in->op == INSN_OP_MOV && in->reads_memory && in->op_size == 8;
}

static void judge_value(struct resolver *r, struct origin *o, uint64_t at, int reg, unsigned depth);

static void judge_def(struct resolver *r, struct origin *o, const struct insn *in, int reg,
		      unsigned depth)
{
	const uint8_t *code = elf_image_at(r->b->img, in->addr, in->len);
	unsigned rex = (code[0] & 0xf0) == 0x40;
	bool is_pop = (code[rex] & 0xf8) == 0x58;

	if (is_pointer_load(in) || (is_conditional_move(in, code) && in->has_mem)) {
		judge_memory(r, o, in);
	} else if (in->mem_seg && in->reads_memory && in->op_size == 8) {
		o->loaded = true; /* xor %fs:0x30: libc unmangles a whole pointer */
	} else if (is_pop || (in->op == INSN_OP_LEA && in->rip_relative)) {
		o->loaded = true;
	} else if (in->op == INSN_OP_MOV && in->imm_size >= 4 && !in->has_mem) {
		o->loaded = true;
	} else if ((in->op == INSN_OP_MOV || is_conditional_move(in, code)) && !in->has_mem &&
		   in->src_reg >= 0 && in->op_size == 8 && depth) {
		judge_value(r, o, in->addr, in->src_reg, depth - 1);
	} else if (in->op == INSN_OP_ADD && in->src_reg >= 0 && in->op_size == 8 && !in->has_mem) {
		judge_sum(r, o, in->addr, reg, in->src_reg);
	} else if (in->op == INSN_OP_LEA && in->mem_base >= 0 && in->mem_base < 16 &&
		   in->mem_index >= 0 && in->mem_scale == 1 && !in->mem_disp) {
		judge_sum(r, o, in->addr, in->mem_base, in->mem_index);
	} else if (r->b->position_dependent && is_entry_load(in)) {
		o->absolute = note_tables(r, o, in);
		o->other |= !o->absolute;
		o->load = in->addr;
	} else {
		o->other = true;
	}
}

static void judge_value(struct resolver *r, struct origin *o, uint64_t at, int reg, unsigned depth)
{
	struct defs d;

	find_defs(r, &d, at, reg);
	o->loaded |= d.whole;
	o->other |= d.lost;
	for (unsigned i = 0; i < d.n; i++)
		judge_def(r, o, &d.v[i], reg, depth);
}

/* ---- reading tables ---- */

static int by_address(const void *a, const void *b)
{
	const struct table *x = a, *y = b;

	return x->at < y->at ? -1 : x->at > y->at;
}

/* Address of the first known table behind `table`. */
static uint64_t next_table(const struct resolver *r, uint64_t table)
{
	size_t lo = 0, hi = r->tables.n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (r->tables.v[mid].at <= table)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < r->tables.n ? r->tables.v[lo].at : UINT64_MAX;
}

/*
 * Mark where the table's entries, relative to base, lead to.  At least `least` entries are
 * wanted.  Returns how many were good.
 */
static uint64_t read_table(struct resolver *r, uint32_t root, uint64_t table, uint64_t base,
			   uint64_t least)
{
	uint64_t stop = next_table(r, table), i;

	for (i = 0; i < ENTRIES_MAX; i++) {
		bool readable;
		uint64_t to = entry_of(r, table, i, base, &readable);

		if (!readable || !is_entry_target(r, to, root))
			break;
		if (i >= least && table + 4 * i >= stop)
			break;
		map_mark(r->b, to, CODE_CONSTANT);
	}
	return i;
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

/*
 * How many entries the check in front of the load at `at` lets through: cmp $n,x; ja default,
 * x being the index or what it was made of.  0 when no such check is found.
 */
static uint64_t find_bound(const struct resolver *r, uint64_t at)
{
	struct insn in;
	unsigned cc = 16;
	uint64_t less = 0;
	int reg;

	if (!at || !decode(r, at, &in))
		return 0;
	reg = in.mem_index;
	for (unsigned i = 0; i < 16; i++) {
		uint64_t prev = code_map_previous(r->b->m, at), n;

		if (!prev || !map_falls_through(r->b, prev) || !decode(r, prev, &in))
			return 0;
		at = prev;
		if (in.kind == INSN_JCC && !in.is_loop)
			cc = condition(elf_image_at(r->b->img, at, in.len));
		if (in.regs_written >> reg & 1)
			reg = follow_index(&in, reg, &less);
		if (reg == NO_REG)
			return 0;
		if (in.op != INSN_OP_CMP || !in.imm_size || in.first_reg != reg || cc == 16)
			continue;
		n = in.op_size == 1 ? in.imm & 0xff : in.op_size == 4 ? in.imm & 0xffffffff : in.imm;
		n -= less;
		if (n >= ENTRIES_MAX)
			return 0;
		return cc == 7 ? n + 1 : cc == 3 ? n : 0;
	}
	return 0;
}

/* ---- pointers in arrays ---- */

/* These pointers belong to a switch: they are no sign of computed gotos. */
static void explain_pointers(const struct resolver *r, uint64_t table)
{
	for (uint64_t i = 0; i < ENTRIES_MAX; i++) {
		const uint8_t *p = elf_image_at(r->b->img, table + 8 * i, 8);
		uint64_t to = p ? elf_read64(p) : 0;

		if (!is_in_root(r, to, r->root))
			return;
		*map_flag(r->b, to) &= (uint8_t)~CODE_TAKEN;
	}
}

/* Does a jump through these tables of whole pointers (non-PIE) stay, leave, or can't we tell? */
static enum jump_form judge_pointers(const struct resolver *r, const struct origin *o)
{
	bool inside = false, outside = false;

	if (!r->b->position_dependent || !o->ntables)
		return JUMP_LOADED;
	for (unsigned t = 0; t < o->ntables; t++) {
		for (uint64_t i = 0; i < ENTRIES_MAX; i++) {
			const uint8_t *p = elf_image_at(r->b->img, o->table[t] + 8 * i, 8);
			uint64_t to = p ? elf_read64(p) : 0;
			uint32_t fn = map_function(r->b, to);

			if (fn == FUNCTION_NONE)
				break;
			if (map_root(r->b, fn) == r->root && to != r->b->f->v[r->root].start)
				inside = true;
			else if (inside)
				break; /* somebody else's table behind ours */
			else
				outside = true;
		}
	}
	if (inside && !outside) {
		for (unsigned t = 0; t < o->ntables; t++)
			explain_pointers(r, o->table[t]);
		return JUMP_SWITCH;
	}
	return outside && !inside ? JUMP_OUTWARD : JUMP_LOADED;
}

/* ---- all of it ---- */

static enum jump_form judge_origin(const struct resolver *r, const struct origin *o)
{
	if (o->other)
		return JUMP_UNRESOLVED;
	if (o->sum || o->absolute)
		return o->loaded ? JUMP_MIXED : JUMP_SWITCH; /* until its tables are read */
	if (o->indexed)
		return judge_pointers(r, o);
	return o->slot ? JUMP_SLOT : JUMP_LOADED;
}

/* Every lea of the function whose target may be a table. */
static void collect_tables(struct resolver *r, uint32_t root)
{
	struct map_builder *b = r->b;

	for (uint32_t i = root; i != FUNCTION_NONE; i = map_next_part(b, i))
		for (uint32_t l = b->first_lea[i]; l < b->first_lea[i + 1]; l++) {
			uint64_t at = b->leas.v[l].target;
			bool readable;
			uint64_t to = entry_of(r, at, 0, at, &readable);

			if (readable && is_own_target(r, to, root))
				*vec_push(&r->tables) = (struct table){ .at = at, .root = root };
		}
}

/* Read one table that a jump may use, with every base that it may add; the longest reading. */
static uint64_t read_with_bases(struct resolver *r, const struct pending *p, uint64_t table,
				uint64_t least)
{
	const struct origin *o = &p->origin;
	uint64_t longest = 0;

	if (o->absolute)
		return read_table(r, p->root, table, 0, least);
	if (!o->nbases)
		return read_table(r, p->root, table, table, least);
	for (unsigned i = 0; i < o->nbases; i++) {
		uint64_t n = read_table(r, p->root, table, o->base[i], least);

		if (n > longest)
			longest = n;
	}
	return longest;
}

/*
 * Read what a sum jump is known to use; false when it is not explained.  A table without a
 * single good entry is none: the flow analysis does not see which paths can happen.
 */
static bool read_known(struct resolver *r, const struct pending *p)
{
	const struct origin *o = &p->origin;
	uint64_t least = find_bound(r, o->load);
	bool found = false;

	for (unsigned t = 0; t < o->ntables; t++) {
		uint64_t n = read_with_bases(r, p, o->table[t], least);

		if (n && n < least)
			return false;
		found |= n > 0;
	}
	if (found || o->ntables)
		return found;
	/* The base was lost: some table of the function it is, and all of them are read. */
	vec_for(&r->tables, t)
		if (t->root == p->root)
			return true;
	return false;
}

static void prepare(struct resolver *r, uint32_t root)
{
	if (r->root == root)
		return;
	r->root = root;
	r->has_edges = false;
}

void jump_tables_resolve(struct map_builder *b)
{
	struct resolver r = { .b = b, .root = FUNCTION_NONE };
	VEC(struct pending) pending = {0};

	for (size_t i = 0; i < b->jumps.n; i++) {
		struct map_jump *j = &b->jumps.v[i];
		struct origin o = {0};
		struct insn in;

		if (!decode(&r, j->addr, &in))
			continue;
		prepare(&r, map_root(b, j->function));
		r.steps = 0;
		if (in.has_mem)
			judge_memory(&r, &o, &in);
		else
			judge_value(&r, &o, j->addr, in.reg, 4);
		j->form = (uint8_t)judge_origin(&r, &o);
		if (o.sum || o.absolute)
			*vec_push(&pending) =
				(struct pending){ .jump = i, .root = r.root, .origin = o };
	}
	for (size_t i = 0; i < pending.n; i++)
		if (!i || pending.v[i].root != pending.v[i - 1].root)
			collect_tables(&r, pending.v[i].root);
	if (r.tables.n)
		qsort(r.tables.v, r.tables.n, sizeof(*r.tables.v), by_address);
	vec_for(&r.tables, t)
		read_table(&r, t->root, t->at, t->at, 0);
	vec_for(&pending, p)
		if (!read_known(&r, p)) {
			b->jumps.v[p->jump].form = JUMP_UNRESOLVED;
		}
	vec_free(&pending);
	vec_free(&r.edges);
	vec_free(&r.tables);
	vec_free(&r.work);
	vec_free(&r.seen);
}
