/* SPDX-License-Identifier: MIT */
/*
 * tactic_short.c - a 2-byte jump to a landing nearby: five bytes where a jump to the stub fits.
 *
 *        ... 1: pop %rbx        two bytes; the loop's end jumps to 1b
 *               ret     ---->   jmp landing
 *            2: xor ...
 *
 *        landing:               within 127 bytes
 *                       ---->   jmp stub
 *
 * For places where no five bytes may be displaced together.  A landing is, in this order,
 *   padding   that no control reaches (code_map.h) and that nobody holds.  After a function
 *             that is not planned yet it keeps its first bytes: a 5-byte jump over a short
 *             exit may want them.
 *   a guest   of a window that is ten bytes long or more: what follows its jump is dead.
 *   evicted   ten bytes of code nearby move out to make room: a window that has no probe.
 *             Where nothing else helps, in a second round, those of a neighbouring function:
 *             it has then taken all that it wants.
 */
#include <string.h>

#include "inject/plan/planner.h"

#define PADDING_WANTED (WINDOW_JUMP - 1) /* by a `ret` in front of it */

static bool is_free(const struct planner *pl, uint64_t vaddr)
{
	return code_map_flags(pl->map, vaddr) & CODE_PADDING &&
	       window_entered_at(pl->map, vaddr) == REFUSAL_NONE && planner_is_free(pl, vaddr);
}

static bool is_padding(const struct planner *pl, uint64_t vaddr)
{
	return code_map_flags(pl->map, vaddr) & CODE_PADDING;
}

/* Where the padding after the function at work ends: up to there all is decided. */
static uint64_t decided_up_to(const struct planner *pl, const struct window_scope *scope)
{
	uint64_t at = scope->hi;

	while (at < pl->map->hi && is_padding(pl, at))
		at++;
	return at;
}

/* Of where a short jump may lead from `from`, the byte after it: is there anything that is not known? */
static bool has_more(const uint8_t *known, const struct landings *l, uint64_t from)
{
	return memchr(known + (from - 128 - l->lo), 0, 256);
}

static bool is_room(const struct planner *pl, uint64_t vaddr)
{
	for (unsigned i = 0; i < WINDOW_JUMP; i++)
		if (!is_free(pl, vaddr + i))
			return false;
	return elf_image_at(pl->map->img, vaddr, WINDOW_JUMP);
}

static bool may_land(const struct planner *pl, uint64_t vaddr, uint64_t decided,
		     struct landings *known)
{
	if (known && known->no_padding[vaddr - known->lo])
		return false;
	if (!is_room(pl, vaddr)) {
		if (known)
			known->no_padding[vaddr - known->lo] = true;
		return false;
	}
	if (vaddr + WINDOW_JUMP <= decided)
		return true;
	for (unsigned i = 1; i <= PADDING_WANTED; i++)
		if (!is_padding(pl, vaddr - i))
			return false;
	return true;
}

/* Padding within reach of a short jump at vaddr, the nearest, or 0. */
static uint64_t find_padding(const struct planner *pl, const struct window_scope *scope,
			     uint64_t vaddr, struct landings *known)
{
	uint64_t from = vaddr + WINDOW_SHORT, decided;

	if (known && !has_more(known->no_padding, known, from))
		return 0;
	decided = decided_up_to(pl, scope);
	for (int distance = 0; distance <= 128; distance++) {
		if (distance <= 127 && may_land(pl, from + distance, decided, known))
			return from + distance;
		if (may_land(pl, from - distance, decided, known))
			return from - distance;
	}
	return 0;
}

static bool reaches(uint64_t vaddr, uint64_t landing)
{
	int64_t distance = (int64_t)(landing - (vaddr + WINDOW_SHORT));

	return distance == (int8_t)distance;
}

/* Can this window have a guest, after its jump? */
static bool has_room(const struct draft *d)
{
	return d->live && !d->landing && !d->is_host && d->w.len >= WINDOW_JUMP + WINDOW_JUMP &&
	       d->w.dead >= WINDOW_JUMP + WINDOW_JUMP;
}

static struct draft *find_host(struct planner *pl, uint64_t vaddr)
{
	for (size_t i = 0; i < pl->drafts.n; i++) {
		struct draft *d = &pl->drafts.v[i];

		if (has_room(d) && reaches(vaddr, d->w.addr + WINDOW_JUMP))
			return d;
	}
	return NULL;
}

/*
 * May `len` bytes at vaddr move out?  In the first round only those of the same function as
 * home, if one is given.
 */
static bool may_evict(const struct planner *pl, uint64_t vaddr, const struct window_scope *home,
		      unsigned len, struct window *w)
{
	struct window_scope scope;

	if (!(code_map_flags(pl->map, vaddr) & CODE_INSN) || !planner_is_free(pl, vaddr))
		return false;
	scope = planner_scope(pl, vaddr, len);
	if (scope.one_only || vaddr == scope.lo)
		return false;
	if (home && scope.lo != home->lo && !pl->fn.second_round)
		return false;
	return window_make(w, &scope, vaddr, vaddr) == REFUSAL_NONE;
}

/* Ten bytes of code whose second half a short jump at vaddr can reach move out. */
static struct draft *evict(struct planner *pl, const struct window_scope *home, uint64_t vaddr,
			   struct landings *known)
{
	uint64_t from = vaddr + WINDOW_SHORT - WINDOW_JUMP;
	struct window w;

	if (known && !has_more(known->stays, known, from))
		return NULL;
	for (int k = 0; k <= 256; k++) {
		uint64_t at = k & 1 ? from - (k + 1) / 2 : from + k / 2;

		if (!reaches(vaddr, at + WINDOW_JUMP) || (known && known->stays[at - known->lo]))
			continue;
		if (may_evict(pl, at, home, WINDOW_JUMP + WINDOW_JUMP, &w)) {
			uint32_t host = planner_hold(pl, &w, TACTIC_JUMP_MULTI); /* may move v */

			return &pl->drafts.v[host];
		}
		if (known)
			known->stays[at - known->lo] = true;
	}
	return NULL;
}

/*
 * Dead bytes of any window within reach of a short jump at vaddr, or 0.  Dead bytes that touch
 * belong to one window: each begins with a jump.
 */
static uint64_t find_dead(const struct planner *pl, uint64_t vaddr)
{
	uint64_t from = vaddr + WINDOW_SHORT,
		 lo = from > pl->map->lo + 128 ? from - 128 : pl->map->lo;
	uint64_t hi = from + 127 + WINDOW_JUMP;
	unsigned run = 0;

	if (hi > pl->map->hi)
		hi = pl->map->hi;
	for (uint64_t at = lo; at < hi; at++) {
		run = pl->bytes[at - pl->map->lo] == BYTE_DEAD ? run + 1 : 0;
		if (run == WINDOW_JUMP && elf_image_at(pl->map->img, at + 1 - run, run))
			return at + 1 - run;
	}
	return 0;
}

uint64_t tactic_short_landing(struct planner *pl, uint64_t vaddr, struct landings *known)
{
	struct window_scope scope = planner_scope(pl, vaddr, WINDOW_SHORT);
	uint64_t landing = find_dead(pl, vaddr);
	struct draft *host;

	if (!landing)
		landing = find_padding(pl, &scope, vaddr, known);
	if (landing || !(pl->use & USE_EVICT))
		return landing;
	host = evict(pl, &scope, vaddr, known);
	return host ? host->w.addr + WINDOW_JUMP : 0;
}

uint32_t tactic_short_evict(struct planner *pl, uint64_t vaddr, unsigned len)
{
	struct window w;

	if (!may_evict(pl, vaddr, NULL, len, &w))
		return UINT32_MAX;
	return planner_hold(pl, &w, TACTIC_JUMP_MULTI);
}

bool tactic_short_is_padding(const struct planner *pl, uint64_t vaddr)
{
	return is_free(pl, vaddr);
}

/* Gives the draft a landing. */
static bool land(struct planner *pl, const struct window_scope *scope, uint32_t draft)
{
	uint64_t vaddr = pl->drafts.v[draft].w.addr;
	uint64_t landing = pl->is_long ? find_dead(pl, vaddr) : 0;
	struct draft *host = NULL;

	if (landing) {
		planner_land_in(pl, draft, landing);
		return true;
	}
	landing = find_padding(pl, scope, vaddr, NULL);

	/* a host's patch and its guest's must come together or not at all */
	if (!landing && !pl->fn.has_hooks) {
		if (!pl->is_long) /* find_dead() knows of all room after jumps */
			host = find_host(pl, vaddr);
		if (!host && pl->use & USE_EVICT)
			host = evict(pl, scope, vaddr, NULL);
		if (host)
			landing = host->w.addr + WINDOW_JUMP;
	}
	if (landing)
		planner_land(pl, draft, landing, host);
	return landing;
}

enum refusal tactic_short_hold(struct planner *pl, const struct window *w, uint32_t *draft)
{
	struct window_scope scope = planner_scope(pl, w->addr, WINDOW_SHORT);

	*draft = planner_hold(pl, w, TACTIC_JUMP_SHORT);
	if (land(pl, &scope, *draft))
		return REFUSAL_NONE;
	planner_release(pl, *draft);
	return REFUSAL_NO_ROOM;
}

static enum refusal find(struct planner *pl, const struct place *place, uint32_t *draft)
{
	struct window_scope scope = planner_scope(pl, place->vaddr, WINDOW_SHORT);
	uint64_t start = place->vaddr;
	struct window w;
	enum refusal r;

	if (!planner_is_free(pl, place->vaddr))
		return planner_share(pl, place->vaddr, draft);
	if (place->may_go_back) {
		r = planner_go_back(pl, &scope, place->vaddr, &start);
		if (r)
			return r;
	}
	if (!planner_is_free(pl, start)) {
		*draft = planner_draft_at(pl, start);
		if (*draft == UINT32_MAX || !pl->drafts.v[*draft].landing)
			return REFUSAL_OVERLAP;
		return planner_grow(pl, *draft, place->vaddr, WINDOW_SHORT);
	}
	r = window_make(&w, &scope, start, place->vaddr);
	if (r)
		return r;
	return tactic_short_hold(pl, &w, draft);
}

enum refusal tactic_short(struct planner *pl, const struct place *place)
{
	uint32_t draft;
	enum refusal r = find(pl, place, &draft);

	return r ? r : planner_put(pl, draft, place);
}
