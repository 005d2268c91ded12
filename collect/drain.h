/* SPDX-License-Identifier: MIT */
/*
 * drain.h - moves samples from the segment into the trace while the program runs.
 *
 *                 FULL, or OWNED by a thread that is gone
 *   segment ───────────────────────────────────────────────► trace
 *      ▲                                                        │
 *      └── zeroed, FREE, free_count, waiters woken ◄────────────┘
 *
 * One thread.  It sleeps 2 to 50 ms, longer the less there is to do, and is woken by the
 * runtime through ctl->wake_collector when chunks run short (grow.h makes more).  In wrap mode
 * it takes nothing before the end, and lets the oldest go (drain_wrap.c).
 *
 * Disk full: nothing is freed whose samples are not in the file.  The gates are closed, the
 * program goes on, and the segment keeps what it has for `kron recover`.
 */
#ifndef COLLECT_DRAIN_H
#define COLLECT_DRAIN_H

#include <pthread.h>
#include <stdbool.h>

#include <kron/control.h>

#include "collect/calibrate.h"
#include "collect/journal.h"
#include "collect/segment.h"
#include "collect/sink.h"
#include "collect/tasks.h"

struct drain_totals {
	uint64_t samples; /* in the trace, special records not counted */
	uint64_t cut_off; /* holes: claims that were never stored */
	uint64_t chunks;
	uint64_t stranded; /* samples that could not be written and stay in the segment */
};

#define DRAIN_PENDING 32u

struct fetch;    /* collect/fetch.h */
struct pages;    /* collect/pages/pages.h */
struct switches; /* collect/switches.h */

struct drain {
	struct segment *seg;
	struct journal *journal;
	struct tasks *tasks;
	struct drain_totals totals;
	uint64_t freed;                 /* chunks */
	uint64_t still_ns, still_freed; /* since when nothing could be freed, and `freed` then */
	struct sink_chunk pending[DRAIN_PENDING]; /* in the journal's stage */
	uint32_t npending;
	pthread_t thread;
	bool running;
	bool stop;               /* atomic */
	struct time_point start; /* of the recording; 0: do not estimate the clock's rate */
	bool disk_failed;        /* the journal failed and the gates are closed */
	bool cut;                /* the segment was cut off (segment_is_cut), likewise */
	/* With the journal's lock: */
	uint32_t gates;          /* that were open, a bit each, */
	uint64_t gates_seen;     /* at this time; 0: nobody has looked yet */
	uint32_t gate_changes;   /* up to then */
	bool gates_done;         /* the recording ends */
	char groups[64];         /* a line's */
	bool ending;             /* drain_all(): nobody will claim a chunk any more */
	const uint64_t *written; /* recover: sequence numbers in the file, sorted */
	size_t nwritten;
	struct fetch *fetch;       /* bus exact: where samples come from instead of lanes */
	struct pages *pages;       /* NULL: none are counted (collect/pages/pages.h) */
	struct switches *switches; /* atomic; NULL until the program starts, or for good */
	struct sink trace;         /* straight into the trace (drain_write.c) */
	struct sink *sink;         /* that one, or of --trigger a watch's */
	uint8_t *folded;           /* room for a chunk with Resource samples */
	uint32_t
		keep_chunks; /* a ring that is looked at: so many; 0: as many as there is room for */
	uint64_t keep_ticks; /* wrap: what is older may go; 0: only where room is wanted */
	uint64_t next_thorough_ns, next_dead_ns, next_count_ns;
};

void drain_init(struct drain *d, struct segment *seg, struct journal *j, struct tasks *t);
int drain_start(struct drain *d, struct err *err);
/* Before the gates are closed because the recording ends. */
void drain_notice_gates(struct drain *d, bool last);
/* Ends the thread; what is left is drain_all()'s.  stop() waits, ask_to_stop() does not. */
void drain_ask_to_stop(struct drain *d);
void drain_stop(struct drain *d);

/*
 * One round.  dead: look for owners that are gone; thorough: zombies too.  Returns how many
 * chunks it moved.
 */
uint32_t drain_round(struct drain *d, bool dead, bool thorough);

/*
 * The last round, after the gates were closed: every chunk that holds samples, whoever owns
 * it.  Chunks are not freed.  Counts what could not be written as stranded.
 */
void drain_all(struct drain *d);

/*
 * What a process has counted until now in the lines or pages that begin in a range.  uid 0: of what it executes by
 * now.  From any thread; 0 or as below.
 */
struct pages_range; /* collect/pages/pages.h */
int drain_sum_pages(struct drain *d, pid_t pid, struct pages_range *r);
/*
 * Sends what a process has counted in a range until now; `peer` asks.  From any thread.  -ENOTSUP: no pages are
 * counted; -ESRCH: the process is not traced; -EIO: the segment was cut off.
 */
void drain_answer_pages(struct drain *d, int fd, const struct kron_control_question *q, pid_t peer);

/* ---- into the trace: drain_write.c ---- */

extern const struct sink_ops drain_into_trace;

/* A chunk of the pool whose samples are in the trace, or wanted by nobody: used_bytes of it were
 * written to.  1: that many are free again. */
uint32_t drain_free(struct drain *d, uint32_t i, uint32_t used_bytes);

/* Append a chunk to the trace and count it; holes and samples are its owner's. */
int drain_write(struct drain *d, const struct trace_chunk *head, const void *data,
		const struct chunk_owner *o, uint32_t samples);
/* The same with what stands in a chunk of the pool. */
int drain_write_slots(struct drain *d, const struct trace_chunk *head, const void *slots,
		      const struct chunk_owner *o, uint32_t samples);

/* Samples and holes in a chunk, and bytes up to the last sample. */
struct chunk_count {
	uint32_t samples; /* special records left out */
	uint32_t specials;
	bool has_counters; /* of Resource samples */
	uint32_t holes;    /* zero heads before the last sample */
	uint32_t tail;     /* zero headers after it */
	uint32_t nbytes;
};
void chunk_count(const struct kron_chunk *c, struct chunk_count *out);
/* Places up to the last one that is stored: whole but for holes, for samples of one thread come in order. */
uint32_t chunk_stored(const struct kron_chunk *c);
/* By its word: it holds samples, or pages, that are its owner's. */
static inline bool chunk_is_owned(uint64_t word)
{
	const unsigned state = kron_chunk_word_state(word);

	return state == KRON_CHUNK_OWNED || state == KRON_CHUNK_FULL;
}
/* Of the sample there; 0: there is none. */
uint64_t chunk_last_time(const struct kron_chunk *c);
/* Of a full one whose thread lives: every slot was claimed, and an empty one may yet be stored. */
bool drain_may_be_written(const struct kron_chunk *c, const struct chunk_count *n);

/* Wrap mode: the oldest chunks become free, so that threads find some.  How many: drain_wrap.c. */
uint32_t drain_wrap(struct drain *d, bool look_at_ages);

#endif
