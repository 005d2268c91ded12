/* SPDX-License-Identifier: MIT */
/*
 * calltree.h - the calls of a trace as a tree: one node for each way to a function.
 *
 *   main ──► parse ──► read        a node holds calls, self time and time with its callees
 *        └─► read                  (TSC ticks) of all threads together
 *
 * Memory grows with the number of different ways, not of calls.
 */
#ifndef TRACE_CALLTREE_H
#define TRACE_CALLTREE_H

#include "base/vec.h"
#include "trace/pairs.h"

#define CALLTREE_ROOT UINT32_MAX

struct calltree_node {
	uint32_t parent; /* index, CALLTREE_ROOT */
	uint32_t function;
	uint64_t calls;
	uint64_t self, total;
};
struct calltree {
	VEC(struct calltree_node) nodes; /* a parent comes before its children */
	uint32_t *slots;
	size_t nslots;
	struct pair_counts counts;
};

void calltree_build(struct calltree *c, const struct trace *t);
/*
 * One node for each caller and callee, however the caller was reached: `parent` is a function's
 * number here, CALLTREE_ROOT for what nobody called.
 */
void calltree_build_edges(struct calltree *c, const struct trace *t);
/* The node of a function that is called from another node; counts the call. */
uint32_t calltree_node_of(struct calltree *c, uint32_t parent, uint32_t function);
/* Whether there is one. */
bool calltree_has(const struct calltree *c, uint32_t parent, uint32_t function);
void calltree_free(struct calltree *c);

#endif
