/* SPDX-License-Identifier: MIT */
/*
 * jumps.c - see jumps.h.
 *
 * Where a jump leads by name, every function of the trace that is called so, or exported under that
 * name, may be meant: which of them the dynamic linker took differs between processes.
 */
#define _GNU_SOURCE
#include "trace/jumps.h"
#include "base/search.h"

#include <stdlib.h>
#include <string.h>

#include "trace/names.h"
#include "trace/reader_impl.h"
#include "trace/rows.h"
#include "trace/text.h"

/* ---- the table ---- */

struct numbered_jump {
	struct trace_jump jump;
	uint32_t j;
};

static int by_j(const void *a, const void *b)
{
	const struct numbered_jump *x = a, *y = b;

	return x->j < y->j ? -1 : x->j > y->j;
}

static void free_texts(struct trace_jump *jump)
{
	xfree(jump->name);
	xfree(jump->shown);
}

/* Numbers that are far apart must be garbage: as with functions. */
static size_t drop_far(struct trace *t, struct numbered_jump *v, size_t n)
{
	while (n && v[n - 1].j >> 24 > n >> 21) {
		free_texts(&v[--n].jump);
		t->damaged++;
	}
	return n;
}

/* By number; of several rows of one number any may count. */
static void keep_rows(struct trace *t, struct numbered_jump *v, size_t n)
{
	if (n)
		qsort(v, n, sizeof(*v), by_j);
	n = drop_far(t, v, n);
	if (!n)
		return;
	t->njumps = v[n - 1].j + 1ul;
	t->jumps = xcalloc(t->njumps, sizeof(*t->jumps));
	for (size_t j = 0; j < t->njumps; j++)
		t->jumps[j].function = UINT32_MAX;
	for (size_t i = 0; i < n; i++) {
		free_texts(&t->jumps[v[i].j]);
		t->jumps[v[i].j] = v[i].jump;
	}
}

/* ---- names ---- */

typedef VEC(const char *) wanted_names; /* sorted, each once; the jumps' own */
struct match {
	uint32_t name;     /* index */
	uint32_t function; /* number */
	bool resolves;     /* it is an IFUNC's resolver */
};
typedef VEC(struct match) matches;

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int by_match(const void *a, const void *b)
{
	const struct match *x = a, *y = b;

	if (x->name != y->name)
		return x->name < y->name ? -1 : 1;
	return (x->function > y->function) - (x->function < y->function);
}

static void list_names(const struct trace_jumps *x, wanted_names *out)
{
	size_t n = 0;

	for (size_t j = 0; j < x->n; j++)
		if (x->v[j].name)
			*vec_push(out) = x->v[j].name;
	if (out->n)
		qsort(out->v, out->n, sizeof(*out->v), by_name);
	for (size_t i = 0; i < out->n; i++)
		if (!n || strcmp(out->v[n - 1], out->v[i]))
			out->v[n++] = out->v[i];
	out->n = n;
}

static void match(matches *out, const wanted_names *wanted, const char *name,
		  const struct trace_name *f)
{
	const char **found = bsearch(&name, wanted->v, wanted->n, sizeof(*wanted->v), by_name);

	if (found)
		*vec_push(out) = (struct match){(uint32_t)(found - wanted->v), f->n,
						(f->ways & TRACE_RESOLVES) != 0};
}

static void match_aliases(matches *out, const wanted_names *wanted, const struct trace_name *f)
{
	char *aliases = xstrdup(f->aliases), *end;

	for (char *alias = aliases; alias && *alias; alias = end ? end + 1 : NULL) {
		end = strchr(alias, '\n');
		if (end)
			*end = 0;
		match(out, wanted, alias, f);
	}
	xfree(aliases);
}

static void match_functions(const struct trace_names *names, matches *out,
			    const wanted_names *wanted)
{
	for (size_t i = 0; i < names->n; i++) {
		const struct trace_name *f = &names->v[i];

		if (f->is_event)
			continue;
		match(out, wanted, f->name, f);
		if (f->aliases)
			match_aliases(out, wanted, f);
	}
	if (out->n)
		qsort(out->v, out->n, sizeof(*out->v), by_match);
}

/* The matches of a name stand together. */
static void take_targets(struct trace_jump *jump, const matches *m, uint32_t name)
{
	size_t lo = partition_point(i, m->n, m->v[i].name < name);

	jump->target = (uint32_t)lo;
	jump->ntargets = 0;
	jump->by_resolver = false;
	for (; lo < m->n && m->v[lo].name == name; lo++) {
		jump->ntargets++;
		jump->by_resolver |= m->v[lo].resolves;
	}
}

static void find_untaken(struct trace_jumps *x, const struct trace_names *names)
{
	x->limit = names->limit;
	x->untaken = xcalloc(x->limit / 8 + 1, 1);
	for (size_t i = 0; i < names->n; i++) {
		const struct trace_name *f = &names->v[i];

		if (!f->is_event && f->ways & TRACE_UNTAKEN && f->n < x->limit)
			x->untaken[f->n / 8] |= (uint8_t)(1u << f->n % 8);
	}
}

void trace_jumps_resolve(struct trace_jumps *x, const struct trace_names *names)
{
	wanted_names wanted = {0};
	matches m = {0};

	find_untaken(x, names);
	list_names(x, &wanted);
	if (wanted.n)
		match_functions(names, &m, &wanted);
	x->targets = xcalloc(m.n + 1, sizeof(*x->targets));
	for (size_t i = 0; i < m.n; i++)
		x->targets[i] = m.v[i].function;
	for (size_t j = 0; j < x->n; j++) {
		const char *name = x->v[j].name, **found;

		found = name ? bsearch(&name, wanted.v, wanted.n, sizeof(*wanted.v), by_name)
			     : NULL;
		if (found)
			take_targets(&x->v[j], &m, (uint32_t)(found - wanted.v));
	}
	vec_free(&wanted);
	vec_free(&m);
}

static void keep_untaken(struct trace *t, const struct trace_names *names)
{
	t->untaken = names->jumps.untaken;
	t->untaken_limit = names->jumps.limit;
}

/* After the functions, before the user's events. */
static void resolve_names(struct trace *t)
{
	struct trace_names names;

	trace_names_of(&names, t);
	trace_jumps_resolve(&names.jumps, &names);
	t->jump_targets = names.jumps.targets;
	keep_untaken(t, &names);
	trace_names_free(&names);
}

void jumps_joined(struct trace *t)
{
	struct trace_names names;

	trace_names_of(&names, t);
	find_untaken(&names.jumps, &names);
	keep_untaken(t, &names);
	trace_names_free(&names);
}

void jumps_read(struct trace *t, int dirfd)
{
	VEC(struct numbered_jump) rows = {0};
	struct trace_jump_line x;
	struct table_lines l;

	if (table_open(&l, dirfd, "jumps"))
		return;
	while (row_next(&l, row_jump, &x, sizeof(x), &t->damaged)) {
		struct numbered_jump r = {
			.jump = {.function = x.function, .to = x.to, .target = x.target}, .j = x.j};

		if (x.to == JUMP_TO_NAME)
			r.jump.name = xstrdup(x.name);
		else if (x.name && *x.name)
			r.jump.shown = xstrdup(x.name);
		*vec_push(&rows) = r;
	}
	table_close(&l);
	keep_rows(t, rows.v, rows.n);
	vec_free(&rows);
	resolve_names(t);
}

void jumps_free(struct trace *t)
{
	for (size_t j = 0; j < t->njumps; j++)
		free_texts(&t->jumps[j]);
	xfree(t->jumps);
	xfree(t->jump_targets);
	xfree(t->untaken);
}

/* ---- samples ---- */

void trace_resolve_jump(const struct trace *t, struct trace_event *e)
{
	uint32_t j = (e->s.event - KRON_EVENT_JUMPS) / 2;

	if (e->s.event >= KRON_EVENT_SPECIAL || !(e->s.event & 1) || j >= t->njumps ||
	    t->jumps[j].function == UINT32_MAX)
		return;
	e->s.event = KRON_EVENT_EXIT(t->jumps[j].function);
	e->jump = t->flat_jumps ? 0 : j + 1;
}

uint32_t trace_number_of(const struct trace *t, uint32_t event)
{
	struct trace_event e = {.s.event = event};

	trace_resolve(t, &e);
	return e.s.event / 2;
}

/* ---- where they lead ---- */

void trace_jumps_copy(struct trace_jumps *out, const struct trace_jumps *from)
{
	size_t ntargets = 0;

	out->n = from->n;
	out->v = xcalloc(from->n + 1, sizeof(*out->v));
	for (size_t i = 0; i < from->n; i++) {
		const struct trace_jump *j = &from->v[i];

		out->v[i] = *j;
		out->v[i].name = out->v[i].shown = NULL;
		if (j->to == JUMP_TO_NAME && j->target + (size_t)j->ntargets > ntargets)
			ntargets = j->target + (size_t)j->ntargets;
	}
	out->targets = xcalloc(ntargets + 1, sizeof(*out->targets));
	for (size_t i = 0; i < ntargets; i++)
		out->targets[i] = from->targets[i];
	out->limit = from->untaken ? from->limit : 0;
	out->untaken = xcalloc(out->limit / 8 + 1, 1);
	if (out->limit)
		memcpy(out->untaken, from->untaken, out->limit / 8 + 1);
}

void trace_jumps_free(struct trace_jumps *x)
{
	xfree(x->v);
	xfree(x->targets);
	xfree(x->untaken);
	*x = (struct trace_jumps){0};
}

static const struct trace_jump *jump_of(const struct trace_jumps *x, uint32_t jump)
{
	size_t j = (size_t)(jump & TRACE_JUMP_NUMBER) - 1;

	return j < x->n ? &x->v[j] : NULL;
}

static bool may_be_anything(const struct trace_jump *j)
{
	return j->to == JUMP_TO_ANYTHING || j->by_resolver;
}

bool trace_jump_is_uncertain(const struct trace_jumps *x, uint32_t jump)
{
	const struct trace_jump *j = jump_of(x, jump);

	return j && may_be_anything(j);
}

bool trace_jump_is_recorded(const struct trace *t, uint32_t jump)
{
	const struct trace_jumps all = trace_jumps_of(t);
	const struct trace_jump *j = jump_of(&all, jump);

	if (!j || j->to == JUMP_TO_ANYTHING)
		return true;
	return j->to == JUMP_TO_NAME ? j->ntargets > 0
				     : trace_function_of(t, KRON_EVENT_ENTRY(j->target)) != NULL;
}

bool trace_jump_is_inside(const struct trace_jumps *x, uint32_t jump, uint32_t function)
{
	const struct trace_jump *j = jump_of(x, jump);

	return j && j->to == JUMP_TO_INSIDE && j->target == function;
}

static bool is_untaken(const struct trace_jumps *x, uint32_t function)
{
	return function < x->limit && x->untaken[function / 8] >> function % 8 & 1;
}

bool trace_jump_goes_on(const struct trace_jumps *x, uint32_t jump, uint32_t function, bool nested)
{
	const struct trace_jump *j = jump_of(x, jump);

	if (!j || jump & TRACE_JUMP_LOST)
		return false;
	if (may_be_anything(j))
		return !nested && !(jump & TRACE_JUMP_STALE) && !is_untaken(x, function);
	if (j->to == JUMP_TO_FUNCTION)
		return j->target == function;
	for (uint32_t i = 0; j->to == JUMP_TO_NAME && i < j->ntargets; i++)
		if (x->targets[j->target + i] == function)
			return true;
	return false;
}

const char *trace_jump_known_name(const struct trace *t, uint32_t jump)
{
	const struct trace_jump *x = &t->jumps[jump - 1];
	const struct trace_function *f;

	if (x->to == JUMP_TO_NAME || x->to == JUMP_TO_ANYTHING)
		return x->name;
	f = trace_function_of(t, KRON_EVENT_ENTRY(x->target));
	return f ? f->name : x->shown;
}

const char *trace_jump_name(const struct trace *t, uint32_t jump, char *buf, size_t size)
{
	const struct trace_jump *x = &t->jumps[jump - 1];
	const char *name = trace_jump_known_name(t, jump);

	return name || x->to == JUMP_TO_ANYTHING ? name : text_function(t, x->target, buf, size);
}
