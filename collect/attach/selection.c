/* SPDX-License-Identifier: MIT */
/* selection.c - see selection.h */
#include "collect/attach/selection.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/name_forms.h"
#include "inject/plan/plan.h"

static bool matches_any(const struct globs *g, const char *name)
{
	for (size_t i = 0; i < g->n; i++)
		if (!fnmatch(g->v[i], name, 0))
			return true;
	return false;
}

static bool matches_name(const struct globs *g, const char *name)
{
	struct name_forms forms;

	if (!g->n)
		return false;
	name_forms_make(&forms, name);
	for (unsigned i = 0; i < forms.n; i++)
		if (matches_any(g, forms.v[i]))
			return true;
	return false;
}

bool selection_has_function(const struct selection *s, const char *name, const char *raw)
{
	if (s->only.n && !matches_name(&s->only, name) && !matches_any(&s->only, raw))
		return false;
	return !matches_name(&s->except, name) && !matches_any(&s->except, raw);
}

/*
 * The stand-in name of a function that has none starts with its module's.  A glob for names,
 * like 'sqlite3*', must not catch every nameless function of /usr/bin/sqlite3; one that
 * spells the "+0x", or '*', means them.
 */
static bool matches_unnamed(const struct globs *g, const char *stand_in)
{
	for (size_t i = 0; i < g->n; i++)
		if ((!strcmp(g->v[i], "*") || strstr(g->v[i], "+0x")) &&
		    !fnmatch(g->v[i], stand_in, 0))
			return true;
	return false;
}

static bool selection_has_unnamed(const struct selection *s, const char *stand_in)
{
	if (s->only.n && !matches_unnamed(&s->only, stand_in))
		return false;
	return !matches_unnamed(&s->except, stand_in);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

bool selection_has_library(const struct selection *s, const char *path)
{
	return matches_any(&s->libraries, path) || matches_any(&s->libraries, base_name(path));
}

size_t selection_mark(const struct selection *s, const struct plan *plan, const char *path,
		      uint8_t *selected)
{
	bool all = !s->only.n && !s->except.n;
	char unnamed[300];
	size_t count = 0;

	for (size_t i = 0; i < plan->nfunctions; i++) {
		const struct plan_function *f = &plan->functions[i];
		const char *name = plan->strings + f->name;

		if (f->sources & FUNCTION_STUB)
			continue;
		if (all || name[0]) {
			selected[i] =
				all || selection_has_function(s, name, plan->strings + f->raw_name);
		} else {
			snprintf(unnamed, sizeof(unnamed), "%.200s+0x%" PRIx64, base_name(path),
				 f->vaddr);
			selected[i] = selection_has_unnamed(s, unnamed);
		}
		count += selected[i];
	}
	return count;
}

static uint8_t level_of(const struct selection *s, const struct plan_function *f, const char *name,
			const char *raw, const char *path)
{
	char unnamed[300];

	snprintf(unnamed, sizeof(unnamed), "%.200s+0x%" PRIx64, base_name(path), f->vaddr);
	for (size_t i = s->levels.n; i-- > 0;) {
		const struct globs one = {&s->levels.v[i], 1};

		if (matches_any(&one, path) || matches_any(&one, base_name(path)) ||
		    (name[0] ? matches_name(&one, name) || matches_any(&one, raw)
			     : matches_unnamed(&one, unnamed)))
			return s->levels.level[i];
	}
	return s->levels.others;
}

void selection_levels(const struct selection *s, const struct plan *plan, const char *path,
		      uint8_t *levels)
{
	for (size_t i = 0; i < plan->nfunctions; i++) {
		const struct plan_function *f = &plan->functions[i];

		levels[i] =
			level_of(s, f, plan->strings + f->name, plan->strings + f->raw_name, path);
	}
}

bool selection_names(const struct selection *s, const char *name)
{
	for (size_t i = 0; i < s->only.n; i++)
		if (!strcmp(s->only.v[i], name))
			return true;
	return false;
}
