/* SPDX-License-Identifier: MIT */
/* first_probes.c - see first_probes.h. */
#include "collect/changes/first_probes.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "collect/changes/change_line.h"
#include "collect/changes/turn.h"
#include "collect/modules/place_sleep.h"

static const struct probe_set *set_of(const struct changes *all)
{
	return all->modules->selection->probes;
}

static size_t count(const struct changes *all)
{
	return set_of(all) ? set_of(all)->specs.n : 0;
}

static bool sleeps(const struct changes *all, size_t i)
{
	return __atomic_load_n(&all->modules->asleep[i], __ATOMIC_RELAXED) == PLACES_ASLEEP;
}

static const char *name_of(const struct probe_spec *s)
{
	return s->event ? s->event : s->text;
}

/* [EVENT=]WORDS */
static char *whole_of(const struct probe_spec *s)
{
	if (!s->event && s->has_number)
		return xasprintf("%" PRIu32 "=%s", s->number, s->words);
	return s->event ? xasprintf("%s=%s", s->event, s->words) : xstrdup(s->words);
}

static bool is_called(const struct probe_spec *s, const char *name)
{
	char *whole = whole_of(s);
	const bool is = !strcmp(name_of(s), name) || !strcmp(s->text, name) ||
			!strcmp(s->words, name) || !strcmp(whole, name);

	xfree(whole);
	return is;
}

static bool is_meant(const struct changes *all, size_t i, const char *name)
{
	return !sleeps(all, i) && is_called(&set_of(all)->specs.v[i], name);
}

bool first_probes_has(const struct changes *all, const char *name)
{
	for (size_t i = 0; i < count(all); i++)
		if (is_meant(all, i, name))
			return true;
	return false;
}

static uint64_t places_of(struct changes *all, size_t i)
{
	uint64_t n;

	pthread_mutex_lock(&all->modules->lock);
	n = all->modules->results.v[i].places;
	pthread_mutex_unlock(&all->modules->lock);
	return n;
}

/* Its calls are probed in other modules. */
static bool has_callsites(struct changes *all, size_t spec)
{
	bool found = false;

	pthread_mutex_lock(&all->modules->lock);
	vec_for(&all->modules->all, m)
		vec_for(&(*m)->probes.found.callsites, c)
			found |= c->spec == spec;
	pthread_mutex_unlock(&all->modules->lock);
	return found;
}

struct question_of_sleep {
	uint32_t spec;
	bool can;
};

static void ask(void *ctx, struct module *m)
{
	struct question_of_sleep *q = ctx;

	q->can &= place_sleep_can(m, q->spec);
}

static bool can_sleep(struct changes *all, size_t spec)
{
	struct question_of_sleep q = {(uint32_t)spec, true};

	modules_each(all->modules, ask, &q);
	return q.can;
}

static int check(struct changes *all, size_t i, struct err *err)
{
	const struct probe_spec *s = &set_of(all)->specs.v[i];

	if (s->kind == SPEC_PAGES || s->place == SPEC_USDT || has_callsites(all, i))
		return err_set(err, ENOTSUP,
			       "the probe %s was given at the start, and is of a kind that stays "
			       "(`kron ctl off GROUP` switches groups off)",
			       name_of(s));
	if (!can_sleep(all, i))
		return err_set(err, ENOTSUP,
			       "the probe %s was given at the start, and is counted together with "
			       "others at the same place: it stays",
			       name_of(s));
	return 0;
}

static int turn(struct changes *all, size_t i, uint8_t becomes, struct err *err)
{
	const struct probe_spec *s = &set_of(all)->specs.v[i];
	uint8_t *state = &all->modules->asleep[i];
	const uint8_t was = *state;
	char *whole = whole_of(s);
	const struct change_note n = {name_of(s), whole, places_of(all, i),
				      becomes == PLACES_WOKEN};
	int code;

	__atomic_store_n(state, becomes, __ATOMIC_RELAXED);
	code = turn_all(all, err);
	if (code) {
		__atomic_store_n(state, was == PLACES_AWAKE ? PLACES_WOKEN : was, __ATOMIC_RELAXED);
		turn_back(all);
	} else {
		all->note(all->note_ctx, &n);
	}
	xfree(whole);
	return code;
}

/* Several may have one event: all of them. */
int first_probes_remove(struct changes *all, const char *name, struct err *err)
{
	int code = 0;
	size_t i;

	for (i = 0; i < count(all) && !code; i++)
		if (is_meant(all, i, name))
			code = check(all, i, err);
	for (i = 0; i < count(all) && !code; i++)
		if (is_meant(all, i, name))
			code = turn(all, i, PLACES_ASLEEP, err);
	return code;
}

static bool is_same(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

int first_probes_wake(struct changes *all, const struct probe_spec *like, struct err *err)
{
	for (size_t i = 0; i < count(all); i++) {
		const struct probe_spec *s = &set_of(all)->specs.v[i];

		if (sleeps(all, i) && !strcmp(s->words, like->words) &&
		    is_same(s->event, like->event) && s->level == like->level &&
		    s->has_number == like->has_number && s->number == like->number)
			return turn(all, i, PLACES_WOKEN, err);
	}
	return FIRST_PROBES_NONE;
}

static void show(struct changes *all, size_t i, FILE *out, struct json *j)
{
	const struct probe_spec *s = &set_of(all)->specs.v[i];
	char *whole = whole_of(s);
	const struct change_line v = {.name = name_of(s),
				      .spec = whole,
				      .module = "",
				      .level = s->level,
				      .places = places_of(all, i)};

	change_line_show(&v, out, j);
	xfree(whole);
}

void first_probes_list(struct changes *all, FILE *out, struct json *j)
{
	for (size_t i = 0; i < count(all); i++)
		if (!sleeps(all, i))
			show(all, i, out, j);
}
