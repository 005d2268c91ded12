/* SPDX-License-Identifier: MIT */
/* plan_finish.c - what the whole plan is needed for: the order of its sites, what leads where. */
#include <stdlib.h>

#include "inject/plan/planner.h"
#include "base/search.h"

#define NONE UINT32_MAX
#define PAGE 4096ull

/*
 * Control that goes from a stub to where another site begins goes on in that site's stub.
 * Plans for entries and exits alone do without: there a stub seldom leads to another.
 */
static void chain(struct plan_fixup *f, const struct site_key *keys, size_t n,
		  const uint16_t *entrances)
{
	size_t lo = keys ? partition_point(i, n, keys[i].vaddr < f->value) : 0;

	if (!keys || lo == n || keys[lo].vaddr != f->value) {
		f->kind = FIXUP_MODULE_REL32;
		return;
	}
	f->value = lo;
	if (!entrances[keys[lo].number])
		return;
	f->kind = FIXUP_SITE_REL32;
	f->value = lo << 16 | entrances[keys[lo].number];
}

/* Each site goes to its place; place[] is used up. */
static void permute(struct plan_site *sites, uint32_t *place, size_t n)
{
	for (size_t i = 0; i < n; i++)
		while (place[i] != i) {
			uint32_t to = place[i];
			struct plan_site site = sites[to];

			sites[to] = sites[i];
			sites[i] = site;
			place[i] = place[to];
			place[to] = to;
		}
}

/* Sites come function by function; parts and exits make them not quite sorted. */
void planner_sort_sites(struct planner *pl, bool chained)
{
	size_t n = pl->sites.n;
	struct site_key *keys = xmalloc(n * sizeof(*keys));
	uint32_t *place = xmalloc(n * sizeof(*place));

	for (size_t i = 0; i < n; i++)
		keys[i] = (struct site_key){pl->sites.v[i].vaddr, i};
	qsort(keys, n, sizeof(*keys), planner_compare_sites);
	for (size_t i = 0; i < n; i++)
		place[keys[i].number] = i;
	vec_for(&pl->probes, p)
		if (p->site != NONE)
			p->site = place[p->site];
	vec_for(&pl->fixups, f)
		if (f->kind == FIXUP_SITE_REL32)
			f->value = (uint64_t)place[f->value >> 16] << 16 | (f->value & 0xffff);
		else if (f->kind == FIXUP_CHAIN_REL32)
			chain(f, chained ? keys : NULL, n, pl->entrances.v);
	xfree(keys);
	permute(pl->sites.v, place, n);
	xfree(place);
}

/* A function's sites lead to each other: with a place in one of them all are patched. */
void plan_mark_places(struct plan *p)
{
	uint8_t *has_place = xcalloc(p->nfunctions + 1, 1);

	for (size_t i = 0; i < p->nsites; i++)
		has_place[p->sites[i].function] |= p->sites[i].has_place;
	for (size_t i = 0; i < p->nsites; i++)
		p->sites[i].has_place = has_place[p->sites[i].function];
	xfree(has_place);
}

static void span(struct plan *p, uint64_t vaddr, unsigned len)
{
	if (vaddr < p->text_lo)
		p->text_lo = vaddr & -PAGE;
	if (vaddr + len > p->text_hi)
		p->text_hi = vaddr + len;
}

void plan_measure_span(struct plan *p)
{
	if (!p->nsites)
		return;
	p->text_lo = p->sites[0].vaddr & -PAGE;
	for (size_t i = 0; i < p->nsites; i++) {
		const struct plan_site *s = &p->sites[i];

		if (s->vaddr + s->window > p->text_hi)
			p->text_hi = s->vaddr + s->window;
		if (s->landing)
			span(p, s->landing, PLAN_LANDING);
		for (unsigned k = 0; k < s->nrelays; k++)
			span(p, plan_relay_vaddr(p, s, k), PLAN_RELAY);
	}
	p->text_hi = (p->text_hi + PAGE - 1) & -PAGE;
	p->reach_lo = p->text_lo;
	p->reach_hi = p->text_hi;
	for (size_t i = 0; i < p->nfixups; i++) {
		const struct plan_fixup *f = &p->fixups[i];

		if (f->kind != FIXUP_MODULE_REL32)
			continue;
		if (f->value < p->reach_lo)
			p->reach_lo = f->value;
		if (f->value >= p->reach_hi)
			p->reach_hi = f->value + 1;
	}
}

void plan_free(struct plan *p)
{
	if (!p)
		return;
	if (p->mapping) {
		xfree_pages(p->mapping, p->mapping_len); /* it came out of a file */
	} else {
		xfree(p->functions);
		xfree(p->probes);
		xfree(p->sites);
		xfree(p->fixups);
		xfree(p->maps);
		xfree(p->actions);
		xfree(p->jumps);
		xfree(p->code);
		xfree(p->strings);
	}
	xfree(p);
}
