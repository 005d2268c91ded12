/* SPDX-License-Identifier: MIT */
/*
 * trigger.c - see trigger.h.
 *
 *   met[k]: when the first k+1 steps were met last, in order and in time
 *
 * A sample that meets step k moves the time of the steps before it up to there.  Going from the
 * last step to the first, no sample counts for two steps.
 */
#include "trace/trigger.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct step {
	struct condition *condition;
	uint64_t within_ns; /* 0: no limit */
	uint64_t within;    /* in ticks of the trace's clock */
};

struct trigger {
	struct step steps[TRIGGER_STEPS];
	uint32_t nsteps;
	bool is_met[TRIGGER_STEPS];
	uint64_t met[TRIGGER_STEPS];
};

/* A number with a unit of time: its length, 0 if it is none. */
static size_t parse_time(const char *s, uint64_t *ns)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
	size_t n = strspn(s, "0123456789."), letters = 0;
	char *end;
	double v;

	if (!n || !isdigit((unsigned char)s[0]))
		return 0;
	v = strtod(s, &end);
	if ((size_t)(end - s) != n)
		return 0;
	while (isalpha((unsigned char)s[n + letters]))
		letters++;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strlen(units[i].name) != letters || strncmp(units[i].name, s + n, letters))
			continue;
		v *= units[i].ns;
		if (!(v >= 1 && v < 9e18))
			return 0;
		*ns = (uint64_t)llround(v);
		return n + letters;
	}
	return 0;
}

static int parse_within(struct step *step, const char *label, const char *text, size_t *at,
			struct err *err)
{
	size_t n;

	if (!condition_word(text, at, "within"))
		return 0;
	*at += strspn(text + *at, " \t\n");
	n = parse_time(text + *at, &step->within_ns);
	if (!n)
		return condition_error(err, label, text, *at,
				       "a time is wanted here: 500ns, 20us, 1.5ms, 2s");
	*at += n;
	return 0;
}

static int parse_steps(struct trigger *g, const char *label, const char *text, struct err *err)
{
	size_t at = 0;
	int ret;

	for (;;) {
		struct step *step = &g->steps[g->nsteps];
		size_t before;

		if (g->nsteps == TRIGGER_STEPS)
			return condition_error(err, label, text, at,
					       "more than %u steps: a trigger has no more",
					       TRIGGER_STEPS);
		ret = condition_parse(&step->condition, label, text, &at, err);
		if (ret)
			return ret;
		g->nsteps++;
		before = at;
		ret = parse_within(step, label, text, &at, err);
		if (ret)
			return ret;
		if (step->within_ns && g->nsteps == 1)
			return condition_error(err, label, text, before,
					       "the first step has none before it to be within "
					       "a time of");
		at += strspn(text + at, " \t\n");
		if (!text[at])
			return 0;
		if (!condition_word(text, &at, "then"))
			return condition_error(err, label, text, at,
					       "then, or the end is wanted here");
		at += strspn(text + at, " \t\n");
	}
}

int trigger_parse(struct trigger **out, const char *label, const char *text, struct err *err)
{
	struct trigger *g = xcalloc(1, sizeof(*g));
	int ret = parse_steps(g, label, text, err);

	if (ret)
		trigger_free(g);
	else
		*out = g;
	return ret;
}

void trigger_free(struct trigger *g)
{
	if (!g)
		return;
	for (uint32_t i = 0; i < g->nsteps; i++)
		condition_free(g->steps[i].condition);
	xfree(g);
}

void trigger_bind(struct trigger *g, const struct trace *t)
{
	for (uint32_t i = 0; i < g->nsteps; i++) {
		struct step *step = &g->steps[i];

		condition_bind(step->condition, t);
		step->within = (uint64_t)((double)step->within_ns * t->tsc_hz / 1e9);
	}
}

bool trigger_names_threads(const struct trigger *g)
{
	for (uint32_t i = 0; i < g->nsteps; i++)
		if (condition_names_threads(g->steps[i].condition))
			return true;
	return false;
}

static bool is_in_time(const struct trigger *g, uint32_t i, uint64_t tsc)
{
	const struct step *step = &g->steps[i];

	if (!i)
		return true;
	if (!g->is_met[i - 1])
		return false;
	if (!step->within_ns || tsc <= g->met[i - 1])
		return true;
	return tsc - g->met[i - 1] <= step->within;
}

bool trigger_feed(struct trigger *g, const struct trace_event *e)
{
	for (uint32_t i = g->nsteps; i-- > 0;) {
		if (!is_in_time(g, i, e->tsc) || !condition_holds(g->steps[i].condition, e))
			continue;
		if (i + 1 == g->nsteps) {
			memset(g->is_met, 0, sizeof(g->is_met));
			return true;
		}
		g->is_met[i] = true;
		g->met[i] = e->tsc;
	}
	return false;
}

int trigger_parse_span(struct trigger_span *out, const char *label, const char *text,
		       struct err *err)
{
	size_t n = strspn(text, "0123456789");

	memset(out, 0, sizeof(*out));
	if (n && n < 19 && !text[n]) {
		out->samples = strtoull(text, NULL, 10);
		return 0;
	}
	n = parse_time(text, &out->ns);
	if (n && !text[n])
		return 0;
	return err_set(err, EINVAL, "%s wants a number of samples or a time like 20us, not '%s'",
		       label, text);
}
