/* SPDX-License-Identifier: MIT */
/* claims.c - see claims.h. */
#include "collect/modules/claims.h"

#include <string.h>

#include "collect/modules/settle.h"

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

bool claims_has_hook(const struct module *m, size_t function)
{
	const struct plan_function *f = &m->full->functions[function];

	for (uint32_t i = 0; i < f->nprobes; i++)
		if (m->full->probes[f->first_probe + i].kind == PROBE_HOOK)
			return true;
	return false;
}

uint8_t *claims_of_whole(const struct modules *branch, const struct module *m)
{
	const struct selection *s = branch->whole->selection;
	uint8_t *first = xcalloc(m->full->nfunctions + 1, 1);

	if (settle_wants_functions(s, m))
		selection_mark(s, m->full, m->path, first);
	return first;
}

/* By function: the selection means it, and the whole has nothing there, neither probes nor a hook; for xfree(). */
static uint8_t *wanted(const struct modules *branch, const struct module *m)
{
	uint8_t *mine = xcalloc(m->full->nfunctions + 1, 1), *first = claims_of_whole(branch, m);

	selection_mark(branch->selection, m->full, m->path, mine);
	for (size_t i = 0; i < m->full->nfunctions; i++)
		mine[i] = mine[i] && !first[i] && !claims_has_hook(m, i);
	xfree(first);
	return mine;
}

void claims_take(struct modules *branch, struct module *m)
{
	uint8_t *want = wanted(branch, m), *taken;

	pthread_mutex_lock(&branch->whole->lock);
	taken = claims_of(branch->whole, m);
	m->nselected = 0;
	for (size_t i = 0; i < m->full->nfunctions; i++) {
		m->selected[i] = want[i] && !taken[i];
		taken[i] |= m->selected[i];
		m->nselected += m->selected[i];
	}
	pthread_mutex_unlock(&branch->whole->lock);
	xfree(want);
}

static bool has_functions(const struct module *m)
{
	return m->full && m->settled && !m->patched;
}

void claims_release(struct modules *branch)
{
	pthread_mutex_lock(&branch->whole->lock);
	vec_for(&branch->all, p) {
		const struct module *m = *p;
		uint8_t *taken = has_functions(m) ? claims_of(branch->whole, m) : NULL;

		for (size_t i = 0; taken && i < m->full->nfunctions; i++)
			taken[i] &= !m->selected[i];
	}
	pthread_mutex_unlock(&branch->whole->lock);
}

/* What it had is free, and what others had is theirs still. */
static bool is_as_before(struct modules *branch, const struct module *m)
{
	uint8_t *want = wanted(branch, m);
	const uint8_t *taken = claims_of(branch->whole, m);
	bool same = true;

	for (size_t i = 0; i < m->full->nfunctions; i++)
		same = same && (!want[i] || taken[i] != m->selected[i]);
	xfree(want);
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
