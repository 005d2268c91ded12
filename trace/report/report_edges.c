/* SPDX-License-Identifier: MIT */
/*
 * report_edges.c - who calls a function, and whom it calls: two tables for each function that
 * was asked for.
 *
 *   callers:  a ──┐                ┌──► x   callees
 *             b ──┴──► FUNCTION ───┴──► y   and its own time
 *
 * An edge is a pair of caller and callee; only those that touch a function asked for are kept,
 * so memory grows with the number of functions.  A call inside another one of the same edge
 * (recursion) counts as a call, but its time is in the other's already.
 *
 * pairs.c carries for each open call a node: the number of its edge, or, with the top bit
 * clear, that of its function.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/name_forms.h"
#include "base/str.h"
#include "base/vec.h"
#include "base/search.h"
#include "trace/analysis/pairs.h"
#include "trace/analysis/profile.h"
#include "trace/analysis/slack.h"
#include "trace/report/report.h"
#include "trace/report/report_slack.h"
#include "trace/text.h"

#define IS_EDGE 0x80000000u
#define NOBODY UINT32_MAX /* the caller at the bottom of a stack */

struct edge {
	uint32_t caller, callee;
	uint32_t open; /* calls that are open in this thread */
	uint64_t calls, total, self;
	uint64_t outer;             /* time of calls that are in no other call of the callee */
	struct profile_least least; /* of calls that span no loss; of all, if all do */
	uint64_t max;               /* likewise */
	bool has_whole;             /* some do not */
	struct slack *slack;        /* NULL: each sample has read the clock */
};

struct end { /* of an edge */
	uint32_t function, edge;
};

struct edges {
	const struct trace *t;
	const struct edges_options *o;
	bool is_sparse; /* samples share readings of the clock */
	bool *asked;    /* by index into t->functions */
	VEC(struct edge) v;
	uint32_t *slots;
	size_t nslots;
	struct end *callers, *callees; /* of all edges, those of a function together */
};

/* ---- gathering ---- */

static bool is_asked(const struct edges *x, uint32_t function)
{
	const struct trace_function *f = trace_function_of(x->t, KRON_EVENT_ENTRY(function));

	return function != NOBODY && f && x->asked[f - x->t->functions];
}

static size_t slot_of(const struct edges *x, uint32_t caller, uint32_t callee)
{
	uint64_t h = ((uint64_t)caller << 32 | callee) * 0x9e3779b97f4a7c15ull;
	size_t at = (size_t)(h >> 24) & (x->nslots - 1);

	for (; x->slots[at]; at = (at + 1) & (x->nslots - 1)) {
		const struct edge *e = &x->v.v[x->slots[at] - 1];

		if (e->caller == caller && e->callee == callee)
			break;
	}
	return at;
}

static void grow_slots(struct edges *x)
{
	x->nslots = x->nslots ? 2 * x->nslots : 64;
	xfree(x->slots);
	x->slots = xcalloc(x->nslots, sizeof(*x->slots));
	for (size_t i = 0; i < x->v.n; i++)
		x->slots[slot_of(x, x->v.v[i].caller, x->v.v[i].callee)] = (uint32_t)i + 1;
}

static uint32_t edge_of(struct edges *x, uint32_t caller, uint32_t callee)
{
	struct edge *e;
	size_t at;

	if (2 * x->v.n >= x->nslots)
		grow_slots(x);
	at = slot_of(x, caller, callee);
	if (!x->slots[at]) {
		e = vec_push(&x->v);
		*e = (struct edge){.caller = caller, .callee = callee};
		x->slots[at] = (uint32_t)x->v.n;
	}
	return x->slots[at] - 1;
}

static uint32_t function_of_node(const struct edges *x, uint32_t node)
{
	if (node == PAIR_NO_NODE)
		return NOBODY;
	return node & IS_EDGE ? x->v.v[node & ~IS_EDGE].callee : node;
}

static uint32_t on_node(void *ctx, uint32_t caller_node, uint32_t function)
{
	struct edges *x = ctx;
	uint32_t edge, caller = function_of_node(x, caller_node);

	if (!is_asked(x, function) && !is_asked(x, caller))
		return function;
	edge = edge_of(x, caller, function);
	x->v.v[edge].calls++;
	x->v.v[edge].open++;
	return edge | IS_EDGE;
}

static void add_callee_slack(struct edges *x, const struct pair_call *c)
{
	if (c->payer != PAIR_NO_NODE && c->payer & IS_EDGE)
		slack_add_callee(slack_at(&x->v.v[c->payer & ~IS_EDGE].slack), c);
}

static void add_slack(struct edges *x, const struct pair_call *c)
{
	if (c->node & IS_EDGE)
		slack_add(slack_at(&x->v.v[c->node & ~IS_EDGE].slack), c);
	add_callee_slack(x, c);
}

static void on_pause(void *ctx, const struct pair_call *c, uint64_t samples)
{
	struct edges *x = ctx;

	(void)samples;
	if (x->is_sparse)
		add_callee_slack(x, c);
}

/* As the table has it (profile.c): a call that spans a loss may be two. */
static void add_length(struct edge *e, uint64_t time, const struct pair_call *c)
{
	if (!c->spans_loss && !e->has_whole) {
		e->has_whole = true;
		e->least = (struct profile_least){0};
		e->max = 0;
	}
	if (c->spans_loss == e->has_whole)
		return;
	profile_least_add(&e->least, time, c->open);
	if (time > e->max)
		e->max = time;
}

static void on_leave(void *ctx, const struct trace_event *event, const struct pair_call *c)
{
	struct edges *x = ctx;
	uint64_t time = c->exit_tsc - c->entry_tsc;
	struct edge *e;

	(void)event;
	if (x->is_sparse)
		add_slack(x, c);
	if (!(c->node & IS_EDGE))
		return;
	e = &x->v.v[c->node & ~IS_EDGE];
	if (!--e->open)
		e->total += time;
	if (!c->recursive)
		e->outer += time;
	e->self += time - c->children_tsc;
	add_length(e, time, c);
}

static void gather(struct edges *x)
{
	struct pair_sink sink = {.ctx = x,
				 .node = on_node,
				 .leave = on_leave,
				 .pause = on_pause,
				 .want_recursive = true};
	struct pairs *pairs = pairs_open(x->t, &sink);
	struct trace_event e;

	for (size_t lane = 0; lane < x->t->nlanes; lane++) {
		struct trace_cursor *c = trace_cursor_open(x->t, (int)lane);

		while (trace_cursor_next(c, &e))
			pairs_feed(pairs, &e);
		trace_cursor_close(c);
		pairs_finish_lane(pairs, (uint32_t)lane);
	}
	pairs_close(pairs);
}

/* ---- output ---- */

static int by_total(const void *a, const void *b)
{
	const struct edge *x = a, *y = b;

	if (x->total != y->total)
		return x->total > y->total ? -1 : 1;
	if (x->calls != y->calls)
		return x->calls > y->calls ? -1 : 1;
	if (x->caller != y->caller)
		return x->caller < y->caller ? -1 : 1;
	return (x->callee > y->callee) - (x->callee < y->callee);
}

static int by_function(const void *a, const void *b)
{
	const struct end *x = a, *y = b;

	if (x->function != y->function)
		return x->function < y->function ? -1 : 1;
	return (x->edge > y->edge) - (x->edge < y->edge);
}

static void sort(struct edges *x)
{
	size_t n = x->v.n;

	x->callers = xcalloc(n, sizeof(*x->callers));
	x->callees = xcalloc(n, sizeof(*x->callees));
	if (!n)
		return;
	qsort(x->v.v, n, sizeof(*x->v.v), by_total);
	for (size_t i = 0; i < n; i++) {
		x->callers[i] = (struct end){x->v.v[i].caller, (uint32_t)i};
		x->callees[i] = (struct end){x->v.v[i].callee, (uint32_t)i};
	}
	qsort(x->callers, n, sizeof(*x->callers), by_function);
	qsort(x->callees, n, sizeof(*x->callees), by_function);
}

/* The first of a function's ends, the most time first; its number of them. */
static const struct end *ends_of(const struct edges *x, const struct end *v, uint32_t function,
				 size_t *n)
{
	size_t low = partition_point(i, x->v.n, v[i].function < function);

	for (*n = 0; low + *n < x->v.n && v[low + *n].function == function;)
		++*n;
	return v + low;
}

static const char *name_of(const struct edges *x, uint32_t function, char *buf, size_t size)
{
	return function == NOBODY ? NULL : text_function(x->t, function, buf, size);
}

/* One end of an edge, or nobody. */
static void put_end(const struct edges *x, uint32_t function, FILE *out)
{
	if (function == NOBODY) {
		fputs("(nobody that was recorded)", out);
		return;
	}
	text_put_function(out, x->t, function);
	fputs(" [", out);
	text_put(out, text_base(text_module(x->t, function)));
	fputc(']', out);
}

static void put_left(const struct edges *x, uint64_t ticks, uint64_t whole, FILE *out)
{
	text_put_duration(out, trace_ns(x->t, ticks));
	fprintf(out, "  %5.1f%%  ", whole ? 100.0 * (double)ticks / (double)whole : 0.0);
}

static void put_edge(const struct edges *x, const struct edge *e, uint64_t whole, uint32_t end,
		     FILE *out)
{
	char calls[STR_NUMBER];

	put_left(x, e->total, whole, out);
	fprintf(out, "%12s  ", str_thousands(calls, sizeof(calls), e->calls));
	report_slack_put_shortest(x->t, e->slack, ~e->least.inverse, out);
	fputs("  ", out);
	report_slack_put_longest(x->t, e->slack, e->max, out);
	fputs("  ", out);
	put_end(x, end, out);
	if (e->caller == e->callee)
		fputs("  (itself)", out);
	report_slack_put(x->t, e->slack, e->total, e->self, out);
	fputc('\n', out);
}

/* All calls of a function. */
struct sums {
	uint64_t calls, total, self;
	struct slack off; /* of self */
};

static struct sums sum_callers(const struct edges *x, uint32_t function)
{
	struct sums s = {0};
	size_t n;
	const struct end *v = ends_of(x, x->callees, function, &n);

	for (size_t i = 0; i < n; i++) {
		const struct edge *e = &x->v.v[v[i].edge];

		s.calls += e->calls;
		s.self += e->self;
		if (e->slack) {
			s.off.self += e->slack->self;
			s.off.has_no_end |= e->slack->has_no_end;
		}
		s.total += e->outer;
	}
	return s;
}

static void print_table(const struct edges *x, uint32_t function, bool callers, FILE *out)
{
	struct sums s = sum_callers(x, function);
	size_t n;
	const struct end *v = ends_of(x, callers ? x->callees : x->callers, function, &n);

	fputs(callers ? "callers of " : "callees of ", out);
	put_end(x, function, out);
	fprintf(out, ":\n%10s  %6s  %12s  %10s  %10s  %s\n", "Total time", "Of all", "Calls",
		"Min time", "Max time", callers ? "Caller [Module]" : "Function [Module]");
	for (size_t i = 0; i < n; i++) {
		const struct edge *e = &x->v.v[v[i].edge];

		put_edge(x, e, s.total, callers ? e->caller : e->callee, out);
	}
	if (!callers) {
		put_left(x, s.self, s.total, out);
		fprintf(out, "%12s  %10s  %10s  (its own time)", "", "", "");
		if (s.off.self || s.off.has_no_end)
			report_slack_put_off(x->t, &s.off, " ", s.self, s.off.self, out);
		fputc('\n', out);
	}
	fputc('\n', out);
}

static void json_edge(struct json *j, const struct edges *x, const struct edge *e)
{
	char buf[32];

	json_open(j, '{');
	json_kstr(j, "caller", name_of(x, e->caller, buf, sizeof(buf)));
	json_kstr(j, "caller_module", e->caller == NOBODY ? NULL : text_module(x->t, e->caller));
	json_kstr(j, "function", name_of(x, e->callee, buf, sizeof(buf)));
	json_kstr(j, "module", text_module(x->t, e->callee));
	json_ku64(j, "calls", e->calls);
	json_ku64(j, "total_ns", trace_ns(x->t, e->total));
	json_ku64(j, "self_ns", trace_ns(x->t, e->self));
	json_ku64(j, "min_ns", trace_ns(x->t, ~e->least.inverse));
	json_ku64(j, "max_ns", trace_ns(x->t, e->max));
	report_slack_json_sums(j, x->t, e->slack, e->total, e->self);
	report_slack_json_extremes(j, x->t, e->slack);
	json_close(j, '}');
}

/* An edge between two functions that were asked for is in two tables, but here once. */
static void print_json(const struct edges *x, FILE *out)
{
	struct json j = JSON_INIT(out);

	json_open(&j, '[');
	for (size_t i = 0; i < x->v.n; i++) {
		const struct edge *e = &x->v.v[i];

		if ((x->o->callers && is_asked(x, e->callee)) ||
		    (x->o->callees && is_asked(x, e->caller))) {
			fputc('\n', out);
			json_edge(&j, x, e);
		}
	}
	json_close(&j, ']');
}

static void print_text(const struct edges *x, FILE *out)
{
	bool called = false;

	for (size_t i = 0; i < x->t->nfunctions; i++) {
		uint32_t n = x->t->functions[i].n;

		if (!x->asked[i] || !sum_callers(x, n).calls)
			continue;
		called = true;
		if (x->o->callers)
			print_table(x, n, true, out);
		if (x->o->callees)
			print_table(x, n, false, out);
	}
	if (!called)
		fputs("no call was recorded of what that names\n", out);
	else
		report_slack_foot(x->t, out);
}

int report_edges(const struct trace *t, const struct edges_options *o, FILE *out, struct err *err)
{
	struct edges x = {.t = t,
			  .o = o,
			  .is_sparse = trace_clock_every(t) > 1,
			  .asked = xcalloc(t->nfunctions, sizeof(bool))};
	bool found = false;

	for (size_t i = 0; i < t->nfunctions; i++)
		found |= x.asked[i] = name_forms_match_any(t->functions[i].name,
							   t->functions[i].aliases, o->function);
	if (found) {
		gather(&x);
		sort(&x);
		(o->json ? print_json : print_text)(&x, out);
	} else {
		err_set(err, ENOENT, "no function of the trace matches %s", o->function);
	}
	vec_for(&x.v, e)
		slack_free(e->slack);
	vec_free(&x.v);
	xfree(x.callers);
	xfree(x.callees);
	xfree(x.slots);
	xfree(x.asked);
	return found ? 0 : -ENOENT;
}
