/* SPDX-License-Identifier: MIT */
/* pairs_impl.h - what pairs.c and the other pairs_*.c share; nobody else includes it. */
#ifndef TRACE_PAIRS_IMPL_H
#define TRACE_PAIRS_IMPL_H

#include "base/vec.h"
#include "trace/index.h"
#include "trace/analysis/pairs.h"
#include "trace/analysis/strands.h"

#define NEAR (1u << 20)
#define APART 4096u
#define HALF (1u << 31)

/* Of one function in one lane: open frames, all of one root.  Others are searched for. */
struct activity {
	uint32_t root, count;
};

/* How far below functions their callees were; those that are not here: APART. */
struct reach {
	struct index functions;
	VEC(uint32_t) gap; /* by index */
};

struct lane {
	struct strand_set set;
	struct strand *cur;          /* NULL: unknown, or no open frames */
	struct strand *plain;        /* frames whose samples have no stack pointer */
	const struct strand *newest; /* of the frame that pair_sink.node is asked about */
	struct activity *active;
	struct reach *reach; /* NULL: nothing was learnt */
	uint64_t events;     /* so far */
	uint64_t samples;    /* of these, records of the runtime left out */
	uint64_t last_tsc, loss_tsc;
	struct trace_bounds last_in;
	/* While cur is unknown: what ran last ended then, and was begun on this strand, whose time it is. */
	struct moment vacant;
	struct strand *heir;
	uint64_t end_tsc;   /* pairs_lane_end(); 0: nobody has asked yet */
	uint64_t window_to; /* of the filter's windows, the one that its last event is in */
	uint32_t number;    /* of the trace's lanes */
	uint32_t switches;  /* between strands */
	uint32_t
		unwinds; /* payload of the record UNWINDS that waits for the other one; 0: none does */
	size_t sleeps; /* rows of the trace that its frames know of */
	bool has_loss;
	bool has_asleep; /* some of its frames may be */
	bool may_be_gone; /* what runs has jumped somewhere: the next sample tells whether it ended */
	struct moment jumped;      /* when that was */
	bool child_ended;          /* a record said so: the next sample is its parent's */
	struct children *children; /* pairs_child.c; NULL: there were none */
};

struct pairs {
	const struct trace *t;
	struct pair_sink sink;
	struct pair_counts counts;
	struct lane *lanes;
	struct strand_pool pool;
	uint32_t nfunctions;    /* numbers below it have activity */
	struct activity *spare; /* all zero: of a lane that ended */
	bool is_sparse;         /* samples share readings of the clock */
};

/* Close frames[keep..] from the top, by inference.  The strand stays, even if empty. */
void pairs_close_above(struct pairs *p, struct lane *l, struct strand *s, uint32_t keep,
		       const struct trace_event *e, struct moment at);
/* Close all of them: they are still running. */
void pairs_leave_open(struct pairs *p, struct lane *l, struct strand *s, struct moment at);
/* At the next sample after a jump to somewhere, or none: it led to nothing that is recorded. */
void pairs_end_jump(struct pairs *p, struct lane *l, const struct trace_event *e);

static inline struct moment pairs_now(const struct lane *l, const struct trace_event *e)
{
	return (struct moment){e->tsc, e->in, l->events, l->samples};
}

/* sp lies below the top of the strand, by less than NEAR */
static inline bool pairs_is_deeper(const struct strand *s, uint32_t sp)
{
	return s && strand_top(s) - sp - 1 < NEAR - 1 && strand_bottom(s) - sp < HALF;
}

/* ---- frames that are left for good (pairs_stack.c) ---- */

/* A record UNWINDS or UNWOUND. */
void pairs_unwind(struct pairs *p, struct lane *l, const struct trace_event *e);
/* Close the frames of s from keep on, with which the stack was left, or is left now. */
void pairs_close_from(struct pairs *p, struct lane *l, struct strand *s, uint32_t keep,
		      const struct trace_event *e);
/* sp is a little above the current bottom and nothing lies between: all of it ended. */
bool pairs_is_just_above(const struct lane *l, uint32_t sp);
/* The current strand has grown down to sp, over those that were cut off from it.  s, or what holds sp then. */
struct strand *pairs_grow_over(struct pairs *p, struct lane *l, struct strand *s,
			       const struct trace_event *e, uint32_t sp);

/* ---- which strand runs (pairs_stack.c) ---- */

/* s goes on, and what waits for it; what ran until now, or waited for that, does not. */
void pairs_make_current(struct pairs *p, struct lane *l, struct strand *s,
			const struct trace_event *e);
/* The last frame of s is about to go, and payer has been charged with all of it; NULL: nobody has. */
void pairs_end_bottom(struct lane *l, struct strand *s, const struct frame *payer,
		      struct moment at);
/* Up to this moment s stood still: so its top frame did not run. */
void pairs_charge_pause(struct pairs *p, struct strand *s, struct moment at);
/* Give an empty strand back; what it interrupted, or was called from, runs again. */
void pairs_retire(struct pairs *p, struct lane *l, struct strand *s);
/* x waits for s, or is s: what runs there was begun by x, or has interrupted it. */
bool pairs_is_waiting(const struct strand *x, const struct strand *s);
/* Before an event outside of the window that the last one is in. */
void pairs_end_window(struct pairs *p, struct lane *l, const struct trace_event *e);
/* When frames that turn out to be dead ended at the latest. */
struct moment pairs_end_of(const struct lane *l, const struct strand *s,
			   const struct trace_event *e);
/* A strand for a frame that fits nowhere, on top of what runs now. */
struct strand *pairs_begin_strand(struct pairs *p, struct lane *l, const struct trace_event *e,
				  bool linked);
/* Cut frames[at..] off into a strand of their own, set aside.  0 < at < n. */
void pairs_cut(struct pairs *p, struct lane *l, struct strand *s, uint32_t at,
	       const struct trace_event *e);
/*
 * The reach of a function (pairs.c).  Of each lane its own, so that a lane reads the same alone and
 * among others.
 */
void pairs_learn_reach(struct lane *l, uint32_t function, uint32_t gap);
uint32_t pairs_reach_of(const struct lane *l, uint32_t function);
void pairs_free_reach(struct lane *l);

/* ---- functions that go to sleep (pairs_sleep.c) ---- */

/* Before an event at which more of the trace's rows are over than the lane knows of. */
void pairs_notice_sleeps(struct pairs *p, struct lane *l, const struct trace_event *e);
/* Does the function go to sleep between the lane's last event and this moment? */
bool pairs_will_sleep(const struct pairs *p, const struct lane *l, uint32_t function, uint64_t tsc);
/* After the last event of a lane: those that follow it. */
void pairs_notice_last_sleeps(struct pairs *p, struct lane *l);
/* After an event: what sleeps and has nothing open above it is not known to run any more. */
void pairs_close_asleep(struct pairs *p, struct lane *l, const struct trace_event *e);

/* ---- children that borrow the lane (pairs_child.c) ---- */

/* A record VFORK, SPAWN, CHILD_ENDS or CHILD_LIVES. */
void children_record(struct pairs *p, struct lane *l, const struct trace_event *e);
/* A sample after the end of a child: what it has left open ends. */
void children_end(struct pairs *p, struct lane *l, const struct trace_event *e);
/* An exit without an entry: is it that of a vfork that returned in its child before? */
bool children_second_return(struct pairs *p, struct lane *l, const struct trace_event *e,
			    uint32_t function);
/* What is open has ended: so have the calls of vfork. */
void children_forget_calls(struct lane *l);
void children_free(struct lane *l);

#endif
