/* SPDX-License-Identifier: MIT */
/*
 * segment.h - the collector's side of a board segment (kron/segment.h): makes it or goes on the
 * one that is there, grows its pool, opens the one of a killed collector.
 *
 *   /dev/shm/kron-<16 hex>              made for one recording, removed at its end: sealed memory that
 *                                       a keeper holds (keeper.h), and a link to it
 *   /dev/shm/kron-board.<uid>.<NAME>    a file; likewise, or there before and afterwards
 *
 * Sparse: only ctl, tables and the chunks in use have pages.  A board that stays has the lane
 * part (tables, pool) only while a recorder is on it.  One recorder a board: board/bus/object.h has
 * the lock.
 *
 * A page of the segment is given to a traced process only after posix_fallocate() has got it,
 * so a full /dev/shm is an error here and never a SIGBUS there.  What /dev/shm has room for bounds
 * boards with names only.  In memory of our own, which has no such limit, the tables and the first chunks get
 * their pages when they are touched (held_pages_may_come_late()): most recordings never touch most of them, and
 * getting them took longer than all that a short program does.
 *
 * What lies in the segment was written by other processes.  Nothing here, and nobody who
 * includes this, may trust an index, a length or a state that was read from it.
 */
#ifndef COLLECT_SEGMENT_H
#define COLLECT_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kron/segment.h>
#include "base/err.h"
#include "board/bus/clock.h"
#include "board/bus/object.h"
#include "collect/kernel/cgroup.h"
#include "collect/keeper.h"

#define SEGMENT_CHUNKS_MIN 16u   /* below this a trace would be mostly losses */
#define SEGMENT_CHUNKS_START 16u /* what segment_create() gets; kron-grow gets the rest */
#define SEGMENT_CHUNKS_FIRST \
	64u /* it gets them whatever the memory cgroups have left; late: free at once */

struct segment {
	char name[OBJECT_NAME]; /* "/kron-..." as shm_open() takes it */
	int fd;
	int lock_fd; /* another descriptor: traced processes get fd, and the lock would stay */
	struct window window;
	struct kron_ctl *ctl; /* window.board.ctl */
	uint64_t *states;     /* use __atomic */
	struct kron_proc *procs;
	uint8_t *pool;
	uint64_t size;
	uint32_t chunks_max; /* this many have a place in the segment */
	/* So far the pool grows: --buffer, and farther where threads stand still for want of a chunk
	 * each (KRON_WHEN_FULL_WAIT); atomic.  The one in ctl can be overwritten. */
	uint32_t chunks_limit;
	uint32_t procs_ready; /* slots [0, procs_ready) have pages; atomic, only grows */
	uint8_t bus;          /* enum kron_bus; likewise */
	uint8_t when_full;    /* enum kron_when_full at the start; likewise */
	uint16_t clock_every; /* so many samples of a lane share a reading of the clock */
	bool pool_limited;    /* /dev/shm gave less than was asked for */
	struct cgroups cgroups;
	bool knows_cgroups;   /* they were looked for */
	bool is_bounded;      /* and allow less than chunks_limit was at the start */
	uint64_t cgroup_left; /* what they left at the beginning; CGROUP_NO_LIMIT */
	bool follows_cgroups; /* nobody asked for a size: the pool takes a share of what is left */
	bool own;             /* made for this recording, and for nobody else; sealed */
	bool late;            /* own, and its first pages come when they are touched */
	bool stays;           /* a board that was made by `kron board create` */
	uint32_t ready;       /* chunks that have left ABSENT; atomic, only grows */
	struct keeper keeper; /* own, as long as we are its recorder */
	struct keeper_options keeping;
	struct holder held;  /* own */
	int unnamed;         /* own: -errno, why there is no name in /dev/shm */
	unsigned guards[2];  /* base/guard.h: of window and pool */
	uint32_t csr_before; /* when we came to a board that stays */
	/* since when its rate is measured; 0: it is known */
	struct time_point clock_start;
};

static inline uint32_t segment_procs_ready(const struct segment *seg)
{
	return __atomic_load_n(&seg->procs_ready, __ATOMIC_ACQUIRE);
}

struct segment_options {
	uint64_t buffer; /* bytes of pool at most; 0: segment_default_buffer(), and less while the
			  * memory cgroup has little left */
	enum kron_when_full when_full;
	uint32_t filter;
	bool keep_filter; /* of a board that is there: leave its Filter Register alone */
	int node;         /* NODE_DEFAULT: that of a board that is there, else node_default() */
	enum kron_bus bus;
	bool constant_time;
	bool ages; /* KRON_WHEN_FULL_WRAP, and what is old goes: the pool is as large as that takes */
	uint16_t clock_every;
	bool watched;      /* samples are looked at, not written (collect/watch/watch.h) */
	const char *board; /* name; NULL: a segment of our own */
	const char *dir;   /* of the trace, for those who find the board without us */
	bool is_scratch;   /* it goes with us */
	const char *kron;  /* what the keeper executes when we are gone; NULL: nothing */
	struct time_point start;
};

/* min(1 GiB, a quarter of the RAM, what ulimit leaves), and for a board with a name half of what is free
 * in /dev/shm; to keep the last things only (KRON_WHEN_FULL_WRAP, but by age) 64 MiB at most, and for
 * a watch, which writes nothing that could be slow, 256. */
uint64_t segment_default_buffer(const struct segment_options *opt);
/* A quarter of it, the share of a pool whose size nobody asked for. */
uint64_t segment_share(uint64_t cgroup_left);

/*
 * Make a segment, or come to the board that opt->board names: sampling off, gates closed,
 * SEGMENT_CHUNKS_START free chunks, or late SEGMENT_CHUNKS_FIRST.  -ENOSPC with a sentence when /dev/shm has no room for
 * SEGMENT_CHUNKS_MIN chunks.  -EBUSY: another recorder is on the board, or was and was killed,
 * or processes of its recording still run.
 */
int segment_create(struct segment *seg, const struct segment_options *opt, struct err *err);

/* The rate of its clock is known roughly after segment_create(), and after this well; may sleep a
 * moment, so call it when the program has been started. */
void segment_settle_clock(struct segment *seg);

/* Map the segment of a collector that is gone and check its header and sizes.  -ENOENT, -ESRCH:
 * there is none, or none any more.  -EBUSY: a collector is on it.  memory: a descriptor of it, if the
 * caller is who holds it; else -1. */
int segment_open(struct segment *seg, const char *name, int memory, struct err *err);

/* How much memory the cgroups that we are in have left. */
void segment_look_at_cgroups(struct segment *seg);
/* Get pages for n more chunks and make them FREE.  How many it got: fewer at the limit. */
uint32_t segment_grow(struct segment *seg, uint32_t n);
/* Let the pool grow by n more, if they have a place.  false: there is none left. */
bool segment_raise_limit(struct segment *seg, uint32_t n);
/* The pages of the free chunks at the end of the pool.  Nobody may use it any more. */
void segment_give_back(struct segment *seg);
/* A board with a name is a file that our other processes can cut off: there are zeros now. */
bool segment_is_cut(const struct segment *seg);
/* If somebody has killed the keeper there is another one afterwards. */
void segment_look_after_keeper(struct segment *seg);
/* Get pages for the whole process table. */
void segment_grow_procs(struct segment *seg);

/* Open (CSR sampling) or close all gates. */
void segment_set_sampling(struct segment *seg, bool on);

/* Remove it; a board that stays is made clean for the next recorder instead. */
void segment_unlink(struct segment *seg);
/* What was not removed stays with its keeper. */
void segment_close(struct segment *seg);

/* Acquire: pairs with segment_raise_limit(), in another thread. */
static inline uint32_t segment_limit(const struct segment *seg)
{
	return __atomic_load_n(&seg->chunks_limit, __ATOMIC_ACQUIRE);
}

/* Chunks that have left ABSENT, never more than there is room for: as we know it, whatever ctl says. */
static inline uint32_t segment_ready(const struct segment *seg)
{
	return __atomic_load_n(&seg->ready, __ATOMIC_ACQUIRE);
}

static inline struct kron_chunk *segment_chunk(const struct segment *seg, uint32_t i)
{
	return (struct kron_chunk *)(seg->pool + (uint64_t)i * KRON_CHUNK_SIZE);
}

#endif
