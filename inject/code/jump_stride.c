/* SPDX-License-Identifier: MIT */
/*
 * jump_stride.c - jumps into a row of code pieces of one size.
 *
 *      and     $15, %ecx
 *      lea     row(%rip), %r9        a place in the same function
 *      shl     $6, %ecx              each piece has 64 bytes
 *      add     %r9, %rcx
 *      jmp     *%rcx                 row + 64 k
 *
 * As in memcpy of glibc for machines with SSSE3.  Wherever the index comes from, the jump goes
 * to the row plus a multiple of the stride, and it stays in the function: what it leads to
 * outside would be no code of it.  So every such place in the function is marked, more than
 * there are.  (A multiplication by 3 in between, `lea (%rcx,%rcx,2)`, changes nothing in that.)
 *
 * Only the straight way to the jump is looked at; what is computed elsewhere stays unresolved.
 */
#include "inject/code/code_map_impl.h"

#define STEPS 12

struct row {
	const struct map_builder *b;
	uint64_t base;
	uint64_t stride;
	int8_t regs[2]; /* what the jump's register is the sum of, -1: that one is explained */
	bool has_sum;
};

/* shl $n,reg; n, or 0 */
static unsigned shift_of(const struct map_builder *b, const struct insn *in)
{
	const uint8_t *p = elf_image_at(b->img, in->addr, in->len);
	bool rex = p && (p[0] & 0xf0) == 0x40;

	if (!p || in->len != 3u + rex || p[rex] != 0xc1 || (p[rex + 1] & 0xf8) != 0xe0)
		return 0;
	return p[rex + 2] & 31;
}

static bool is_sum(const struct insn *in, int8_t reg)
{
	return in->op == INSN_OP_ADD && !in->has_mem && in->op_size == 8 && in->first_reg == reg &&
	       in->src_reg >= 0 && in->src_reg != reg;
}

/* lea (x,x,2),reg */
static bool is_triple(const struct insn *in)
{
	return in->op == INSN_OP_LEA && in->mem_base >= 0 && in->mem_base == in->mem_index &&
	       in->mem_scale == 2 && !in->mem_disp;
}

/* The instruction writes one of the two: false when that explains nothing. */
static bool explain(struct row *r, const struct insn *in, int8_t *reg)
{
	unsigned shift = shift_of(r->b, in);

	if (in->op == INSN_OP_LEA && in->rip_relative && !r->base) {
		r->base = in->target;
		*reg = -1;
		return true;
	}
	if (is_triple(in)) {
		*reg = in->mem_base;
		return true;
	}
	if (!shift || r->stride)
		return false;
	r->stride = 1ull << shift;
	*reg = -1;
	return true;
}

/* One instruction further back. */
static bool step(struct row *r, const struct insn *in)
{
	if (!r->has_sum) {
		if (is_sum(in, r->regs[0])) {
			r->regs[1] = in->src_reg;
			return r->has_sum = true;
		}
		return !(in->regs_written >> r->regs[0] & 1);
	}
	for (int i = 0; i < 2; i++)
		if (r->regs[i] >= 0 && in->regs_written >> r->regs[i] & 1)
			return explain(r, in, &r->regs[i]);
	return true;
}

static bool find_row(struct row *r, uint64_t at)
{
	struct insn in;

	for (int i = 0; i < STEPS && !(r->base && r->stride); i++) {
		uint64_t previous = code_map_previous(r->b->m, at);

		if (!previous || code_map_is_target(r->b->m, at) ||
		    !map_falls_through(r->b, previous) || !code_map_insn(r->b->m, previous, &in) ||
		    previous + in.len != at || !step(r, &in))
			return false;
		at = previous;
	}
	return r->base && r->stride;
}

static void mark_row(struct map_builder *b, const struct row *r, const struct function *fn)
{
	uint64_t first = r->base - (r->base - fn->start) / r->stride * r->stride;

	for (uint64_t at = first; at < fn->end; at += r->stride)
		if (code_map_flags(b->m, at) & CODE_INSN)
			map_mark(b, at, CODE_CONSTANT);
}

void jump_stride_resolve(struct map_builder *b, struct map_jump *j)
{
	struct row r = {.b = b, .regs = {-1, -1}};
	struct insn in;
	uint32_t fn;

	if (!code_map_insn(b->m, j->addr, &in) || in.reg < 0)
		return;
	r.regs[0] = in.reg;
	if (!find_row(&r, j->addr))
		return;
	fn = map_function(b, r.base);
	if (fn != j->function || !(code_map_flags(b->m, r.base) & CODE_INSN))
		return;
	mark_row(b, &r, &b->f->v[fn]);
	j->form = JUMP_SWITCH;
}
