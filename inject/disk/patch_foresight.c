/* SPDX-License-Identifier: MIT */
/* patch_foresight.c - what writer and reader of a description both expect to come next. */
#include <string.h>

#include "inject/plan/action.h"
#include "base/search.h"
#include "inject/disk/patch_info_impl.h"

bool patch_is_foreseen(const struct patch_foresight *next, const struct plan_probe *p)
{
	const struct plan_probe *last = &next->probe;

	return p->kind == last->kind && p->hook == last->hook && p->where == last->where &&
	       p->action == last->action && p->event == last->event + next->event_step;
}

void patch_foresee_probe(struct patch_foresight *next, const struct plan_probe *p, unsigned way,
			 uint8_t what)
{
	uint32_t site = way == PROBE_SITE_NONE ? next->probe.site : p->site;

	next->event_step = p->event - next->probe.event;
	next->probe = *p;
	next->probe.site = site;
	next->what[way] = what;
}

/* The probe and the cold part are each one's own; the bank follows from the place. */
uint64_t patch_fixup_key(const struct plan_fixup *f)
{
	uint64_t times = f->kind == FIXUP_PLACE ? f->value >> 48 : 0;
	uint64_t aux = f->kind == FIXUP_PLACE ? f->aux & ~ACTION_BANK_BITS : 0;
	uint64_t hot = f->kind == FIXUP_PLACE ? f->addend : 0;

	return f->kind | times << 4 | hot << 20 | aux << 28;
}

unsigned patch_find_key(const struct patch_foresight *next, uint64_t key)
{
	unsigned i = 0;

	while (i < next->nkeys && next->keys[i] != key)
		i++;
	return i;
}

void patch_note_key(struct patch_foresight *next, uint64_t key)
{
	if (next->nkeys < PATCH_KEYS && patch_find_key(next, key) == next->nkeys)
		next->keys[next->nkeys++] = key;
}

uint64_t patch_sum(const uint8_t *p, size_t n, uint64_t sum)
{
	for (size_t i = 0; i < n; i++)
		sum = (sum ^ p[i]) * 0x100000001b3;
	return sum;
}

uint64_t patch_old_sum(const struct plan *p)
{
	uint64_t sum = PATCH_SUM_START;

	for (size_t i = 0; i < p->nsites; i++) {
		const struct plan_site *s = &p->sites[i];

		sum = patch_sum(plan_old_bytes(p, s), s->window, sum);
		sum = patch_sum(s->landing_bytes, s->landing ? PLAN_LANDING : 0, sum);
		for (unsigned k = 0; k < s->nrelays; k++)
			sum = patch_sum(plan_relay(p, s, k).bytes, PLAN_RELAY, sum);
	}
	return sum;
}

static const struct plan_function *function_before(const struct plan_function *v, size_t n,
						   uint64_t vaddr)
{
	size_t lo = partition_point(i, n, v[i].vaddr <= vaddr);

	return lo ? &v[lo - 1] : NULL;
}

const char *patch_name_like(const struct plan_function *v, size_t n, const char *strings,
			    uint64_t vaddr, const char *last)
{
	const struct plan_function *f = function_before(v, n, vaddr);

	/* what is too long for the description is not the same when it is read */
	if (!f || !strings[f->name] ||
	    strnlen(strings + f->raw_name, NAME_MAX_LEN) >= NAME_MAX_LEN - 1)
		return last;
	return strings + f->name;
}
