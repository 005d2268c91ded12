/* SPDX-License-Identifier: MIT */
/*
 * tactic_pun.c - a jump of which only the first byte is written: the next site's first byte is
 * its distance.
 *
 *   a:    ret                     eb         jmp a+2-23
 *   a+1:  mov ...       ---->     e9 ....    jmp stub             e9 = -23
 *
 *   a-21: (dead)        ---->     e9 ....    jmp stub of a
 *
 * For an instruction of one byte followed by a place that must stay a place of its own.  The
 * landing, or a relay (tactic_relay.c), has to be dead bytes or padding at exactly that distance.
 * Where the next site has a byte to spare, a prefix that means nothing in front of its jump gives
 * other distances.
 *
 * In the second round only, when the next site is decided.  What it begins with is locked then.
 */
#include "inject/plan/planner.h"

#include <string.h>

/* Segment and address-size prefixes, REX: a near jump takes no notice of them. */
static const uint8_t prefixes[] = {0x26, 0x2e, 0x36, 0x3e, 0x40, 0x41, 0x42, 0x43,
				   0x44, 0x45, 0x46, 0x47, 0x48, 0x49, 0x4a, 0x4b,
				   0x4c, 0x4d, 0x4e, 0x4f, 0x64, 0x65, 0x67};

/* What stands at the byte after the place: a draft, a finished site, or what the file has. */
struct next {
	uint64_t vaddr;
	uint8_t first; /* its first byte when it is patched */
	uint8_t head;  /* bytes of its jump; 0: it stays as it is */
	struct draft *draft;
	struct plan_site *site;
	bool may_prefix;
};

static uint8_t state(const struct planner *pl, uint64_t vaddr)
{
	return vaddr >= pl->map->lo && vaddr < pl->map->hi ? pl->bytes[vaddr - pl->map->lo]
							   : BYTE_TAKEN;
}

static bool is_landing(const struct planner *pl, uint64_t vaddr)
{
	if (!elf_image_at(pl->map->img, vaddr, WINDOW_JUMP))
		return false;
	for (unsigned i = 0; i < WINDOW_JUMP; i++) {
		uint8_t flags = code_map_flags(pl->map, vaddr + i);

		if (state(pl, vaddr + i) == BYTE_DEAD)
			continue;
		if (state(pl, vaddr + i) != BYTE_FREE || !(flags & CODE_PADDING) ||
		    window_entered_at(pl->map, vaddr + i))
			return false;
	}
	/* all of it in one window, or all of it padding */
	for (unsigned i = 1; i < WINDOW_JUMP; i++)
		if (state(pl, vaddr + i) != state(pl, vaddr))
			return false;
	return true;
}

/* Is there a byte after the jump that holds no landing? */
static bool has_spare(const struct planner *pl, const struct next *n)
{
	return n->head && state(pl, n->vaddr + n->head) == BYTE_DEAD &&
	       functions_at(pl->map->functions, n->vaddr + n->head) ==
		       functions_at(pl->map->functions, n->vaddr);
}

/* A prefix moves a short jump by one byte: does it still lead to its landing? */
static bool may_move(uint64_t vaddr, uint64_t landing)
{
	return !landing || (int64_t)(landing - vaddr) - (int64_t)WINDOW_SHORT - 1 >= INT8_MIN;
}

static void see_draft(const struct planner *pl, struct next *n, struct draft *d)
{
	uint64_t to = d->nrelays ? pl->relays.v[d->relays] : d->landing;

	if (d->is_detour)
		return;
	n->draft = d;
	n->head = draft_head(d);
	n->first = d->prefix                  ? d->prefix
		   : d->tactic == TACTIC_INT3 ? 0xcc
		   : n->head == WINDOW_JUMP   ? 0xe9
					      : 0xeb;
	n->may_prefix = !d->prefix && n->head > 1 && d->w.len > n->head && may_move(n->vaddr, to);
}

static void see_site(const struct planner *pl, struct next *n, struct plan_site *s)
{
	struct plan p = {.code = pl->code.v};

	if (!s->patch_len)
		return;
	n->site = s;
	n->head = s->patch_len;
	n->first = s->prefix                          ? s->prefix
		   : s->patch_len == 1 && !s->landing ? 0xcc
		   : s->landing                       ? 0xeb
						      : 0xe9;
	n->may_prefix = !s->prefix && n->head > 1 && s->window > n->head &&
			may_move(n->vaddr, plan_short_target(&p, s));
}

static enum refusal find_next(struct planner *pl, uint64_t vaddr, struct next *n)
{
	const uint8_t *byte = elf_image_at(pl->map->img, vaddr, 1);
	uint32_t draft = planner_draft_at(pl, vaddr);
	struct plan_site *site = planner_site_at(pl, vaddr);

	*n = (struct next){.vaddr = vaddr};
	if (!byte)
		return REFUSAL_OUT_OF_FILE;
	n->first = *byte;
	if (draft != UINT32_MAX && pl->drafts.v[draft].w.addr == vaddr)
		see_draft(pl, n, &pl->drafts.v[draft]);
	else if (site)
		see_site(pl, n, site);
	else if (state(pl, vaddr) != BYTE_FREE)
		return REFUSAL_OVERLAP; /* the middle of something, or lent to a landing */
	n->may_prefix = n->may_prefix && has_spare(pl, n);
	return REFUSAL_NONE;
}

/* The next site's jump gets a prefix, or, if nothing is patched there, the byte is locked. */
static void settle_next(struct planner *pl, const struct next *n, uint8_t prefix)
{
	if (!n->head)
		pl->bytes[n->vaddr - pl->map->lo] = BYTE_TAKEN;
	if (!prefix)
		return;
	pl->bytes[n->vaddr + n->head - pl->map->lo] = BYTE_TAKEN;
	if (n->draft) {
		n->draft->prefix = prefix;
		return;
	}
	n->site->prefix = prefix;
	n->site->patch_len++;
}

static uint64_t landing_for(uint64_t vaddr, uint8_t distance)
{
	return vaddr + WINDOW_SHORT + (uint64_t)(int64_t)(int8_t)distance;
}

/* Does a jump of this distance lead anywhere? */
static bool leads(struct planner *pl, uint64_t vaddr, uint8_t distance, bool by_relay,
		  struct relay_way *way)
{
	way->landing = landing_for(vaddr, distance);
	way->n = 0;
	if (by_relay)
		return relay_find_from(pl, vaddr, way->landing, way);
	return is_landing(pl, way->landing);
}

/* Where the jump may lead; the prefix that this needs, or 0. */
static bool choose(struct planner *pl, uint64_t vaddr, const struct next *n, bool by_relay,
		   struct relay_way *way, uint8_t *prefix)
{
	uint8_t *spare = pl->bytes + (n->vaddr + n->head - pl->map->lo);
	bool found;

	*prefix = 0;
	found = leads(pl, vaddr, n->first, by_relay, way);
	if (found || !n->may_prefix)
		return found;
	*spare = BYTE_TAKEN; /* the prefix wants it */
	for (unsigned i = 0; i < sizeof(prefixes) && !found; i++) {
		found = leads(pl, vaddr, prefixes[i], by_relay, way);
		*prefix = prefixes[i];
	}
	if (!found)
		*spare = BYTE_DEAD;
	return found;
}

/* By way of relays, for which the place itself and what decides its distance may not move out. */
static bool choose_relayed(struct planner *pl, uint64_t vaddr, const struct next *n,
			   struct relay_way *way, uint8_t *prefix)
{
	uint8_t *taken = pl->bytes + (vaddr - pl->map->lo), was[2] = {taken[0], taken[1]};

	if (!(pl->use & USE_RELAY) || !pl->fn.is_last)
		return false;
	taken[0] = taken[1] = BYTE_TAKEN;
	if (choose(pl, vaddr, n, true, way, prefix))
		return true;
	memcpy(taken, was, sizeof(was));
	return false;
}

enum refusal tactic_pun(struct planner *pl, const struct place *place)
{
	struct window_scope scope = planner_scope(pl, place->vaddr, 1);
	struct next next;
	struct window w;
	struct relay_way way;
	enum refusal r;
	uint32_t draft;
	uint8_t prefix;

	if (!pl->is_long || !pl->fn.second_round || place->probe == PLACE_NO_PROBE)
		return REFUSAL_NO_ROOM;
	r = window_make(&w, &scope, place->vaddr, place->vaddr);
	if (!r && w.len != 1)
		r = REFUSAL_NO_ROOM;
	if (!r)
		r = find_next(pl, place->vaddr + 1, &next);
	if (r)
		return r;
	if (!choose(pl, place->vaddr, &next, false, &way, &prefix) &&
	    !choose_relayed(pl, place->vaddr, &next, &way, &prefix))
		return REFUSAL_NO_ROOM;
	settle_next(pl, &next, prefix);
	draft = planner_hold(pl, &w, TACTIC_PUN);
	relay_take(pl, draft, &way);
	return planner_put(pl, draft, place);
}

void tactic_pun_reaches(uint64_t vaddr, uint64_t out[TACTIC_PUN_REACHES])
{
	/* what begins a near jump, and some prefixes: the others lead near these */
	static const uint8_t firsts[TACTIC_PUN_REACHES] = {0xe9, 0x26, 0x2e, 0x3e,
							   0x46, 0x4e, 0x64};

	for (size_t i = 0; i < TACTIC_PUN_REACHES; i++)
		out[i] = landing_for(vaddr, firsts[i]);
}
