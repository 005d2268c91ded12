/* SPDX-License-Identifier: MIT */
/* planner.c - the per-byte state and the drafts of the function at work (planner.h). */
#include "inject/plan/planner.h"
#include "base/search.h"

#include <stdlib.h>
#include <string.h>

#include "inject/code/liveness.h"

struct window_scope planner_scope(const struct planner *pl, uint64_t vaddr, unsigned jump)
{
	const struct function *holder = functions_at(pl->map->functions, vaddr);

	/* where instructions are not known, neighbours find no room either */
	if (holder && pl->map->per_function[holder - pl->map->functions->v].undecodable)
		holder = NULL;
	return (struct window_scope){
		.map = pl->map,
		.bytes = pl->bytes,
		.lo = holder ? holder->start : vaddr,
		.hi = holder ? holder->end : vaddr,
		.jump = jump,
		.one_only = !holder || pl->one_only[holder - pl->map->functions->v],
		.is_long = pl->is_long,
	};
}

unsigned draft_head(const struct draft *d)
{
	if (d->tactic == TACTIC_PUN || d->tactic == TACTIC_INT3)
		return 1;
	return d->landing ? WINDOW_SHORT : d->jump;
}

/* Bytes from the window's start on that keep a meaning. */
static unsigned head_len(const struct draft *d)
{
	return d->is_detour ? d->w.len : draft_head(d) + (d->prefix != 0);
}

static void mark_landing(struct planner *pl, const struct draft *d, uint8_t state)
{
	memset(pl->bytes + (d->landing - pl->map->lo), state, WINDOW_JUMP);
}

static void mark(struct planner *pl, const struct draft *d, uint8_t state)
{
	uint8_t *taken = pl->bytes + (d->w.addr - pl->map->lo);

	memset(taken, state, d->w.len);
	if (state == BYTE_TAKEN && pl->is_long)
		for (unsigned i = head_len(d); i < d->w.len && i < d->w.dead; i++)
			taken[i] = BYTE_DEAD;
	if (d->landing && !d->is_guest)
		mark_landing(pl, d, state);
	else if (d->landing && pl->is_long && state != BYTE_FREE)
		mark_landing(pl, d, state);
	else if (d->landing && pl->is_long && pl->bytes[d->landing - pl->map->lo] == BYTE_TAKEN)
		mark_landing(pl, d, BYTE_DEAD); /* unless the window they lie in went first */
}

uint32_t planner_hold(struct planner *pl, const struct window *w, enum tactic tactic)
{
	struct draft *d;

	vec_reserve(&pl->drafts, pl->drafts.n + 1);
	d = &pl->drafts.v[pl->drafts.n++];
	d->w = *w;
	d->first = d->last = DRAFT_END;
	d->nprobes = 0;
	d->tactic = tactic;
	d->jump = pl->jump;
	d->landing = 0;
	d->nrelays = 0;
	d->is_guest = false;
	d->prefix = 0;
	d->is_detour = tactic == TACTIC_DETOUR;
	d->is_host = false;
	d->live = true;
	mark(pl, d, BYTE_TAKEN);
	return pl->drafts.n - 1;
}

void planner_land(struct planner *pl, uint32_t draft, uint64_t landing, struct draft *host)
{
	struct draft *d = &pl->drafts.v[draft];

	d->landing = landing;
	d->is_guest = host;
	if (host)
		host->is_host = true;
	if (!host || pl->is_long) /* dead bytes are everybody's there */
		mark(pl, d, BYTE_TAKEN);
}

void planner_land_in(struct planner *pl, uint32_t draft, uint64_t landing)
{
	struct draft *d = &pl->drafts.v[draft];

	d->landing = landing;
	d->is_guest = true;
	mark(pl, d, BYTE_TAKEN);
}

/* Does a landing stand after the window's jump? */
static bool has_guests(const struct planner *pl, const struct draft *d)
{
	const uint8_t *taken = pl->bytes + (d->w.addr - pl->map->lo);

	for (unsigned i = head_len(d); i < d->w.len && i < d->w.dead; i++)
		if (taken[i] == BYTE_TAKEN)
			return pl->is_long;
	return false;
}

void planner_hold_again(struct planner *pl, uint32_t draft)
{
	struct draft *d = &pl->drafts.v[draft];

	mark(pl, d, BYTE_TAKEN);
	d->live = true;
}

void planner_release(struct planner *pl, uint32_t draft)
{
	struct draft *d = &pl->drafts.v[draft];

	mark(pl, d, BYTE_FREE);
	d->live = false;
}

int planner_compare_sites(const void *a, const void *b)
{
	const struct site_key *x = a, *y = b;

	return x->vaddr < y->vaddr ? -1 : x->vaddr > y->vaddr;
}

static void index_sites(struct planner *pl)
{
	vec_reserve(&pl->site_index, pl->sites.n);
	for (uint32_t i = pl->site_index.n; i < pl->sites.n; i++)
		pl->site_index.v[i] = (struct site_key){pl->sites.v[i].vaddr, i};
	pl->site_index.n = pl->sites.n;
	if (pl->site_index.n)
		qsort(pl->site_index.v, pl->site_index.n, sizeof(struct site_key),
		      planner_compare_sites);
}

static bool is_over(const struct plan_site *s, uint64_t vaddr)
{
	return vaddr - s->vaddr < s->window;
}

struct plan_site *planner_site_over(struct planner *pl, uint64_t vaddr)
{
	struct plan_site *s;
	size_t lo;

	if (pl->sites.n - pl->site_index.n > 256 || !pl->site_index.n)
		index_sites(pl);
	for (size_t i = pl->site_index.n; i < pl->sites.n; i++) /* of this round */
		if (is_over(&pl->sites.v[i], vaddr))
			return &pl->sites.v[i];
	lo = partition_point(i, pl->site_index.n, pl->site_index.v[i].vaddr <= vaddr);
	s = lo ? &pl->sites.v[pl->site_index.v[lo - 1].number] : NULL;
	return s && is_over(s, vaddr) ? s : NULL;
}

struct plan_site *planner_site_at(struct planner *pl, uint64_t vaddr)
{
	struct plan_site *s = planner_site_over(pl, vaddr);

	return s && s->vaddr == vaddr ? s : NULL;
}

uint32_t planner_draft_at(const struct planner *pl, uint64_t vaddr)
{
	/* the neighbour is nearly always the newest, or the entry */
	for (size_t i = pl->drafts.n; i-- > 0;) {
		const struct draft *d = &pl->drafts.v[i];

		if (d->live && vaddr >= d->w.addr && vaddr < d->w.addr + d->w.len)
			return i;
	}
	return UINT32_MAX;
}

enum refusal planner_go_back(const struct planner *pl, const struct window_scope *scope,
			     uint64_t vaddr, uint64_t *start)
{
	struct insn in;
	unsigned have;
	uint64_t previous;
	enum refusal r;

	*start = vaddr;
	if (!window_decode(pl->map, vaddr, &in))
		return REFUSAL_UNDECODABLE;
	have = in.len;
	if (window_insn_ends(&in))
		have += window_padding(scope, &in);
	while (have < scope->jump) {
		if (*start <= scope->lo)
			return REFUSAL_NO_ROOM;
		r = window_entered_at(pl->map, *start);
		if (r)
			return r;
		if (scope->one_only)
			return REFUSAL_INDIRECT_JUMP;
		previous = code_map_previous(pl->map, *start);
		if (!previous)
			return REFUSAL_NO_ROOM;
		have += *start - previous;
		*start = previous;
		if (!planner_is_free(pl, *start))
			break; /* the other window's owner decides */
	}
	return REFUSAL_NONE;
}

enum refusal planner_share(const struct planner *pl, uint64_t vaddr, uint32_t *draft)
{
	*draft = planner_draft_at(pl, vaddr);
	if (*draft == UINT32_MAX || !window_has(&pl->drafts.v[*draft].w, pl->map, vaddr))
		return REFUSAL_OVERLAP;
	return REFUSAL_NONE;
}

enum refusal planner_grow(struct planner *pl, uint32_t draft, uint64_t through, unsigned jump)
{
	struct draft *d = &pl->drafts.v[draft];
	struct window_scope scope = planner_scope(pl, d->w.addr, jump);
	struct window w;
	enum refusal r;

	if (through < d->w.addr || through - d->w.addr >= WINDOW_LONG_MAX || through >= scope.hi)
		return REFUSAL_NO_ROOM;
	if (has_guests(pl, d))
		return REFUSAL_OVERLAP;
	planner_release(pl, draft);
	r = window_make(&w, &scope, d->w.addr, through);
	if (r == REFUSAL_NONE) {
		d->w = w;
		if (jump != WINDOW_SHORT)
			d->landing = d->nrelays = 0;
	}
	planner_hold_again(pl, draft);
	return r;
}

unsigned planner_room(const struct planner *pl, uint32_t draft)
{
	return (pl->is_long ? DRAFT_LONG_PROBES : DRAFT_PROBES) - pl->drafts.v[draft].nprobes;
}

enum refusal planner_put_at(struct planner *pl, uint32_t draft, const struct draft_probe *p)
{
	struct draft *d = &pl->drafts.v[draft];
	uint32_t link = pl->draft_probes.n;

	if (!planner_room(pl, draft))
		return REFUSAL_OVERLAP;
	*vec_push(&pl->draft_probes) = (struct draft_link){*p, DRAFT_END};
	if (d->nprobes++)
		pl->draft_probes.v[d->last].next = link;
	else
		d->first = link;
	d->last = link;
	return REFUSAL_NONE;
}

enum refusal planner_put(struct planner *pl, uint32_t draft, const struct place *place)
{
	struct draft_probe p = {place->probe, place->where, TACTIC_NONE, place->vaddr};

	return place->probe == PLACE_NO_PROBE ? REFUSAL_NONE : planner_put_at(pl, draft, &p);
}

const struct liveness *planner_liveness(struct planner *pl)
{
	struct planner_shared *s = pl->shared;
	struct liveness *l = __atomic_load_n(&s->liveness, __ATOMIC_ACQUIRE);

	if (l)
		return l;
	pthread_mutex_lock(&s->lock);
	if (!s->liveness)
		__atomic_store_n(&s->liveness, liveness_new(pl->map), __ATOMIC_RELEASE);
	l = s->liveness;
	pthread_mutex_unlock(&s->lock);
	return l;
}

bool planner_is_landing_pad(struct planner *pl, uint64_t vaddr)
{
	struct planner_shared *s = pl->shared;
	bool is_pad;

	if (!(code_map_flags(pl->map, vaddr) & CODE_CONSTANT))
		return false;
	pthread_mutex_lock(&s->lock);
	if (!s->frames)
		s->frames = frame_info_open(pl->map->img);
	is_pad = frame_info_is_landing_pad(s->frames, vaddr);
	pthread_mutex_unlock(&s->lock);
	return is_pad;
}
