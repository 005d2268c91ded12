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
 *   - after a LOST record nothing is assumed: an exit without its entry is an orphan, and a
 *     call that spans the loss is marked, for its entry and exit may be of two calls
 *
 * Samples without such a payload (traces of other boards) fall back to pairing by function.
 * trace/analysis/pairs.c says how the stacks are told apart.
 */
#ifndef TRACE_PAIRS_H
#define TRACE_PAIRS_H

#include "trace/reader.h"

struct pair_call {
	uint32_t lane;
	uint32_t function; /* number n: events 2n, 2n+1; trace_function_of() knows the rest */
	uint32_t caller;   /* likewise, UINT32_MAX at the bottom of a stack */
	uint32_t depth;    /* 0 at the bottom */
	uint64_t entry_tsc, exit_tsc;    /* entry <= exit */
	struct trace_bounds entry, exit; /* when these were */
	/* Time inside direct callees, and while it stood still for another stack: <= exit - entry. */
	uint64_t children_tsc;
	bool paused;   /* it has stood still for other stacks, which it need not have called */
	bool inferred; /* the end was not seen: closed by inference */
	bool open;     /* still running after the last event: trace_lane_end(); or
					  * at the end of a window, with events after it */
	bool jumped; /* it left by a jump; unless inferred or open, it ended with what it jumped to */
	/* Inferred, with its jump to what was not recorded, for nobody who waits for it was, either. */
	bool at_least;
	bool recursive;  /* the same function is further up on this stack */
	bool spans_loss; /* samples were lost between entry and exit */
	uint32_t node;   /* what pair_sink.node said of this frame */
	uint64_t ended;  /* pairs_events() at its end; less than now: see pair_sink */
	uint32_t jump;   /* by which it left: trace/jumps.h; 0: none */
	uint32_t within; /* likewise, of the frame that all of it lies in; it is still open */
	/* Likewise, of the frame whose children_tsc has all of this time: its caller, or what a signal
	 * handler interrupted.  It is still open.  PAIR_NO_NODE: there is none, see pair_sink.pause. */
	uint32_t payer, payer_function; /* UINT32_MAX: likewise */
};
#define PAIR_NO_NODE UINT32_MAX
struct pair_sink {
	void *ctx;
	/*
	 * In order of time for each lane; any may be NULL.  Exception: a frame whose stack was
	 * taken for one that waits, and turns out to be dead, is closed when that is seen, with
	 * the earlier exit_tsc (tracks.h has them in order).  e is the event that closed it, NULL
	 * from pairs_finish and at the end of a window.
	 */
	void (*enter)(void *ctx, const struct trace_event *e, uint32_t function, uint32_t depth);
	void (*leave)(void *ctx, const struct trace_event *e, const struct pair_call *call);
	/*
	 * Not a call: from entry to exit other stacks ran, coroutines for instance, and the call of c->payer
	 * stood still; its children_tsc has that.  The lane had so many samples meanwhile.  Only the
	 * times and payer are filled in.  What other calls are charged with as their payers is not among
	 * it.
	 */
	void (*pause)(void *ctx, const struct pair_call *c, uint64_t samples);
	/* The call of this node has exited by a jump: it stays open, and leave() follows. */
	void (*jump)(void *ctx, const struct trace_event *e, uint32_t node);
	void (*orphan_exit)(void *ctx, const struct trace_event *e, uint32_t function);
	void (*special)(void *ctx, const struct trace_event *e); /* LOST, CPU */
	/* A sample of the user's own: no call begins or ends. */
	void (*user_event)(void *ctx, const struct trace_event *e,
			   const struct trace_user_event *u);
	/*
	 * Asked at each entry, if not NULL: the caller's own number and the function (PAIR_NO_NODE at
	 * the bottom of a stack) give the frame's number.  A call tree, in other words.
	 */
	uint32_t (*node)(void *ctx, uint32_t caller, uint32_t function);
	bool want_recursive; /* fill in pair_call.recursive: 8 bytes a function and open lane */
};
struct pair_counts {
	uint64_t entries, exits, calls; /* calls: frames closed, in whatever way */
	uint64_t inferred, open, orphans;
	uint64_t spans_loss;
	uint64_t jumped;   /* of inferred and open: they exited by a jump */
	uint64_t at_least; /* of these: pair_call.at_least */
	uint64_t led_to;   /* taken for what a jump through a pointer led to: nobody knows better */
	uint64_t
		shared; /* second exits: the one of vfork, or after a jump into a function's middle */
};

struct pairs;
struct pairs *pairs_open(const struct trace *t, const struct pair_sink *sink);
void pairs_feed(struct pairs *p, const struct trace_event *e);
/* No more of this lane will be fed: when what it has open ends (trace_lane_end()). */
uint64_t pairs_lane_end(struct pairs *p, uint32_t lane);
/* Close what is open in one lane, and free its memory. */
void pairs_finish_lane(struct pairs *p, uint32_t lane);
void pairs_finish(struct pairs *p); /* all lanes */
const struct trace *pairs_trace(const struct pairs *p);
/* What pair_sink.node said of the frame that runs in a lane; PAIR_NO_NODE: none is known. */
uint32_t pairs_top(const struct pairs *p, uint32_t lane);
/*
 * While pair_sink.node is asked: likewise, of what lies below the new frame: its caller, or what it
 * has interrupted.
 */
uint32_t pairs_below(const struct pairs *p, uint32_t lane);
/*
 * While an entry is fed: will its call be over at that time, the next event's of the lane, whatever that is?
 * A window ends, or its function goes to sleep.
 */
bool pairs_is_cut(const struct pairs *p, const struct trace_event *entry, uint64_t tsc);
/* On how many stacks, or parts of one, the lane has open calls. */
uint32_t pairs_strands(const struct pairs *p, uint32_t lane);
/* How many events the lane has had. */
uint64_t pairs_events(const struct pairs *p, uint32_t lane);
const struct pair_counts *pairs_counts(const struct pairs *p);
void pairs_close(struct pairs *p);

#endif
