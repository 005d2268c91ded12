/* SPDX-License-Identifier: MIT */
/*
 * export_folded.c - one line a way: "main;parse;read 1234", self time in nanoseconds.
 *
 * Semicolons and spaces separate, so in names they become ':' and '_'.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdlib.h>

#include "trace/calltree.h"
#include "trace/export.h"
#include "trace/text.h"

static void put_name(const struct trace *t, uint32_t function, FILE *out)
{
	char *name = NULL;
	size_t size;
	FILE *f = open_memstream(&name, &size);

	if (!f)
		return;
	text_put_function(f, t, function);
	fclose(f);
	for (const char *s = name; *s; s++)
		putc(*s == ';' ? ':' : *s == ' ' ? '_' : *s, out);
	free(name);
}

void export_folded(const struct trace *t, FILE *out)
{
	VEC(uint32_t) way = {0};
	struct calltree c;

	calltree_build(&c, t);
	for (size_t i = 0; i < c.nodes.n; i++) {
		uint64_t ns = trace_ns(t, c.nodes.v[i].self);

		if (!ns)
			continue;
		way.n = 0;
		for (uint32_t at = (uint32_t)i; at != CALLTREE_ROOT; at = c.nodes.v[at].parent)
			*vec_push(&way) = c.nodes.v[at].function;
		while (way.n) {
			put_name(t, way.v[--way.n], out);
			putc(way.n ? ';' : ' ', out);
		}
		fprintf(out, "%" PRIu64 "\n", ns);
	}
	vec_free(&way);
	calltree_free(&c);
}
