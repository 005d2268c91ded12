/* SPDX-License-Identifier: MIT */
/*
 * code_sweep.c - pass 1 of the code map: decode every function once, from its start to its end.
 *
 * Decoding is anchored at function starts and never crosses a bound, so that data between
 * functions cannot derail it.  Pieces of the code are swept side by side (struct map_piece); what a function
 * says of the bytes of another piece, where its calls lead, is put down and marked afterwards.  The gaps between functions are swept too, but what is found
 * there is only believed as far as that is harmless: it may add branch targets (code without
 * symbol or FDE may well jump into a function), never instructions, evidence or exits.
 */
#include <string.h>

#include "base/jobs.h"
#include "inject/code/code_map_impl.h"

#define DATA_BYTES 16 /* what an instruction may read; widest are the constants of SSE */

/* A piece, and a field, is about this many bytes of code; more, if there would be too many pieces. */
#define PIECE (1ull << 20)
#define PIECES_MAX 256u

/* A mark at a place that another thread sweeps. */
struct far_mark {
	uint64_t vaddr;
	uint8_t flags;
	bool called;
};
struct far_marks { /* as VEC() has it */
	struct far_mark *v;
	size_t n, cap;
};

/* What a piece comes to. */
struct swept {
	VEC(struct map_branch) branches;
	VEC(struct map_lea) leas;
	VEC(struct map_jump) jumps;
	VEC(struct map_bytes) data;
	VEC(uint64_t) strays;
	struct far_marks *far; /* by field: all bytes are cut into fields of one size */
};

struct sweep {
	struct map_builder *b;
	struct swept *out;
	uint64_t field;    /* bytes in one */
	uint64_t lo, hi;   /* bytes that nobody else marks: of whole fields of `called` */
	uint32_t function; /* FUNCTION_NONE in a gap */
	uint64_t start, end;
	const uint8_t *code;
	VEC(uint64_t) forward; /* targets ahead in the same function, to be checked */
	bool overlap;
	bool is_text; /* in a gap: control does not get here by what stands before */
};

static void put_mark(struct map_builder *b, const struct far_mark *m)
{
	uint64_t off = m->vaddr - b->m->lo;

	b->m->flags[off] |= m->flags;
	if (m->called)
		b->called[off / 8] |= 1u << (off & 7);
}

/* vaddr may be anything. */
static void mark(struct sweep *s, uint64_t vaddr, uint8_t flags, bool called)
{
	struct far_mark m = {vaddr, flags, called};

	if (vaddr >= s->lo && vaddr < s->hi)
		put_mark(s->b, &m);
	else if (map_has(s->b, vaddr))
		*vec_push(&s->out->far[(vaddr - s->b->m->lo) / s->field]) = m;
}

static void note_constant(struct sweep *s, uint64_t vaddr)
{
	if (map_has(s->b, vaddr) && elf_image_is_exec(s->b->img, vaddr))
		mark(s, vaddr, CODE_CONSTANT | CODE_TAKEN, false);
}

/*
 * An instruction may start one byte into another where code jumps over a lock prefix, as libc
 * does on machines with one processor.
 */
static bool is_behind_lock_prefix(const struct map_builder *b, uint64_t vaddr)
{
	const uint8_t *p = elf_image_at(b->img, vaddr - 1, 1);

	return p && *p == 0xf0 && code_map_flags(b->m, vaddr - 1) & CODE_INSN;
}

static bool is_instruction(const struct map_builder *b, uint64_t vaddr)
{
	return code_map_flags(b->m, vaddr) & CODE_INSN || is_behind_lock_prefix(b, vaddr);
}

static bool is_inside_insn(const struct map_builder *b, uint64_t vaddr)
{
	return code_map_flags(b->m, vaddr) & CODE_IN_FUNCTION && !is_instruction(b, vaddr);
}

static void note_jump(struct sweep *s, const struct insn *in)
{
	struct map_builder *b = s->b;
	bool inside = in->target >= s->start && in->target < s->end;

	if (s->is_text && in->disp_size == 1 && is_inside_insn(b, in->target))
		return;
	mark(s, in->target, CODE_TARGET, false);
	if (s->function == FUNCTION_NONE) {
		if (in->disp_size == 4) /* letters look like short ones */
			*vec_push(&s->out->strays) = in->target;
		return;
	}
	if (inside && in->target > in->addr)
		*vec_push(&s->forward) = in->target;
	else if (inside && !is_instruction(b, in->target))
		s->overlap = true;
	if (!inside || in->target == s->start)
		*vec_push(&s->out->branches) = (struct map_branch){
			.from = in->addr,
			.to = in->target,
			.function = s->function,
			.conditional = in->kind == INSN_JCC,
		};
}

static void note_call(struct sweep *s, const struct insn *in)
{
	/* a subroutine of its own: as good as a jump */
	bool inside = s->function != FUNCTION_NONE && in->target > s->start && in->target < s->end;

	mark(s, in->addr + in->len, CODE_AFTER_CALL, false);
	if (in->kind != INSN_CALL || !map_has(s->b, in->target))
		return;
	mark(s, in->target, CODE_TARGET, s->function != FUNCTION_NONE && !inside);
	if (s->function == FUNCTION_NONE)
		*vec_push(&s->out->strays) = in->target;
}

/* An address that the code makes: of code, or of a table. */
static void note_address(struct sweep *s, uint64_t vaddr)
{
	note_constant(s, vaddr);
	if (s->function != FUNCTION_NONE && elf_image_room(s->b->img, vaddr))
		*vec_push(&s->out->leas) =
			(struct map_lea){.target = vaddr, .function = s->function};
}

/* Non-PIE code holds addresses as immediates and displacements of 32 bits or more. */
static void note_immediates(struct sweep *s, const struct insn *in)
{
	if (in->has_imm) {
		note_address(s, in->imm);
		if (in->imm_size == 4 && in->imm >> 32)
			note_address(s, (uint32_t)in->imm);
	}
	if (in->has_mem && !in->rip_relative && in->mem_disp)
		note_address(s, (uint64_t)in->mem_disp);
}

static void note(struct sweep *s, const struct insn *in)
{
	switch (in->kind) {
	case INSN_CALL:
	case INSN_CALL_INDIRECT:
		note_call(s, in);
		break;
	case INSN_JMP:
	case INSN_JCC:
		note_jump(s, in);
		break;
	case INSN_JMP_INDIRECT:
		if (s->function != FUNCTION_NONE)
			*vec_push(&s->out->jumps) =
				(struct map_jump){.addr = in->addr, .function = s->function};
		break;
	case INSN_OTHER_TRANSFER:
		if (in->op != INSN_OP_XBEGIN)
			break;
		mark(s, in->target, CODE_TARGET, false);
		*vec_push(&s->out->strays) = in->target;
		break;
	default:
		if (in->op == INSN_OP_LEA && in->rip_relative)
			note_address(s, in->target);
	}
	if (s->b->position_dependent)
		note_immediates(s, in);
}

/* Code bytes that an instruction reads or writes. */
static void note_data(struct sweep *s, const struct insn *in)
{
	if (in->has_mem && in->rip_relative && in->op != INSN_OP_LEA && in->kind != INSN_PADDING &&
	    map_has(s->b, in->target))
		*vec_push(&s->out->data) = (struct map_bytes){in->target, DATA_BYTES};
}

static void put_insn(const struct map_builder *b, uint64_t at, uint8_t kind, unsigned len)
{
	uint64_t off = at - b->m->lo;

	b->m->flags[off] |= CODE_INSN;
	b->shape[off] = (uint8_t)(kind << 4 | len);
}

/* Nobody asks for it before the gaps are swept. */
static void put_in_function(const struct map_builder *b, const struct function *fn)
{
	uint8_t *flag = map_flag(b, fn->start), *end = flag + (fn->end - fn->start);
	const uint64_t in_function = UINT64_MAX / 0xff * CODE_IN_FUNCTION; /* in each byte */
	uint64_t eight;

	for (; end - flag >= 8; flag += 8) { /* not beyond: the next one may be another thread's */
		memcpy(&eight, flag, 8);
		eight |= in_function;
		memcpy(flag, &eight, 8);
	}
	for (; flag < end; flag++)
		*flag |= CODE_IN_FUNCTION;
}

static void sweep_function(struct sweep *s, uint32_t index)
{
	struct map_builder *b = s->b;
	const struct function *fn = &b->f->v[index];
	struct code_function *cf = &b->m->per_function[index];
	struct insn in;

	s->function = index;
	s->start = fn->start;
	s->end = fn->end;
	s->code = elf_image_at(b->img, fn->start, fn->end - fn->start);
	s->forward.n = 0;
	s->overlap = false;
	b->first_lea[index] = (uint32_t)s->out->leas.n; /* in the piece's list */
	if (!s->code || !elf_image_is_exec(b->img, fn->start) || fn->end > b->m->hi) {
		cf->undecodable = true;
		return;
	}
	for (uint64_t at = fn->start; at < fn->end;) {
		const uint8_t *code = s->code + (at - s->start);
		unsigned len = b->position_dependent ? 0 : insn_skim(code, s->end - at);

		if (len) {
			put_insn(b, at, INSN_PLAIN, len);
			at += len;
			continue;
		}
		if (!insn_scan(&in, code, s->end - at, at)) {
			/* Go on all the same: its branches may hit other functions. */
			cf->undecodable = true;
			at++;
			continue;
		}
		put_insn(b, at, in.kind, in.len);
		if (in.rip_relative)
			note_data(s, &in);
		if (in.kind != INSN_PLAIN || in.op == INSN_OP_LEA || b->position_dependent)
			note(s, &in);
		at += in.len;
	}
	put_in_function(b, fn);
	vec_for(&s->forward, t)
		if (!is_instruction(b, *t))
			s->overlap = true;
	cf->undecodable |= s->overlap;
}

/* Jumps that come from other functions, once every instruction is known. */
static void judge_branches(struct map_builder *b)
{
	vec_for(&b->branches, br) {
		uint32_t to = map_function(b, br->to);
		struct function_evidence *ev;

		if (to == FUNCTION_NONE || b->m->per_function[br->function].undecodable)
			continue;
		if (to == br->function)
			continue;
		if (br->to != b->f->v[to].start) {
			ev = &b->evidence[br->function];
			ev->jumps_into_other = true;
			ev->jumps_into = to;
			if (!is_instruction(b, br->to))
				b->m->per_function[to].undecodable = true;
			continue;
		}
		ev = &b->evidence[to];
		ev->jcc_from_other |= br->conditional;
		ev->jmp_from_other |= !br->conditional;
		ev->many_jump_here |=
			ev->jumped_from != FUNCTION_NONE && ev->jumped_from != br->function;
		ev->jumped_from = br->function;
	}
}

/* ---- pieces ---- */

/* By what the code is, and not by who is there to look at it. */
static void cut_up(struct map_builder *b)
{
	uint64_t span = b->m->hi - b->m->lo, least = span / PIECES_MAX;
	struct map_piece *p = NULL;

	if (least < PIECE)
		least = PIECE;
	for (uint32_t i = 0; i < b->f->n; i++) {
		uint64_t start = b->f->v[i].start;

		if (!p || start - p->lo >= least) {
			if (p)
				p->hi = start;
			p = vec_push(&b->pieces);
			p->first = i;
			p->lo = b->pieces.n > 1 ? start : b->m->lo;
		}
		p->end = i + 1;
	}
	if (p)
		p->hi = b->m->hi;
}

struct sweeps {
	struct map_builder *b;
	uint64_t field;
	size_t nfields;
	struct swept *v; /* by piece */
};

static void sweep_piece(size_t number, void *ctx)
{
	struct sweeps *all = ctx;
	struct map_builder *b = all->b;
	const struct map_piece *p = &b->pieces.v[number];
	struct sweep s = {.b = b, .out = &all->v[number], .field = all->field};

	s.lo = b->m->lo + ((p->lo - b->m->lo + 7) & ~7ull);
	s.hi = b->m->lo + ((p->hi - b->m->lo) & ~7ull);
	s.out->far = xcalloc(all->nfields, sizeof(*s.out->far));
	for (uint32_t i = p->first; i < p->end; i++) {
		b->evidence[i].jumped_from = b->evidence[i].jumps_into = FUNCTION_NONE;
		sweep_function(&s, i);
	}
	vec_free(&s.forward);
}

static void mark_field(size_t field, void *ctx)
{
	struct sweeps *all = ctx;

	for (size_t i = 0; i < all->b->pieces.n; i++) {
		vec_for(&all->v[i].far[field], m)
			put_mark(all->b, m);
		vec_free(&all->v[i].far[field]);
	}
}

static void put_together(struct map_builder *b, const struct map_piece *p, struct swept *from)
{
	for (uint32_t i = p->first; i < p->end; i++)
		b->first_lea[i] += (uint32_t)b->leas.n;
	vec_append(&b->branches, &from->branches);
	vec_append(&b->leas, &from->leas);
	vec_append(&b->jumps, &from->jumps);
	vec_append(&b->data, &from->data);
	vec_append(&b->strays, &from->strays);
	xfree(from->far);
}

void sweep_functions(struct map_builder *b)
{
	struct sweeps all = {.b = b};

	cut_up(b);
	all.field = ((b->m->hi - b->m->lo) / PIECES_MAX + 7) & ~7ull;
	if (all.field < PIECE)
		all.field = PIECE;
	all.nfields = (b->m->hi - b->m->lo) / all.field + 1;
	all.v = xcalloc(b->pieces.n + 1, sizeof(*all.v));
	jobs_run(b->pieces.n, sweep_piece, &all);
	jobs_run(all.nfields, mark_field, &all);
	for (size_t i = 0; i < b->pieces.n; i++)
		put_together(b, &b->pieces.v[i], &all.v[i]);
	b->first_lea[b->f->n] = (uint32_t)b->leas.n;
	xfree(all.v);
	judge_branches(b);
}

/* ---- gaps ---- */

static bool goes_on(const struct insn *in)
{
	return in->kind == INSN_PLAIN || in->kind == INSN_JCC || in->kind == INSN_CALL ||
	       in->kind == INSN_CALL_INDIRECT || in->kind == INSN_SYSCALL;
}

/*
 * The letters l, m, n and o are port input and output, which faults in a program that has not asked
 * the kernel for its ports.  A short jump that control gets to in no other way, and that leads
 * into the middle of an instruction, is two letters of a text ("te" in "Intel").
 */
static void sweep_gap(struct map_builder *b, uint64_t start, uint64_t end)
{
	uint64_t room = elf_image_room(b->img, start);
	struct swept out = {0};
	struct sweep s = {.b = b,
			  .out = &out,
			  .lo = b->m->lo,
			  .hi = b->m->hi,
			  .function = FUNCTION_NONE,
			  .start = start};
	struct insn in;

	s.end = end - start > room ? start + room : end;
	s.code = elf_image_at(b->img, start, s.end - start);
	if (!s.code)
		return;
	for (uint64_t at = start; at < s.end;) {
		const uint8_t *p = s.code + (at - start);

		if (!insn_scan(&in, p, s.end - at, at)) {
			at++;
			continue;
		}
		s.is_text = s.is_text && at % 16 && !code_map_is_target(b->m, at);
		if (in.kind != INSN_PADDING)
			note(&s, &in);
		s.is_text = goes_on(&in) && (s.is_text || in.op == INSN_OP_PORT);
		at += in.len;
	}
	vec_append(&b->strays, &out.strays);
}

/* Every stretch of [lo, hi) that no function covers. */
static void sweep_between(struct map_builder *b, uint64_t lo, uint64_t hi)
{
	uint64_t at = lo;
	size_t i = 0, n = b->f->n;

	for (size_t left = 0; left < n;) { /* first function that ends after lo */
		size_t mid = left + (n - left) / 2;

		if (b->f->v[mid].end <= lo)
			left = i = mid + 1;
		else
			n = mid;
	}
	for (; i < b->f->n && b->f->v[i].start < hi; i++) {
		if (b->f->v[i].start > at)
			sweep_gap(b, at, b->f->v[i].start);
		if (b->f->v[i].end > at)
			at = b->f->v[i].end;
	}
	if (at < hi)
		sweep_gap(b, at, hi);
}

void sweep_gaps(struct map_builder *b)
{
	const struct elf_image *img = b->img;
	uint64_t done = 0; /* sections of a hostile file may overlap */

	for (size_t i = 0; i < img->nsections; i++) {
		const struct elf_section *s = &img->sections[i];
		uint64_t lo = s->vaddr, hi;

		if (!(s->flags & SHF_EXECINSTR) || s->type != SHT_PROGBITS || !map_has(b, lo))
			continue;
		hi = s->size > b->m->hi - lo ? b->m->hi : lo + s->size;
		if (lo < done)
			lo = done;
		if (lo < hi)
			sweep_between(b, lo, done = hi);
	}
	for (size_t i = 0; i < img->nsegments && !img->nsections; i++) {
		const struct elf_segment *g = &img->segments[i];

		if (g->flags & PF_X)
			sweep_between(b, g->vaddr, g->vaddr + g->filesz);
	}
}
