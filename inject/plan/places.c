/* SPDX-License-Identifier: MIT */
/*
 * places.c - the places of a request: long windows, each with as many of them as it reaches.
 *
 *   runs     from a place that is not held yet, straight on to the last place that belongs to
 *            the same run of code: one jump for all probes in it
 *   ladder   what is left: runs too short for a jump, and what nobody may displace together
 *   retry    in a second round, when neighbours have taken what they want
 *
 * A run ends where control may come in from elsewhere, after a call, and where what stands
 * there cannot be displaced.
 */
#include "inject/plan/planner.h"

#include <string.h>

#include "base/search.h"

/* Places further apart than this get a window each. */
#define GAP_MAX 32u

static bool is_call(const struct insn *in)
{
	return in->kind == INSN_CALL || in->kind == INSN_CALL_INDIRECT;
}

/* After a call means before the instruction that it returns to, for those who do. */
static struct place place_of(const struct planner *pl, uint32_t probe)
{
	const struct plan_probe *p = &pl->probes.v[probe];
	struct place place = {p->vaddr, probe, true, DRAFT_BEFORE};
	struct insn in;

	if (p->where == PLACE_TAKEN)
		place.where = DRAFT_TAKEN;
	if (p->where != PLACE_AFTER)
		return place;
	place.where = DRAFT_AFTER;
	if (window_decode(pl->map, p->vaddr, &in) && is_call(&in)) {
		place.vaddr = p->vaddr + in.len;
		place.where = code_map_flags(pl->map, place.vaddr) & (CODE_TARGET | CODE_CONSTANT)
				      ? DRAFT_RETURNED
				      : DRAFT_BEFORE;
	}
	return place;
}

/* No matter of room. */
static bool is_final(enum refusal r)
{
	return r == REFUSAL_NO_INSN || r == REFUSAL_NOT_REACHED || r == REFUSAL_NO_OPERAND ||
	       r == REFUSAL_OPERAND_GONE;
}

/* Those that wait for a window, in order; what is after a call may stand too early. */
static void list_places(struct planner *pl, uint32_t first, size_t n)
{
	pl->places.n = 0;
	for (uint32_t probe = first; probe < first + n; probe++) {
		const struct plan_probe *p = &pl->probes.v[probe];
		struct place place;
		size_t k;

		if (p->site != UINT32_MAX || is_final(p->refusal))
			continue;
		place = place_of(pl, probe);
		vec_push(&pl->places);
		for (k = pl->places.n - 1; k && pl->places.v[k - 1].vaddr > place.vaddr; k--)
			pl->places.v[k] = pl->places.v[k - 1];
		pl->places.v[k] = place;
	}
}

static uint8_t *refusal_of(struct planner *pl, size_t place)
{
	return &pl->probes.v[pl->places.v[place].probe].refusal;
}

/* In a function with this many places windows get longer than they need, for their neighbours'
 * landings. */
#define MANY_PLACES 4u
#define SPARE (3 * WINDOW_JUMP)

/* How far a window from place i should go: over places that follow closely. */
static uint64_t find_end(const struct planner *pl, size_t i)
{
	uint64_t start = pl->places.v[i].vaddr, end = start;

	for (; i < pl->places.n; i++) {
		uint64_t next = pl->places.v[i].vaddr;

		if (next - end > GAP_MAX || next - start >= WINDOW_LONG_MAX)
			break;
		end = next;
	}
	if (pl->places.n >= MANY_PLACES && pl->use & USE_EVICT && end < start + SPARE)
		end = start + SPARE;
	return end;
}

/* Where pointers lead, nothing helps. */
static bool has_hope(const struct planner *pl, const struct place *place)
{
	return !(code_map_flags(pl->map, place->vaddr) & CODE_CONSTANT);
}

/*
 * Where others than a call lead to its return address they are made to go another way, before
 * anything else takes their bytes.  What fails there is nobody's place any more; returns how
 * many of those might do better.
 */
static size_t part_ways(struct planner *pl)
{
	size_t n = 0, left = 0;

	for (size_t i = 0; i < pl->places.n; i++) {
		struct place place = pl->places.v[i];
		enum refusal r = REFUSAL_NONE;

		if (place.where == DRAFT_RETURNED)
			r = tactic_part_ways(pl, &place);
		if (r)
			*refusal_of(pl, i) = r;
		else
			pl->places.v[n++] = place;
		left += r && has_hope(pl, &place);
	}
	pl->places.n = n;
	return left;
}

static bool is_place(const struct planner *pl, uint64_t vaddr)
{
	size_t i = partition_point(i, pl->places.n, pl->places.v[i].vaddr < vaddr);

	return i < pl->places.n && pl->places.v[i].vaddr == vaddr;
}

/*
 * The return that goes with a call is mispredicted if that is displaced (relocate.c).  So it stays where it is, if
 * nothing is wanted at it and there is room without it.
 */
static void leave_call(const struct planner *pl, struct window *w, unsigned jump)
{
	uint64_t last = w->addr, at = w->addr;
	struct insn in = {0};

	for (; at < w->addr + w->code_len; at += in.len) {
		last = at;
		if (!window_decode(pl->map, at, &in))
			return;
	}
	if (!is_call(&in) || last - w->addr < jump || is_place(pl, last))
		return;
	w->n--;
	w->len = w->code_len = (uint16_t)(last - w->addr);
	w->ends = false;
	if (w->dead >= w->len)
		w->dead = UINT16_MAX;
}

/* A window from place i on; returns the first place that it says nothing about. */
static size_t take_run(struct planner *pl, size_t i, unsigned jump)
{
	uint64_t vaddr = pl->places.v[i].vaddr;
	struct window_scope scope = planner_scope(pl, vaddr, jump);
	struct window w;
	uint32_t draft;

	*refusal_of(pl, i) = window_reach(&w, &scope, vaddr, find_end(pl, i));
	if (!*refusal_of(pl, i) && pl->keeps_calls)
		leave_call(pl, &w, jump);
	if (!*refusal_of(pl, i) && jump == WINDOW_SHORT)
		*refusal_of(pl, i) = tactic_short_hold(pl, &w, &draft);
	if (*refusal_of(pl, i))
		return i + 1;
	if (jump != WINDOW_SHORT)
		draft = planner_hold(pl, &w, tactic_jump_kind(&w));
	for (; i < pl->places.n && window_has(&w, pl->map, pl->places.v[i].vaddr); i++)
		*refusal_of(pl, i) = planner_put(pl, draft, &pl->places.v[i]);
	return i;
}

/* Each run that nobody holds yet, by a jump of this many bytes, or what else holds the place. */
static void take_runs(struct planner *pl, unsigned jump)
{
	for (size_t i = 0; i < pl->places.n;) {
		const struct place *place = &pl->places.v[i];
		bool is_taken = !planner_is_free(pl, place->vaddr);

		if (jump == WINDOW_SHORT && !*refusal_of(pl, i)) {
			i++;
			continue;
		}
		/* what stands before it may help it to a jump of five bytes */
		if (is_taken || jump == WINDOW_SHORT)
			*refusal_of(pl, i) = tactic_jump(pl, place);
		if (is_taken || (jump == WINDOW_SHORT && !*refusal_of(pl, i)))
			i++;
		else
			i = take_run(pl, i, jump);
	}
}

/* From the highest place down: a pun needs to know what follows it. */
static void climb_all(struct planner *pl)
{
	for (size_t i = pl->places.n; i-- > 0;)
		if (*refusal_of(pl, i))
			*refusal_of(pl, i) = planner_climb(pl, &pl->places.v[i], PLANNER_ALL);
}

/* ---- a function's places, all or nothing ---- */

/* The drafts as they were before the places. */
struct before {
	struct draft *drafts;
	size_t ndrafts, nprobes;
};

static struct before remember(const struct planner *pl)
{
	struct before b = {NULL, pl->drafts.n, pl->draft_probes.n};

	b.drafts = xmalloc(b.ndrafts * sizeof(*b.drafts));
	if (b.ndrafts)
		memcpy(b.drafts, pl->drafts.v, b.ndrafts * sizeof(*b.drafts));
	return b;
}

static void go_back_to(struct planner *pl, const struct before *b)
{
	/* mostly guests before their hosts: what a guest gives back is its host's */
	for (size_t i = pl->drafts.n; i-- > 0;)
		if (pl->drafts.v[i].live)
			planner_release(pl, i);
	if (b->ndrafts)
		memcpy(pl->drafts.v, b->drafts, b->ndrafts * sizeof(*b->drafts));
	pl->drafts.n = b->ndrafts;
	pl->draft_probes.n = b->nprobes;
	for (size_t i = 0; i < b->ndrafts; i++) {
		struct draft *d = &pl->drafts.v[i];

		if (d->last != DRAFT_END)
			pl->draft_probes.v[d->last].next = DRAFT_END;
		if (d->live)
			planner_hold_again(pl, i);
	}
	/* a host that came after its guest has marked the guest's landing as dead */
	for (size_t i = 0; i < b->ndrafts; i++) {
		const struct draft *d = &pl->drafts.v[i];

		if (d->live && d->landing)
			memset(pl->bytes + (d->landing - pl->map->lo), BYTE_TAKEN, WINDOW_JUMP);
	}
}

/* Every run of the function moves out: that leaves dead bytes for landings, or at least relays,
 * everywhere. */
void planner_move_all(struct planner *pl)
{
	for (uint32_t k = 0; k < pl->fn.nranges; k++) {
		const struct function *f = &pl->map->functions->v[pl->fn.ranges[k]];
		struct window_scope scope = planner_scope(pl, f->start, WINDOW_JUMP);
		struct window w;

		for (uint64_t at = f->start; at < f->end;) {
			if (code_map_flags(pl->map, at) & CODE_INSN &&
			    !window_reach(&w, &scope, at, at + WINDOW_LONG_MAX) &&
			    w.len >= WINDOW_JUMP + WINDOW_SHORT) {
				if (pl->keeps_calls)
					leave_call(pl, &w, WINDOW_JUMP + WINDOW_SHORT);
				planner_hold(pl, &w, tactic_jump_kind(&w));
				at += w.len;
			} else {
				at++;
			}
		}
	}
}

/* The ladder for places from probe number `first` on; returns how many are left. */
static size_t attempt(struct planner *pl, uint32_t first, size_t n)
{
	size_t left;

	list_places(pl, first, n);
	left = part_ways(pl);
	for (size_t i = 0; i < pl->places.n; i++)
		*refusal_of(pl, i) = REFUSAL_SWITCHED_OFF;
	if (pl->use & USE_JUMP)
		take_runs(pl, pl->jump);
	if (pl->use & USE_SHORT)
		take_runs(pl, WINDOW_SHORT);
	climb_all(pl);
	for (size_t i = 0; i < pl->places.n; i++)
		left += *refusal_of(pl, i) != REFUSAL_NONE;
	return left;
}

/* What is dead then helps what is left over; fewer are left, or all is as before. */
static void move_out(struct planner *pl, const struct before *before, uint32_t first, size_t n,
		     size_t left)
{
	bool kept = pl->keeps_calls;
	size_t now;

	for (;;) {
		go_back_to(pl, before);
		planner_move_all(pl);
		now = attempt(pl, first, n);
		if (!now || !pl->keeps_calls)
			break;
		pl->keeps_calls = false;
	}
	if (now > left) {
		go_back_to(pl, before);
		pl->keeps_calls = kept;
		attempt(pl, first, n);
	}
}

/* Where something is left over the whole function moves out: what is dead then helps others, and
 * what is still left helps itself to it in the second round. */
void planner_take_places(struct planner *pl, uint32_t first, size_t n)
{
	struct before before;
	size_t left;

	list_places(pl, first, n);
	if (!pl->places.n)
		return;
	pl->keeps_calls = pl->counts_pages;
	before = remember(pl);
	left = attempt(pl, first, n);
	if (left && pl->use & USE_EVICT)
		move_out(pl, &before, first, n, left);
	xfree(before.drafts);
}

void planner_retry_places(struct planner *pl, uint32_t first, size_t n)
{
	list_places(pl, first, n);
	part_ways(pl);
	climb_all(pl);
	for (size_t i = 0; pl->use & USE_INT3 && pl->fn.is_last && i < pl->places.n; i++)
		if (*refusal_of(pl, i))
			*refusal_of(pl, i) = tactic_int3(pl, &pl->places.v[i]);
}
