/* SPDX-License-Identifier: MIT */
/*
 * code_walk.c - pass 3 of the code map: what is reachable, and so padding and exits.
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
 * Pieces are walked side by side (struct map_piece).  Flags are only read meanwhile: what becomes padding is
 * marked when all are done.
 */
#include "base/jobs.h"
#include "base/search.h"
#include "inject/code/code_map_impl.h"

struct walk {
	struct map_builder *b;
	struct frame_info *fi;
	size_t branch, jump; /* next of b->branches, b->jumps: all three go up together */
	VEC(struct code_exit) exits;
	VEC(struct map_bytes) padding, data;
	VEC(uint32_t) loops; /* functions that a jump of their own begins anew */
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
		*vec_push(&w->loops) = root;
		return;
	}
	if (to != FUNCTION_NONE && map_root(b, to) == root && br->to != b->f->v[root].start)
		return;
	add_exit(w, at, function, CODE_EXIT_TAIL,
		 br->conditional ? REFUSAL_JCC_TAIL : REFUSAL_NONE);
}

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

static void mark_padding(const struct map_builder *b, const struct map_bytes *p)
{
	for (uint64_t i = 0; i < p->len; i++)
		*map_flag(b, p->at + i) |= CODE_PADDING;
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
		if (live && map_shape(b, at) >> 4 == INSN_PLAIN)
			continue; /* most are */
		live = live || !sure || is_arrival(b, at, len);
		if (!live) {
			if (is_filler(b, at))
				*vec_push(&w->padding) = (struct map_bytes){at, len};
			else
				*vec_push(&w->data) = (struct map_bytes){at, len};
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
 * The gap [at, end) after a function that does not run over its end.  If it holds nothing but
 * filler, all of that is padding; if code that nobody names follows, only the filler up to the
 * next multiple of 16, since that code might begin with a no-op of its own.
 */
static void walk_gap(struct walk *w, const struct function *fn, uint64_t end)
{
	const struct map_builder *b = w->b;
	uint64_t at = fn->end;
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
	if (fn->sources & FUNCTION_GUESS) /* what looks like filler may be the begin of a table */
		at = (at & ~15ull) > start ? at & ~15ull : start;
	*vec_push(&w->padding) = (struct map_bytes){start, at - start};
}

/* The first of the branches, and of the jumps, from the address on. */
static size_t first_branch(const struct map_builder *b, uint64_t vaddr)
{
	return partition_point(i, b->branches.n, b->branches.v[i].from < vaddr);
}

static size_t first_jump(const struct map_builder *b, uint64_t vaddr)
{
	return partition_point(i, b->jumps.n, b->jumps.v[i].addr < vaddr);
}

struct walks {
	struct map_builder *b;
	const struct frame_info *fi;
	struct walk *v; /* by piece */
};

static void walk_piece(size_t number, void *ctx)
{
	struct walks *all = ctx;
	struct map_builder *b = all->b;
	const struct map_piece *p = &b->pieces.v[number];
	struct walk *w = &all->v[number];

	*w = (struct walk){.b = b, .fi = frame_info_share(all->fi)};
	w->branch = first_branch(b, p->lo);
	w->jump = first_jump(b, p->lo);
	for (uint32_t i = p->first; i < p->end; i++) {
		const struct function *fn = &b->f->v[i];
		uint64_t next = i + 1 < b->f->n ? fn[1].start : b->m->hi;

		if (!map_has(b, fn->start) || fn->end > b->m->hi)
			continue;
		if (!walk_function(w, i) && !b->m->per_function[i].undecodable && fn->end < next)
			walk_gap(w, fn, next < b->m->hi ? next : b->m->hi);
	}
	frame_info_close(w->fi);
}

static void put_together(struct map_builder *b, struct walk *w)
{
	VEC(struct code_exit) exits = {b->m->exits, b->m->nexits, b->m->nexits};

	vec_append(&exits, &w->exits);
	b->m->exits = exits.v;
	b->m->nexits = exits.n;
	vec_append(&b->data, &w->data);
	vec_for(&w->padding, p)
		mark_padding(b, p);
	vec_free(&w->padding);
	vec_for(&w->loops, root)
		b->m->per_function[*root].loops_to_start = true;
	vec_free(&w->loops);
}

void walk_functions(struct map_builder *b, struct frame_info *fi)
{
	struct walks all = {b, fi, xcalloc(b->pieces.n + 1, sizeof(*all.v))};

	jobs_run(b->pieces.n, walk_piece, &all);
	for (size_t i = 0; i < b->pieces.n; i++)
		put_together(b, &all.v[i]);
	xfree(all.v);
}
