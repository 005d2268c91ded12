/* SPDX-License-Identifier: MIT */
/* calltree.c - gathers the tree while the lanes are read one after another; see calltree.h. */
#include "trace/calltree.h"

#include <string.h>

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

static void build(struct calltree *c, const struct trace *t,
		  uint32_t (*node)(void *ctx, uint32_t parent, uint32_t function))
{
	struct pair_sink sink = {.ctx = c, .node = node, .leave = on_leave};
	struct pairs *pairs = pairs_open(t, &sink);
	struct trace_event e;

	memset(c, 0, sizeof(*c));
	for (size_t lane = 0; lane < t->nlanes; lane++) {
		struct trace_cursor *cursor = trace_cursor_open(t, (int)lane);

		while (trace_cursor_next(cursor, &e))
			pairs_feed(pairs, &e);
		trace_cursor_close(cursor);
		pairs_finish_lane(pairs, (uint32_t)lane);
	}
	c->counts = *pairs_counts(pairs);
	pairs_close(pairs);
}

void calltree_build(struct calltree *c, const struct trace *t)
{
	build(c, t, on_node);
}

void calltree_build_edges(struct calltree *c, const struct trace *t)
{
	build(c, t, on_edge);
}

void calltree_free(struct calltree *c)
{
	vec_free(&c->nodes);
	xfree(c->slots);
}
