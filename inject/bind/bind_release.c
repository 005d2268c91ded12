/* SPDX-License-Identifier: MIT */
/*
 * bind_release.c - a bound module gives its code back: the patches that undo its patches, and a block
 * whose stubs lead back to the module.
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
#include "inject/plan/window.h"

struct kept {
	uint8_t *sites; /* one byte a site: it stays */
	VEC(size_t) list;
};

static void list_kept(struct kept *k, const struct plan *plan, const struct bound *bound)
{
	k->sites = xcalloc(plan->nsites + 1, 1);
	for (size_t i = 0; i < plan->nsites; i++)
		if (plan->sites[i].has_hook && bound->stub_at[i])
			bind_support(plan, k->sites, i);
	for (size_t i = 0; i < plan->nsites; i++)
		if (k->sites[i])
			*vec_push(&k->list) = i;
}

/* A byte of its windows, landings and relays. */
static bool is_byte_of(const struct plan *plan, const struct plan_site *s, uint64_t vaddr)
{
	if (vaddr - s->vaddr < s->window || (s->landing && vaddr - s->landing < PLAN_LANDING))
		return true;
	for (unsigned k = 0; k < s->nrelays; k++)
		if (vaddr - plan_relay_vaddr(plan, s, k) < PLAN_RELAY)
			return true;
	return false;
}

static bool is_kept(const struct plan *plan, const struct kept *k, uint64_t vaddr)
{
	for (size_t i = 0; i < k->list.n; i++)
		if (is_byte_of(plan, &plan->sites[k->list.v[i]], vaddr))
			return true;
	return false;
}

void bind_turn_round(struct kron_patch *p)
{
	uint8_t written[KRON_PATCH_NEW_MAX];

	memcpy(written, p->new_bytes, sizeof(written));
	memcpy(p->new_bytes, p->old_bytes, p->new_len);
	memcpy(p->old_bytes, written, p->new_len);
	p->old_len = p->new_len;
}

static void release_text(struct bound *out, const struct binding *b, const struct kept *kept)
{
	size_t n = 0;

	for (size_t i = 0; i < out->npatches; i++) {
		struct kron_patch p = out->patches[i];

		if (!p.new_len || is_kept(b->plan, kept, out->patch_addr + p.off - b->bias))
			continue;
		bind_turn_round(&p);
		out->patches[n++] = p;
	}
	out->npatches = n;
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
	struct kept kept = {0};

	list_kept(&kept, b->plan, out);
	release_text(out, b, &kept);
	for (size_t i = 0; i < b->plan->nsites; i++)
		if (out->stub_at[i] && !kept.sites[i])
			release_stub(out, b, i);
	xfree(kept.sites);
	vec_free(&kept.list);
}
