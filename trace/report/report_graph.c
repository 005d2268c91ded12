/* SPDX-License-Identifier: MIT */
/*
 * report_graph.c - the call tree, a line for each way to a function, indented, the most time
 * first.  What takes less than a part of all time is left out, and said so.
 *
 *   Total time   Total    Self time         Calls  Function [Module]
 *   999.000 us   99.0%   993.500 us             1  main [app]
 *    13.000 us    1.3%     7.650 us             1    work [app]
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "base/vec.h"
#include "base/search.h"
#include "trace/analysis/calltree.h"
#include "trace/report/report.h"
#include "trace/report/report_slack.h"
#include "trace/text.h"

#define INDENT_MAX 60 /* levels; deeper ones are numbered instead: lines stay short */

struct graph {
	const struct trace *t;
	const struct graph_options *o;
	struct calltree tree;
	bool *shown;    /* by node */
	uint32_t *rank; /* shown nodes, siblings together, the most time first */
	size_t nranks;
	uint64_t whole;  /* of all nodes at the bottom */
	uint64_t hidden; /* ways that are left out */
	struct json j;
	FILE *out;
};

/* A way that is shown shows the whole way, also where clocks made it last longer than that. */
static void choose(struct graph *g)
{
	const struct calltree_node *v = g->tree.nodes.v;
	size_t n = g->tree.nodes.n;

	g->shown = xcalloc(n, sizeof(*g->shown));
	for (size_t i = 0; i < n; i++)
		if (v[i].parent == CALLTREE_ROOT)
			g->whole += v[i].total;
	for (size_t i = n; i-- > 0;) {
		if ((double)v[i].total * 100 >= (double)g->whole * g->o->threshold)
			g->shown[i] = true;
		if (g->shown[i] && v[i].parent != CALLTREE_ROOT)
			g->shown[v[i].parent] = true;
		g->nranks += g->shown[i];
	}
	g->hidden = n - g->nranks;
}

static int by_parent(const void *a, const void *b, void *ctx)
{
	const struct calltree_node *v = ctx;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	if (v[x].parent != v[y].parent)
		return v[x].parent < v[y].parent ? -1 : 1;
	if (v[x].total != v[y].total)
		return v[x].total > v[y].total ? -1 : 1;
	return x < y ? -1 : x > y;
}

static void sort(struct graph *g)
{
	size_t at = 0;

	g->rank = xcalloc(g->nranks, sizeof(*g->rank));
	for (size_t i = 0; i < g->tree.nodes.n; i++)
		if (g->shown[i])
			g->rank[at++] = (uint32_t)i;
	if (at)
		qsort_r(g->rank, at, sizeof(*g->rank), by_parent, g->tree.nodes.v);
}

/* The first of the parent's children in rank; nranks: it has none. */
static size_t first_child(const struct graph *g, uint32_t parent)
{
	size_t low = partition_point(i, g->nranks, g->tree.nodes.v[g->rank[i]].parent < parent);

	return low < g->nranks && g->tree.nodes.v[g->rank[low]].parent == parent ? low : g->nranks;
}

static double percent(const struct graph *g, uint64_t ticks)
{
	return g->whole ? 100.0 * (double)ticks / (double)g->whole : 0;
}

static void put_line(struct graph *g, uint32_t node, uint32_t depth)
{
	const struct calltree_node *n = &g->tree.nodes.v[node];
	char calls[STR_NUMBER];

	text_put_duration(g->out, trace_ns(g->t, n->total));
	fprintf(g->out, "  %5.1f%%  ", percent(g, n->total));
	text_put_duration(g->out, trace_ns(g->t, n->self));
	fprintf(g->out, "  %12s  %*s", str_thousands(calls, sizeof(calls), n->calls),
		2 * (int)(depth < INDENT_MAX ? depth : INDENT_MAX), "");
	if (depth > INDENT_MAX)
		fprintf(g->out, "(%u) ", depth);
	text_put_function(g->out, g->t, n->function);
	fputs(" [", g->out);
	text_put(g->out, text_base(text_module(g->t, n->function)));
	fputc(']', g->out);
	report_slack_put(g->t, n->slack, n->total, n->self, g->out);
	fputc('\n', g->out);
}

static void json_node(struct graph *g, uint32_t node, uint32_t depth)
{
	const struct calltree_node *n = &g->tree.nodes.v[node];
	struct json *j = &g->j;
	char buf[32];

	fputc('\n', g->out);
	json_open(j, '{');
	json_ku64(j, "id", node);
	json_key(j, "parent");
	if (n->parent == CALLTREE_ROOT)
		json_str(j, NULL);
	else
		json_u64(j, n->parent);
	json_ku64(j, "depth", depth);
	json_kstr(j, "function", text_function(g->t, n->function, buf, sizeof(buf)));
	json_kstr(j, "module", text_module(g->t, n->function));
	json_ku64(j, "calls", n->calls);
	json_ku64(j, "total_ns", trace_ns(g->t, n->total));
	json_ku64(j, "self_ns", trace_ns(g->t, n->self));
	report_slack_json_sums(j, g->t, n->slack, n->total, n->self);
	json_key(j, "percent");
	json_f64(j, percent(g, n->total));
	json_close(j, '}');
}

/* Depth first, with a stack of places in rank: a trace may be deeper than ours. */
static void walk(struct graph *g)
{
	VEC(size_t) at = {0};
	uint32_t parent = CALLTREE_ROOT;

	*vec_push(&at) = first_child(g, CALLTREE_ROOT);
	while (at.n && !ferror(g->out)) {
		size_t *top = &at.v[at.n - 1];
		uint32_t node;

		if (*top >= g->nranks || g->tree.nodes.v[g->rank[*top]].parent != parent) {
			if (--at.n)
				parent = g->tree.nodes.v[parent].parent;
			continue;
		}
		node = g->rank[(*top)++];
		(g->o->json ? json_node : put_line)(g, node, (uint32_t)at.n - 1);
		parent = node;
		*vec_push(&at) = first_child(g, node);
	}
	vec_free(&at);
}

static void put_foot(const struct graph *g)
{
	char number[STR_NUMBER];

	if (!g->tree.nodes.n)
		fputs("no calls\n", g->out);
	else if (g->hidden)
		fprintf(g->out, "\n%s call path%s below %g%% omitted\n",
			str_thousands(number, sizeof(number), g->hidden), g->hidden == 1 ? "" : "s",
			g->o->threshold);
	else if (trace_clock_every(g->t) > 1)
		fputc('\n', g->out);
	report_slack_foot(g->t, g->out);
}

void report_graph(const struct trace *t, const struct graph_options *o, FILE *out)
{
	struct graph g = {.t = t, .o = o, .out = out, .j = JSON_INIT(out)};

	calltree_build_bounded(&g.tree, t);
	choose(&g);
	sort(&g);
	if (o->json)
		json_open(&g.j, '[');
	else
		fprintf(out, "%10s  %6s  %10s  %12s  %s\n", "Total time", "Of all", "Self time",
			"Calls", "Function [Module]");
	walk(&g);
	if (o->json)
		json_close(&g.j, ']');
	else
		put_foot(&g);
	xfree(g.rank);
	xfree(g.shown);
	calltree_free(&g.tree);
}
