/* SPDX-License-Identifier: MIT */
/* selection.h - which functions and which modules a recording is about: -F, -N and -L. */
#ifndef COLLECT_SELECTION_H
#define COLLECT_SELECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "probes/module_name.h"

struct plan;
struct plan_function;
struct probe_set;

struct globs {
	const char *const *v;
	size_t n;
	bool *found; /* by number: it has matched something; NULL: nobody asks */
};
/* Answers and plans are made by many threads. */
static inline bool globs_has_found(const struct globs *g, size_t i)
{
	return __atomic_load_n(&g->found[i], __ATOMIC_RELAXED);
}

/* -g: level[i] is that of what globs.v[i] matches; where several match, the last one's. */
struct level_globs {
	struct globs globs;
	const uint8_t *level;
	uint8_t others; /* what none of them matches */
	bool given;     /* there was a -g: a patched file's own levels do not count */
};

struct selection {
	struct globs only;      /* -F: empty means every function */
	struct globs except;    /* -N */
	struct globs libraries; /* -L: by file name, soname or path */
	struct level_globs levels;
	struct globs timed;             /* --timed: they read the clock each time */
	struct globs keep;              /* --keep: --budget does not take them out */
	const struct probe_set *probes; /* -p and -P; NULL: none */
	bool probes_only;               /* no functions beside them */
	bool calls;                     /* nothing is recorded: calls of functions are counted */
	uint32_t tactics;               /* enum tactic_switch; 0: the default */
	bool no_wait;                   /* what has no plan yet gets its probes while it runs */
};

/*
 * Is a function of this name selected?  For -F and -g its aliases (a line each) count as well.  For -N they
 * count only if given word for word: excluding '__*' is not meant to exclude free, which is also __libc_free.
 * Globs are tried on the whole name, on a C++ name without its arguments and return type
 * ("ns::Set<int>::insert(int) const" is also "ns::Set<int>::insert"), and on the symbol as it stands in the file.
 */
bool selection_has_function(const struct selection *s, const char *name, const char *raw,
			    const char *aliases);
/* May functions be probed where other modules call them?  Not in what runs already. */
bool selection_has_callsites(const struct selection *s);
bool selection_has_library(const struct selection *s, const struct module_name *m);
/* Are modules meant by names, so that their sonames matter? */
bool selection_names_modules(const struct selection *s);

/*
 * One byte a function of the plan: 1 = selected.  A function without a name is
 * "module+0x1234" to globs that have a "+0x", and to '*'.  Returns how many are selected.
 */
size_t selection_mark(const struct selection *s, const struct plan *plan, const char *path,
		      uint8_t *selected);

/* The same bytes, of -F GLOB alone; for xfree(). */
uint8_t *selection_meant(const char *glob, const struct plan *plan, const char *path);

/* Is this name, or one of the aliases, one of -F, word for word? */
bool selection_names(const struct selection *s, const char *name, const char *aliases);

/*
 * The alias by which -F means the function, for xfree(); *others: all of its names but that one, a
 * line each, likewise.  NULL: it is meant by its own name, or by none.
 */
char *selection_shown_name(const struct selection *s, const struct plan *plan,
			   const struct plan_function *f, char **others);

/* One byte a function of the plan: its filter level, by its name or by its module's. */
void selection_levels(const struct selection *s, const struct plan *plan,
		      const struct module_name *m, uint8_t *levels);
/* One byte a function of the plan: 1 = selected, and its name, or one of its aliases, matches a glob (--timed, --keep). */
void selection_mark_globs(const struct globs *g, const struct plan *plan, const char *path,
			  const uint8_t *selected, uint8_t *out);

#endif
