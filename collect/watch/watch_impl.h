/* SPDX-License-Identifier: MIT */
/*
 * watch_impl.h - what the parts of the watch share.
 *
 *   watch.c         looks: feeds the trigger in order of time, until it fires
 *   watch_lanes.c   the threads: who they are, where each of them is looked at, what comes next
 *   watch_losses.c  where samples were lost, and a time that is over decides nothing
 *   watch_chunks.c  chunks on their way: met, taken, held, discarded
 *   watch_window.c  the trigger has fired: what is in the window, and into the trace with it
 */
#ifndef COLLECT_WATCH_IMPL_H
#define COLLECT_WATCH_IMPL_H

#include "base/vec.h"
#include "collect/calibrate.h"
#include "collect/drain.h"
#include "collect/watch/watch.h"
#include "trace/packed.h"

/*
 * A chunk of a lane.  It is met when its thread begins to fill it, and taken when nothing more
 * will come.  Until it was looked at, its samples lie as they were written, in the pool or, of the
 * emulated board, in memory of ours.  Held, they are packed, if that makes them less.
 *
 * A hole is a place that was passed over, because the thread has stored something later more than
 * a moment ago: a signal handler runs on top of the probe that will fill it.
 */
#define WATCH_HOLES 8u
struct watch_chunk {
	struct watch_chunk *before, *next; /* of its lane, in order */
	struct watch_chunk *older, *newer; /* in its row */
	uint32_t lane;
	uint32_t pool; /* its number there; WATCH_NO_POOL: `bytes` are ours */
	uint8_t *bytes;
	uint32_t size;    /* of `bytes` */
	uint32_t at;      /* looked at up to here, in bytes as they were written */
	uint32_t counted; /* this many samples, special records left out */
	bool taken, held, packed;
	uint64_t seq;
	uint64_t first, last;    /* the lowest and highest time looked at */
	struct trace_chunk head; /* taken */
	uint32_t samples;        /* taken: how many, special records left out */
	uint32_t nholes;
	uint32_t holes[WATCH_HOLES]; /* as `at` */
};

/* Chunks that were taken, by the time of their last samples. */
struct watch_row {
	struct watch_chunk *oldest, *newest;
	uint32_t n;
};

struct watch_lane {
	uint64_t key;           /* process and thread; 0: unused */
	uint32_t same_hash;     /* the next lane there, or the next unused one; index + 1 */
	struct trace_lane l;    /* the name is ours */
	struct trace_proc proc; /* exe is ours */
	pid_t pid;              /* to ask about the thread; 0: nobody can be asked */
	uint32_t slot;          /* of its process */
	bool dead;              /* its thread is gone */
	bool is_open;           /* in watch.open */
	struct watch_chunk *chunks, *youngest;
	struct watch_chunk *here; /* the first that was not looked at to its end */
	uint32_t cpu;
	uint32_t high; /* of the last WIDE record, and its time */
	uint64_t high_tsc;
	uint64_t memory_tsc; /* of the last MEMORY record */
	uint32_t ahead;      /* so far is looked for what undoes a sample */
	uint32_t fed;        /* how often that was in vain */
	uint64_t order;      /* the highest time so far: a merge goes by that */
	uint64_t seen;       /* the highest time looked at */
	uint64_t sure;  /* the same of samples: special records tell nothing of what was before */
	uint64_t named; /* the round in which it was asked for its name */
	/* What the trigger gets next; it lies at `at` in the chunk `here`. */
	bool has_next, is_loss;
	uint64_t lost_after; /* is_loss: `sure` when it was come to */
	uint8_t bits;
	struct trace_event e;
	/* Nothing is seen of it up to doubt_at: is something still to come?  Since when we ask, and
	 * how long the thread had run then. */
	uint64_t doubt_at, doubt_ns, doubt_ran;
};

/* Where the trigger fired, and why. */
struct watch_fired {
	uint64_t at; /* 0: it did not */
	bool by_time, by_group;
	uint32_t lane;
	struct kron_sample s; /* at which it fired, unless by_time or by_group */
	uint64_t since;       /* by_time: of the sample from which on it waited */
};

/* What a process has lost.  Its threads tell of it only with their next samples. */
struct watch_losses {
	uint32_t uid;     /* whose; a place may become another's */
	uint64_t lost;    /* as it says */
	uint64_t told;    /* of these, by records that were fed */
	uint64_t noticed; /* when `lost` was seen to have grown last */
};

#define WATCH_HASH 16384u

struct watch {
	struct sink sink;
	struct drain *d;
	const struct board *board; /* NULL: lanes */
	const char *label, *text;  /* of the trigger */
	bool is_ring;              /* watch_options.fired, and the two below */
	void (*on_fire)(void *ctx, uint64_t since, uint64_t tsc);
	void *on_fire_ctx;
	struct trigger *trigger;
	struct group *group;
	struct window_finder finder;
	struct time_point start;
	uint64_t rate_tsc; /* when the clock's rate was worked out */
	uint64_t round;
	uint64_t names_seen; /* trace_writer_show_names() */
	bool by_thread_name;
	uint32_t *jumps; /* functions whose exits they are, by number of the jump */
	size_t njumps;

	VEC(struct watch_lane) lanes;
	uint32_t unused_lanes;       /* index + 1 */
	uint32_t *by_key;            /* WATCH_HASH: index + 1 */
	struct watch_losses *losses; /* by place of the process */
	VEC(uint32_t) open;          /* lanes with something to look at */
	VEC(uint32_t) heap;          /* lanes that have a next */

	struct watch_chunk **pool;       /* by number */
	struct watch_row resident, held; /* taken, and not held or held */
	VEC(struct watch_chunk *) holed; /* with holes */
	uint8_t *room;                   /* for a chunk that is packed, or restored */

	uint64_t
		fetched; /* of a board: up to here everything has come, but for its FIFOs; 0: nothing */
	uint64_t decided; /* up to here everything has been fed */
	struct watch_fired fired;
	uint64_t horizon; /* what lies before this is in no window to come */
	uint64_t horizon_base;
	uint64_t after; /* fired: samples since */
	bool done;      /* the window is in the trace: nothing more is kept */
	uint64_t outside;
};

/* An exit by a jump becomes its function's exit, as readers have it (trace/jumps.h). */
static inline void watch_resolve(const struct watch *w, struct trace_event *e)
{
	uint32_t j = (e->s.event - KRON_EVENT_JUMPS) / 2;

	if (e->s.event < KRON_EVENT_JUMPS || !(e->s.event & 1) || j >= w->njumps ||
	    w->jumps[j] == UINT32_MAX)
		return;
	e->s.event = KRON_EVENT_EXIT(w->jumps[j]);
	e->jump = j + 1;
}

/* Now, by the clock of the samples. */
uint64_t watch_clock(const struct watch *w);

/* ---- lanes ---- */

/* The lane of this thread; made if there is none. */
uint32_t watch_lane_of(struct watch *w, const struct chunk_owner *o);
/* Its thread is gone, and nothing of it is left: its place may be another's. */
void watch_lane_retire(struct watch *w, uint32_t lane);
/* Something is to be looked at. */
void watch_lane_opens(struct watch *w, uint32_t lane);
void watch_lanes_free(struct watch *w);

/*
 * Go on to the next sample before `until` that the trigger wants, unless there is one.  true: it
 * is next.  After the trigger has fired, count instead.
 */
bool watch_lane_advance(struct watch *w, uint32_t lane, uint64_t until);
/* What is next was fed. */
void watch_lane_consume(struct watch *w, uint32_t lane);
/* Has it a hole that may be filled yet? */
bool watch_lane_has_holes(const struct watch *w, uint32_t lane);
/* Holes that were filled since: each sample to feed(). */
void watch_lanes_fill(struct watch *w, void (*feed)(struct watch *w, const struct trace_event *e));

/* ---- losses ---- */

/* How much has been lost by now? */
void watch_losses_notice(struct watch *w);
/* This record of a loss was fed. */
void watch_losses_tell(struct watch *w, const struct watch_lane *l);
/* May some thread of this place's process have lost samples since, that no record tells of yet? */
bool watch_losses_pending(const struct watch *w, uint32_t slot, uint32_t uid, uint64_t since);
/* The same of all processes. */
bool watch_losses_pending_any(const struct watch *w, uint64_t since);
/* Is this moment, up to which all has been fed, in a gap that a record to come tells of? */
bool watch_losses_gap(const struct watch *w, uint32_t lane, uint64_t tsc);
bool watch_losses_gap_any(const struct watch *w, uint64_t tsc);

/* ---- chunks ---- */

/*
 * A chunk whose samples would go into the trace, complete.  One of the pool stays there until it was
 * looked at, and is freed then; what has no number there is copied.
 */
#define WATCH_NO_POOL UINT32_MAX
void watch_take(struct watch *w, uint32_t pool, const struct trace_chunk *head, const void *data,
		uint32_t samples, const struct chunk_owner *o);
/* Of a chunk of the pool.  LEAVE: it was taken, or not looked at yet.  JUDGE: it has holes. */
enum sink_advice watch_advise(const struct watch *w, uint32_t pool, bool full, uint32_t *samples);
/* Look for chunks of the pool that threads have begun to fill. */
void watch_chunks_meet(struct watch *w);
/* How large is the sample that begins here; in a lane all have one size, whatever a program may
 * write there.  0: it is cut off. */
static inline uint32_t watch_size_at(const struct watch *w, const uint8_t *bytes, uint32_t at,
				     uint32_t end)
{
	const struct kron_sample *s = (const void *)(bytes + at);
	uint32_t size = KRON_SAMPLE_SIZE;

	if (end < at + size)
		return 0;
	if (w->board &&
	    (s->head >> KRON_HEAD_TYPE_SHIFT & KRON_HEAD_TYPE_MASK) == KRON_HEAD_TYPE_RESOURCE)
		size = KRON_RESOURCE_SIZE;
	return end < at + size ? 0 : size;
}
/* Samples as they were written; not of a packed one. */
const uint8_t *watch_chunk_bytes(const struct watch *w, const struct watch_chunk *c);
/* Up to where may there be some? */
uint32_t watch_chunk_end(const struct watch_chunk *c);
static inline bool watch_chunk_is_looked_at(const struct watch_chunk *c)
{
	return c->taken && !c->nholes && c->at >= c->head.nbytes;
}
/* Out of all lists; `written` of its samples are in the trace. */
void watch_chunk_let_go(struct watch *w, struct watch_chunk *c, uint32_t written);
/* What no window to come can have goes, what may stay is held. */
void watch_chunks_settle(struct watch *w);
/* What may be in a window that begins `pre` before this moment. */
uint64_t watch_horizon(const struct watch *w, uint64_t base);
void watch_chunks_free(struct watch *w);

/* ---- the window ---- */

/* It has fired: from here on samples are counted that come after. */
void watch_window_begin(struct watch *w);
bool watch_window_is_closed(const struct watch *w, uint64_t until);
/* Closes the gates, and writes. */
void watch_window_finish(struct watch *w);
/* What of this chunk is in the window, to the trace: how many samples. */
uint32_t watch_window_write(struct watch *w, struct watch_chunk *c);

#endif
