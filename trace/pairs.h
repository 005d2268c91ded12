/* SPDX-License-Identifier: MIT */
/*
 * pairs.h - pairs entries with exits and rebuilds each thread's call stacks.
 *
 * Problem: exits may be missing (exceptions, longjmp, exit(), killed threads, sites that no
 * tactic could take) and a thread may switch between several stacks (signal stacks,
 * coroutines).  The payload of a sample is the low 32 bits of the stack pointer S at the
 * return address, so each frame has an identity:
 *
 *   - an exit closes the open frame of the same function and the same S; deeper frames of that
 *     stack that are still open ended without an exit: closed by inference, at that time
 *   - an entry at S closes all open frames of its stack whose S is not above it
 *   - an S far from the current stack belongs to another stack: the one that it fits into, or
 *     a new one.  Frames of the other stacks stay open.
 *   - after a LOST record nothing is assumed: an exit without its entry is an orphan
 *
 * Samples without such a payload (traces of other boards) fall back to pairing by function.
 */
#ifndef TRACE_PAIRS_H
#define TRACE_PAIRS_H

#include "trace/reader.h"

struct pair_call {
	uint32_t lane;
	uint32_t function; /* index into trace->functions */
	uint32_t caller;   /* likewise, UINT32_MAX at the bottom of a stack */
	uint32_t depth;    /* 0 at the bottom */
	uint64_t entry_tsc, exit_tsc;
	uint64_t children_tsc; /* time inside direct callees */
	bool inferred;     /* no exit sample: closed by inference */
	bool open;         /* still running when the trace ended */
	bool recursive;    /* the same function is further up on this stack */
};
struct pair_sink {
	void *ctx;
	/* In order of time for each lane; any may be NULL. */
	void (*enter)(void *ctx, const struct trace_event *e, uint32_t function, uint32_t depth);
	void (*leave)(void *ctx, const struct trace_event *e, const struct pair_call *call);
	void (*orphan_exit)(void *ctx, const struct trace_event *e, uint32_t function);
	void (*special)(void *ctx, const struct trace_event *e); /* LOST, CPU */
};
struct pair_counts {
	uint64_t entries, exits, calls;
	uint64_t inferred, open, orphans;
};

struct pairs;
struct pairs *pairs_open(const struct trace *t, const struct pair_sink *sink);
void pairs_feed(struct pairs *p, const struct trace_event *e);
void pairs_finish(struct pairs *p); /* closes what is open at each lane's last time */
const struct pair_counts *pairs_counts(const struct pairs *p);
void pairs_close(struct pairs *p);

#endif
