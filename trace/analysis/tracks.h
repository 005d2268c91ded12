/* SPDX-License-Identifier: MIT */
/*
 * tracks.h - the calls of pairs.c in order, on tracks, each of which nests.
 *
 *   stack 1  main ─┬─ resume ─┐     ┌─ resume ─┐     ┌──     A thread has several stacks where it
 *   stack 2        └──────── body ── yield ── body ──┘       runs coroutines, and their calls
 *                                                            interleave.
 *
 * A call is on one track from its begin to its end, never cut.  Track 0 is the thread's own.  What
 * interrupts it and is over when it goes on (a signal handler, on whatever stack) is nested there.  A
 * stack whose calls are open while what they interrupted goes on has a track of its own, which a
 * later stack may have after it.
 *
 * Whether that will be so is known later than the begin of a call, and so is the end of a call whose
 * stack was left for good.  So a lane is read once before, and a few times where there is anything of
 * either kind; what is kept of that is a number or two for each such stack and call.
 */
#ifndef TRACE_TRACKS_H
#define TRACE_TRACKS_H

#include "trace/analysis/pairs.h"

struct track_call {
	uint32_t lane, track;
	uint32_t level; /* how many calls are open on its track below it */
	uint32_t depth; /* pairs.c's */
	uint32_t function;
	uint32_t node;                                     /* what track_sink.node said */
	uint64_t entry_tsc, exit_tsc;                      /* exit: at its end */
	struct trace_bounds entry, exit;                   /* likewise */
	bool inferred, open, spans_loss, jumped, at_least; /* likewise; as in struct pair_call */
};

/* What is known of lanes beforehand, for those who read a trace more than once. */
struct track_plans;
struct track_plans *track_plans_open(const struct trace *t);
void track_plans_close(struct track_plans *p);

struct track_sink {
	void *ctx;
	struct track_plans *plans; /* NULL: of its own */
	/*
	 * Any may be NULL.  begin and end come in order and nest on each track; leave has pairs.c's
	 * last word on the call, and may come later than its end.
	 */
	void (*begin)(void *ctx, const struct trace_event *e, const struct track_call *c);
	void (*end)(void *ctx, const struct trace_event *e, const struct track_call *c);
	void (*leave)(void *ctx, const struct trace_event *e, const struct pair_call *call,
		      const struct track_call *c);
	void (*orphan_exit)(void *ctx, const struct trace_event *e, uint32_t function);
	void (*special)(void *ctx, const struct trace_event *e);
	/* track: of what runs */
	void (*user_event)(void *ctx, const struct trace_event *e, const struct trace_user_event *u,
			   uint32_t track);
	uint32_t (*node)(void *ctx, uint32_t caller, uint32_t function);
	bool want_recursive;
	/* A lane is not read beforehand but when it comes to a second stack: output begins at once.
	 * Calls that were open by then stay on their track. */
	bool lazy;
};

struct tracks;
struct tracks *tracks_open(const struct trace *t, const struct track_sink *sink);
/* In the order of a cursor, of one lane or of several. */
void tracks_feed(struct tracks *x, const struct trace_event *e);
uint64_t tracks_lane_end(struct tracks *x, uint32_t lane); /* pairs_lane_end() */
void tracks_finish_lane(struct tracks *x, uint32_t lane);
void tracks_lane(struct tracks *x, uint32_t lane); /* all of it */
/* What track_sink.node said of the call that runs; PAIR_NO_NODE: none is known. */
uint32_t tracks_top(const struct tracks *x, uint32_t lane);
bool tracks_is_cut(const struct tracks *x, const struct trace_event *entry,
		   uint64_t tsc); /* pairs_is_cut() */
const struct pair_counts *tracks_counts(const struct tracks *x);
void tracks_close(struct tracks *x);

#endif
