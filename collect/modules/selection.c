/* SPDX-License-Identifier: MIT */
/* selection.c - see selection.h */
#include "collect/modules/selection.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/name_forms.h"
#include "base/str.h"
#include "base/vec.h"
#include "inject/plan/plan.h"
#include "inject/plan/callsite.h"
#include "probes/probe.h"

static void note_found(const struct globs *g, size_t i)
{
	if (g->found && !globs_has_found(g, i))
		__atomic_store_n(&g->found[i], true, __ATOMIC_RELAXED);
}

/* With g->found all are tried, so that each has its due. */
static bool matches_any(const struct globs *g, const char *name)
{
	bool yes = false;

	for (size_t i = 0; i < g->n && (!yes || g->found); i++) {
		if (fnmatch(g->v[i], name, 0))
			continue;
		yes = true;
		note_found(g, i);
	}
	return yes;
}

static bool matches_name(const struct globs *g, const char *name)
{
	struct name_forms forms;
	bool yes = false;

	if (!g->n)
		return false;
	name_forms_make(&forms, name);
	for (unsigned i = 0; i < forms.n; i++)
		yes |= matches_any(g, forms.v[i]);
	return yes;
}

static bool is_word(const struct globs *g, const char *name)
{
	for (size_t i = 0; i < g->n; i++)
		if (!strcmp(g->v[i], name))
			return true;
	return false;
}

typedef bool match_fn(const struct globs *g, const char *name);

static bool matches_alias(const struct globs *g, const char *aliases, match_fn *match)
{
	bool yes = false;
	char *alias;

	while (g->n && (!yes || g->found) && (alias = name_forms_next(&aliases))) {
		yes |= match(g, alias);
		xfree(alias);
	}
	return yes;
}

/* All of its names are asked, so that each glob has its due; its aliases by match(). */
static bool matches_function(const struct globs *g, const char *name, const char *raw,
			     const char *aliases, match_fn *match)
{
	bool yes = matches_name(g, name);

	yes |= matches_any(g, raw);
	yes |= matches_alias(g, aliases, match);
	return yes;
}

static bool has_word(const struct globs *g, const char *name)
{
	bool yes = false;

	for (size_t i = 0; i < g->n; i++) {
		if (strcmp(g->v[i], name))
			continue;
		yes = true;
		note_found(g, i);
	}
	return yes;
}

bool selection_has_function(const struct selection *s, const char *name, const char *raw,
			    const char *aliases)
{
	const bool is_meant =
		matches_function(&s->only, name, raw, aliases, matches_name) || !s->only.n;

	return !matches_function(&s->except, name, raw, aliases, has_word) && is_meant;
}

/*
 * The stand-in name of a function that has none starts with its module's.  A glob for names,
 * like 'sqlite3*', must not catch every nameless function of /usr/bin/sqlite3; one that
 * spells the "+0x", or '*', means them.
 */
static bool matches_unnamed(const struct globs *g, const char *stand_in)
{
	bool yes = false;

	for (size_t i = 0; i < g->n && (!yes || g->found); i++) {
		const struct globs one = {&g->v[i], 1, g->found ? g->found + i : NULL};

		if (!strcmp(g->v[i], "*") || strstr(g->v[i], "+0x"))
			yes |= matches_any(&one, stand_in);
	}
	return yes;
}

#define UNNAMED 300

static const char *stand_in(char text[UNNAMED], const struct plan_function *f, const char *path)
{
	snprintf(text, UNNAMED, "%.200s+0x%" PRIx64, str_base_name(path), f->vaddr);
	return text;
}

static bool selection_has_unnamed(const struct selection *s, const char *stand_in)
{
	const bool is_meant = matches_unnamed(&s->only, stand_in) || !s->only.n;

	return !matches_unnamed(&s->except, stand_in) && is_meant;
}

bool selection_has_callsites(const struct selection *s)
{
	return callsite_is_on(s->tactics) && !s->no_wait;
}

static bool matches_module(const struct globs *g, const struct module_name *m)
{
	const char *names[MODULE_NAMES];
	const unsigned n = module_name_forms(m, names);
	bool yes = false;

	for (unsigned i = 0; i < n; i++)
		yes |= matches_any(g, names[i]);
	return yes;
}

bool selection_has_library(const struct selection *s, const struct module_name *m)
{
	return matches_module(&s->libraries, m);
}

bool selection_names_modules(const struct selection *s)
{
	return s->libraries.n || probe_set_names_modules(s->probes);
}

size_t selection_mark(const struct selection *s, const struct plan *plan, const char *path,
		      uint8_t *selected)
{
	bool all = !s->only.n && !s->except.n;
	char unnamed[UNNAMED];
	size_t count = 0;

	for (size_t i = 0; i < plan->nfunctions; i++) {
		const struct plan_function *f = &plan->functions[i];
		const char *name = plan->strings + f->name;

		if (f->sources & FUNCTION_STUB)
			continue;
		if (all || name[0]) {
			selected[i] =
				all || selection_has_function(s, name, plan->strings + f->raw_name,
							      plan->strings + f->aliases);
		} else {
			selected[i] = selection_has_unnamed(s, stand_in(unnamed, f, path));
		}
		count += selected[i];
	}
	return count;
}

/* By its name or one of its aliases; without a name, by its stand-in. */
static bool is_function_in(const struct globs *g, const struct plan *plan,
			   const struct plan_function *f, const char *path)
{
	const char *name = plan->strings + f->name;
	char unnamed[UNNAMED];

	return name[0] ? matches_function(g, name, plan->strings + f->raw_name,
					  plan->strings + f->aliases, matches_name)
		       : matches_unnamed(g, stand_in(unnamed, f, path));
}

/* All are asked, so that each has its due. */
static uint8_t level_of(const struct selection *s, const struct plan *plan,
			const struct plan_function *f, const struct module_name *m)
{
	const struct level_globs *l = &s->levels;
	uint8_t level = l->others;

	for (size_t i = 0; i < l->globs.n; i++) {
		const struct globs one = {&l->globs.v[i], 1,
					  l->globs.found ? l->globs.found + i : NULL};

		if (matches_module(&one, m) || is_function_in(&one, plan, f, m->path))
			level = l->level[i];
	}
	return level;
}

void selection_levels(const struct selection *s, const struct plan *plan,
		      const struct module_name *m, uint8_t *levels)
{
	for (size_t i = 0; i < plan->nfunctions; i++)
		levels[i] = level_of(s, plan, &plan->functions[i], m);
}

void selection_mark_globs(const struct globs *g, const struct plan *plan, const char *path,
			  const uint8_t *selected, uint8_t *out)
{
	for (size_t i = 0; i < plan->nfunctions; i++)
		out[i] = selected[i] && is_function_in(g, plan, &plan->functions[i], path);
}

uint8_t *selection_meant(const char *glob, const struct plan *plan, const char *path)
{
	const struct selection one = {.only = {.v = &glob, .n = 1}};
	uint8_t *meant = xcalloc(plan->nfunctions + 1, 1);

	selection_mark(&one, plan, path, meant);
	return meant;
}

bool selection_names(const struct selection *s, const char *name, const char *aliases)
{
	return is_word(&s->only, name) || matches_alias(&s->only, aliases, is_word);
}

/* The lines of aliases, with `name` in place of the first that is `but`. */
static char *other_names(const char *aliases, const char *but, const char *name)
{
	char *line, *all = NULL;

	while ((line = name_forms_next(&aliases))) {
		const char *put = but && !strcmp(line, but) ? name : line;
		char *more = all ? xasprintf("%s\n%s", all, put) : xstrdup(put);

		if (put == name)
			but = NULL;
		xfree(all);
		xfree(line);
		all = more;
	}
	return all;
}

char *selection_shown_name(const struct selection *s, const struct plan *plan,
			   const struct plan_function *f, char **others)
{
	const char *name = plan->strings + f->name, *rest = plan->strings + f->aliases;
	char *alias;

	if (!f->aliases || !s->only.n || matches_name(&s->only, name) ||
	    matches_any(&s->only, plan->strings + f->raw_name))
		return NULL;
	while ((alias = name_forms_next(&rest))) {
		if (matches_name(&s->only, alias)) {
			*others = other_names(plan->strings + f->aliases, alias, name);
			return alias;
		}
		xfree(alias);
	}
	return NULL;
}
