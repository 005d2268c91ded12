/* SPDX-License-Identifier: MIT */
/*
 * tactic_relay.c - a short jump that comes to its landing by way of others.
 *
 *        call f                           call f
 *     a: jmp 1f           ---->           jmp r1        two bytes: no jump of five fits
 *
 *        r1: (two dead bytes)             jmp r2        within 127 bytes of a
 *        r2: (two dead bytes)             jmp landing   within 127 bytes of r1
 *
 *        landing:                         jmp stub      within 127 bytes of r2
 *
 * For crowds of two-byte instructions, like the jumps after the calls of a switch: there is no
 * room for a landing for each of them nearby, but for a relay there often is.  A relay stands
 * in dead bytes, in padding, or after the jump of seven bytes of code that move out for it.
 *
 * In the last round only, of what everybody has left, and the last of the ladder.  The search
 * goes breadth first and holds all that it meets; what is not on the way is given back.
 *
 * Each place is within reach of many nodes, and is looked at once.  For in a search bytes are only
 * taken: where no relay may stand, none may later, but for those bytes that die because code moves
 * out; and code that cannot move out for want of free bytes cannot later.
 */
#include "inject/plan/planner.h"

#include <string.h>

#define NODES_MAX 512u
/* How far away a relay may stand from the jump. */
#define REACH (KRON_RELAYS_MAX * (128u + WINDOW_SHORT))
#define SPAN (2 * REACH + 1)
_Static_assert(SPAN + 2 * 256 <= LANDINGS_SPAN, "jumps stand well inside");
#define NO_HOST UINT32_MAX

struct node {
	uint64_t at;
	uint32_t host; /* the draft that moved out for it, or NO_HOST */
	uint16_t from; /* the node before */
	uint8_t depth; /* relays up to here */
	uint8_t was;   /* state of its bytes */
	bool is_on_way;
};

struct search {
	struct planner *pl;
	uint64_t landing;
	unsigned n;
	struct node v[NODES_MAX]; /* the first is the jump itself */
	/* by vaddr, from REACH before the jump on: nothing may stand there as it is; nor if code
	 * moves out for it; that was tried */
	uint8_t is_none[2][SPAN], was_asked[SPAN];
	struct landings landings;
};

static uint8_t *bytes_of(const struct search *s, uint64_t vaddr)
{
	return s->pl->bytes + (vaddr - s->pl->map->lo);
}

static bool may_relay(const struct search *s, uint64_t vaddr)
{
	const struct code_map *map = s->pl->map;
	const uint8_t *bytes;

	if (vaddr < map->lo || map->hi - vaddr < WINDOW_SHORT || vaddr >= map->hi)
		return false;
	bytes = bytes_of(s, vaddr);
	if ((bytes[0] != BYTE_DEAD || bytes[1] != BYTE_DEAD) &&
	    (!tactic_short_is_padding(s->pl, vaddr) || !tactic_short_is_padding(s->pl, vaddr + 1)))
		return false;
	return elf_image_at(map->img, vaddr, WINDOW_SHORT);
}

static size_t place_in(const struct search *s, uint64_t vaddr)
{
	return vaddr + REACH - s->v[0].at;
}

/* Bytes of it are dead now. */
static void see_dead(struct search *s, const struct window *w)
{
	for (uint64_t at = w->addr - 1; at < w->addr + w->len; at++) {
		size_t i = place_in(s, at);

		if (i < SPAN)
			s->is_none[0][i] = s->is_none[1][i] = false;
	}
}

/* Code moves out for a relay at vaddr. */
static uint32_t make_room(struct search *s, uint64_t vaddr)
{
	uint8_t *was_asked = &s->was_asked[place_in(s, vaddr)];
	uint32_t host;

	if (*was_asked)
		return NO_HOST;
	*was_asked = true;
	host = tactic_short_evict(s->pl, vaddr - WINDOW_JUMP, WINDOW_JUMP + WINDOW_SHORT);
	if (host != NO_HOST)
		see_dead(s, &s->pl->drafts.v[host].w);
	return host;
}

/* A relay at vaddr, which the node reaches: is there a landing for it? */
static bool add_node(struct search *s, unsigned from, uint64_t vaddr, bool may_evict)
{
	uint32_t host = NO_HOST;
	bool may = may_relay(s, vaddr);
	struct node *node;

	if (!may && may_evict) {
		host = make_room(s, vaddr);
		may = host != NO_HOST && may_relay(s, vaddr);
	}
	s->is_none[0][place_in(s, vaddr)] = true;
	s->is_none[1][place_in(s, vaddr)] |= may || may_evict;
	if (!may)
		return false;
	node = &s->v[s->n++];
	*node = (struct node){
		.at = vaddr,
		.host = host,
		.from = (uint16_t)from,
		.depth = s->v[from].depth + 1,
		.was = *bytes_of(s, vaddr),
	};
	memset(bytes_of(s, vaddr), BYTE_TAKEN, WINDOW_SHORT);
	s->landing = tactic_short_landing(s->pl, vaddr, &s->landings);
	return s->landing;
}

/* All relays within reach of a node. */
static bool expand(struct search *s, unsigned from, bool may_evict)
{
	const uint64_t next = s->v[from].at + WINDOW_SHORT;
	const uint8_t *is_none = s->is_none[may_evict];
	const uint8_t *at = is_none + place_in(s, next - 128), *end = at + 256;

	for (; s->n < NODES_MAX && (at = memchr(at, 0, (size_t)(end - at))); at++) {
		const uint64_t vaddr = s->v[0].at - REACH + (uint64_t)(at - is_none);

		if (vaddr != next && add_node(s, from, vaddr, may_evict))
			return true;
	}
	return false;
}

/* Does anything on the way stand in its window? */
static bool is_needed(const struct search *s, const struct window *w)
{
	for (unsigned i = 1; i < s->n; i++)
		if (s->v[i].is_on_way && s->v[i].at - w->addr < w->len)
			return true;
	return s->landing && s->landing - w->addr < w->len;
}

/* What stands in a host's window came later than the host. */
static void give_back(struct search *s)
{
	for (unsigned i = s->n; i-- > 1;) {
		const struct node *node = &s->v[i];

		if (node->is_on_way)
			continue;
		memset(bytes_of(s, node->at), node->was, WINDOW_SHORT);
		if (node->host != NO_HOST && !is_needed(s, &s->pl->drafts.v[node->host].w))
			planner_release(s->pl, node->host);
	}
}

/* The last node has the landing. */
static void keep_way(struct search *s, struct relay_way *way)
{
	unsigned i = s->n - 1;

	way->landing = s->landing;
	way->n = s->v[i].depth;
	for (unsigned k = way->n; k-- > 0; i = s->v[i].from) {
		s->v[i].is_on_way = true;
		way->relay[k] = s->v[i].at;
	}
}

static bool run(struct search *s, struct relay_way *way)
{
	bool found = s->landing;

	for (unsigned i = s->n - 1; i < s->n && !found; i++) {
		if (s->v[i].depth == KRON_RELAYS_MAX)
			break;
		found = expand(s, i, false) || (s->pl->use & USE_EVICT && expand(s, i, true));
	}
	if (found)
		keep_way(s, way);
	give_back(s);
	return found;
}

static void begin(struct search *s, struct planner *pl, uint64_t jump)
{
	s->pl = pl;
	s->n = 1;
	s->landing = 0;
	s->v[0] = (struct node){.at = jump, .host = NO_HOST};
	memset(s->is_none, 0, sizeof(s->is_none));
	memset(s->was_asked, 0, sizeof(s->was_asked));
	memset(&s->landings, 0, sizeof(s->landings));
	s->landings.lo = jump - LANDINGS_SPAN / 2;
}

bool relay_find_from(struct planner *pl, uint64_t jump, uint64_t first, struct relay_way *way)
{
	struct search s;

	s.pl = pl;
	if (!may_relay(&s, first))
		return false;
	begin(&s, pl, jump);
	add_node(&s, 0, first, false);
	return run(&s, way);
}

void relay_take(struct planner *pl, uint32_t draft, const struct relay_way *way)
{
	struct draft *d = &pl->drafts.v[draft];

	d->relays = pl->relays.n;
	d->nrelays = (uint8_t)way->n;
	for (unsigned i = 0; i < way->n; i++)
		*vec_push(&pl->relays) = way->relay[i];
	planner_land_in(pl, draft, way->landing);
	for (unsigned i = 0; i < way->n; i++) /* some may stand in the draft's own window */
		memset(pl->bytes + (way->relay[i] - pl->map->lo), BYTE_TAKEN, WINDOW_SHORT);
}

static bool find_way(struct planner *pl, uint64_t jump, struct relay_way *way)
{
	struct search s;

	begin(&s, pl, jump);
	return run(&s, way);
}

enum refusal tactic_relay(struct planner *pl, const struct place *place)
{
	struct window_scope scope = planner_scope(pl, place->vaddr, WINDOW_SHORT);
	uint64_t start = place->vaddr;
	struct relay_way way;
	struct window w;
	enum refusal r = REFUSAL_NONE;
	uint32_t draft;

	if (!pl->is_long || !pl->fn.is_last)
		return REFUSAL_NO_ROOM;
	if (place->may_go_back)
		r = planner_go_back(pl, &scope, place->vaddr, &start);
	if (!r && !planner_is_free(pl, start))
		r = REFUSAL_OVERLAP;
	if (!r)
		r = window_make(&w, &scope, start, place->vaddr);
	if (r)
		return r;
	draft = planner_hold(pl, &w, TACTIC_RELAY);
	if (find_way(pl, w.addr, &way)) {
		relay_take(pl, draft, &way);
		return planner_put(pl, draft, place);
	}
	planner_release(pl, draft);
	return REFUSAL_NO_ROOM;
}
