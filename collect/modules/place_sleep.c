/* SPDX-License-Identifier: MIT */
/* place_sleep.c - see place_sleep.h. */
#include "collect/modules/place_sleep.h"

#include <stdlib.h>

#include "base/search.h"
#include "inject/plan/action.h"

/* Sorted by place; those of one place by spec. */
struct place_owner {
	struct place_request place;
	uint32_t spec;
};

static struct place_request place_of(const struct plan_probe *p)
{
	return (struct place_request){
		.vaddr = p->vaddr, .where = p->where, .action = p->action, .event = p->event};
}

static int compare_places(const struct place_request *a, const struct place_request *b)
{
	if (a->vaddr != b->vaddr)
		return a->vaddr < b->vaddr ? -1 : 1;
	if (a->where != b->where)
		return a->where < b->where ? -1 : 1;
	if (a->action != b->action)
		return a->action < b->action ? -1 : 1;
	return a->event < b->event ? -1 : a->event > b->event;
}

static int compare_owners(const void *a, const void *b)
{
	const struct place_owner *x = a, *y = b;
	const int order = compare_places(&x->place, &y->place);

	return order ? order : x->spec < y->spec ? -1 : x->spec > y->spec;
}

static struct place_owner *list_owners(const struct resolution *found)
{
	struct place_owner *v = xmalloc((found->places.n + 1) * sizeof(*v));
	size_t k = 0;

	for (size_t i = 0; i < found->ends.n; i++)
		for (; k < found->ends.v[i]; k++)
			v[k] = (struct place_owner){found->places.v[k], (uint32_t)i};
	qsort(v, k, sizeof(*v), compare_owners);
	return v;
}

/* Made when somebody asks first: most recordings put nothing to sleep, and there may be many places. */
static const struct place_owner *owners_of(struct sleepers *s)
{
	struct place_owner *v = __atomic_load_n(&s->owners, __ATOMIC_ACQUIRE), *made;

	if (v)
		return v;
	made = list_owners(s->found);
	if (__atomic_compare_exchange_n(&s->owners, &v, made, false, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE))
		return made;
	xfree(made); /* another thread was faster */
	return v;
}

static bool is_asleep(const uint8_t *state)
{
	return __atomic_load_n(state, __ATOMIC_RELAXED) == PLACES_ASLEEP;
}

static bool is_any_asleep(const struct sleepers *s)
{
	for (size_t i = 0; s->asleep && i < s->found->ends.n; i++)
		if (is_asleep(&s->asleep[i]))
			return true;
	return false;
}

/* The first that has the place, or one that comes later. */
static size_t first_owner(const struct place_owner *v, size_t n, const struct place_request *place)
{
	return partition_point(i, n, compare_places(&v[i].place, place) < 0);
}

static bool do_all_sleep(struct sleepers *s, const struct place_request *place)
{
	const struct place_owner *v = owners_of(s);
	const size_t n = s->found->places.n, first = first_owner(v, n, place);
	size_t i = first;

	while (i < n && !compare_places(&v[i].place, place) && is_asleep(&s->asleep[v[i].spec]))
		i++;
	return i > first && (i == n || compare_places(&v[i].place, place));
}

bool module_probes_sleep(void *ctx, const struct plan_probe *p)
{
	struct sleepers *s = ctx;
	const struct place_request place = place_of(p);

	if (p->kind == PROBE_ENTRY || p->kind == PROBE_EXIT)
		return s->functions && is_asleep(&s->functions[p->function]);
	return p->kind == PROBE_PLACE && is_any_asleep(s) && do_all_sleep(s, &place);
}

static bool is_owned_by(struct sleepers *s, const struct plan_probe *p, uint32_t spec)
{
	const struct place_owner *v = owners_of(s);
	const struct place_request place = place_of(p);
	const size_t n = s->found->places.n;
	size_t i = first_owner(v, n, &place);

	while (i < n && !compare_places(&v[i].place, &place) && v[i].spec != spec)
		i++;
	return i < n && !compare_places(&v[i].place, &place);
}

/* One byte a probe: it has a sequence of its own. */
static uint8_t *mark_own(const struct plan *plan)
{
	uint8_t *own = xcalloc(plan->nprobes + 1, 1);
	struct action_room room;

	for (size_t i = 0; i < plan->nfixups; i++) {
		if (plan->fixups[i].kind != FIXUP_PLACE)
			continue;
		action_room_get(&room, &plan->fixups[i]);
		own[room.probe] = room.times <= 1;
	}
	return own;
}

bool place_sleep_can(struct module *m, uint32_t spec)
{
	struct sleepers *s = &m->probes.sleepers;
	const struct plan *plan = m->full;
	uint8_t *own;
	bool can = true;

	if (!plan || !s->asleep || m->patched)
		return true;
	own = mark_own(plan);
	for (size_t i = 0; i < plan->nprobes && can; i++)
		can = plan->probes[i].kind != PROBE_PLACE || plan->probes[i].site == UINT32_MAX ||
		      own[i] || !is_owned_by(s, &plan->probes[i], spec);
	xfree(own);
	return can;
}
