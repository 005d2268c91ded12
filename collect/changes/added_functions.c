/* SPDX-License-Identifier: MIT */
/* added_functions.c - see added_functions.h. */
#include "collect/changes/added_functions.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "collect/changes/function_probes.h"
#include "collect/modules/claims.h"

/* ---- which ---- */

static bool is_glob(const char *s)
{
	return strpbrk(s, "*?[");
}

/* "-F GLOB -L LIBRARY": as it is listed. */
static char *name_of(const struct change *c, size_t own)
{
	char *name = xasprintf("-F %s", c->globs.v[0]);

	for (size_t i = 1; i < own; i++) {
		char *more = xasprintf("%s -L %s", name, c->globs.v[i]);

		xfree(name);
		name = more;
	}
	return name;
}

static void split(struct change *c, const char *words)
{
	c->words = xstrdup(words);
	for (char *line = c->words, *end; line; line = end) {
		end = strchr(line, '\n');
		if (end)
			*end++ = 0;
		*vec_push(&c->globs) = line;
	}
}

/* -N was said of what -F means in general: who names a function wants it. */
static struct selection selection_of(const struct change *c, const struct selection *whole)
{
	struct selection s = {.only = {.v = c->globs.v, .n = 1},
			      .libraries = {.v = c->globs.v + 1, .n = c->globs.n - 1},
			      .levels = whole->levels,
			      .timed = whole->timed};

	if (is_glob(c->globs.v[0]))
		s.except = whole->except;
	return s;
}

int added_functions_read(struct change *c, const struct changes *all, const char *words,
			 struct err *err)
{
	const struct selection *whole = all->modules->selection;
	size_t own;

	if (whole->calls)
		return err_set(err, ENOTSUP,
			       "this recorder counts calls, of what it chose at its start");
	split(c, words);
	own = c->globs.n;
	vec_add(&c->globs, whole->libraries.v, whole->libraries.n);
	c->text = name_of(c, own);
	c->name = xstrdup(c->text);
	c->selection = selection_of(c, whole);
	return 0;
}

/* ---- which of them does a glob mean? ---- */

struct meant {
	const char *glob;
	size_t meant, all;
};

static void count(void *ctx, struct module *m)
{
	struct meant *c = ctx;
	uint8_t *meant;

	if (!m->nselected)
		return;
	meant = selection_meant(c->glob, m->full, m->path);
	for (size_t i = 0; i < m->full->nfunctions; i++) {
		c->all += m->selected[i];
		c->meant += m->selected[i] && meant[i];
	}
	xfree(meant);
}

enum added_functions_meant added_functions_meant(struct change *c, const char *glob)
{
	struct meant n = {.glob = glob};

	if (!c->words || !c->is_there)
		return ADDED_FUNCTIONS_NONE;
	if (!strcmp(c->globs.v[0], glob))
		return ADDED_FUNCTIONS_ALL;
	modules_each(&c->modules, count, &n);
	if (n.meant && n.meant == n.all)
		return ADDED_FUNCTIONS_ALL;
	return n.meant ? ADDED_FUNCTIONS_SOME : ADDED_FUNCTIONS_NONE;
}

/* ---- what the trace is told ---- */

static void list_selected(void *ctx, struct module *m)
{
	struct function_sleep *out = ctx;

	for (size_t i = 0; m->recorded && i < m->full->nfunctions; i++)
		if (m->selected[i])
			*vec_push(&out->turned) = m->event_base + (uint32_t)i;
}

void added_functions_note(struct change *c, struct changes *all, uint64_t since, bool comes)
{
	struct function_sleep s = {0};

	modules_each(&c->modules, list_selected, &s);
	function_probes_note(all, since, all->now(all->note_ctx), comes, false, &s);
	function_sleep_clear(&s);
}

/* Nobody has seen them from the recording's begin till now. */
static void numbered(void *ctx, struct module *m)
{
	struct change *c = ctx;
	struct changes *all = c->changes;
	const uint64_t now = all->now(all->note_ctx);
	struct function_sleep s = {0};
	bool is_placed;

	pthread_mutex_lock(&all->lock);
	is_placed = c->is_placed;
	pthread_mutex_unlock(&all->lock);
	list_selected(&s, m);
	function_probes_note(all, all->begin, all->begin, false, false, &s);
	if (is_placed)
		function_probes_note(all, now, now, true, false, &s);
	function_sleep_clear(&s);
}

void added_functions_prepare(struct change *c, struct changes *all)
{
	c->changes = all;
	c->modules.numbered = numbered;
	c->modules.numbered_ctx = c;
}

/* ---- what may be wrong ---- */

int added_functions_check_waiting(struct change *c, struct changes *all, struct err *err)
{
	struct function_sleep s = {0};
	int code;

	modules_each(&c->modules, list_selected, &s);
	code = function_probes_check_waiting(all, &s, c->globs.v[0], err);
	function_sleep_clear(&s);
	return code;
}

#define CANNOT                                                                                                      \
	"their code is changed already (for hooks of kron's, or as room for other probes), or another function is " \
	"chosen when the program starts (IFUNC)"

struct counting {
	struct modules *of;
	struct claims_count n;
};

static void count_claims(void *ctx, struct module *m)
{
	struct counting *c = ctx;

	if (m->full && m->settled)
		claims_count(c->of, m, &c->n);
}

static struct claims_count count_all(struct change *c)
{
	struct counting all = {.of = &c->modules};

	modules_each(&c->modules, count_claims, &all);
	return all.n;
}

/* Also those that -N excludes. */
static void count_meant(void *ctx, struct module *m)
{
	struct meant *c = ctx;
	uint8_t *meant;

	if (!m->full || !m->settled)
		return;
	meant = selection_meant(c->glob, m->full, m->path);
	for (size_t i = 0; i < m->full->nfunctions; i++)
		c->meant += meant[i];
	xfree(meant);
}

int added_functions_explain(struct change *c, struct err *err)
{
	const char *glob = c->globs.v[0];
	const struct claims_count n = count_all(c);
	struct meant all = {.glob = glob};

	if (n.selected)
		return err_set(err, ENOTSUP,
			       "no function that %s means can be probed; `kron list` says why",
			       glob);
	if (n.cannot)
		return err_set(err, ENOTSUP, "%s cannot be added: " CANNOT, glob);
	if (n.whole || n.meant)
		return err_set(err, EEXIST,
			       "all that %s means is traced already, or cannot be probed (`kron "
			       "list` says why)",
			       glob);
	modules_each(&c->modules, count_meant, &all);
	if (all.meant)
		return err_set(err, ENOENT,
			       "all that %s means is excluded by -N: give a function's whole name",
			       glob);
	return err_set(err, ENOENT,
		       "%s is no function of the program, nor of the libraries that are traced; -L "
		       "names others",
		       glob);
}

void added_functions_say_rest(struct change *c, struct err *err)
{
	const struct claims_count n = count_all(c);

	if (n.cannot)
		err_set(err, 0, "%" PRIu64 " of %" PRIu64 " functions are not added: " CANNOT,
			n.cannot, n.meant);
}
