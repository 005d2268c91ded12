/* SPDX-License-Identifier: MIT */
/*
 * export_folded.c - one line a way: "main;parse;read 1234", self time in nanoseconds.
 *
 * Semicolons and spaces separate, so in names they become ':' and '_'.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdlib.h>

#include "trace/analysis/calltree.h"
#include "trace/export/export.h"
#include "trace/text.h"

struct names {    /* as they are written: deep ways have the same ones again and again */
	char **v; /* by function, NULL: not needed yet */
	uint32_t limit;
};

static char *make_name(const struct trace *t, uint32_t function)
{
	char buf[32], *name = text_shown(text_function(t, function, buf, sizeof(buf)));

	for (char *s = name; *s; s++)
		*s = *s == ';' ? ':' : *s == ' ' ? '_' : *s;
	return name;
}

static void put_name(struct names *names, const struct trace *t, uint32_t function, FILE *out)
{
	char *unknown;

	if (function < names->limit) {
		if (!names->v[function])
			names->v[function] = make_name(t, function);
		fputs_unlocked(names->v[function], out);
		return;
	}
	unknown = make_name(t, function);
	fputs_unlocked(unknown, out);
	free(unknown);
}

static void names_free(struct names *names)
{
	for (uint32_t i = 0; i < names->limit; i++)
		free(names->v[i]);
	xfree(names->v);
}

void export_folded(const struct trace *t, FILE *out)
{
	struct names names = {.limit = trace_function_limit(t)};
	VEC(uint32_t) way = {0};
	struct calltree c;

	names.v = xcalloc(names.limit, sizeof(*names.v));
	calltree_build(&c, t);
	for (size_t i = 0; i < c.nodes.n; i++) {
		uint64_t ns = trace_ns(t, c.nodes.v[i].self);

		if (!ns)
			continue;
		way.n = 0;
		for (uint32_t at = (uint32_t)i; at != CALLTREE_ROOT; at = c.nodes.v[at].parent)
			*vec_push(&way) = c.nodes.v[at].function;
		while (way.n) {
			put_name(&names, t, way.v[--way.n], out);
			putc_unlocked(way.n ? ';' : ' ', out);
		}
		fprintf(out, "%" PRIu64 "\n", ns);
	}
	vec_free(&way);
	names_free(&names);
	calltree_free(&c);
}
