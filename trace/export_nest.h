/* SPDX-License-Identifier: MIT */
/*
 * export_nest.h - a thread's calls for formats whose begins and ends must nest.
 *
 * A thread's do not always: coroutines and signal stacks run in the middle of other calls.  So
 * an end of what is not on top ends what lies above, too, and begins it again at once:
 *
 *   a ─┬─ b ──────┬─            a ─┬─ b ──┬─
 *      └── c ─────│────┬─  ->      └─ c ──┴─ c ──┬─     c was split
 *
 * Times never run back.
 */
#ifndef TRACE_EXPORT_NEST_H
#define TRACE_EXPORT_NEST_H

#include "base/vec.h"
#include "trace/pairs.h"

struct export_nest {
	const struct trace *t;
	void *ctx;
	/* again: it was ended a moment ago because it lay on top of another that ended */
	void (*begin)(void *ctx, uint32_t function, uint64_t tsc, bool again);
	/* call: NULL when it is begun again at once */
	void (*end)(void *ctx, uint32_t function, uint64_t tsc, const struct pair_call *call);
	/* a LOST or CPU record; may be NULL */
	void (*special)(void *ctx, const struct trace_event *e);
	/* of a probe that a user placed; may be NULL */
	void (*user_event)(void *ctx, const struct trace_event *e,
			   const struct trace_user_event *u);
	/* every event of the lane, before what it begins or ends; may be NULL */
	void (*event)(void *ctx, const struct trace_event *e);
	/* as pair_sink.node and .want_recursive */
	uint32_t (*node)(void *ctx, uint32_t caller, uint32_t function);
	bool want_recursive;

	/* private */
	VEC(uint32_t) stack;
	uint64_t last;
	struct pairs *pairs;
};

void export_nest_open(struct export_nest *n);
/* All calls of a lane; those that are still open end with its last sample. */
void export_nest_lane(struct export_nest *n, uint32_t lane);
void export_nest_close(struct export_nest *n);

/* ---- a set of numbers, of functions that were seen ---- */
struct export_set {
	uint64_t *slots; /* number + 1 */
	size_t n, nslots;
};
/* Whether it is new. */
bool export_set_add(struct export_set *s, uint32_t number);
void export_set_free(struct export_set *s);

#endif
