/* SPDX-License-Identifier: MIT */
/*
 * view_tables.c - the sums by function and by way, as tables in the page.  What is too much for
 * it is summed up: functions in one row, ways in one node of their caller.
 */
#include <stdlib.h>
#include <string.h>

#include "trace/text.h"
#include "trace/view/view_impl.h"

/* ---- functions ---- */

struct ranked {
	uint32_t at; /* index of stats */
	uint64_t self, calls;
};

static int by_self(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	if (x->self != y->self)
		return x->self > y->self ? -1 : 1;
	if (x->calls != y->calls)
		return x->calls > y->calls ? -1 : 1;
	return (x->at > y->at) - (x->at < y->at);
}

static void put_function(struct view *v, uint32_t at, bool has_histogram)
{
	const struct profile_stat *s = &v->stats.v[at];
	uint32_t n = v->numbers.v[at];
	const struct trace_function *f = trace_function_of(v->t, KRON_EVENT_ENTRY(n));
	struct json *j = &v->j;
	char buf[32];

	fputc('\n', j->f);
	json_open(j, '[');
	json_u64(j, n);
	view_put_name(j, text_function(v->t, n, buf, sizeof(buf)));
	json_i64(j, f ? (int64_t)f->module : -1);
	json_u64(j, s->calls);
	json_u64(j, trace_ns(v->t, s->total));
	json_u64(j, trace_ns(v->t, s->self));
	json_u64(j, trace_ns(v->t, profile_minimum(s)));
	json_u64(j, profile_average_ns(v->t, s));
	json_u64(j, trace_ns(v->t, profile_maximum(s)));
	json_u64(j, s->inferred);
	json_u64(j, s->measured);
	if (has_histogram && s->measured)
		loghist_json(&s->lengths, v->t, j);
	json_close(j, ']');
}

static void put_other_functions(struct view *v, const struct ranked *ranked, size_t from)
{
	struct json *j = &v->j;
	uint64_t calls = 0, self = 0;

	for (size_t i = from; i < v->stats.n; i++) {
		calls += ranked[i].calls;
		self += ranked[i].self;
	}
	json_key(j, "functions_left_out");
	json_open(j, '{');
	json_ku64(j, "functions", v->stats.n > from ? v->stats.n - from : 0);
	json_ku64(j, "calls", calls);
	json_ku64(j, "self_ns", trace_ns(v->t, self));
	json_close(j, '}');
}

void view_put_functions(struct view *v)
{
	struct ranked *ranked = xcalloc(v->stats.n + 1, sizeof(*ranked));
	size_t n = v->stats.n < v->budget.functions ? v->stats.n : v->budget.functions;
	struct json *j = &v->j;

	for (size_t i = 0; i < v->stats.n; i++)
		ranked[i] = (struct ranked){.at = (uint32_t)i,
					    .self = v->stats.v[i].self,
					    .calls = v->stats.v[i].calls};
	qsort(ranked, v->stats.n, sizeof(*ranked), by_self);
	json_key(j, "functions");
	json_open(j, '[');
	for (size_t i = 0; i < n; i++)
		put_function(v, ranked[i].at, i < v->budget.histograms);
	json_close(j, ']');
	put_other_functions(v, ranked, n);
	xfree(ranked);
	json_key(j, "modules");
	json_open(j, '[');
	for (size_t i = 0; i < v->t->nmodules; i++)
		view_put_name(j, text_base(v->t->modules[i].path));
	json_close(j, ']');
}

/* ---- the call tree ---- */

static int by_number(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* A node is kept if it took more than this; so the callers of those kept are kept, too. */
static uint64_t least_total(const struct view *v)
{
	size_t n = v->nodes.n;
	uint64_t *totals, least;

	if (n <= v->budget.nodes)
		return 0;
	totals = xcalloc(n, sizeof(*totals));
	for (size_t i = 0; i < n; i++)
		totals[i] = v->nodes.v[i].total;
	qsort(totals, n, sizeof(*totals), by_number);
	least = totals[n - v->budget.nodes - 1] + 1;
	xfree(totals);
	return least;
}

struct kept {
	uint32_t *place; /* in the page, by node; UINT32_MAX: not there */
	uint32_t n;
	VEC(struct view_node) rest; /* by place: callees that are not there */
};

static void keep_node(struct view *v, struct kept *k, uint32_t i, uint64_t least,
		      struct view_bytes *out)
{
	const struct calltree_node *c = &v->tree.nodes.v[i];
	const struct view_node *n = &v->nodes.v[i];
	uint32_t parent = c->parent == CALLTREE_ROOT ? 0 : k->place[c->parent];

	k->place[i] = UINT32_MAX;
	if (parent == UINT32_MAX || !n->calls)
		return;
	if (n->total < least) {
		k->rest.v[parent].calls += n->calls;
		k->rest.v[parent].total += n->total;
		return;
	}
	k->place[i] = ++k->n;
	*vec_push(&k->rest) = (struct view_node){.calls = n->rest_calls, .total = n->rest_total};
	view_put_number(out, k->n - parent);
	view_put_number(out, c->function);
	view_put_number(out, n->calls);
	view_put_number(out, trace_ns(v->t, n->total));
	view_put_number(out, trace_ns(v->t, n->self));
}

static void put_rest(struct view *v, struct kept *k)
{
	struct json *j = &v->j;

	json_key(j, "rest");
	json_open(j, '[');
	for (size_t i = 0; i < k->rest.n; i++) {
		if (!k->rest.v[i].calls)
			continue;
		json_open(j, '[');
		json_u64(j, i);
		json_u64(j, k->rest.v[i].calls);
		json_u64(j, trace_ns(v->t, k->rest.v[i].total));
		json_close(j, ']');
	}
	json_close(j, ']');
}

/*
 * Place 0 is everything; the others follow in the order in which they first occurred, so that a
 * caller comes before its callees.  Each: how far back its caller is, function, calls, total ns,
 * self ns (LEB128).
 */
void view_put_tree(struct view *v)
{
	struct kept k = {.place = xcalloc(v->nodes.n + 1, sizeof(*k.place))};
	struct view_bytes out = {0};
	uint64_t least = least_total(v);
	struct json *j = &v->j;

	*vec_push(&k.rest) =
		(struct view_node){.calls = v->top.rest_calls, .total = v->top.rest_total};
	for (uint32_t i = 0; i < v->nodes.n; i++)
		keep_node(v, &k, i, least, &out);
	json_key(j, "tree");
	json_open(j, '{');
	json_ku64(j, "nodes", k.n);
	json_ku64(j, "all", v->nodes.n);
	json_key(j, "more");
	json_bool(j, v->ways_left_out);
	json_ku64(j, "least_ns", trace_ns(v->t, least));
	json_key(j, "data");
	view_put_bytes(j, &out);
	put_rest(v, &k);
	json_close(j, '}');
	view_bytes_free(&out);
	vec_free(&k.rest);
	xfree(k.place);
}
