/* SPDX-License-Identifier: MIT */
/* resolve_lines.c - lines of a source, wherever they became code. */
#include <stdio.h>

#include "inject/resolve/resolve_impl.h"

static void note_no_line(struct resolver *r, const struct line_places *found, const char *file,
			 unsigned line)
{
	char around[96] = "";

	if (lines_broken(r->lines)) /* which resolve_one() says */
		return;
	if (found->unreadable) {
		resolver_note(
			r, true,
			"the debug information of %s is damaged: the lines of %u part%s of it "
			"cannot be read, and %s:%u is in none of the others",
			r->path, found->unreadable, found->unreadable == 1 ? "" : "s", file, line);
		return;
	}
	if (!found->has_file) {
		resolver_note(r, true, "%s was not made from a source called %s", r->path, file);
		return;
	}
	if (found->before && found->next)
		snprintf(around, sizeof(around), "; those around it that have are %u and %u",
			 found->before, found->next);
	else if (found->before || found->next)
		snprintf(around, sizeof(around), "; the nearest that has is %u",
			 found->before ? found->before : found->next);
	resolver_note(r, true, "line %u of %s has no code%s", line, file, around);
}

static void add_line(struct resolver *r, const struct line_place *place, unsigned line)
{
	char suffix[32];

	snprintf(suffix, sizeof(suffix), ":%u%s", line, r->spec->after ? "%after" : "");
	resolver_add(r, place->vaddr, r->spec->after ? PLACE_AFTER : PLACE_BEFORE, suffix);
}

void lines_in_source(struct resolver *r)
{
	struct lines *l = resolver_lines(r);
	unsigned line = (unsigned)r->spec->offset;
	struct line_places found;

	if (!l) {
		resolver_note(r, true, "%s: %s", r->path, r->no_lines.msg);
		return;
	}
	if (r->spec->offset > UINT32_MAX) {
		resolver_note(r, true, "no source has that many lines");
		return;
	}
	lines_find(l, r->spec->source, line, &found);
	vec_for(&found.v, p)
		add_line(r, p, line);
	if (!found.v.n)
		note_no_line(r, &found, r->spec->source, line);
	vec_free(&found.v);
}

static bool is_in_function(const struct resolver *r, uint32_t function, uint64_t vaddr)
{
	for (uint32_t i = function; i != UINT32_MAX; i = r->next_part[i])
		if (vaddr >= r->fns->v[i].start && vaddr < r->fns->v[i].end)
			return true;
	return false;
}

/* FUNC:LINE counts from the line where the function is defined, as perf does. */
void lines_in_function(struct resolver *r, uint32_t function)
{
	struct lines *l = resolver_lines(r);
	struct line_places found;
	const char *file;
	unsigned first;
	size_t before = r->out->places.n;

	if (!r->spec->offset) {
		resolver_add(r, r->fns->v[function].start, PLACE_BEFORE, "");
		return;
	}
	if (!l) {
		resolver_note(r, true, "%s: %s", r->path, r->no_lines.msg);
		return;
	}
	if (!lines_function(l, r->fns->v[function].start, &file, &first) ||
	    r->spec->offset > UINT32_MAX - first) {
		if (!lines_broken(l))
			resolver_note(r, true,
				      "the debug information does not say where the function is "
				      "defined");
		return;
	}
	lines_find(l, file, first + (unsigned)r->spec->offset, &found);
	vec_for(&found.v, p)
		if (is_in_function(r, function, p->vaddr))
			add_line(r, p, first + (unsigned)r->spec->offset);
	if (before == r->out->places.n)
		note_no_line(r, &found, file, first + (unsigned)r->spec->offset);
	vec_free(&found.v);
}
