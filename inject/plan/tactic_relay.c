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
 */
#include "inject/plan/planner.h"

#include <string.h>

#define NODES_MAX 512u
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
};

static uint8_t *bytes_of(const struct search *s, uint64_t vaddr)
{
	return s->pl->bytes + (vaddr - s->pl->map->lo);
}

static bool may_relay(const struct search *s, uint64_t vaddr)
{
	const struct code_map *map = s->pl->map;

	if (vaddr < map->lo || map->hi - vaddr < WINDOW_SHORT || vaddr >= map->hi ||
	    !elf_image_at(map->img, vaddr, WINDOW_SHORT))
		return false;
	return (bytes_of(s, vaddr)[0] == BYTE_DEAD && bytes_of(s, vaddr)[1] == BYTE_DEAD) ||
	       (tactic_short_is_padding(s->pl, vaddr) && tactic_short_is_padding(s->pl, vaddr + 1));
}

/* A relay at vaddr, which the node reaches: is there a landing for it? */
static bool add_node(struct search *s, unsigned from, uint64_t vaddr, bool may_evict)
{
	uint32_t host = NO_HOST;
	struct node *node;

	if (may_evict && !may_relay(s, vaddr))
		host = tactic_short_evict(s->pl, vaddr - WINDOW_JUMP, WINDOW_JUMP + WINDOW_SHORT);
	if (!may_relay(s, vaddr))
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
	s->landing = tactic_short_landing(s->pl, vaddr);
	return s->landing;
}

/* All relays within reach of a node. */
static bool expand(struct search *s, unsigned from, bool may_evict)
{
	for (int distance = INT8_MIN; distance <= INT8_MAX && s->n < NODES_MAX; distance++)
		if (distance &&
		    add_node(s, from, s->v[from].at + WINDOW_SHORT + (uint64_t)(int64_t)distance,
			     may_evict))
			return true;
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

bool relay_find_from(struct planner *pl, uint64_t jump, uint64_t first, struct relay_way *way)
{
	struct search s;

	s.pl = pl;
	s.n = 1;
	s.landing = 0;
	s.v[0] = (struct node){.at = jump, .host = NO_HOST};
	if (!may_relay(&s, first))
		return false;
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

	s.pl = pl;
	s.n = 1;
	s.landing = 0;
	s.v[0] = (struct node){.at = jump, .host = NO_HOST};
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
