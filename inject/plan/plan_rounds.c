/* SPDX-License-Identifier: MIT */
/*
 * plan_rounds.c - from what wants a probe to sites: function by function up the ladder of tactics.
 *
 *   first round    each function takes what it wants, one after the other
 *   second         what found no room, now that all have taken their places; code of neighbours
 *                  may move out
 *   third          functions in which something is left move out as a whole, and all is planned anew
 *
 * Chunks.  The functions are cut into chunks, of 128 KiB or so, which are planned side by side, each
 * through all its rounds.  To a chunk the bytes of another one are taken; its own are those of its
 * functions, wherever their parts lie, and of the gaps after them.  So what a chunk comes to
 * does not depend on the others, nor on how many processors there are.  At last there is one
 * more second round over everything, for what wants a landing beyond its chunk's end.
 *
 * Loops.  When a function's first instruction is the head of a loop, the entry's window
 * stands in the loop too.  Turns of the loop are not calls, so every jump of the function that
 * closes the loop is displaced as well and leads into the entry's stub after the probe.  If
 * one of them cannot be displaced, the entry is refused.  Tail calls of a function to itself
 * are not loops: the code map tells them by their frame and lists them as exits.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/jobs.h"
#include "inject/plan/plan_impl.h"

#define NONE UINT32_MAX

struct chunk {
	struct making *m;
	struct planner pl;
	uint32_t first, end;  /* functions of the plan */
	VEC(uint32_t) ranges; /* of the function at work */
	const uint8_t *moves; /* by index in fns: the whole function moves out; NULL: none does */
	bool is_anew;
	bool is_only; /* all bytes are its own */
};

struct chunks { /* as VEC() has it */
	struct chunk *v;
	size_t n, cap;
	struct making *m;
};

/* Of plan function k, or after the last one's. */
static size_t first_probe(const struct chunk *c, uint32_t k)
{
	const struct making *m = c->m;
	const struct plan_function *last = &m->functions.v[m->functions.n - 1];

	return k < m->functions.n ? m->functions.v[k].first_probe
				  : last->first_probe + last->nprobes;
}

static bool is_instruction_hook(const struct plan_probe *p)
{
	return p->kind == PROBE_HOOK &&
	       (p->hook == KRON_HOOK_SYSTEM_CALL || p->hook == KRON_HOOK_FS);
}

/* One whose site may be patched without the others of its function. */
static bool is_named_hook(const struct plan_probe *p)
{
	return p->kind == PROBE_HOOK && !is_instruction_hook(p);
}

/* ---- its own bytes ---- */

/* Those of function i, a part or not, and of the gap after it. */
static void own_range(const struct chunk *c, uint32_t i,
		      void (*fn)(const struct chunk *c, uint64_t off, uint64_t n, void *ctx),
		      void *ctx)
{
	const struct making *m = c->m;
	uint64_t start = i ? m->fns->v[i].start : m->map->lo;
	uint64_t end = i + 1 < m->fns->n ? m->fns->v[i + 1].start : m->map->hi;

	fn(c, start - m->map->lo, end - start, ctx);
}

/* Parts that are nobody's go with the function before them. */
static bool is_nobodys(const struct making *m, uint32_t i)
{
	const struct function *f = &m->fns->v[i];

	return f->is_part && (f->parent == i || f->parent >= m->fns->n);
}

static void for_own_bytes(const struct chunk *c,
			  void (*fn)(const struct chunk *c, uint64_t off, uint64_t n, void *ctx),
			  void *ctx)
{
	const struct making *m = c->m;
	uint32_t from = c->first ? m->numbers.v[c->first] : 0;
	uint32_t to = c->end < m->functions.n ? m->numbers.v[c->end] : (uint32_t)m->fns->n;

	if (c->is_only) {
		fn(c, 0, m->map->hi - m->map->lo, ctx);
		return;
	}
	for (uint32_t i = from; i < to; i++) {
		if (is_nobodys(m, i))
			own_range(c, i, fn, ctx);
		if (m->fns->v[i].is_part)
			continue;
		for (uint32_t r = i; r != NONE; r = plan_next_range(m, r))
			own_range(c, r, fn, ctx);
	}
}

static void free_bytes(const struct chunk *c, uint64_t off, uint64_t n, void *ctx)
{
	(void)ctx;
	planner_free_bytes(&c->pl, off, n);
}

static void free_own_bytes(struct chunk *c)
{
	planner_close_copied(&c->pl);
	for_own_bytes(c, free_bytes, NULL);
}

static void copy_bytes(const struct chunk *c, uint64_t off, uint64_t n, void *to)
{
	memcpy((uint8_t *)to + off, c->pl.bytes + off, n);
}

static void copy_own_bytes(const struct chunk *c, uint8_t *to)
{
	for_own_bytes(c, copy_bytes, to);
}

static void free_scratch(struct chunk *c)
{
	vec_free(&c->pl.drafts);
	vec_free(&c->pl.draft_probes);
	vec_free(&c->pl.relays);
	vec_free(&c->pl.places);
	vec_free(&c->pl.jumps);
	vec_free(&c->pl.site_index);
	vec_free(&c->ranges);
}

/* ---- one function ---- */

static void put_probe(struct chunk *c, struct plan_probe *p, bool may_go_back,
		      enum planner_rungs rungs)
{
	struct place place = {p->vaddr, p - c->pl.probes.v, may_go_back, DRAFT_BEFORE};

	p->refusal = planner_climb(&c->pl, &place, rungs);
}

static bool is_exit(const struct chunk *c, uint32_t i, uint64_t vaddr)
{
	for (uint32_t k = c->m->ix.first_exit[i]; k < c->m->ix.first_exit[i + 1]; k++)
		if (c->m->ix.exits[k]->vaddr == vaddr)
			return true;
	return false;
}

/* A jump to the function's start that stays in its frame; the others are tail calls. */
static bool closes_loop(const struct chunk *c, uint32_t i, uint64_t vaddr)
{
	struct insn in;

	return code_map_flags(c->m->map, vaddr) & CODE_INSN &&
	       window_decode(c->m->map, vaddr, &in) &&
	       (in.kind == INSN_JMP || in.kind == INSN_JCC) && in.target == c->pl.fn.start &&
	       !is_exit(c, i, vaddr);
}

/* Displace every jump to the function's start.  False: one of them cannot be, or there is none
 * that we see. */
static bool take_loops(struct chunk *c, uint32_t i)
{
	unsigned found = 0;

	for (uint32_t r = i; r != NONE; r = plan_next_range(c->m, r)) {
		const struct function *f = &c->m->fns->v[r];

		for (uint64_t at = f->start; at < f->end; at++) {
			struct place place = {at, PLACE_NO_PROBE, true, DRAFT_BEFORE};

			if (!closes_loop(c, i, at))
				continue;
			if (planner_climb(&c->pl, &place, PLANNER_ALL))
				return false;
			found++;
		}
	}
	return found > 0;
}

static void take_entry(struct chunk *c, uint32_t i, struct plan_probe *p)
{
	struct planner *pl = &c->pl;

	if (c->m->map->per_function[i].switches_to_start) {
		p->refusal = REFUSAL_LOOP_HEAD;
		return;
	}
	pl->fn.has_loops = c->m->map->per_function[i].loops_to_start;
	put_probe(c, p, false, PLANNER_ALL);
	if (p->refusal)
		pl->fn.has_loops = false;
	if (!pl->fn.has_loops || take_loops(c, i))
		return;
	for (size_t k = 0; k < pl->drafts.n; k++)
		planner_release(pl, k);
	pl->drafts.n = 0;
	pl->fn.has_loops = false;
	p->refusal = REFUSAL_LOOP_HEAD;
}

/*
 * The entry first: it has one place only, exits may find room elsewhere.  Hooks share its
 * window.  In a stub it is places, entry, hooks, exits: a hook may not come back.
 */
/* The rungs above the first, for an exit that the first could not take. */
static void retry_exit(struct chunk *c, struct plan_probe *p)
{
	enum refusal first = p->refusal;

	if (first == REFUSAL_NO_BOUNDS || first == REFUSAL_AMBIGUOUS_JUMP)
		return;                     /* no matter of room */
	put_probe(c, p, true, PLANNER_ALL); /* the first may share what another one moved */
	if (p->refusal)
		p->refusal = first;
}

static void take_hooked_instructions(struct chunk *c, const struct plan_function *pf)
{
	for (uint32_t k = 0; k < pf->nprobes; k++) {
		struct plan_probe *p = &c->pl.probes.v[pf->first_probe + k];

		if (is_instruction_hook(p))
			put_probe(c, p, true, PLANNER_ALL);
	}
}

static void take_places(struct chunk *c, struct plan_function *pf, uint32_t i)
{
	bool has_places = c->m->places.first[i] < c->m->places.first[i + 1];
	struct plan_probe *v, *end;

	if (c->moves && c->moves[i])
		planner_move_all(&c->pl);
	if (!pf->nprobes)
		return;
	v = c->pl.probes.v + pf->first_probe;
	end = v + pf->nprobes;
	for (struct plan_probe *p = v; p < end; p++)
		if (p->kind == PROBE_ENTRY)
			take_entry(c, i, p);
	for (struct plan_probe *p = v; p < end; p++)
		if (p->kind == PROBE_HOOK && !is_instruction_hook(p))
			put_probe(c, p, kron_hook_is_unwind(p->hook), PLANNER_ALL);
	if (!has_places)
		take_hooked_instructions(c, pf);
	for (struct plan_probe *p = v; p < end; p++)
		if (p->kind == PROBE_EXIT && !p->refusal)
			put_probe(c, p, true, PLANNER_LOWEST);
	/* what is left of the padding now, nobody takes for a better tactic */
	for (struct plan_probe *p = v; p < end; p++)
		if (p->kind == PROBE_EXIT && p->refusal && p->site == NONE)
			retry_exit(c, p);
	for (v = end; v > c->pl.probes.v + pf->first_probe && v[-1].kind == PROBE_PLACE;)
		v--;
	planner_take_places(&c->pl, v - c->pl.probes.v, end - v);
	if (has_places) /* whose windows are long: mostly they are in one */
		take_hooked_instructions(c, pf);
}

/* Function i is at work. */
static void set_function(struct chunk *c, uint32_t i)
{
	c->ranges.n = 0;
	for (uint32_t r = i; r != NONE; r = plan_next_range(c->m, r))
		*vec_push(&c->ranges) = r;
	c->pl.is_long = request_has_places(c->m->opt->request) || (c->moves && c->moves[i]);
	c->pl.keeps_calls = false;
	c->pl.results = c->m->fns->v[i].is_stub;
	c->pl.use = c->m->opt->tactics ? c->m->opt->tactics : USE_DEFAULT;
	if (c->m->fns->v[i].is_stub)
		c->pl.use = USE_JUMP;
	planner_open_copied(&c->pl, i);
	c->pl.fn = (struct planner_function){
		.start = c->m->fns->v[i].start,
		.ranges = c->ranges.v,
		.nranges = c->ranges.n,
	};
}

/* Places that no tactic can help are refused at once. */
static void judge_places(struct chunk *c, const struct plan_function *pf, uint32_t i)
{
	const struct plan_places *places = &c->m->places;
	uint32_t n = places->first[i + 1] - places->first[i];
	struct plan_probe *p;

	if (!n)
		return;
	p = c->pl.probes.v + pf->first_probe + pf->nprobes - n;
	for (uint32_t k = places->first[i]; k < places->first[i + 1]; k++, p++)
		p->refusal =
			plan_refuse_place(c->m, i, &c->m->opt->request->places[places->order[k]]);
}

static void take_function(struct chunk *c, uint32_t plan_function)
{
	struct plan_function *pf = &c->m->functions.v[plan_function];
	uint32_t i = c->m->numbers.v[plan_function];
	enum refusal r = plan_refuse_function(c->m, i);

	judge_places(c, pf, i);
	for (uint32_t k = 0; r && k < pf->nprobes; k++)
		c->pl.probes.v[pf->first_probe + k].refusal = r;
	if (r)
		return;
	set_function(c, i);
	c->pl.fn.has_hooks = pf->nprobes && is_named_hook(&c->pl.probes.v[pf->first_probe]);
	take_places(c, pf, i);
	planner_emit(&c->pl, plan_function);
}

/* ---- the second round ---- */

static bool is_for_want_of_room(enum refusal r)
{
	return r == REFUSAL_NO_ROOM || r == REFUSAL_BRANCH_TARGET || r == REFUSAL_AFTER_CALL ||
	       r == REFUSAL_OVERLAP || r == REFUSAL_INDIRECT_JUMP || r == REFUSAL_SWITCHED_OFF;
}

static bool has_left(const struct chunk *c, const struct plan_function *pf)
{
	for (uint32_t k = 0; k < pf->nprobes; k++)
		if (c->pl.probes.v[pf->first_probe + k].site == NONE)
			return true;
	return false;
}

/* What the first round found no room for, now that every function has taken its places. */
static void plan_again(struct chunk *c, uint32_t plan_function, bool is_last)
{
	const struct plan_function *pf = &c->m->functions.v[plan_function];
	const struct code_function *cf = &c->m->map->per_function[c->m->numbers.v[plan_function]];

	if (!has_left(c, pf))
		return;
	if (plan_refuse_function(c->m, c->m->numbers.v[plan_function]))
		return;
	set_function(c, c->m->numbers.v[plan_function]);
	c->pl.fn.second_round = true;
	c->pl.fn.is_last = is_last;
	c->pl.is_long |= is_last; /* what moved out has left room for all */
	for (uint32_t k = 0; k < pf->nprobes; k++) {
		struct plan_probe *p = &c->pl.probes.v[pf->first_probe + k];
		enum refusal first = p->refusal;

		if (p->kind == PROBE_PLACE) {
			planner_retry_places(&c->pl, pf->first_probe + k, pf->nprobes - k);
			break;
		}
		if (p->kind == PROBE_HOOK && !is_instruction_hook(p))
			return; /* its site may be patched without the others */
		if (!is_for_want_of_room(first) ||
		    (p->kind == PROBE_ENTRY && (cf->loops_to_start || cf->switches_to_start)))
			continue;
		put_probe(c, p, p->kind != PROBE_ENTRY, PLANNER_ALL);
		if (p->refusal && is_last && c->pl.use & USE_INT3)
			p->refusal = planner_trap(&c->pl, pf->first_probe + k);
		if (p->refusal)
			p->refusal = first;
	}
	planner_emit(&c->pl, plan_function);
}

static void plan_all(struct chunk *c)
{
	for (uint32_t i = c->first; i < c->end; i++)
		take_function(c, i);
	for (uint32_t i = c->first; i < c->end; i++)
		plan_again(c, i, false);
	for (uint32_t i = c->first;
	     i < c->end && (request_has_places(c->m->opt->request) || c->is_anew); i++)
		plan_again(c, i, true);
}

/* ---- the third round: whole functions move out ---- */

/* The code of the function can be anywhere: no hook, no loop back to its entry. */
static bool can_move(const struct chunk *c, uint32_t i)
{
	const struct code_function *cf = &c->m->map->per_function[i];

	return !plan_is_hooked(c->m, i) && !cf->loops_to_start && !cf->switches_to_start &&
	       !copied_has(&c->pl.copied, &c->m->fns->v[i]) && !plan_refuse_function(c->m, i);
}

/* The function that holds vaddr, if it can move. */
static void mark_move(const struct chunk *c, uint8_t *moves, uint64_t vaddr)
{
	uint32_t i = plan_owner_of(c->m, vaddr);

	if (i < c->m->fns->n && can_move(c, i))
		moves[i] = true;
}

static bool found_no_room(const struct plan_probe *p)
{
	return p->site == NONE && is_for_want_of_room(p->refusal);
}

static size_t count_left(const struct chunk *c)
{
	size_t left = 0;

	for (size_t i = first_probe(c, c->first); i < first_probe(c, c->end); i++)
		left += found_no_room(&c->pl.probes.v[i]);
	return left;
}

/* The functions of those probes are marked, and those where puns may lead. */
static uint8_t *mark_left(const struct chunk *c)
{
	uint8_t *moves = xcalloc(c->m->fns->n + 1, 1);
	uint64_t reaches[TACTIC_PUN_REACHES];

	for (size_t i = first_probe(c, c->first); i < first_probe(c, c->end); i++) {
		const struct plan_probe *p = &c->pl.probes.v[i];

		if (!found_no_room(p))
			continue;
		mark_move(c, moves, p->vaddr);
		mark_move(c, moves, p->vaddr + 1); /* whose first byte is the distance */
		tactic_pun_reaches(p->vaddr, reaches);
		for (size_t k = 0; k < TACTIC_PUN_REACHES; k++)
			mark_move(c, moves, reaches[k]);
	}
	return moves;
}

/* All from the beginning. */
static void plan_anew(struct chunk *c, const struct plan_probe *listed, const uint8_t *moves)
{
	struct planner *pl = &c->pl;
	size_t first = first_probe(c, c->first), n = first_probe(c, c->end) - first;

	c->moves = moves;
	c->is_anew = true;
	free_own_bytes(c);
	if (n)
		memcpy(pl->probes.v + first, listed, n * sizeof(*listed));
	pl->drafts.n = pl->draft_probes.n = pl->relays.n = 0;
	pl->sites.n = pl->entrances.n = pl->fixups.n = pl->maps.n = pl->code.n = pl->site_index.n =
		0;
	pl->jumps_of = 0;
	plan_all(c);
	c->moves = NULL;
}

static uint32_t tactics_in_use(const struct chunk *c)
{
	return c->m->opt->tactics ? c->m->opt->tactics : USE_DEFAULT;
}

/* Whether move_functions() is for it at all. */
static bool may_plan_anew(const struct chunk *c)
{
	return !request_has_places(c->m->opt->request) && !c->m->opt->hooks_only &&
	       tactics_in_use(c) & (USE_EVICT | USE_INT3);
}

/*
 * Runs of less than five bytes between two places that control may come to need landings, and
 * where a function is full of them only moving all of it out leaves dead bytes for those.  Their
 * neighbours may want another window then, so the whole chunk is planned anew.
 */
static void move_functions(struct chunk *c, const struct plan_probe *listed)
{
	uint32_t use = tactics_in_use(c);
	uint8_t *moves;
	size_t left = count_left(c);

	if (!left)
		return;
	if (use & USE_EVICT) {
		moves = mark_left(c);
		plan_anew(c, listed, moves);
		xfree(moves);
	}
	if (!(use & USE_EVICT) || count_left(c) >= left)
		plan_anew(c, listed, NULL);
}

/* ---- chunks ---- */

/* Bytes of code in one, about.  Small ones keep the third round to where something is left; but
 * the places of a request lean on each other more, and miss more at the seams. */
#define CHUNK (128u << 10)
#define CHUNK_OF_PLACES (8u << 20)

/* By what the code is, and not by who is there to plan it. */
static void cut_up(struct chunks *all)
{
	struct making *m = all->m;
	uint64_t least = request_has_places(m->opt->request) ? CHUNK_OF_PLACES : CHUNK, start = 0;
	struct chunk *c = NULL;

	for (uint32_t i = 0; i < m->functions.n; i++) {
		uint64_t vaddr = m->functions.v[i].vaddr;

		if (!c || (vaddr - start >= least && !m->opt->hooks_only)) {
			c = vec_push(all);
			c->first = i;
			start = vaddr;
		}
		c->end = i + 1;
	}
	for (size_t i = 0; i < all->n; i++)
		all->v[i].m = m, all->v[i].is_only = all->n == 1;
}

static size_t span_of(const struct making *m)
{
	return m->map->hi - m->map->lo;
}

/* The state of each byte of code, all of it somebody else's. */
static uint8_t *new_bytes(const struct making *m)
{
	_Static_assert(!BYTE_TAKEN, "pages of zeros");
	return xpages(span_of(m) + 1);
}

/* As they are listed, before a site is theirs.  To be freed by the caller. */
static struct plan_probe *copy_probes(const struct chunk *c)
{
	size_t first = first_probe(c, c->first), n = first_probe(c, c->end) - first;
	struct plan_probe *copy = xmalloc((n + 1) * sizeof(*copy));

	if (n)
		memcpy(copy, c->m->pl.probes.v + first, n * sizeof(*copy));
	return copy;
}

static void plan_chunk(size_t number, void *ctx)
{
	struct chunks *all = ctx;
	struct chunk *c = &all->v[number];
	struct making *m = all->m;
	struct plan_probe *listed = NULL;

	c->pl = m->pl;
	c->pl.bytes = new_bytes(m);
	if (may_plan_anew(c))
		listed = copy_probes(c);
	free_own_bytes(c);
	plan_all(c);
	if (listed)
		move_functions(c, listed);
	planner_close_copied(&c->pl);
	if (!c->is_only)
		copy_own_bytes(c, m->pl.bytes);
	xfree_pages(c->pl.bytes, span_of(m) + 1);
	xfree(listed);
	free_scratch(c);
}

/* ---- all of them together ---- */

static void renumber(struct chunk *c, uint32_t site)
{
	for (size_t i = first_probe(c, c->first); i < first_probe(c, c->end); i++)
		if (c->pl.probes.v[i].site != NONE)
			c->pl.probes.v[i].site += site;
	vec_for(&c->pl.fixups, f)
		if (f->kind == FIXUP_SITE_REL32)
			f->value += (uint64_t)site << 16;
}

static void put_together(struct planner *to, struct chunk *c)
{
	struct planner *from = &c->pl;

	renumber(c, (uint32_t)to->sites.n);
	vec_for(&from->sites, s) {
		s->code += (uint32_t)to->code.n;
		s->first_fixup += (uint32_t)to->fixups.n;
		s->first_map += (uint32_t)to->maps.n;
	}
	vec_append(&to->sites, &from->sites);
	vec_append(&to->entrances, &from->entrances);
	vec_append(&to->fixups, &from->fixups);
	vec_append(&to->maps, &from->maps);
	vec_append(&to->code, &from->code);
}

/* What found no room in a chunk by itself may find it at its neighbour's. */
static void plan_seams(struct chunks *all)
{
	struct making *m = all->m;
	struct chunk whole = {.m = m, .pl = m->pl, .end = (uint32_t)m->functions.n};

	for (size_t i = 0; i < all->n; i++) {
		const struct chunk *c = &all->v[i];

		for (uint32_t k = c->first; k < c->end; k++)
			plan_again(&whole, k, false);
		for (uint32_t k = c->first;
		     k < c->end && (request_has_places(m->opt->request) || c->is_anew); k++)
			plan_again(&whole, k, true);
	}
	free_scratch(&whole);
	m->pl = whole.pl;
}

void plan_take_all(struct making *m)
{
	struct chunks all = {.m = m};

	cut_up(&all);
	if (all.n > 1) /* else all bytes are the one chunk's own */
		m->pl.bytes = xpages_full(span_of(m) + 1);
	jobs_run(all.n, plan_chunk, &all);
	for (size_t i = 0; i < all.n; i++)
		put_together(&m->pl, &all.v[i]);
	if (all.n > 1) {
		plan_seams(&all);
		xfree_pages(m->pl.bytes, span_of(m) + 1);
		m->pl.bytes = NULL;
	}
	vec_free(&all);
}
