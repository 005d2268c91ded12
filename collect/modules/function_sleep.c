/* SPDX-License-Identifier: MIT */
/* function_sleep.c - see function_sleep.h. */
#include "collect/modules/function_sleep.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ruled: by function. */
static void apply(const struct module *m, const struct sleep_rule *r, uint8_t *ruled,
		  struct function_sleep *out)
{
	uint8_t *meant = selection_meant(r->glob, m->full, m->path);

	for (size_t i = 0; i < m->full->nfunctions; i++) {
		if (!meant[i] || !m->selected[i])
			continue;
		out->met++;
		if (m->patched || m->selected[i] != 1)
			out->stay++;
		else if (ruled[i] == r->wakes) {
			ruled[i] = !r->wakes;
			out->ruled++;
		}
	}
	xfree(meant);
}

/* Processes are being given them meanwhile. */
static void publish(struct module *m, struct function_sleep *out)
{
	struct sleepers *s = &m->probes.sleepers;
	const size_t before = out->turned.n;

	for (size_t i = 0; i < m->full->nfunctions; i++) {
		const bool sleeps = s->ruled[i] || s->held[i];

		if (sleeps == (s->functions[i] == PLACES_ASLEEP))
			continue;
		*vec_push(&out->turned) = m->event_base + (uint32_t)i;
		__atomic_store_n(&s->functions[i], sleeps ? PLACES_ASLEEP : PLACES_WOKEN,
				 __ATOMIC_RELAXED);
	}
	if (out->turned.n != before)
		__atomic_store_n(&s->has_slept, true, __ATOMIC_RELAXED);
}

static bool is_there(const struct module *m)
{
	return m->full && m->settled && m->probes.sleepers.functions;
}

struct turning {
	struct modules *ms;
	const struct sleep_rule *rule;
	const uint8_t *held;
	uint32_t n;
	struct function_sleep *out;
};

static void turn(void *ctx, struct module *m)
{
	const struct turning *t = ctx;

	if (!is_there(m))
		return;
	apply(m, t->rule, m->probes.sleepers.ruled, t->out);
	publish(m, t->out);
}

void function_sleep_add(struct modules *ms, const char *glob, bool wakes,
			struct function_sleep *out)
{
	struct sleep_rule rule = {xstrdup(glob), wakes, 0};
	struct turning t = {.rule = &rule, .out = out};

	memset(out, 0, sizeof(*out));
	pthread_mutex_lock(&ms->lock);
	rule.number = ++ms->last_sleep_rule;
	*vec_push(&ms->sleep_rules) = rule;
	pthread_mutex_unlock(&ms->lock);
	modules_each(ms, turn, &t);
}

void function_sleep_keep(struct modules *ms)
{
	size_t n = 0;

	pthread_mutex_lock(&ms->lock);
	for (size_t i = 0; i < ms->sleep_rules.n; i++) {
		struct sleep_rule *r = &ms->sleep_rules.v[i];

		if (i + 1 < ms->sleep_rules.n &&
		    !strcmp(r->glob, ms->sleep_rules.v[ms->sleep_rules.n - 1].glob))
			xfree(r->glob);
		else
			ms->sleep_rules.v[n++] = *r;
	}
	ms->sleep_rules.n = n;
	pthread_mutex_unlock(&ms->lock);
}

/* By all rules, from nothing. */
static void replay(struct modules *ms, struct module *m)
{
	struct function_sleep ignored = {0};

	memset(m->probes.sleepers.ruled, 0, m->full->nfunctions);
	pthread_mutex_lock(&ms->lock);
	vec_for(&ms->sleep_rules, r)
		if (r->number > m->probes.sleepers.spared)
			apply(m, r, m->probes.sleepers.ruled, &ignored);
	pthread_mutex_unlock(&ms->lock);
}

static void turn_back(void *ctx, struct module *m)
{
	const struct turning *t = ctx;

	if (!is_there(m))
		return;
	replay(t->ms, m);
	publish(m, t->out);
}

void function_sleep_undo(struct modules *ms)
{
	struct function_sleep ignored = {0};
	struct turning t = {.ms = ms, .out = &ignored};

	pthread_mutex_lock(&ms->lock);
	xfree(ms->sleep_rules.v[--ms->sleep_rules.n].glob);
	pthread_mutex_unlock(&ms->lock);
	modules_each(ms, turn_back, &t);
	function_sleep_clear(&ignored);
}

static void hold(void *ctx, struct module *m)
{
	const struct turning *t = ctx;

	if (!is_there(m))
		return;
	for (size_t i = 0; i < m->full->nfunctions; i++) {
		const uint32_t n = m->event_base + (uint32_t)i;

		m->probes.sleepers.held[i] = n < t->n && t->held[n];
	}
	publish(m, t->out);
}

void function_sleep_hold(struct modules *ms, const uint8_t *held, uint32_t n,
			 struct function_sleep *out)
{
	struct turning t = {.held = held, .n = n, .out = out};

	memset(out, 0, sizeof(*out));
	modules_each(ms, hold, &t);
}

static int by_number(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

char *function_sleep_text(struct function_sleep *s)
{
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return xstrdup("");
	if (s->turned.n)
		qsort(s->turned.v, s->turned.n, sizeof(*s->turned.v), by_number);
	for (size_t i = 0, last; i < s->turned.n; i = last + 1) {
		for (last = i; last + 1 < s->turned.n; last++)
			if (s->turned.v[last + 1] != s->turned.v[last] + 1)
				break;
		fprintf(f, "%s%u", i ? " " : "", s->turned.v[i]);
		if (last > i)
			fprintf(f, "-%u", s->turned.v[last]);
	}
	fclose(f);
	return text;
}

void function_sleep_clear(struct function_sleep *s)
{
	vec_free(&s->turned);
	s->turned.n = 0;
}

void function_sleep_settle(struct modules *ms, struct module *m)
{
	struct sleepers *s = &m->probes.sleepers;
	const size_t n = m->full->nfunctions;

	s->functions = xcalloc(n + 1, 1);
	s->held = xcalloc(n + 1, 1);
	s->ruled = xcalloc(n + 1, 1);
	replay(ms, m);
	for (size_t i = 0; i < n; i++) {
		s->functions[i] = s->ruled[i] ? PLACES_ASLEEP : PLACES_AWAKE;
		s->has_slept |= s->ruled[i];
	}
}

/* What a trigger waits for stays, with all that its module has. */
static void spare(struct modules *ms, struct module *m)
{
	struct sleepers *s = &m->probes.sleepers;

	pthread_mutex_lock(&ms->lock);
	s->spared = ms->last_sleep_rule;
	pthread_mutex_unlock(&ms->lock);
	memset(s->ruled, 0, m->full->nfunctions);
	memset(s->functions, PLACES_AWAKE, m->full->nfunctions);
	s->has_slept = false;
}

void function_sleep_numbered(struct modules *ms, struct module *m)
{
	struct function_sleep asleep = {0};
	char *text;

	for (size_t i = 0; i < m->full->nfunctions; i++)
		if (m->probes.sleepers.ruled[i])
			*vec_push(&asleep.turned) = m->event_base + (uint32_t)i;
	if (asleep.turned.n && ms->waits_for) {
		if (ms->waits_for(ms->sleep_ctx, asleep.turned.v, asleep.turned.n)) {
			spare(ms, m);
		} else {
			text = function_sleep_text(&asleep);
			ms->begin_asleep(ms->sleep_ctx, text);
			xfree(text);
		}
	}
	function_sleep_clear(&asleep);
}

void function_sleep_free(struct modules *ms)
{
	vec_for(&ms->sleep_rules, r)
		xfree(r->glob);
	vec_free(&ms->sleep_rules);
}
