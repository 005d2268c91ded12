/* SPDX-License-Identifier: MIT */
/* report_changes.c - see report_changes.h. */
#include "trace/report/report_changes.h"

#include <string.h>

#include "trace/text.h"

/* After the recording's begin. */
static double seconds_at(const struct trace *t, uint64_t tsc)
{
	return tsc > t->start_tsc && t->tsc_hz > 0 ? (double)(tsc - t->start_tsc) / t->tsc_hz : 0;
}

/* It was planned while it ran: kron record --no-wait. */
static bool is_module(const struct trace_change *c)
{
	return !*c->spec;
}

static const char *word_of(const struct trace_change *c)
{
	return c->comes ? "added" : "removed";
}

/* ---- groups ---- */

static void put_groups(const struct trace *t, FILE *out)
{
	char text[TEXT_GROUPS];

	if (trace_groups_off(t))
		fprintf(out, "\n%14s  %-7s  %s\n", "At", "Turned", "Groups");
	for (size_t i = 0; i < t->nsleeps; i++)
		if (t->sleeps[i].of_groups)
			fprintf(out, "+%11.6f s  %-7s  %s\n", seconds_at(t, t->sleeps[i].until),
				t->sleeps[i].wakes ? "on" : "off",
				text_groups(text, sizeof(text), trace_sleep_groups(&t->sleeps[i])));
}

static void json_groups(struct json *j, const struct trace *t)
{
	json_key(j, "group_changes");
	json_open(j, '[');
	for (size_t i = 0; i < t->nsleeps; i++) {
		const struct trace_sleep *s = &t->sleeps[i];

		if (!s->of_groups)
			continue;
		json_open(j, '{');
		json_key(j, "at_s");
		json_f64(j, seconds_at(t, s->until));
		json_kstr(j, "what", s->wakes ? "on" : "off");
		json_key(j, "groups");
		json_open(j, '[');
		for (uint64_t g = 0; g < KRON_LEVELS; g++)
			if (trace_sleep_groups(s) >> g & 1)
				json_u64(j, g);
		json_close(j, ']');
		json_close(j, '}');
	}
	json_close(j, ']');
}

/* ---- all ---- */

void report_changes_put(const struct trace *t, FILE *out)
{
	if (t->nchanges)
		fprintf(out, "\n%14s  %-7s  %s\n", "At", "Probe", "SPEC");
	for (size_t i = 0; i < t->nchanges; i++) {
		const struct trace_change *c = &t->changes[i];

		if (is_module(c)) {
			fprintf(out, "+%11.6f s  %-7s  the functions of ", seconds_at(t, c->tsc),
				"late");
			text_put(out, c->name);
			fputc('\n', out);
			continue;
		}
		fprintf(out, "+%11.6f s  %-7s  ", seconds_at(t, c->tsc), word_of(c));
		text_put(out, c->spec);
		fputc('\n', out);
	}
	put_groups(t, out);
}

void report_changes_json(struct json *j, const struct trace *t)
{
	json_key(j, "probe_changes");
	json_open(j, '[');
	for (size_t i = 0; i < t->nchanges; i++) {
		const struct trace_change *c = &t->changes[i];

		if (is_module(c))
			continue;
		json_open(j, '{');
		json_key(j, "at_s");
		json_f64(j, seconds_at(t, c->tsc));
		json_kstr(j, "what", word_of(c));
		json_kstr(j, "name", c->name);
		json_kstr(j, "spec", c->spec);
		json_ku64(j, "places", c->places);
		json_close(j, '}');
	}
	json_close(j, ']');
	json_key(j, "late_modules");
	json_open(j, '[');
	for (size_t i = 0; i < t->nchanges; i++) {
		const struct trace_change *c = &t->changes[i];

		if (!is_module(c))
			continue;
		json_open(j, '{');
		json_kstr(j, "path", c->name);
		json_key(j, "at_s");
		json_f64(j, seconds_at(t, c->tsc));
		json_close(j, '}');
	}
	json_close(j, ']');
	json_groups(j, t);
}
