/* SPDX-License-Identifier: MIT */
/*
 * bind_release.c - a bound module gives its code back: the patches that undo its patches, and a block
 * whose stubs lead back to the module.  Or some of its code: which windows are needed, and which are not.
 *
 *   text    f: jmp stub        ─►  f: as it was
 *   block   stub: probe, ...   ─►  stub: jmp f        who comes from another stub
 *                 rest         ─►        rest         who is in it goes on as before
 *
 * Who has passed a stub's first instruction finds what was there before.  That may be code that a signal
 * handler has interrupted, and the handler is the one that asks.  So a stub whose first instruction
 * is shorter than the jump stays as it is; that of a probe is not.
 *
 * Hooks stay, and what they stand on: the runtime needs them.
 */
#include <string.h>

#include "base/vec.h"
#include "inject/bind/bind.h"
#include "inject/code/insn.h"
#include "inject/plan/action.h"
#include "inject/plan/window.h"

/* One byte a site: it stays. */
static uint8_t *mark_hooks(const struct plan *plan, const struct bound *bound)
{
	uint8_t *sites = xcalloc(plan->nsites + 1, 1);

	for (size_t i = 0; i < plan->nsites; i++)
		if (plan->sites[i].has_hook && bound->stub_at[i])
			bind_support(plan, sites, i);
	return sites;
}

/* ---- what is awake ---- */

static bool is_probe_awake(const struct binding *b, const struct plan_probe *p)
{
	return (p->kind == PROBE_PLACE || bind_is_selected(b, p->function)) && !bind_sleeps(b, p);
}

static bool is_fixup_awake(const struct binding *b, const struct plan_fixup *f)
{
	struct action_room room;

	switch (f->kind) {
	case FIXUP_HOOK:
	case FIXUP_PAGES:
		return true;
	case FIXUP_PROBE:
		return is_probe_awake(b, &b->plan->probes[f->value]);
	case FIXUP_PLACE:
		action_room_get(&room, f);
		return is_probe_awake(b, &b->plan->probes[room.probe]);
	default:
		return false;
	}
}

static bool is_site_awake(const struct binding *b, const struct plan_site *s)
{
	if (s->function == PLAN_NO_FUNCTION || b->whole)
		return true;
	for (uint32_t i = 0; i < s->nfixups; i++)
		if (is_fixup_awake(b, &b->plan->fixups[s->first_fixup + i]))
			return true;
	return false;
}

/* A function's windows stay or go together: ways into the middle of one may be displaced by another. */
static uint8_t *mark_awake(const struct binding *b, const struct bound *bound)
{
	const struct plan *plan = b->plan;
	uint8_t *functions = xcalloc(plan->nfunctions + 1, 1);
	uint8_t *sites = xcalloc(plan->nsites + 1, 1);

	for (size_t i = 0; i < plan->nsites; i++)
		if (bound->stub_at[i] && is_site_awake(b, &plan->sites[i]) &&
		    plan->sites[i].function < plan->nfunctions)
			functions[plan->sites[i].function] = true;
	for (size_t i = 0; i < plan->nsites; i++) {
		const uint32_t f = plan->sites[i].function;

		if (bound->stub_at[i] && (f >= plan->nfunctions || functions[f]))
			bind_support(plan, sites, i);
	}
	xfree(functions);
	return sites;
}

/* ---- whose patches are they? ---- */

size_t bind_count_patches(const struct plan_site *s)
{
	return (s->landing ? 1u + s->nrelays : 0u) +
	       (s->window + KRON_PATCH_OLD_MAX - 1) / KRON_PATCH_OLD_MAX;
}

/* One byte a patch, from one byte a site. */
static uint8_t *mark_patches(const struct bound *bound, const struct plan *plan,
			     const uint8_t *sites)
{
	uint8_t *out = xcalloc(bound->npatches + 1, 1);
	size_t at = 0;

	for (size_t i = 0; i < plan->nsites; i++) {
		const size_t n = bound->stub_at[i] ? bind_count_patches(&plan->sites[i]) : 0;

		memset(out + at, sites[i], n);
		at += n;
	}
	return out;
}

uint8_t *bind_awake(const struct bound *bound, const struct binding *b)
{
	uint8_t *sites = mark_awake(b, bound);
	uint8_t *out = mark_patches(bound, b->plan, sites);

	xfree(sites);
	return out;
}

/* ---- what takes all of it back ---- */

void bind_turn_round(struct kron_patch *p)
{
	uint8_t written[KRON_PATCH_NEW_MAX];

	memcpy(written, p->new_bytes, sizeof(written));
	memcpy(p->new_bytes, p->old_bytes, p->new_len);
	memcpy(p->old_bytes, written, p->new_len);
	p->old_len = p->new_len;
}

static void release_text(struct bound *out, const struct binding *b, const uint8_t *sites)
{
	uint8_t *stays = mark_patches(out, b->plan, sites);
	size_t n = 0;

	for (size_t i = 0; i < out->npatches; i++) {
		struct kron_patch p = out->patches[i];

		if (!p.new_len || stays[i])
			continue;
		bind_turn_round(&p);
		out->patches[n++] = p;
	}
	out->npatches = n;
	xfree(stays);
}

static void release_stub(struct bound *out, const struct binding *b, size_t i)
{
	const struct plan_site *s = &b->plan->sites[i];
	uint8_t *stub = out->block + out->stub_at[i];
	uint64_t at = b->block + out->stub_at[i];
	int32_t distance = (int32_t)(b->bias + s->vaddr - (at + WINDOW_JUMP));
	struct insn first;

	if (!insn_decode(&first, stub, s->code_len, at) || first.len < WINDOW_JUMP)
		return;
	stub[0] = 0xe9;
	memcpy(stub + 1, &distance, sizeof(distance));
}

void bind_release(struct bound *out, const struct binding *b)
{
	uint8_t *kept = mark_hooks(b->plan, out);

	release_text(out, b, kept);
	for (size_t i = 0; i < b->plan->nsites; i++)
		if (out->stub_at[i] && !kept[i])
			release_stub(out, b, i);
	xfree(kept);
}
