/* SPDX-License-Identifier: MIT */
/* report_changes.c - see report_changes.h. */
#include "trace/report/report_changes.h"

#include <string.h>

#include "trace/text.h"

/* After the recording's begin. */
static double seconds_of(const struct trace *t, const struct trace_change *c)
{
	return c->tsc > t->start_tsc && t->tsc_hz > 0 ? (double)(c->tsc - t->start_tsc) / t->tsc_hz
						      : 0;
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

void report_changes_put(const struct trace *t, FILE *out)
{
	if (t->nchanges)
		fprintf(out, "\n%14s  %-7s  %s\n", "At", "Probe", "SPEC");
	for (size_t i = 0; i < t->nchanges; i++) {
		const struct trace_change *c = &t->changes[i];

		if (is_module(c)) {
			fprintf(out, "+%11.6f s  %-7s  the functions of ", seconds_of(t, c),
				"late");
			text_put(out, c->name);
			fputc('\n', out);
			continue;
		}
		fprintf(out, "+%11.6f s  %-7s  ", seconds_of(t, c), word_of(c));
		text_put(out, c->spec);
		fputc('\n', out);
	}
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
		json_f64(j, seconds_of(t, c));
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
		json_f64(j, seconds_of(t, c));
		json_close(j, '}');
	}
	json_close(j, ']');
}
