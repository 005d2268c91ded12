/* SPDX-License-Identifier: MIT */
/* claims.c - see claims.h. */
#include "collect/modules/claims.h"

#include <string.h>

#include "collect/modules/settle.h"
#include "inject/bind/bind.h"

/* Under the whole's lock.  Plans for functions alone have the same functions in all branches. */
static uint8_t *claims_of(struct modules *whole, const struct module *m)
{
	struct claimed *c;

	vec_for(&whole->claims, old)
		if (old->nfunctions == m->full->nfunctions &&
		    !memcmp(&old->file, &m->file, sizeof(old->file)))
			return old->taken;
	c = vec_push(&whole->claims);
	*c = (struct claimed){m->file, m->full->nfunctions, xcalloc(m->full->nfunctions + 1, 1)};
	return c->taken;
}

/*
 * No branch can trace it: the runtime is called there, and the place is taken; or it chooses another function when the
 * program starts (IFUNC), and the one that is called in the end is meant.
 */
static bool is_out(const struct module *m, size_t function)
{
	const struct plan_function *f = &m->full->functions[function];

	if (f->sources & FUNCTION_IFUNC)
		return true;
	for (uint32_t i = 0; i < f->nprobes; i++)
		if (m->full->probes[f->first_probe + i].kind == PROBE_HOOK)
			return true;
	return false;
}

/* By function: the selection means it, of this branch or of the whole; for xfree(). */
static uint8_t *meant_by(const struct selection *s, const struct module *m)
{
	uint8_t *meant = xcalloc(m->full->nfunctions + 1, 1);

	if (settle_wants_functions(s, m))
		selection_mark(s, m->full, m->path, meant);
	return meant;
}

/*
 * By site: the code there may be changed already, for a function that is traced, as room for another's short jump, or
 * for a hook; for xfree().
 */
static uint8_t *changed_sites(const struct module *m, const uint8_t *first, const uint8_t *taken)
{
	const struct plan *plan = m->full;
	uint8_t *changed = xcalloc(plan->nsites + 1, 1);

	for (size_t i = 0; i < plan->nsites; i++) {
		const struct plan_site *s = &plan->sites[i];

		if (s->has_hook || taken[s->function] || first[s->function])
			bind_support(plan, changed, i);
	}
	return changed;
}

/* A function whose probes would need such a site is not chosen: two blocks cannot have it. */
static void leave_out_changed(const struct plan *plan, const uint8_t *changed, uint8_t *chosen)
{
	for (size_t i = 0; i < plan->nsites; i++) {
		const uint32_t f = plan->sites[i].function;

		if (chosen[f])
			chosen[f] = !bind_support_meets(plan, changed, i);
	}
}

/* By function: what the branch would trace now; under the whole's lock; for xfree(). */
static uint8_t *choose(const struct modules *branch, const struct module *m, const uint8_t *taken)
{
	uint8_t *chosen = meant_by(branch->selection, m);
	uint8_t *first = meant_by(branch->whole->selection, m);
	uint8_t *changed = changed_sites(m, first, taken);

	for (size_t i = 0; i < m->full->nfunctions; i++)
		chosen[i] = chosen[i] && !first[i] && !taken[i] && !is_out(m, i);
	xfree(first);
	leave_out_changed(m->full, changed, chosen);
	xfree(changed);
	return chosen;
}

void claims_take(struct modules *branch, struct module *m)
{
	uint8_t *chosen, *taken;

	pthread_mutex_lock(&branch->whole->lock);
	taken = claims_of(branch->whole, m);
	chosen = choose(branch, m, taken);
	m->nselected = 0;
	for (size_t i = 0; i < m->full->nfunctions; i++) {
		m->selected[i] = chosen[i];
		m->nselected += chosen[i];
		taken[i] |= chosen[i];
	}
	pthread_mutex_unlock(&branch->whole->lock);
	xfree(chosen);
}

void claims_count(struct modules *branch, const struct module *m, struct claims_count *out)
{
	uint8_t *meant = meant_by(branch->selection, m);
	uint8_t *first = meant_by(branch->whole->selection, m), *taken;

	pthread_mutex_lock(&branch->whole->lock);
	taken = claims_of(branch->whole, m);
	for (size_t i = 0; i < m->full->nfunctions; i++) {
		out->whole += meant[i] && first[i];
		out->meant += meant[i] && !first[i];
		out->cannot += meant[i] && !first[i] && !m->selected[i] && !taken[i];
	}
	out->selected += m->nselected;
	pthread_mutex_unlock(&branch->whole->lock);
	xfree(first);
	xfree(meant);
}

static bool has_functions(const struct module *m)
{
	return m->full && m->settled && !m->patched;
}

/* Under the whole's lock. */
static void give_back(struct modules *branch, const struct module *m)
{
	uint8_t *taken = claims_of(branch->whole, m);

	for (size_t i = 0; i < m->full->nfunctions; i++)
		taken[i] &= !m->selected[i];
}

void claims_drop(struct modules *branch, struct module *m)
{
	pthread_mutex_lock(&branch->whole->lock);
	give_back(branch, m);
	memset(m->selected, 0, m->full->nfunctions);
	m->nselected = 0;
	pthread_mutex_unlock(&branch->whole->lock);
}

void claims_release(struct modules *branch)
{
	pthread_mutex_lock(&branch->whole->lock);
	vec_for(&branch->all, m)
		if (has_functions(*m))
			give_back(branch, *m);
	pthread_mutex_unlock(&branch->whole->lock);
}

/* What it would trace now is what it traced then. */
static bool is_as_before(struct modules *branch, const struct module *m)
{
	uint8_t *chosen = choose(branch, m, claims_of(branch->whole, m));
	const bool same = !memcmp(chosen, m->selected, m->full->nfunctions);

	xfree(chosen);
	return same;
}

bool claims_retake(struct modules *branch)
{
	bool same = true;

	pthread_mutex_lock(&branch->whole->lock);
	vec_for(&branch->all, m)
		same = same && (!has_functions(*m) || is_as_before(branch, *m));
	vec_for(&branch->all, p) {
		const struct module *m = *p;
		uint8_t *taken = same && has_functions(m) ? claims_of(branch->whole, m) : NULL;

		for (size_t i = 0; taken && i < m->full->nfunctions; i++)
			taken[i] |= m->selected[i];
	}
	pthread_mutex_unlock(&branch->whole->lock);
	return same;
}

void claims_free(struct modules *whole)
{
	vec_for(&whole->claims, c)
		xfree(c->taken);
	vec_free(&whole->claims);
}
