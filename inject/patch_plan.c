/* SPDX-License-Identifier: MIT */
/*
 * patch_plan.c - the plan of a file with probes in some of its functions only.
 *
 * All sites of a function stay or go together: jumps from stub to stub never leave it.
 */
#include <string.h>

#include "base/vec.h"
#include "inject/patch_info.h"

#define NONE UINT32_MAX

struct trimming {
	const struct plan *from;
	struct plan *to;
	uint32_t *function; /* new number of a function, NONE: goes */
	uint32_t *site, *probe;
};

static bool has_hooks(const struct plan *p, const struct plan_function *f)
{
	for (uint32_t i = 0; i < f->nprobes; i++)
		if (p->probes[f->first_probe + i].kind == PROBE_HOOK)
			return true;
	return false;
}

static void copy_functions(struct trimming *t, const uint8_t *selected, uint8_t *levels)
{
	for (size_t i = 0; i < t->from->nfunctions; i++) {
		const struct plan_function *f = &t->from->functions[i];
		struct plan_function *copy;

		t->function[i] = NONE;
		if (!selected[i] && !has_hooks(t->from, f))
			continue;
		t->function[i] = (uint32_t)t->to->nfunctions;
		levels[t->to->nfunctions] = levels[i];
		copy = &t->to->functions[t->to->nfunctions++];
		*copy = *f;
		copy->first_probe = (uint32_t)t->to->nprobes;
		for (uint32_t k = 0; k < f->nprobes; k++) {
			t->probe[f->first_probe + k] = (uint32_t)t->to->nprobes;
			t->to->probes[t->to->nprobes++] = t->from->probes[f->first_probe + k];
		}
	}
	/* places of the request that are in no function: refused, and shown as such */
	for (size_t i = 0; i < t->from->nprobes; i++)
		if (t->from->probes[i].function == PLAN_NO_FUNCTION) {
			t->probe[i] = (uint32_t)t->to->nprobes;
			t->to->probes[t->to->nprobes++] = t->from->probes[i];
		}
}

static void copy_site(struct trimming *t, const struct plan_site *s)
{
	struct plan *to = t->to;
	struct plan_site *copy = &to->sites[to->nsites++];

	*copy = *s;
	copy->function = t->function[s->function];
	copy->code = (uint32_t)to->code_len;
	memcpy(to->code + to->code_len, t->from->code + s->code, (size_t)s->code_len + s->window);
	to->code_len += s->code_len + s->window;
	copy->first_fixup = (uint32_t)to->nfixups;
	memcpy(to->fixups + to->nfixups, t->from->fixups + s->first_fixup,
	       s->nfixups * sizeof(*to->fixups));
	to->nfixups += s->nfixups;
	copy->first_map = (uint32_t)to->nmaps;
	memcpy(to->maps + to->nmaps, t->from->maps + s->first_map, s->nmaps * sizeof(*to->maps));
	to->nmaps += s->nmaps;
}

static void copy_sites(struct trimming *t)
{
	for (size_t i = 0; i < t->from->nsites; i++) {
		const struct plan_site *s = &t->from->sites[i];

		t->site[i] = NONE;
		if (t->function[s->function] == NONE)
			continue;
		t->site[i] = (uint32_t)t->to->nsites;
		copy_site(t, s);
	}
}

/* To another function's site, perhaps, which is not there any more. */
static void renumber_chain(struct trimming *t, struct plan_fixup *f)
{
	const struct plan_site *s = &t->from->sites[f->value];

	f->value = t->site[f->value];
	if (f->value == NONE) {
		f->kind = FIXUP_MODULE_REL32;
		f->value = s->vaddr;
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

		if (f->kind == FIXUP_PROBE || f->kind == FIXUP_HOOK)
			f->value = t->probe[f->value];
		if (f->kind == FIXUP_SITE_REL32)
			f->value = (uint64_t)t->site[f->value >> 16] << 16 | (f->value & 0xffff);
		if (f->kind == FIXUP_CHAIN_REL32)
			renumber_chain(t, f);
	}
}

static void *copy_of(const void *v, size_t n)
{
	void *copy = xmalloc(n);

	if (n)
		memcpy(copy, v, n);
	return copy;
}

struct plan *patch_plan_trim(const struct plan *p, const uint8_t *selected, uint8_t *levels)
{
	struct plan *to = xcalloc(1, sizeof(*to));
	struct trimming t = {
		.from = p,
		.to = to,
		.function = xmalloc(p->nfunctions * sizeof(uint32_t)),
		.site = xmalloc(p->nsites * sizeof(uint32_t)),
		.probe = xmalloc(p->nprobes * sizeof(uint32_t)),
	};

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
	copy_functions(&t, selected, levels);
	copy_sites(&t);
	renumber(&t);
	xfree(t.function);
	xfree(t.site);
	xfree(t.probe);
	return to;
}
