/* SPDX-License-Identifier: MIT */
/*
 * code_map.c - the passes of code_map.h in their order, padding, and exits.
 *
 *   sweep_functions    instructions, direct branches, lea      (code_sweep.c)
 *   functions_mark_parts    .cold parts join their parents     (functions.c, on our evidence)
 *   mark_constants     relocations, data words, symbols, landing pads, restartable sequences
 *   sweep_gaps         branches from code that nobody names    (code_sweep.c)
 *   jump_tables_resolve                                        (jump_table.c)
 *   walk_functions     what is reachable: padding and exits, in one walk
 *
 * The order matters: constants are not evidence against overlapping code but direct branches
 * are, so gaps, where data looks like code, come after the sweep of functions; jump tables
 * need the parts, since a table of a function also points into its .cold part.
 *
 * Exits.  A ret is one; a direct jump out of the function and its parts is one, and so is one to
 * the function's own start when the frame was torn down before it (a tail call of itself, not
 * a loop); a conditional jump out of them is one that not every tactic can take.  An indirect jump is told by where it
 * may go (jump_table.c) and by the frame:
 *
 *                      no pointer names the     some pointer names the middle of the function
 *                      function's middle        frame as at entry     frame not so    unknown
 *   switch             -                        -                     -               -
 *   GOT slot           exit                     exit                  exit            exit
 *   outward table      exit                     exit                  exit            exit
 *   whole pointer      exit (AMBIGUOUS if the   AMBIGUOUS; exit, if   -  (computed    AMBIGUOUS
 *                      frame is not so)         the frame is not so       goto)
 *                                               wherever they point
 *   mixed, unresolved  AMBIGUOUS, but "-" if the frame is known and not as at entry
 *
 * A whole pointer can only lead into the function's middle if an address constant names it.
 *
 * This file decides nothing about windows and patches, and does not change the image.
 */
#include "inject/code_map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "inject/code_map_impl.h"
#include "inject/elf_symbols.h"

#define SPAN_MAX (1ull << 30) /* with a byte for each byte of code */

/* By the low bits of the address: a function of usual size fits without a collision. */
#define CACHE_SIZE 8192u

struct insn_cache {
	struct {
		uint64_t vaddr; /* 0: empty; no code lies there */
		bool has_operands;
		struct insn in;
	} at[CACHE_SIZE];
};

/* ---- other ways to arrive ---- */

static void mark_constant(uint64_t value, void *ctx)
{
	struct map_builder *b = ctx;

	if (map_has(b, value))
		*map_flag(b, value) |= CODE_CONSTANT | CODE_TAKEN;
}

static void mark_landing_pad(uint64_t vaddr, void *ctx)
{
	map_mark(ctx, vaddr, CODE_CONSTANT);
}

/*
 * Go starts each goroutine with a return address one byte behind the start of runtime.goexit, a
 * nop, so that it looks as if it had been called from there.  Nothing in the file names it.
 */
static bool is_returned_into(const char *name)
{
	return !strcmp(name, "runtime.goexit") || !strcmp(name, "runtime.goexit.abi0");
}

static bool mark_symbol(const struct elf_symbol *sym, void *ctx)
{
	bool is_code = sym->type == STT_NOTYPE || sym->type == STT_FUNC ||
		       sym->type == STT_GNU_IFUNC || sym->type == STT_OBJECT;

	if (is_code && sym->shndx != SHN_UNDEF && sym->shndx != SHN_ABS)
		map_mark(ctx, sym->value, CODE_CONSTANT);
	if (is_code && is_returned_into(sym->name))
		map_mark(ctx, sym->value + 1, CODE_CONSTANT);
	return true;
}

static void collect_start_evidence(struct map_builder *b)
{
	for (size_t i = 0; i < b->f->n; i++) {
		uint64_t start = b->f->v[i].start;
		uint64_t off = start - b->m->lo;

		if (!map_has(b, start))
			continue;
		b->evidence[i].called = b->called[off / 8] >> (off & 7) & 1;
		b->evidence[i].address_taken = *map_flag(b, start) & CODE_TAKEN;
	}
}

static void link_parts(struct map_builder *b)
{
	for (size_t i = 0; i < b->f->n; i++)
		b->next_part[i] = FUNCTION_NONE;
	for (uint32_t i = 0; i < b->f->n; i++) {
		struct function *fn = &b->f->v[i];

		if (map_root(b, i) == i)
			continue;
		b->next_part[i] = b->next_part[fn->parent];
		b->next_part[fn->parent] = i;
	}
}

static void mark_other_arrivals(struct map_builder *b, struct frame_info *fi)
{
	for (size_t i = 0; i < b->f->n; i++) {
		const struct function *fn = &b->f->v[i];

		map_mark(b, fn->start, CODE_CONSTANT);
		if (fn->name && is_returned_into(fn->name))
			map_mark(b, fn->start + 1, CODE_CONSTANT);
	}
	for (size_t i = 0; i < b->f->nsymbols; i++) /* also those of separate debug files */
		map_mark(b, b->f->symbols[i], CODE_CONSTANT);
	elf_symbols_for_each(b->img, SHT_SYMTAB, mark_symbol, b);
	elf_symbols_for_each(b->img, SHT_DYNSYM, mark_symbol, b);
	if (fi)
		frame_info_for_each_landing_pad(fi, mark_landing_pad, b);
	rseq_mark(b);
	sweep_gaps(b);
}

/* ---- facts about a function and its parts ---- */

/* Does a pointer somewhere name a place in the function other than its start? */
static bool has_interior_pointer(const struct map_builder *b, uint32_t root)
{
	for (uint32_t i = root; i != FUNCTION_NONE; i = map_next_part(b, i)) {
		const struct function *fn = &b->f->v[i];

		for (uint64_t at = fn->start + (i == root); at < fn->end; at++)
			if (code_map_flags(b->m, at) & CODE_TAKEN)
				return true;
	}
	return false;
}

/* What holds for a part holds for the whole: control moves freely between them. */
static void share_among_parts(struct map_builder *b)
{
	struct code_function *cf = b->m->per_function;

	vec_for(&b->jumps, j)
		if (j->form == JUMP_UNRESOLVED)
			cf[map_root(b, j->function)].unresolved_indirect = true;
	for (uint32_t i = 0; i < b->f->n; i++) {
		uint32_t root = map_root(b, i);

		if (root == i)
			continue;
		cf[i].unresolved_indirect = cf[root].unresolved_indirect;
		cf[i].undecodable |= cf[root].undecodable;
	}
	for (uint32_t i = 0; i < b->f->n; i++)
		cf[map_root(b, i)].undecodable |= cf[i].undecodable;
}

/* ---- padding and exits ---- */

struct walk {
	struct map_builder *b;
	struct frame_info *fi;
	size_t branch, jump; /* next of b->branches, b->jumps: all three go up together */
	VEC(struct code_exit) exits;
};

static void add_exit(struct walk *w, uint64_t vaddr, uint32_t function, uint8_t kind,
		     uint8_t refusal)
{
	*vec_push(&w->exits) = (struct code_exit){
		.vaddr = vaddr,
		.function = map_root(w->b, function),
		.kind = kind,
		.refusal = refusal,
	};
}

/*
 * Was the frame torn down on the straight way to the jump at `at`?  Then the stack was deeper
 * somewhere on it, or counted from a frame pointer.
 */
static bool is_frame_torn_down(const struct walk *w, uint64_t at)
{
	const struct map_builder *b = w->b;

	if (!w->fi || frame_info_cfa_from_sp(w->fi, at) != 8)
		return false;
	for (int i = 0; i < 12 && !code_map_is_target(b->m, at); i++) {
		uint64_t previous = code_map_previous(b->m, at);

		if (!previous || previous + (map_shape(b, previous) & 15) != at ||
		    !map_falls_through(b, previous))
			return false;
		if (frame_info_cfa_from_sp(w->fi, previous) != 8)
			return true;
		at = previous;
	}
	return false;
}

/*
 * A direct jump is an exit when it leaves the function and its parts, or when it begins the
 * function anew without a frame: `f: push; ...; pop; jmp f` calls itself, `f: ...; jmp f`
 * loops.
 */
static void judge_direct(struct walk *w, uint64_t at, uint32_t function)
{
	struct map_builder *b = w->b;
	const struct map_branch *br;
	uint32_t to, root = map_root(b, function);

	while (w->branch < b->branches.n && b->branches.v[w->branch].from < at)
		w->branch++;
	if (w->branch == b->branches.n || b->branches.v[w->branch].from != at)
		return;
	br = &b->branches.v[w->branch];
	to = map_function(b, br->to);
	if (br->to == b->f->v[root].start && !is_frame_torn_down(w, at)) {
		b->m->per_function[root].loops_to_start = true;
		return;
	}
	if (to != FUNCTION_NONE && map_root(b, to) == root && br->to != b->f->v[root].start)
		return;
	add_exit(w, at, function, CODE_EXIT_TAIL,
		 br->conditional ? REFUSAL_JCC_TAIL : REFUSAL_NONE);
}

/* Does such a pointer name a place where the frame is, or may be, as at entry?  A jump with such a
 * frame leads nowhere else. */
static bool has_bare_interior(struct walk *w, uint32_t root)
{
	const struct map_builder *b = w->b;

	for (uint32_t i = root; i != FUNCTION_NONE; i = map_next_part(b, i)) {
		const struct function *fn = &b->f->v[i];

		for (uint64_t at = fn->start + (i == root); at < fn->end; at++) {
			int64_t cfa = code_map_flags(b->m, at) & CODE_TAKEN
					      ? frame_info_cfa_from_sp(w->fi, at)
					      : INT64_MAX;

			if (cfa < 0 || cfa == 8)
				return true;
		}
	}
	return false;
}

enum verdict { STAYS, LEAVES, AMBIGUOUS };

static enum verdict judge_form(struct walk *w, const struct map_jump *j)
{
	struct map_builder *b = w->b;
	int64_t cfa;

	if (j->form == JUMP_SWITCH)
		return STAYS;
	if (j->form == JUMP_SLOT || j->form == JUMP_OUTWARD)
		return LEAVES;
	cfa = w->fi ? frame_info_cfa_from_sp(w->fi, j->addr) : -1;
	if (j->form == JUMP_UNRESOLVED || j->form == JUMP_MIXED)
		return cfa >= 0 && cfa != 8 ? STAYS : AMBIGUOUS;
	if (!has_interior_pointer(b, map_root(b, j->function)))
		return cfa >= 0 && cfa != 8 ? AMBIGUOUS : LEAVES;
	if (cfa == 8 && !has_bare_interior(w, map_root(b, j->function)))
		return LEAVES;
	return cfa >= 0 && cfa != 8 ? STAYS : AMBIGUOUS;
}

static void judge_indirect(struct walk *w, uint64_t at, uint32_t function)
{
	struct map_builder *b = w->b;
	enum verdict v;

	while (w->jump < b->jumps.n && b->jumps.v[w->jump].addr < at)
		w->jump++;
	if (w->jump == b->jumps.n || b->jumps.v[w->jump].addr != at)
		return;
	v = judge_form(w, &b->jumps.v[w->jump]);
	if (v != STAYS)
		add_exit(w, at, function, CODE_EXIT_TAIL_INDIRECT,
			 v == LEAVES ? REFUSAL_NONE : REFUSAL_AMBIGUOUS_JUMP);
}

static bool is_filler(const struct map_builder *b, uint64_t at)
{
	uint8_t kind = map_shape(b, at) >> 4;

	return kind == INSN_PADDING || (kind == INSN_TRAP && *elf_image_at(b->img, at, 1) == 0xcc);
}

static void mark_padding(struct map_builder *b, uint64_t at, uint64_t len)
{
	for (uint64_t i = 0; i < len; i++)
		*map_flag(b, at + i) |= CODE_PADDING;
}

/* May control arrive at a byte of [at, at+len) other than from the instruction before it? */
static bool is_arrival(const struct map_builder *b, uint64_t at, uint64_t len)
{
	for (uint64_t i = 0; i < len; i++)
		if (code_map_is_target(b->m, at + i))
			return true;
	return false;
}

/*
 * From the start to the end: an instruction is live when the one before it falls through or
 * when somebody may jump to it; all are where an unresolved jump may go anywhere.  Dead no-ops
 * are padding, dead rets no exits.  Returns whether
 * control may run over the function's end.
 */
static bool walk_function(struct walk *w, uint32_t index)
{
	struct map_builder *b = w->b;
	const struct function *fn = &b->f->v[index];
	bool live = true, sure = !b->m->per_function[index].undecodable &&
				 !b->m->per_function[index].unresolved_indirect;
	uint64_t at, len;

	for (at = fn->start; at < fn->end; at += len) {
		if (!(*map_flag(b, at) & CODE_INSN)) {
			live = true;
			len = 1;
			continue;
		}
		len = map_shape(b, at) & 15;
		live = live || !sure || is_arrival(b, at, len);
		if (!live) {
			if (is_filler(b, at))
				mark_padding(b, at, len);
			else
				*vec_push(&b->data) = (struct map_bytes){at, len};
			continue;
		}
		switch (map_shape(b, at) >> 4) {
		case INSN_RET:
			add_exit(w, at, index, CODE_EXIT_RET, REFUSAL_NONE);
			break;
		case INSN_JMP:
		case INSN_JCC:
			judge_direct(w, at, index);
			break;
		case INSN_JMP_INDIRECT:
			judge_indirect(w, at, index);
			break;
		}
		live = map_falls_through(b, at);
	}
	return live;
}

/*
 * The gap [at, end) behind a function that does not run over its end.  If it holds nothing but
 * filler, all of that is padding; if code that nobody names follows, only the filler up to the
 * next multiple of 16, since that code might begin with a no-op of its own.
 */
static void walk_gap(struct map_builder *b, uint64_t at, uint64_t end)
{
	uint64_t start = at, room = elf_image_room(b->img, at);
	const uint8_t *p = elf_image_at(b->img, at, room);
	struct insn in;

	if (!p || !elf_image_is_exec(b->img, at))
		return;
	if (end - at > room)
		end = at + room;
	while (at < end && insn_scan(&in, p + (at - start), end - at, at) &&
	       (in.kind == INSN_PADDING || in.op == INSN_OP_INT3) && !is_arrival(b, at, in.len))
		at += in.len;
	if (at < end) {
		uint64_t edge = (start + 15) & ~15ull;

		if (edge < at)
			at = edge;
	}
	mark_padding(b, start, at - start);
}

static void walk_functions(struct map_builder *b, struct frame_info *fi)
{
	struct walk w = {.b = b, .fi = fi};

	for (uint32_t i = 0; i < b->f->n; i++) {
		const struct function *fn = &b->f->v[i];
		uint64_t next = i + 1 < b->f->n ? fn[1].start : b->m->hi;

		if (!map_has(b, fn->start) || fn->end > b->m->hi)
			continue;
		if (!walk_function(&w, i) && !b->m->per_function[i].undecodable && fn->end < next)
			walk_gap(b, fn->end, next < b->m->hi ? next : b->m->hi);
	}
	b->m->exits = w.exits.v;
	b->m->nexits = w.exits.n;
}

/* ---- the whole ---- */

static bool is_position_dependent(const struct elf_image *img)
{
	return img->size > 17 && (img->bytes[16] | img->bytes[17] << 8) == ET_EXEC;
}

static int find_span(struct code_map *m, const struct elf_image *img, struct err *err)
{
	m->lo = UINT64_MAX;
	for (size_t i = 0; i < img->nsegments; i++) {
		const struct elf_segment *g = &img->segments[i];

		if (!(g->flags & PF_X) || !g->filesz)
			continue;
		if (g->vaddr < m->lo)
			m->lo = g->vaddr;
		if (g->vaddr + g->filesz > m->hi)
			m->hi = g->vaddr + g->filesz;
	}
	if (m->lo > m->hi)
		m->lo = m->hi;
	if (m->hi - m->lo > SPAN_MAX)
		return err_set(err, EFBIG, "%s spreads its code over more than 1 GiB", img->path);
	return 0;
}

/* The pointers' bit has done its work. */
static void mark_data(struct map_builder *b)
{
	for (uint64_t at = b->m->lo; at < b->m->hi; at++)
		*map_flag(b, at) &= (uint8_t)~CODE_TAKEN;
	vec_for(&b->data, d)
		for (uint64_t at = d->at; at < d->at + d->len; at++)
			map_mark(b, at, CODE_DATA);
	vec_free(&b->data);
}

/*
 * To those who want to know all jumps that lead somewhere it is as good as a pointer: they look
 * among the jumps of functions.
 */
static void mark_strays(struct map_builder *b)
{
	vec_for(&b->strays, to)
		map_mark(b, *to, CODE_CONSTANT);
	for (uint64_t off = 0; off < b->m->hi - b->m->lo; off++) {
		if (!(off & 7) && !b->called[off / 8])
			off += 7;
		else if (b->called[off / 8] >> (off & 7) & 1)
			map_mark(b, b->m->lo + off, CODE_CONSTANT);
	}
	vec_free(&b->strays);
}

static void analyse(struct map_builder *b)
{
	struct frame_info *fi = frame_info_open(b->img);

	sweep_functions(b);
	elf_image_for_each_address_constant(b->img, mark_constant, b);
	collect_start_evidence(b);
	functions_mark_parts(b->f, b->evidence);
	link_parts(b);
	mark_other_arrivals(b, fi);
	jump_tables_resolve(b);
	share_among_parts(b);
	walk_functions(b, fi);
	mark_strays(b);
	mark_data(b);
	frame_info_close(fi);
}

int code_map_build(struct code_map **out, const struct elf_image *img, struct functions *f,
		   struct err *err)
{
	struct code_map *m = xcalloc(1, sizeof(*m));
	struct map_builder b = {
		.m = m,
		.img = img,
		.f = f,
		.position_dependent = is_position_dependent(img),
	};
	size_t span;
	int rc = find_span(m, img, err);

	if (rc) {
		xfree(m);
		return rc;
	}
	m->decoded = xcalloc(1, sizeof(*m->decoded));
	span = m->hi - m->lo;
	m->img = img;
	m->functions = f;
	m->per_function = xcalloc(f->n + 1, sizeof(*m->per_function));
	m->flags = xcalloc(span + 16, 1);
	b.shape = xcalloc(span + 16, 1);
	b.called = xcalloc(span / 8 + 1, 1);
	b.evidence = xcalloc(f->n + 1, sizeof(*b.evidence));
	b.first_lea = xcalloc(f->n + 1, sizeof(*b.first_lea));
	b.next_part = xcalloc(f->n + 1, sizeof(*b.next_part));
	analyse(&b);
	xfree(b.shape);
	xfree(b.called);
	xfree(b.evidence);
	xfree(b.first_lea);
	xfree(b.next_part);
	vec_free(&b.branches);
	vec_free(&b.leas);
	vec_free(&b.jumps);
	*out = m;
	return 0;
}

void code_map_free(struct code_map *m)
{
	if (!m)
		return;
	xfree(m->per_function);
	xfree(m->exits);
	xfree(m->flags);
	xfree(m->decoded);
	xfree(m);
}

static bool decode(const struct code_map *m, uint64_t vaddr, bool operands, struct insn *out)
{
	uint64_t room = elf_image_room(m->img, vaddr);
	const uint8_t *p;

	if (room > 15)
		room = 15;
	p = room ? elf_image_at(m->img, vaddr, room) : NULL;
	if (!p)
		return false;
	return operands ? insn_decode(out, p, room, vaddr) : insn_scan(out, p, room, vaddr);
}

static bool decode_cached(const struct code_map *m, uint64_t vaddr, bool operands, struct insn *out)
{
	unsigned i = vaddr % CACHE_SIZE;
	struct insn_cache *c = m->decoded;

	if (!c->at[i].vaddr || c->at[i].vaddr != vaddr || (operands && !c->at[i].has_operands)) {
		if (!decode(m, vaddr, operands, out))
			return false;
		c->at[i].vaddr = vaddr;
		c->at[i].has_operands = operands;
		c->at[i].in = *out;
		return true;
	}
	*out = c->at[i].in;
	return true;
}

bool code_map_insn(const struct code_map *m, uint64_t vaddr, struct insn *out)
{
	return decode_cached(m, vaddr, true, out);
}

bool code_map_scan(const struct code_map *m, uint64_t vaddr, struct insn *out)
{
	return decode_cached(m, vaddr, false, out);
}

uint64_t code_map_previous(const struct code_map *m, uint64_t vaddr)
{
	const struct function *fn = functions_at(m->functions, vaddr);

	if (!fn)
		return 0;
	for (uint64_t at = vaddr; at > fn->start && vaddr - at < 15;)
		if (code_map_flags(m, --at) & CODE_INSN)
			return at;
	return 0;
}
