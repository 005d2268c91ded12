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
 *      switch after they have cut functions up.  So trying *every* lea of a function that has
 *      an indirect jump as a table (and every lea of a place in the function as a base: labels
 *      as values) finds it wherever the lea has been moved to, and whatever happens to the sum
 *      on its way; no data flow is needed for that;
 *   3. other arithmetic.
 * Data flow (jump_flow.c) only answers which of the three feeds a jump.  For 2 it must see the
 * load (scale 4, 32 bits) that feeds the sum, or a base that certainly is a table; else, and
 * for 3, the jump is unresolved.  Where the flow is lost (a value that arrives from before the
 * function's start, or from a call) the value is whole: nobody keeps half-made sums over those.
 *
 * How far a table reaches: while entries lead to an instruction, or just past the function
 * or a part (a default that cannot happen), and not into the next known table.  Where a bound
 * check (cmp $n; ja) is found, the table must be at least that long, whatever follows it, or
 * the jump is unresolved.  (In the 824 switches of Debian's bash, git, gdb, perl, cmake, libc
 * and libcrypto where a check is found, both lengths are the same.)
 *
 * Passes: (1) classify each jump, noting the tables that it certainly uses, and collect candidate
 * tables from all leas; (2) read these; (3) read what the jumps use; (4) mark the targets.  In each of the
 * first three many are looked at side by side, and nothing is marked that another one reads.
 *
 * This file marks CODE_CONSTANT and sets map_jump.form; it judges no exits.
 */
#include <stdlib.h>
#include <string.h>

#include "base/jobs.h"
#include "base/search.h"
#include "inject/elf/elf_image_impl.h"
#include "inject/code/jump_flow.h"

#define LABELS_MAX 16 /* bases tried in one function */

struct table {
	uint64_t at, base;
	uint32_t root;
};

struct pending { /* a sum jump, until its function's tables are read */
	size_t jump;
	uint32_t root;
	struct origin origin;
	bool is_explained, to_start; /* what reading them says */
};

/* What a thread finds, to be marked afterwards. */
struct found {
	VEC(uint64_t) targets;
	VEC(uint64_t) explained; /* whose pointer is not a sign of a computed goto */
	VEC(struct table) tables;
	VEC(struct pending) pending;
};

/* Numbers [first, end) of jumps, tables or pending ones are a piece of work. */
struct slice {
	size_t first, end;
	struct found found;
};
#define SLICES_MAX 64u
#define SLICE 64u /* a smaller one is not worth it */

struct resolver {
	struct map_builder *b;
	VEC(struct table) tables; /* candidates of all functions, sorted by at */
	VEC(struct pending) pending;
	struct slice slices[SLICES_MAX];
	size_t nslices;
};

/* ---- tables of 32-bit entries ---- */

static int by_address(const void *a, const void *b)
{
	const struct table *x = a, *y = b;

	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	if (x->base != y->base)
		return x->base < y->base ? -1 : 1;
	return x->root < y->root ? -1 : x->root > y->root;
}

/* Sorted, each once: a function may name its table in many places. */
static void sort_tables(struct resolver *r)
{
	size_t n = 0;

	if (r->tables.n)
		qsort(r->tables.v, r->tables.n, sizeof(*r->tables.v), by_address);
	for (size_t i = 0; i < r->tables.n; i++)
		if (!n || by_address(&r->tables.v[n - 1], &r->tables.v[i]))
			r->tables.v[n++] = r->tables.v[i];
	r->tables.n = n;
}

/* The first known table at `at` or after it. */
static size_t first_table(const struct resolver *r, uint64_t at)
{
	return partition_point(i, r->tables.n, r->tables.v[i].at < at);
}

/* Address of the first known table after `table`. */
static uint64_t next_table(const struct resolver *r, uint64_t table)
{
	size_t i = first_table(r, table + 1);

	return table != UINT64_MAX && i < r->tables.n ? r->tables.v[i].at : UINT64_MAX;
}

/*
 * Any instruction will do: the .cold part that an entry leads to may not have been recognized
 * as a part of this function.
 */
static bool is_target(const struct resolver *r, uint64_t vaddr, uint32_t root)
{
	return code_map_flags(r->b->m, vaddr) & CODE_INSN || flow_is_own(r->b, root, vaddr);
}

/*
 * Mark where the table's entries, relative to base, lead to.  At least `least` entries are
 * wanted.  Returns how many were good.
 */
static uint64_t read_table(const struct resolver *r, struct found *out, uint32_t root,
			   uint64_t table, uint64_t base, uint64_t least, bool *to_start)
{
	uint64_t stop = next_table(r, table), i, to;

	for (i = 0; i < TABLE_ENTRIES_MAX; i++) {
		if (!flow_entry(r->b, table, i, base, &to) || !is_target(r, to, root))
			break;
		if (i >= least && table + 4 * i >= stop)
			break;
		*vec_push(&out->targets) = to;
		if (i < least && to == r->b->f->v[root].start)
			*to_start = true;
	}
	return i;
}

static void try_table(const struct map_builder *b, struct found *out, uint32_t root, uint64_t at,
		      uint64_t base)
{
	uint64_t to;

	if (flow_entry(b, at, 0, base, &to) && flow_is_own(b, root, to))
		*vec_push(&out->tables) = (struct table){.at = at, .base = base, .root = root};
}

/* Places in the function that it names itself: bases of tables of labels. */
static unsigned find_labels(const struct map_builder *b, uint32_t root, uint64_t *labels)
{
	unsigned n = 0;

	for (uint32_t i = root; i != FUNCTION_NONE; i = map_next_part(b, i))
		for (uint32_t l = b->first_lea[i]; l < b->first_lea[i + 1]; l++) {
			uint64_t at = b->leas.v[l].target;

			if (n < LABELS_MAX && at != b->f->v[root].start &&
			    code_map_flags(b->m, at) & CODE_INSN && flow_is_own(b, root, at))
				labels[n++] = at;
		}
	return n;
}

/* Every lea of the function whose target may be a table. */
static void collect_tables(const struct map_builder *b, struct found *out, uint32_t root)
{
	uint64_t labels[LABELS_MAX];
	unsigned n = find_labels(b, root, labels);

	for (uint32_t i = root; i != FUNCTION_NONE; i = map_next_part(b, i))
		for (uint32_t l = b->first_lea[i]; l < b->first_lea[i + 1]; l++) {
			uint64_t at = b->leas.v[l].target;

			try_table(b, out, root, at, at);
			for (unsigned k = 0; k < n && !elf_image_is_exec(b->img, at); k++)
				try_table(b, out, root, at, labels[k]);
		}
}

/* Read one table that a jump may use, with every base that it may add; the longest reading. */
static uint64_t read_with_bases(const struct resolver *r, struct found *out, struct pending *p,
				uint64_t table, uint64_t least)
{
	const struct origin *o = &p->origin;
	uint64_t longest = 0;

	if (o->absolute)
		return read_table(r, out, p->root, table, 0, least, &p->to_start);
	for (unsigned i = 0; i < o->nbases; i++) {
		uint64_t n = read_table(r, out, p->root, table, o->base[i], least, &p->to_start);

		if (n > longest)
			longest = n;
	}
	for (size_t i = o->nbases ? r->tables.n : first_table(r, table);
	     i < r->tables.n && r->tables.v[i].at == table; i++) {
		const struct table *t = &r->tables.v[i];
		uint64_t n = t->root == p->root ? read_table(r, out, p->root, table, t->base, least,
							     &p->to_start)
						: 0;

		if (n > longest)
			longest = n;
	}
	return longest;
}

/*
 * Read what a sum jump is known to use; false when it is not explained.  A table without a
 * single good entry is none: the flow analysis does not see which paths can happen.
 */
static bool read_known(const struct resolver *r, struct found *out, const struct flow *f,
		       struct pending *p)
{
	const struct origin *o = &p->origin;
	uint64_t least = flow_bound(f, o->load);
	bool found = false;

	for (unsigned t = 0; t < o->ntables; t++) {
		uint64_t n = read_with_bases(r, out, p, o->table[t], least);

		if (n && n < least)
			return false;
		found |= n > 0;
	}
	if (found || o->ntables)
		return found;
	/* The base was lost: some table of the function it is, and all of them are read. */
	for (size_t i = 0; i < r->tables.n; i++)
		if (r->tables.v[i].root == p->root)
			return true;
	return false;
}

/* ---- arrays of pointers ---- */

/* The pointer that memory at vaddr will hold: as the file has it, or, where that is empty, as a
 * relocation says. */
static uint64_t pointer_at(const struct map_builder *b, uint64_t vaddr)
{
	const uint8_t *word = elf_image_at(b->img, vaddr, 8);

	if (!word)
		return 0;
	return elf_read64(word) ? elf_read64(word) : elf_relative_at(b->img, vaddr);
}

enum { INSIDE = 1, OUTSIDE = 2 };

/* Where the pointers of an array lead: into the function, out of it, or both. */
static unsigned judge_array(const struct map_builder *b, uint32_t root, uint64_t array)
{
	unsigned where = 0;

	for (uint64_t i = 0; i < TABLE_ENTRIES_MAX; i++) {
		uint64_t to = pointer_at(b, array + 8 * i);
		uint32_t fn = to ? map_function(b, to) : FUNCTION_NONE;

		if (fn == FUNCTION_NONE)
			break;
		if (map_root(b, fn) == root && to != b->f->v[root].start)
			where |= INSIDE;
		else if (where == INSIDE)
			break; /* another function's array follows ours */
		else
			where |= OUTSIDE;
	}
	return where;
}

/* These pointers belong to a switch: they are not a sign of other computed gotos. */
static void explain_array(const struct map_builder *b, struct found *out, uint32_t root,
			  uint64_t array)
{
	for (uint64_t i = 0; i < TABLE_ENTRIES_MAX; i++) {
		uint64_t to = pointer_at(b, array + 8 * i);

		if (!to || !flow_is_own(b, root, to) || !map_has(b, to))
			return;
		*vec_push(&out->explained) = to;
	}
}

static enum jump_form judge_arrays(const struct map_builder *b, struct found *out, uint32_t root,
				   const struct origin *o)
{
	unsigned where = 0;

	for (unsigned t = 0; t < o->ntables; t++)
		where |= judge_array(b, root, o->table[t]);
	if (where == INSIDE)
		for (unsigned t = 0; t < o->ntables; t++)
			explain_array(b, out, root, o->table[t]);
	return where == INSIDE ? JUMP_SWITCH : where == OUTSIDE ? JUMP_OUTWARD : JUMP_LOADED;
}

/* ---- all of it ---- */

static enum jump_form judge_origin(const struct map_builder *b, struct found *out, uint32_t root,
				   const struct origin *o)
{
	if (o->other)
		return JUMP_UNRESOLVED;
	if (o->sum || o->absolute)
		return o->whole ? JUMP_MIXED : JUMP_SWITCH; /* until its tables are read */
	if (o->whole == WHOLE_INDEXED)
		return judge_arrays(b, out, root, o);
	return o->whole == WHOLE_SLOT ? JUMP_SLOT : JUMP_LOADED;
}

static void classify(struct resolver *r, struct found *out, struct flow *f, size_t i)
{
	struct map_jump *j = &r->b->jumps.v[i];
	struct origin o;
	struct insn in;

	if (!code_map_insn(r->b->m, j->addr, &in))
		return;
	flow_enter(f, i);
	flow_origin(f, &o, &in);
	j->form = (uint8_t)judge_origin(r->b, out, f->root, &o);
	if (o.sum || o.absolute)
		*vec_push(&out->pending) =
			(struct pending){.jump = i, .root = f->root, .origin = o};
}

static void classify_slice(size_t number, void *ctx)
{
	struct resolver *r = ctx;
	struct slice *s = &r->slices[number];
	struct flow f = {.b = r->b, .root = FUNCTION_NONE};
	uint32_t last = FUNCTION_NONE;

	for (size_t i = s->first; i < s->end; i++) {
		classify(r, &s->found, &f, i);
		if (r->b->jumps.v[i].form == JUMP_SLOT || f.root == last)
			continue;
		last = f.root;
		collect_tables(r->b, &s->found, last);
	}
	flow_close(&f);
}

static void read_slice_of_tables(size_t number, void *ctx)
{
	struct resolver *r = ctx;
	struct slice *s = &r->slices[number];
	bool to_start;

	for (size_t i = s->first; i < s->end; i++) {
		const struct table *t = &r->tables.v[i];

		read_table(r, &s->found, t->root, t->at, t->base, 0, &to_start);
	}
}

static void read_slice_of_pending(size_t number, void *ctx)
{
	struct resolver *r = ctx;
	struct slice *s = &r->slices[number];
	struct flow f = {.b = r->b, .root = FUNCTION_NONE};

	for (size_t i = s->first; i < s->end; i++)
		r->pending.v[i].is_explained = read_known(r, &s->found, &f, &r->pending.v[i]);
	flow_close(&f);
}

/* n things in slices, and what was found is noted: in order, so how many there are is no matter. */
static void run_slices(struct resolver *r, size_t n, void (*fn)(size_t number, void *ctx))
{
	r->nslices = n / SLICE + 1 < SLICES_MAX ? n / SLICE + 1 : SLICES_MAX;
	for (size_t i = 0; i < r->nslices; i++)
		r->slices[i] = (struct slice){.first = n * i / r->nslices,
					      .end = n * (i + 1) / r->nslices};
	jobs_run(r->nslices, fn, r);
	for (size_t i = 0; i < r->nslices; i++) {
		struct found *found = &r->slices[i].found;

		vec_append(&r->tables, &found->tables);
		vec_append(&r->pending, &found->pending);
		vec_for(&found->explained, to)
			*map_flag(r->b, *to) &= (uint8_t)~CODE_TAKEN;
		vec_free(&found->explained);
	}
}

static void mark_targets(struct resolver *r)
{
	for (size_t i = 0; i < r->nslices; i++) {
		vec_for(&r->slices[i].found.targets, to)
			map_mark(r->b, *to, CODE_CONSTANT);
		vec_free(&r->slices[i].found.targets);
	}
}

void jump_tables_resolve(struct map_builder *b)
{
	struct resolver r = {.b = b};

	run_slices(&r, b->jumps.n, classify_slice);
	sort_tables(&r);
	run_slices(&r, r.tables.n, read_slice_of_tables);
	mark_targets(&r);
	run_slices(&r, r.pending.n, read_slice_of_pending);
	mark_targets(&r);
	vec_for(&r.pending, p) {
		if (!p->is_explained)
			b->jumps.v[p->jump].form = JUMP_UNRESOLVED;
		b->m->per_function[p->root].switches_to_start |= p->to_start;
	}
	vec_for(&b->jumps, j)
		if (j->form == JUMP_UNRESOLVED)
			jump_stride_resolve(b, j);
	vec_free(&r.pending);
	vec_free(&r.tables);
}
