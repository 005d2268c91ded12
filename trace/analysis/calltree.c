/* SPDX-License-Identifier: MIT */
/* calltree.c - gathers the tree while the lanes are read one after another; see calltree.h. */
#include "trace/analysis/calltree.h"

#include <string.h>

_Static_assert(CALLTREE_ROOT == PAIR_NO_NODE, "no caller");

static size_t hash(uint32_t parent, uint32_t function)
{
	uint64_t h = ((uint64_t)parent << 32 | function) * 0x9e3779b97f4a7c15ull;

	/* the caller is in the upper half of h only: fold it down */
	return (size_t)(h ^ h >> 32) * 0x9e3779b97f4a7c15ull >> 24;
}

static size_t find_slot(const struct calltree *c, uint32_t parent, uint32_t function)
{
	size_t at = hash(parent, function) & (c->nslots - 1);

	for (; c->slots[at]; at = (at + 1) & (c->nslots - 1)) {
		const struct calltree_node *n = &c->nodes.v[c->slots[at] - 1];

		if (n->parent == parent && n->function == function)
			break;
	}
	return at;
}

static void grow_slots(struct calltree *c)
{
	c->nslots = c->nslots ? 2 * c->nslots : 1024;
	xfree(c->slots);
	c->slots = xcalloc(c->nslots, sizeof(*c->slots));
	for (size_t i = 0; i < c->nodes.n; i++)
		c->slots[find_slot(c, c->nodes.v[i].parent, c->nodes.v[i].function)] =
			(uint32_t)i + 1;
}

uint32_t calltree_node_of(struct calltree *c, uint32_t parent, uint32_t function)
{
	size_t at;

	if (2 * c->nodes.n >= c->nslots)
		grow_slots(c);
	at = find_slot(c, parent, function);
	if (!c->slots[at]) {
		struct calltree_node *n = vec_push(&c->nodes);

		n->parent = parent;
		n->function = function;
		c->slots[at] = (uint32_t)c->nodes.n;
	}
	c->nodes.v[c->slots[at] - 1].calls++;
	return c->slots[at] - 1;
}

bool calltree_has(const struct calltree *c, uint32_t parent, uint32_t function)
{
	return c->nslots && c->slots[find_slot(c, parent, function)];
}

static uint32_t on_node(void *ctx, uint32_t parent, uint32_t function)
{
	return calltree_node_of(ctx, parent, function);
}

/* The way forgotten but for the caller. */
static uint32_t on_edge(void *ctx, uint32_t parent, uint32_t function)
{
	struct calltree *c = ctx;

	return calltree_node_of(c, parent == CALLTREE_ROOT ? parent : c->nodes.v[parent].function,
				function);
}

static void on_leave(void *ctx, const struct trace_event *e, const struct pair_call *call)
{
	struct calltree *c = ctx;
	struct calltree_node *n = &c->nodes.v[call->node];

	(void)e;
	n->self += call->exit_tsc - call->entry_tsc - call->children_tsc;
	n->total += call->exit_tsc - call->entry_tsc;
}

/* Callers' times are a function's time: of calls that are in another one of the same function, that one has it. */
static void on_edge_leave(void *ctx, const struct trace_event *e, const struct pair_call *call)
{
	struct calltree *c = ctx;

	on_leave(c, e, call);
	if (call->recursive)
		c->nodes.v[call->node].total -= call->exit_tsc - call->entry_tsc;
}

/* As on_leave(), where samples share readings of the clock. */
static void on_sparse_leave(void *ctx, const struct trace_event *e, const struct pair_call *call)
{
	struct calltree *c = ctx;

	on_leave(c, e, call);
	slack_add(slack_at(&c->nodes.v[call->node].slack), call);
	if (call->payer != PAIR_NO_NODE)
		slack_add_callee(slack_at(&c->nodes.v[call->payer].slack), call);
}

static void on_sparse_pause(void *ctx, const struct pair_call *call, uint64_t samples)
{
	struct calltree *c = ctx;

	(void)samples;
	slack_add_callee(slack_at(&c->nodes.v[call->payer].slack), call);
}

/* ---- events of users ---- */

static void count_event(struct calltree *c, uint32_t node, const struct trace_user_event *u)
{
	uint32_t event = (uint32_t)(u - pairs_trace(c->pairs)->user_events);
	size_t known = c->event_at.n;
	uint32_t at = index_of(&c->event_at, (uint64_t)node << 32 | event);

	if (at == known)
		*vec_push(&c->events) = (struct calltree_event){.node = node, .event = event};
	c->events.v[at].count++;
}

static void on_user_event(void *ctx, const struct trace_event *e, const struct trace_user_event *u)
{
	struct calltree *c = ctx;

	count_event(c, pairs_top(c->pairs, e->lane), u);
}

/*
 * How many there were in a call and below it cannot be told from edges afterwards.  So each open
 * call remembers how many there were before it.
 */
static uint32_t on_frame(void *ctx, uint32_t parent, uint32_t function)
{
	struct calltree *c = ctx;
	uint32_t at = c->free_frame - 1;

	if (c->free_frame) {
		c->free_frame = c->frames.v[at].next_free;
	} else {
		at = (uint32_t)c->frames.n;
		vec_push(&c->frames);
	}
	c->frames.v[at].node =
		on_edge(c, parent == CALLTREE_ROOT ? parent : c->frames.v[parent].node, function);
	c->frames.v[at].events = c->nevents;
	return at;
}

static void on_frame_leave(void *ctx, const struct trace_event *e, const struct pair_call *call)
{
	struct calltree *c = ctx;
	struct calltree_frame *f = &c->frames.v[call->node];
	struct pair_call of_edge = *call;

	of_edge.node = f->node;
	on_edge_leave(c, e, &of_edge);
	if (!call->recursive)
		c->nodes.v[f->node].events += c->nevents - f->events;
	f->next_free = c->free_frame;
	c->free_frame = call->node + 1;
}

static void on_frame_event(void *ctx, const struct trace_event *e, const struct trace_user_event *u)
{
	struct calltree *c = ctx;
	uint32_t top = pairs_top(c->pairs, e->lane);

	count_event(c, top == CALLTREE_ROOT ? top : c->frames.v[top].node, u);
	c->nevents++;
}

/* ---- all lanes ---- */

static void build(struct calltree *c, const struct trace *t, const struct pair_sink *sink)
{
	struct pairs *pairs = pairs_open(t, sink);
	struct trace_event e;

	memset(c, 0, sizeof(*c));
	c->pairs = pairs;
	for (size_t lane = 0; lane < t->nlanes; lane++) {
		struct trace_cursor *cursor = trace_cursor_open(t, (int)lane);

		while (trace_cursor_next(cursor, &e))
			pairs_feed(pairs, &e);
		trace_cursor_close(cursor);
		pairs_finish_lane(pairs, (uint32_t)lane);
	}
	c->counts = *pairs_counts(pairs);
	pairs_close(pairs);
	c->pairs = NULL;
}

void calltree_build(struct calltree *c, const struct trace *t)
{
	const struct pair_sink sink = {
		.ctx = c, .node = on_node, .leave = on_leave, .user_event = on_user_event};

	build(c, t, &sink);
}

void calltree_build_bounded(struct calltree *c, const struct trace *t)
{
	const struct pair_sink sink = {.ctx = c,
				       .node = on_node,
				       .leave = on_sparse_leave,
				       .pause = on_sparse_pause,
				       .user_event = on_user_event};

	if (trace_clock_every(t) > 1)
		build(c, t, &sink);
	else
		calltree_build(c, t);
}

void calltree_build_edges(struct calltree *c, const struct trace *t)
{
	struct pair_sink sink = {
		.ctx = c, .node = on_edge, .leave = on_edge_leave, .want_recursive = true};

	if (t->nuser_events) {
		sink.node = on_frame;
		sink.leave = on_frame_leave;
		sink.user_event = on_frame_event;
	}
	build(c, t, &sink);
	vec_free(&c->frames);
}

void calltree_free(struct calltree *c)
{
	vec_for(&c->nodes, n)
		slack_free(n->slack);
	vec_free(&c->nodes);
	vec_free(&c->events);
	index_free(&c->event_at);
	xfree(c->slots);
}
