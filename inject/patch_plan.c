/* SPDX-License-Identifier: MIT */
/*
 * patch_plan.c - the plan of a file with probes in some of its functions only.
 *
 *   probes   entries and exits of the selected functions, all hooks and places
 *   sites    those of these probes, and those that they stand on (bind_support)
 *
 * Other probes in these sites go for good: their sequences become jumps over themselves.
 */
#include <string.h>

#include "base/vec.h"
#include "inject/action.h"
#include "inject/bind.h"
#include "inject/patch_info.h"
#include "inject/stub.h"

#define NONE UINT32_MAX

struct trimming {
	const struct plan *from;
	struct plan *to;
	const uint8_t *selected;
	uint8_t *bound;                    /* by site: stays */
	uint32_t *function, *site, *probe; /* new number, NONE: goes */
};

static void choose_sites(struct trimming *t)
{
	const struct plan *p = t->from;

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

static void copy_probes(struct trimming *t, uint32_t first, uint32_t n)
{
	for (uint32_t i = first; i < first + n; i++) {
		t->probe[i] = NONE;
		if (!stays(t, &t->from->probes[i]))
			continue;
		t->probe[i] = (uint32_t)t->to->nprobes;
		t->to->probes[t->to->nprobes++] = t->from->probes[i];
	}
}

static void copy_functions(struct trimming *t, uint8_t *levels)
{
	const struct plan *from = t->from;
	size_t i;

	for (i = 0; i < from->nfunctions; i++) {
		const struct plan_function *f = &from->functions[i];
		struct plan_function *copy = &t->to->functions[t->to->nfunctions];

		if (t->function[i] == NONE)
			continue;
		*copy = *f;
		copy->first_probe = (uint32_t)t->to->nprobes;
		copy_probes(t, f->first_probe, f->nprobes);
		copy->nprobes = (uint32_t)t->to->nprobes - copy->first_probe;
		levels[t->to->nfunctions] = levels[i];
		t->function[i] = (uint32_t)t->to->nfunctions++;
	}
	/* places of the request that are in no function: refused, and shown as such */
	for (i = from->nprobes; i > 0 && from->probes[i - 1].function == PLAN_NO_FUNCTION;)
		i--;
	copy_probes(t, (uint32_t)i, (uint32_t)(from->nprobes - i));
}

/* The number of the probe in a fixup that names one; NULL: it names none. */
static bool names_probe(const struct plan_fixup *f)
{
	return f->kind == FIXUP_PROBE || f->kind == FIXUP_HOOK || f->kind == FIXUP_PLACE ||
	       f->kind == FIXUP_EVENT;
}

static void copy_fixups(struct trimming *t, const struct plan_site *s, struct plan_site *copy)
{
	struct plan *to = t->to;

	copy->first_fixup = (uint32_t)to->nfixups;
	for (uint32_t i = 0; i < s->nfixups; i++) {
		const struct plan_fixup *f = &t->from->fixups[s->first_fixup + i];
		uint8_t *code = to->code + copy->code + f->off;

		if (f->kind == FIXUP_PROBE && t->probe[f->value] == NONE) {
			code[0] = 0xeb; /* jmp rel8 */
			code[1] = STUB_PROBE_LEN - 2;
		} else {
			to->fixups[to->nfixups++] = *f;
		}
	}
	copy->nfixups = (uint32_t)to->nfixups - copy->first_fixup;
}

static void copy_site(struct trimming *t, const struct plan_site *s)
{
	struct plan *to = t->to;
	struct plan_site *copy = &to->sites[to->nsites++];
	size_t len = (size_t)s->code_len + s->window;

	*copy = *s;
	copy->function = t->function[s->function];
	copy->code = (uint32_t)to->code_len;
	memcpy(to->code + to->code_len, t->from->code + s->code, len);
	to->code_len += len;
	copy_fixups(t, s, copy);
	copy->first_map = (uint32_t)to->nmaps;
	memcpy(to->maps + to->nmaps, t->from->maps + s->first_map, s->nmaps * sizeof(*to->maps));
	to->nmaps += s->nmaps;
}

static void copy_sites(struct trimming *t)
{
	for (size_t i = 0; i < t->from->nsites; i++) {
		t->site[i] = t->bound[i] ? (uint32_t)t->to->nsites : NONE;
		if (t->bound[i])
			copy_site(t, &t->from->sites[i]);
	}
}

/* What leads to a site that is not there any more leads to the module. */
static void renumber_site(struct trimming *t, struct plan_fixup *f)
{
	bool chain = f->kind == FIXUP_CHAIN_REL32;
	uint32_t old = (uint32_t)(chain ? f->value : f->value >> 16);

	if (t->site[old] == NONE) {
		f->kind = FIXUP_MODULE_REL32;
		f->value = t->from->sites[old].vaddr;
	} else if (chain) {
		f->value = t->site[old];
	} else {
		f->value = (uint64_t)t->site[old] << 16 | (f->value & 0xffff);
	}
}

static void renumber(struct trimming *t)
{
	struct plan *to = t->to;

	for (size_t i = 0; i < to->nprobes; i++) {
		struct plan_probe *p = &to->probes[i];

		if (p->function != PLAN_NO_FUNCTION)
			p->function = t->function[p->function];
		if (p->site != NONE)
			p->site = t->site[p->site];
	}
	for (size_t i = 0; i < to->nfixups; i++) {
		struct plan_fixup *f = &to->fixups[i];

		if (names_probe(f)) /* in the low half, all of them */
			f->value =
				(f->value & ~(uint64_t)UINT32_MAX) | t->probe[(uint32_t)f->value];
		else if (f->kind == FIXUP_SITE_REL32 || f->kind == FIXUP_CHAIN_REL32)
			renumber_site(t, f);
	}
}

static void *copy_of(const void *v, size_t n)
{
	void *copy = xmalloc(n);

	if (n)
		memcpy(copy, v, n);
	return copy;
}

static struct plan *plan_with_room(const struct plan *p)
{
	struct plan *to = xcalloc(1, sizeof(*to));

	memcpy(to->build_id, p->build_id, sizeof(to->build_id));
	to->build_id_len = p->build_id_len;
	to->text_lo = p->text_lo, to->text_hi = p->text_hi;
	to->reach_lo = p->reach_lo, to->reach_hi = p->reach_hi;
	to->functions = xmalloc(p->nfunctions * sizeof(*p->functions));
	to->probes = xmalloc(p->nprobes * sizeof(*p->probes));
	to->sites = xmalloc(p->nsites * sizeof(*p->sites));
	to->fixups = xmalloc(p->nfixups * sizeof(*p->fixups));
	to->maps = xmalloc(p->nmaps * sizeof(*p->maps));
	to->code = xmalloc(p->code_len);
	to->actions = copy_of(p->actions, p->nactions * sizeof(*p->actions));
	to->nactions = p->nactions;
	to->strings = copy_of(p->strings, p->strings_len);
	to->strings_len = p->strings_len;
	return to;
}

struct plan *patch_plan_trim(const struct plan *p, const uint8_t *selected, uint8_t *levels)
{
	struct trimming t = {
		.from = p,
		.to = plan_with_room(p),
		.selected = selected,
		.bound = xcalloc(p->nsites + 1, 1),
		.function = xmalloc(p->nfunctions * sizeof(uint32_t)),
		.site = xmalloc(p->nsites * sizeof(uint32_t)),
		.probe = xmalloc(p->nprobes * sizeof(uint32_t)),
	};

	choose_sites(&t);
	copy_functions(&t, levels);
	copy_sites(&t);
	renumber(&t);
	xfree(t.bound);
	xfree(t.function);
	xfree(t.site);
	xfree(t.probe);
	return t.to;
}
