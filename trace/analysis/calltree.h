/* SPDX-License-Identifier: MIT */
/*
 * calltree.h - the calls of a trace as a tree: one node for each way to a function.
 *
 *   main ──► parse ──► read        a node holds calls, self time and time with its callees
 *        └─► read                  (TSC ticks) of all threads together
 *
 * Events of users' probes are counted by node.  Memory grows with the number of different ways,
 * not of calls.
 */
#ifndef TRACE_CALLTREE_H
#define TRACE_CALLTREE_H

#include "base/vec.h"
#include "trace/index.h"
#include "trace/analysis/pairs.h"
#include "trace/analysis/slack.h"

#define CALLTREE_ROOT UINT32_MAX

struct calltree_node {
	uint32_t parent; /* index, CALLTREE_ROOT */
	uint32_t function;
	uint64_t calls;
	uint64_t self, total;
	uint64_t events;     /* of users, with callees; by calltree_build_edges() alone */
	struct slack *slack; /* by calltree_build_bounded(); NULL: each sample has read the clock */
};
struct calltree_event { /* of a user's probe, in the function that ran */
	uint32_t node;  /* CALLTREE_ROOT: in none */
	uint32_t event; /* index into the trace's user_events */
	uint64_t count;
};
struct calltree_frame { /* an open call, while edges are built */
	uint32_t node, next_free;
	uint64_t events;
};
struct calltree {
	VEC(struct calltree_node) nodes; /* a parent comes before its children */
	VEC(struct calltree_event) events;
	struct index event_at; /* node << 32 | event */
	uint32_t *slots;
	size_t nslots;
	struct pair_counts counts;
	/* while it is built */
	const struct pairs *pairs;
	VEC(struct calltree_frame) frames;
	uint32_t free_frame; /* index + 1 */
	uint64_t nevents;
};

void calltree_build(struct calltree *c, const struct trace *t);
/* The same, and by how much its times may be off. */
void calltree_build_bounded(struct calltree *c, const struct trace *t);
/*
 * One node for each caller and callee, however the caller was reached: `parent` is a function's
 * number here, CALLTREE_ROOT for what nobody called.  `total` and `events` leave out calls that are in another one of the same
 * function, so those of all callers together are the function's.
 */
void calltree_build_edges(struct calltree *c, const struct trace *t);
/* The node of a function that is called from another node; counts the call. */
uint32_t calltree_node_of(struct calltree *c, uint32_t parent, uint32_t function);
/* Whether there is one. */
bool calltree_has(const struct calltree *c, uint32_t parent, uint32_t function);
void calltree_free(struct calltree *c);

#endif
