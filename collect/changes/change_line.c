/* SPDX-License-Identifier: MIT */
/* change_line.c - see change_line.h. */
#include "collect/changes/change_line.h"

#include <inttypes.h>

void change_line_head(FILE *out)
{
	fprintf(out, "%-20s %5s %7s %11s  SPEC\n", "NAME", "GROUP", "PLACES", "SINCE");
}

static void show_json(struct json *j, const struct change_line *s)
{
	json_open(j, '{');
	json_kstr(j, "name", s->name);
	json_kstr(j, "spec", s->spec);
	json_kstr(j, "module", s->module);
	json_ku64(j, "group", s->level);
	json_ku64(j, "places", s->places);
	json_key(j, "since_s");
	json_f64(j, (double)s->since_ns / 1e9);
	if (s->waits)
		json_kstr(j, "waits_for", s->waits);
	json_close(j, '}');
}

static void show_line(FILE *out, const struct change_line *s)
{
	const char *where = s->waits ? s->waits : s->module;
	const char *how = s->waits ? "  waits for " : "  in ";

	fprintf(out, "%-20s %5u %7" PRIu64 " %9.3f s  %s%s%s\n", s->name, s->level, s->places,
		(double)s->since_ns / 1e9, s->spec, *where ? how : "", where);
}

void change_line_show(const struct change_line *s, FILE *out, struct json *j)
{
	if (j)
		show_json(j, s);
	else
		show_line(out, s);
}
