/* SPDX-License-Identifier: MIT */
/*
 * jumps.c - see jumps.h.
 *
 * Where a jump leads by name, every function of the trace that is called so, or exported under that
 * name, may be meant: which of them the dynamic linker took differs between processes.
 */
#define _GNU_SOURCE
#include "trace/jumps.h"

#include <stdlib.h>
#include <string.h>

#include "trace/reader_impl.h"
#include "trace/table_lines.h"
#include "trace/text.h"

/* ---- the table ---- */

static bool read_row(const struct table_lines *l, struct trace_jump *out, uint32_t *j)
{
	static const char *const words[] = {[JUMP_TO_ANYTHING] = "unknown",
					    [JUMP_TO_FUNCTION] = "function",
					    [JUMP_TO_INSIDE] = "inside",
					    [JUMP_TO_NAME] = "import"};
	const char *target = l->field[3];

	*out = (struct trace_jump){0};
	while (strcmp(l->field[2], words[out->to]))
		if (++out->to == sizeof(words) / sizeof(words[0]))
			return false;
	return table_number32(l->field[0], j) && *j < (KRON_EVENT_SPECIAL - KRON_EVENT_JUMPS) / 2 &&
	       table_number32(l->field[1], &out->function) &&
	       out->function < KRON_EVENT_JUMPS / 2 &&
	       (out->to == JUMP_TO_ANYTHING || out->to == JUMP_TO_NAME ||
		table_number32(target, &out->target)) &&
	       (out->to != JUMP_TO_NAME || *target);
}

struct row {
	struct trace_jump jump;
	uint32_t j;
};

static int by_j(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	return x->j < y->j ? -1 : x->j > y->j;
}

/* Numbers that are far apart must be garbage: as with functions. */
static size_t drop_far(struct trace *t, struct row *v, size_t n)
{
	while (n && v[n - 1].j >> 24 > n >> 21) {
		xfree(v[--n].jump.name);
		t->damaged++;
	}
	return n;
}

/* By number; of several rows of one number any may count. */
static void keep_rows(struct trace *t, struct row *v, size_t n)
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
		xfree(t->jumps[v[i].j].name);
		t->jumps[v[i].j] = v[i].jump;
	}
}

/* ---- names ---- */

typedef VEC(const char *) names; /* sorted, each once; the jumps' own */
struct match {
	uint32_t name; /* index */
	uint32_t function;
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

static void list_names(const struct trace *t, names *out)
{
	size_t n = 0;

	for (size_t j = 0; j < t->njumps; j++)
		if (t->jumps[j].name)
			*vec_push(out) = t->jumps[j].name;
	if (out->n)
		qsort(out->v, out->n, sizeof(*out->v), by_name);
	for (size_t i = 0; i < out->n; i++)
		if (!n || strcmp(out->v[n - 1], out->v[i]))
			out->v[n++] = out->v[i];
	out->n = n;
}

static void match(matches *out, const names *wanted, const char *name, uint32_t function)
{
	const char **found = bsearch(&name, wanted->v, wanted->n, sizeof(*wanted->v), by_name);

	if (found)
		*vec_push(out) = (struct match){(uint32_t)(found - wanted->v), function};
}

/* Aliases are cut at their newlines for the moment. */
static void match_functions(const struct trace *t, matches *out, const names *wanted)
{
	for (size_t i = 0; i < t->nfunctions; i++) {
		const struct trace_function *f = &t->functions[i];
		char *end, *alias = f->aliases;

		match(out, wanted, f->name, f->n);
		for (; alias && *alias; alias = end ? end + 1 : NULL) {
			end = strchr(alias, '\n');
			if (end)
				*end = 0;
			match(out, wanted, alias, f->n);
			if (end)
				*end = '\n';
		}
	}
	if (out->n)
		qsort(out->v, out->n, sizeof(*out->v), by_match);
}

/* The matches of a name stand together. */
static void take_targets(struct trace *t, struct trace_jump *jump, const matches *m, uint32_t name)
{
	size_t lo = 0, hi = m->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (m->v[mid].name < name)
			lo = mid + 1;
		else
			hi = mid;
	}
	jump->target = (uint32_t)lo;
	for (; lo < m->n && m->v[lo].name == name; lo++) {
		const struct trace_function *f =
			trace_function_of(t, KRON_EVENT_ENTRY(m->v[lo].function));

		jump->ntargets++;
		jump->by_resolver |= f && f->ways & TRACE_RESOLVES;
	}
}

static void resolve_names(struct trace *t)
{
	names wanted = {0};
	matches m = {0};

	list_names(t, &wanted);
	if (wanted.n)
		match_functions(t, &m, &wanted);
	t->jump_targets = xcalloc(m.n + 1, sizeof(*t->jump_targets));
	for (size_t i = 0; i < m.n; i++)
		t->jump_targets[i] = m.v[i].function;
	for (size_t j = 0; j < t->njumps; j++) {
		const char *name = t->jumps[j].name, **found;

		found = name ? bsearch(&name, wanted.v, wanted.n, sizeof(*wanted.v), by_name)
			     : NULL;
		if (found)
			take_targets(t, &t->jumps[j], &m, (uint32_t)(found - wanted.v));
	}
	vec_free(&wanted);
	vec_free(&m);
}

void jumps_read(struct trace *t, int dirfd)
{
	VEC(struct row) rows = {0};
	struct table_lines l;
	struct row r;

	if (table_open(&l, dirfd, "jumps"))
		return;
	while (table_next_fields(&l)) {
		if (!read_row(&l, &r.jump, &r.j)) {
			t->damaged++;
			continue;
		}
		if (r.jump.to == JUMP_TO_NAME)
			r.jump.name = xstrdup(l.field[3]);
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
		xfree(t->jumps[j].name);
	xfree(t->jumps);
	xfree(t->jump_targets);
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

void trace_jumps_copy(struct trace_jumps *out, const struct trace *t)
{
	size_t ntargets = 0;

	out->n = t->njumps;
	out->v = xcalloc(t->njumps + 1, sizeof(*out->v));
	for (size_t i = 0; i < t->njumps; i++) {
		const struct trace_jump *j = &t->jumps[i];

		out->v[i] = *j;
		out->v[i].name = NULL;
		if (j->to == JUMP_TO_NAME && j->target + (size_t)j->ntargets > ntargets)
			ntargets = j->target + (size_t)j->ntargets;
	}
	out->targets = xcalloc(ntargets + 1, sizeof(*out->targets));
	for (size_t i = 0; i < ntargets; i++)
		out->targets[i] = t->jump_targets[i];
}

void trace_jumps_free(struct trace_jumps *x)
{
	xfree(x->v);
	xfree(x->targets);
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

bool trace_jump_is_inside(const struct trace_jumps *x, uint32_t jump, uint32_t function)
{
	const struct trace_jump *j = jump_of(x, jump);

	return j && j->to == JUMP_TO_INSIDE && j->target == function;
}

bool trace_jump_goes_on(const struct trace_jumps *x, uint32_t jump, uint32_t function, bool nested)
{
	const struct trace_jump *j = jump_of(x, jump);

	if (!j || jump & TRACE_JUMP_LOST)
		return false;
	if (may_be_anything(j))
		return !nested && !(jump & TRACE_JUMP_STALE);
	if (j->to == JUMP_TO_FUNCTION)
		return j->target == function;
	for (uint32_t i = 0; j->to == JUMP_TO_NAME && i < j->ntargets; i++)
		if (x->targets[j->target + i] == function)
			return true;
	return false;
}

const char *trace_jump_name(const struct trace *t, uint32_t jump, char *buf, size_t size)
{
	const struct trace_jump *x = &t->jumps[jump - 1];

	if (x->to == JUMP_TO_ANYTHING)
		return NULL;
	return x->to == JUMP_TO_NAME ? x->name : text_function(t, x->target, buf, size);
}
