/* SPDX-License-Identifier: MIT */
/*
 * patch_plan.c - what of a plan goes into a file with probes in some of its functions only.
 *
 *   probes   entries and exits of the selected functions, all hooks and places
 *   sites    those of these probes, and those that they stand on (bind_support)
 *
 * Other probes in these sites go for good: their sequences become jumps over themselves.  The
 * plan is changed where it stands: it may be the largest thing in memory.  Code, fixups and maps
 * stay where they are, with gaps.
 */
#include <string.h>

#include "base/vec.h"
#include "inject/plan/action.h"
#include "inject/bind/bind.h"
#include "inject/disk/patch_info.h"
#include "inject/plan/plan_jumps.h"
#include "inject/plan/stub.h"

#define NONE UINT32_MAX

struct trimming {
	struct plan *plan;
	const uint8_t *selected;
	uint8_t *bound;                    /* by site: stays */
	uint32_t *function, *site, *probe; /* new number, NONE: goes */
};

static void choose_sites(struct trimming *t)
{
	const struct plan *p = t->plan;

	for (size_t i = 0; i < p->nsites; i++)
		if (t->selected[p->sites[i].function] || p->sites[i].has_hook ||
		    p->sites[i].has_place)
			bind_support(p, t->bound, i);
	for (size_t i = 0; i < p->nfunctions; i++)
		t->function[i] = t->selected[i] ? 0 : NONE;
	for (size_t i = 0; i < p->nsites; i++)
		if (t->bound[i])
			t->function[p->sites[i].function] = 0;
}

static bool stays(const struct trimming *t, const struct plan_probe *p)
{
	return p->kind > PROBE_EXIT || t->selected[p->function];
}

/* To the end of those that stay, n of them so far. */
static size_t move_probes(struct trimming *t, size_t n, uint32_t first, uint32_t end)
{
	struct plan_probe *v = t->plan->probes;

	for (uint32_t i = first; i < end; i++) {
		t->probe[i] = stays(t, &v[i]) ? (uint32_t)n : NONE;
		if (stays(t, &v[i]))
			v[n++] = v[i];
	}
	return n;
}

static void move_functions(struct trimming *t, uint8_t *levels)
{
	struct plan *p = t->plan;
	size_t n = 0, nprobes = 0, none = p->nprobes;

	/* places of the request that are in no function: refused, and shown as such */
	while (none && p->probes[none - 1].function == PLAN_NO_FUNCTION)
		none--;
	for (size_t i = 0; i < p->nfunctions; i++) {
		struct plan_function f = p->functions[i];
		uint32_t first = f.first_probe, end = first + f.nprobes;

		if (t->function[i] == NONE)
			continue;
		f.first_probe = (uint32_t)nprobes;
		nprobes = move_probes(t, nprobes, first, end);
		f.nprobes = (uint32_t)nprobes - f.first_probe;
		levels[n] = levels[i];
		t->function[i] = (uint32_t)n;
		p->functions[n++] = f;
	}
	p->nprobes = move_probes(t, nprobes, (uint32_t)none, (uint32_t)p->nprobes);
	p->nfunctions = n;
}

/* Does it name a probe? */
static bool names_probe(const struct plan_fixup *f)
{
	return f->kind == FIXUP_PROBE || f->kind == FIXUP_HOOK || f->kind == FIXUP_PLACE ||
	       f->kind == FIXUP_EVENT;
}

static void move_fixups(struct trimming *t, struct plan_site *s)
{
	struct plan_fixup *v = t->plan->fixups + s->first_fixup;
	uint32_t n = 0, left_out = 0;

	for (uint32_t i = 0; i < s->nfixups; i++) {
		uint8_t *code = t->plan->code + s->code + v[i].off - left_out;

		left_out += plan_code_left_out(&v[i]);
		if (v[i].kind == FIXUP_PROBE && t->probe[v[i].value] == NONE) {
			code[0] = 0xeb; /* jmp rel8 */
			code[1] = STUB_PROBE_LEN - 2;
		} else {
			v[n++] = v[i];
		}
	}
	s->nfixups = n;
}

static void move_sites(struct trimming *t, uint64_t *vaddr)
{
	struct plan *p = t->plan;
	size_t n = 0;

	for (size_t i = 0; i < p->nsites; i++) {
		vaddr[i] = p->sites[i].vaddr;
		t->site[i] = t->bound[i] ? (uint32_t)n : NONE;
		if (!t->bound[i])
			continue;
		p->sites[n] = p->sites[i];
		p->sites[n].function = t->function[p->sites[i].function];
		move_fixups(t, &p->sites[n++]);
	}
	p->nsites = n;
}

/* What leads to a site that is not there any more leads to the module. */
static void renumber_site(struct trimming *t, struct plan_fixup *f, const uint64_t *vaddr)
{
	bool chain = f->kind == FIXUP_CHAIN_REL32;
	uint32_t old = (uint32_t)(chain ? f->value : f->value >> 16);

	if (t->site[old] == NONE) {
		f->kind = FIXUP_MODULE_REL32;
		f->value = vaddr[old];
	} else if (chain) {
		f->value = t->site[old];
	} else {
		f->value = (uint64_t)t->site[old] << 16 | (f->value & 0xffff);
	}
}

static void renumber_fixup(struct trimming *t, struct plan_fixup *f, const uint64_t *vaddr)
{
	if (names_probe(f)) /* in the low half, all of them */
		f->value = (f->value & ~(uint64_t)UINT32_MAX) | t->probe[(uint32_t)f->value];
	else if (f->kind == FIXUP_SITE_REL32 || f->kind == FIXUP_CHAIN_REL32)
		renumber_site(t, f, vaddr);
}

/* vaddr: of the sites that there were. */
static void renumber(struct trimming *t, const uint64_t *vaddr)
{
	struct plan *plan = t->plan;

	for (size_t i = 0; i < plan->nprobes; i++) {
		struct plan_probe *p = &plan->probes[i];

		if (p->function != PLAN_NO_FUNCTION)
			p->function = t->function[p->function];
		if (p->site != NONE)
			p->site = t->site[p->site];
	}
	for (size_t i = 0; i < plan->nsites; i++)
		for (uint32_t k = 0; k < plan->sites[i].nfixups; k++)
			renumber_fixup(t, &plan->fixups[plan->sites[i].first_fixup + k], vaddr);
}

void patch_plan_trim(struct plan *p, const uint8_t *selected, uint8_t *levels)
{
	uint64_t *vaddr = xmalloc((p->nsites + 1) * sizeof(*vaddr));
	struct trimming t = {
		.plan = p,
		.selected = selected,
		.bound = xcalloc(p->nsites + 1, 1),
		.function = xmalloc(p->nfunctions * sizeof(uint32_t)),
		.site = xmalloc(p->nsites * sizeof(uint32_t)),
		.probe = xmalloc(p->nprobes * sizeof(uint32_t)),
	};

	plan_drop_jumps(p); /* they follow from the rest */
	choose_sites(&t);
	move_functions(&t, levels);
	move_sites(&t, vaddr);
	renumber(&t, vaddr);
	xfree(vaddr);
	xfree(t.bound);
	xfree(t.function);
	xfree(t.site);
	xfree(t.probe);
}
