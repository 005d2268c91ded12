/* SPDX-License-Identifier: MIT */
/*
 * guess.c - functions of a file that has neither symbols nor frame information.
 *
 *   entry, constructors, exported ─► walk ─► calls ──────► starts ─► walk ...
 *                                      │
 *                                      ├──► pointers ┐
 *            relocations, data words ──┼─────────────┴► starts, if they look like one
 *                                      └──► jumps across other functions: the same
 *
 * 1. Code is followed from what the file itself names (guess_walk.c).  What it calls starts a
 *    function.  A walk that comes upon something that is not code is not believed in anything.
 * 2. Of the places that pointers name, those start a function that no walk has passed, that stand
 *    after an end of code and look like a start.  Labels of a switch have pointers, too: where a
 *    function has a jump that leads nobody knows where, its places have to look the better.
 * 3. A jump across other functions leads to one, if its target looks like one.
 * 4. All starts are known, so each function's end is: a walk stops at the others.  Only if each byte
 *    as far as the end was passed, or is filler, and all jumps but tail calls stay in there, is the extent
 *    sure (is_whole).  Functions that disagree on an instruction are dropped.
 *
 * Nothing here is a proof.  What is right of it is measured against symbols in
 * tests/e2e/record/guess.py: below 98 of 100 a rule has to go.
 */
#include "inject/code/guess.h"

#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "inject/code/guess_impl.h"
#include "inject/elf/elf_image_impl.h"

#define SPAN_MAX (1ull << 28)
#define ROUNDS_MAX 6
#define NEAR 65536u
#define FILLER_MAX 64u
#define LOCK_PREFIX 0xf0
#define ALIGNED 15u

/* ---- places ---- */

static bool may_start(const struct guesser *g, uint64_t at)
{
	return guess_has(g, at) && elf_image_is_exec(g->img, at) && elf_image_room(g->img, at) &&
	       !(*guess_state(g, at) & (IS_START | IS_KNOWN)) &&
	       !g->in->is_excluded(g->in->ctx, at);
}

static void add_start(struct guesser *g, uint64_t at, enum guess_kind kind)
{
	if (!may_start(g, at))
		return;
	*guess_state(g, at) |= IS_START;
	*vec_push(&g->starts) = (struct guess){.start = at, .kind = (uint8_t)kind};
	*vec_push(&g->work) = at;
}

static void note_pointed(uint64_t at, void *ctx)
{
	struct guesser *g = ctx;

	if (!may_start(g, at) || *guess_state(g, at) & IS_POINTED)
		return;
	*guess_state(g, at) |= IS_POINTED;
	*vec_push(&g->pointed) = at;
}

static bool is_passed(const struct guesser *g, uint64_t at)
{
	return *guess_state(g, at) & (IS_INSN | IN_INSN);
}

/* What stands between functions: no-ops, int3, zeros. */
static bool is_filler(const struct guesser *g, uint64_t from, uint64_t to)
{
	struct insn in;

	while (from < to) {
		const uint8_t *p = elf_image_at(g->img, from, 1);

		if (p && (!*p || *p == 0xcc)) {
			from++;
			continue;
		}
		if (!p || !guess_decode(g, from, &in) || in.kind != INSN_PADDING)
			return false;
		from += in.len;
	}
	return from == to;
}

/* The end of the code that was passed last before `at`, and what it ends with. */
static bool find_end_before(const struct guesser *g, uint64_t at, uint64_t *end, unsigned *last)
{
	struct insn in;
	uint64_t back = at;

	while (back > g->lo && at - back < FILLER_MAX && !is_passed(g, back - 1))
		back--;
	if (back == g->lo || !is_passed(g, back - 1))
		return false;
	*end = back;
	for (back--; back > g->lo && !(*guess_state(g, back) & IS_INSN);)
		back--;
	if (!guess_decode(g, back, &in))
		return false;
	*last = in.kind;
	return true;
}

/* A call ends a function if it does not return; right after it is where others return to. */
static bool is_end(unsigned kind, bool has_filler)
{
	return kind == INSN_JMP || kind == INSN_JMP_INDIRECT || kind == INSN_RET ||
	       kind == INSN_TRAP ||
	       (has_filler && (kind == INSN_CALL || kind == INSN_CALL_INDIRECT));
}

/* Do the bytes before look like the last instruction of a function that nobody has passed? */
static bool is_after_unpassed_end(const struct guesser *g, uint64_t at, bool has_filler)
{
	static const struct {
		uint8_t len, op;
	} ends[] = {{1, 0xc3}, {5, 0xe9}, {5, 0xe8}, {2, 0xeb}, {2, 0x0f}, {1, 0xf4}};
	struct insn in;

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		uint64_t last = at - ends[i].len;
		const uint8_t *p = guess_has(g, last) ? elf_image_at(g->img, last, 1) : NULL;

		if (!p || *p != ends[i].op || !guess_decode(g, last, &in) || in.len != ends[i].len)
			continue;
		if (is_end(in.kind, has_filler) && (ends[i].len != 5 || guess_has(g, in.target)))
			return true;
	}
	return false;
}

/* Does code end before it, as far as anybody can see? */
static bool is_after_end(const struct guesser *g, uint64_t at)
{
	const struct elf_section *section = elf_image_section_at(g->img, at);
	uint64_t end;
	unsigned last;

	if (at == g->lo || !elf_image_at(g->img, at - 1, 1) || (section && section->vaddr == at))
		return true;
	if (find_end_before(g, at, &end, &last) && is_filler(g, end, at))
		return is_end(last, end != at);
	for (uint64_t pad = 0; pad <= ALIGNED && guess_has(g, at - pad); pad++)
		if (is_filler(g, at - pad, at) && is_after_unpassed_end(g, at - pad, pad))
			return true;
	return false;
}

/* push of a register that a callee keeps, room on the stack, or endbr64. */
static bool has_prologue(const struct guesser *g, uint64_t at)
{
	static const struct {
		uint8_t n, bytes[4];
	} starts[] = {
		{1, {0x55}},
		{1, {0x53}},
		{2, {0x41, 0x54}},
		{2, {0x41, 0x55}},
		{2, {0x41, 0x56}},
		{2, {0x41, 0x57}},
		{3, {0x48, 0x83, 0xec}},
		{3, {0x48, 0x81, 0xec}},
		{4, {0x48, 0x8d, 0x64, 0x24}},
		{4, {0x48, 0x8d, 0xa4, 0x24}},
		{4, {0xf3, 0x0f, 0x1e, 0xfa}},
	};
	const uint8_t *p = elf_image_at(g->img, at, 4);

	for (size_t i = 0; p && i < sizeof(starts) / sizeof(starts[0]); i++)
		if (!memcmp(p, starts[i].bytes, starts[i].n))
			return true;
	return false;
}

/* Does it lie after the start of a function with a jump that may lead here? */
static bool is_near_lost(const struct guesser *g, uint64_t at)
{
	uint64_t lo = at - g->lo > NEAR ? at - NEAR : g->lo;

	while (at > lo && !(*guess_state(g, at) & IS_START))
		at--;
	return *guess_state(g, at) & IS_LOST;
}

static bool looks_like_start(struct guesser *g, struct guess_walk *w, uint64_t at)
{
	bool is_aligned = !(at & ALIGNED);

	if (!may_start(g, at) || *guess_state(g, at) & IS_READ || !is_after_end(g, at))
		return false;
	if (has_prologue(g, at) ? !is_aligned && is_near_lost(g, at)
				: !is_aligned || is_near_lost(g, at))
		return false;
	guess_walk(g, w, at);
	return !w->is_wrong;
}

/* ---- following code ---- */

static bool is_behind_lock(const struct guesser *g, uint64_t at)
{
	const uint8_t *before = at > g->lo ? elf_image_at(g->img, at - 1, 1) : NULL;

	return before && *before == LOCK_PREFIX;
}

/* The walk's instructions are believed, unless others are already. */
static void commit(struct guesser *g, struct guess_walk *w)
{
	vec_for(&w->insns, i) {
		if (*guess_state(g, i->at) & IN_INSN && !is_behind_lock(g, i->at))
			*guess_state(g, i->at) |= IS_CONFLICT;
		*guess_state(g, i->at) |= IS_INSN;
		for (uint64_t at = i->at + 1; at < i->at + i->len; at++) {
			if (*guess_state(g, at) & IS_INSN && !is_behind_lock(g, at))
				*guess_state(g, at) |= IS_CONFLICT;
			*guess_state(g, at) |= IN_INSN;
		}
	}
}

static void discover(struct guesser *g, struct guess_walk *w)
{
	while (g->work.n) {
		guess_walk(g, w, g->work.v[--g->work.n]);
		if (w->is_wrong)
			continue;
		commit(g, w);
		if (w->is_lost)
			*guess_state(g, w->start) |= IS_LOST;
		vec_for(&w->calls, to)
			add_start(g, *to, GUESS_CALLED);
		vec_for(&w->pointers, to)
			note_pointed(*to, g);
		vec_for(&w->jumps, j)
			if (j->conditional)
				*guess_state(g, j->to) |= IS_BRANCH;
		vec_for(&w->reads, at)
			*guess_state(g, *at) |= IS_READ;
	}
}

/*
 * A walk has passed it, by a tail call or because a call before it does not return; but nothing in a
 * function begins like one and has a pointer, too.
 */
static bool is_passed_start(const struct guesser *g, uint64_t at)
{
	return *guess_state(g, at) & IS_INSN &&
	       !(*guess_state(g, at) & (IN_INSN | IS_BRANCH | IS_READ)) && !(at & ALIGNED) &&
	       may_start(g, at) && has_prologue(g, at) && is_after_end(g, at);
}

/* Returns whether there was one. */
static bool judge_pointers(struct guesser *g, struct guess_walk *w)
{
	bool is_new = false;
	size_t n = g->pointed.n;

	if (n)
		qsort(g->pointed.v, n, sizeof(*g->pointed.v), compare_uint64);
	for (size_t i = 0; i < n; i++) {
		uint64_t at = g->pointed.v[i];

		if (is_passed(g, at) ? !is_passed_start(g, at) : !looks_like_start(g, w, at))
			continue;
		add_start(g, at, GUESS_POINTED);
		discover(g, w);
		is_new = true;
	}
	return is_new;
}

/* ---- what a function consists of ---- */

/* A jump that is never reached, which some compilers leave, is nothing but filler. */
static bool is_dead(const struct guesser *g, struct guess_walk *w, uint64_t from, uint64_t to)
{
	struct insn in;

	while (from < to && !is_filler(g, from, to)) {
		if (!guess_decode(g, from, &in) ||
		    (in.kind != INSN_RET &&
		     (in.kind != INSN_JMP || in.target < w->start || !guess_has(g, in.target) ||
		      !(*guess_state(g, in.target) & IS_INSN))))
			return false;
		from += in.len;
	}
	return from <= to;
}

/* How far from its start everything was passed; w->is_open if there is more elsewhere. */
static uint64_t find_end(const struct guesser *g, struct guess_walk *w)
{
	uint64_t end = w->start;

	guess_walk_sort(w);
	vec_for(&w->insns, i) {
		if (i->at < w->start) {
			w->is_open = true;
			continue;
		}
		if (i->at > end && !is_dead(g, w, end, i->at)) {
			w->is_open = true;
			break;
		}
		end = i->at + i->len > end ? i->at + i->len : end;
	}
	return end;
}

static bool has_conflict(const struct guesser *g, struct guess_walk *w)
{
	vec_for(&w->insns, i)
		for (uint64_t at = i->at; at < i->at + i->len; at++)
			if (*guess_state(g, at) & IS_CONFLICT)
				return true;
	return false;
}

/* ---- jumps across others ---- */

struct far_jump {
	uint64_t to;
	bool conditional;
};
struct far_jumps {
	VEC(struct far_jump) v;
};

static int compare_far(const void *a, const void *b)
{
	const struct far_jump *x = a, *y = b;

	if (x->to != y->to)
		return x->to < y->to ? -1 : 1;
	return (int)y->conditional - (int)x->conditional;
}

static void collect_far(struct guesser *g, struct guess_walk *w, struct far_jumps *far)
{
	for (size_t i = 0; i < g->starts.n; i++) {
		uint64_t end;

		guess_walk(g, w, g->starts.v[i].start);
		if (w->is_wrong)
			continue;
		end = find_end(g, w);
		vec_for(&w->jumps, j)
			if ((j->to < w->start || j->to >= end) &&
			    !(*guess_state(g, j->to) & IS_START))
				*vec_push(&far->v) = (struct far_jump){j->to, j->conditional};
	}
	if (far->v.n)
		qsort(far->v.v, far->v.n, sizeof(*far->v.v), compare_far);
}

static bool judge_far(struct guesser *g, struct guess_walk *w)
{
	struct far_jumps far = {{0}};
	uint64_t last = 0;
	bool is_new = false;

	collect_far(g, w, &far);
	for (size_t i = 0; i < far.v.n; i++) {
		const struct far_jump *j = &far.v.v[i];

		if (j->to == last)
			continue;
		last = j->to; /* a conditional one comes first */
		if (j->conditional || j->to & ALIGNED || !has_prologue(g, j->to) ||
		    !looks_like_start(g, w, j->to))
			continue;
		add_start(g, j->to, GUESS_JUMPED);
		is_new = true;
	}
	vec_free(&far.v);
	discover(g, w);
	return is_new;
}

/* ---- the whole ---- */

static bool find_span(struct guesser *g)
{
	g->lo = UINT64_MAX;
	for (size_t i = 0; i < g->img->nsegments; i++) {
		const struct elf_segment *s = &g->img->segments[i];

		if (!(s->flags & PF_X) || !s->filesz)
			continue;
		g->lo = s->vaddr < g->lo ? s->vaddr : g->lo;
		g->hi = s->vaddr + s->filesz > g->hi ? s->vaddr + s->filesz : g->hi;
	}
	return g->lo < g->hi && g->hi - g->lo <= SPAN_MAX;
}

static void take_known(struct guesser *g)
{
	for (size_t i = 0; i < g->in->nknown; i++) {
		const struct guess_range *k = &g->in->known[i];

		for (uint64_t at = k->start; at < k->end && guess_has(g, at); at++)
			*guess_state(g, at) |= IS_KNOWN;
		if (!guess_has(g, k->start))
			continue;
		*guess_state(g, k->start) |= IS_START;
		*vec_push(&g->work) = k->start;
	}
}

static void take_array(struct guesser *g, int64_t tag, int64_t size_tag, const char *section)
{
	const struct elf_section *s = elf_image_section(g->img, section);
	uint64_t at, size;

	if (!elf_dynamic(g->img, tag, &at) || !elf_dynamic(g->img, size_tag, &size)) {
		if (!s)
			return;
		at = s->vaddr;
		size = s->size;
	}
	for (uint64_t i = 0; i < size / 8 && i < 4096; i++)
		add_start(g, elf_image_word(g->img, at + 8 * i), GUESS_ROOT);
}

static void take_roots(struct guesser *g)
{
	take_known(g);
	add_start(g, g->img->entry, GUESS_ROOT);
	take_array(g, DT_INIT_ARRAY, DT_INIT_ARRAYSZ, ".init_array");
	take_array(g, DT_FINI_ARRAY, DT_FINI_ARRAYSZ, ".fini_array");
	elf_image_for_each_address_constant(g->img, note_pointed, g);
}

static int compare_guesses(const void *a, const void *b)
{
	const struct guess *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static void settle(struct guesser *g, struct guess_walk *w, struct guesses *out)
{
	if (g->starts.n)
		qsort(g->starts.v, g->starts.n, sizeof(*g->starts.v), compare_guesses);
	out->v = xcalloc(g->starts.n + 1, sizeof(*out->v));
	for (size_t i = 0; i < g->starts.n; i++) {
		struct guess *new = &out->v[out->n];

		*new = g->starts.v[i];
		guess_walk(g, w, new->start);
		if (w->is_wrong || has_conflict(g, w))
			continue;
		new->end = find_end(g, w);
		new->is_whole = !w->is_open;
		out->n++;
	}
}

void guess_functions(struct guesses *out, const struct guess_input *in)
{
	struct guesser g = {.in = in, .img = in->img};
	struct guess_walk w = {0};

	*out = (struct guesses){0};
	if (!find_span(&g))
		return;
	g.state = xcalloc(g.hi - g.lo, sizeof(*g.state));
	g.budget = 64 * (g.hi - g.lo);
	g.position_dependent =
		in->img->size > 17 && (in->img->bytes[16] | in->img->bytes[17] << 8) == ET_EXEC;
	take_roots(&g);
	discover(&g, &w);
	for (unsigned i = 0; i < ROUNDS_MAX; i++) {
		while (judge_pointers(&g, &w))
			;
		if (!judge_far(&g, &w))
			break;
	}
	settle(&g, &w, out);
	if (!g.budget)
		guesses_free(out);
	guess_walk_free(&w);
	vec_free(&g.starts);
	vec_free(&g.work);
	vec_free(&g.pointed);
	xfree(g.state);
}

void guesses_free(struct guesses *g)
{
	xfree(g->v);
	*g = (struct guesses){0};
}
