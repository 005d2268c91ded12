/* SPDX-License-Identifier: MIT */
/*
 * flight.h - `kron record --flight`: the pool is a ring that nobody empties, and a snapshot is a copy of
 * it, as a trace of its own.
 *
 *   kron snapshot ─┐
 *   SIGUSR2 ───────┼─► flight_snapshot() ─► the drain thread: snapshot_take() ─► DIR/001, 002, ...
 *   --snapshot-on ─┤                                  ▲
 *   --worst ───────┘                                  │
 *   the end ──────────────► flight_end() ─────────────┘
 *
 * The ring is --when-full wrap's.  Nothing of it is written until somebody asks; DIR itself has the names
 * (modules, functions, processes) and no samples.  The program's threads go on while the ring is copied.
 */
#ifndef COLLECT_FLIGHT_H
#define COLLECT_FLIGHT_H

#include <stdint.h>

#include "base/err.h"
#include "collect/calibrate.h"
#include "collect/sink.h"

#define FLIGHT_SNAPSHOTS 1000u /* at most, if nobody says otherwise */

struct flight_options {
	const char *text;  /* "64M", "10s"; NULL: no flight recorder */
	uint64_t bytes;    /* of samples; 0: by time */
	uint64_t ns;       /* so long is kept; 0: by size */
	uint64_t most;     /* snapshots, but for that at the end; 0: FLIGHT_SNAPSHOTS */
	const char *on;    /* --snapshot-on, a trigger; NULL: nobody looks at the samples */
	const char *worst; /* --worst, N:FUNC, likewise */
	/* The collector's own: what a probe costs is measured before the first snapshot. */
	probe_cost_fn measure;
	unsigned clock_every;
};

/* --worst's trigger; NULL: there is none.  The caller frees it. */
char *flight_worst_trigger(const struct flight_options *o);
/* A size or a time.  0 or -EINVAL with the sentence. */
int flight_parse(struct flight_options *o, const char *text, struct err *err);
/* What the pool has to be for it: a quarter is free, or about to be; where samples are looked at, more
 * than half, for then nobody takes the oldest meanwhile. */
uint64_t flight_buffer(const struct flight_options *o);

struct flight;
struct drain;

/* dir: of the trace, which began at start. */
struct flight *flight_open(const struct flight_options *o, struct drain *d, const char *dir,
			   const struct time_point *start);
/* After the drain thread has ended. */
void flight_close(struct flight *f);
struct sink *flight_sink(struct flight *f);
/*
 * Samples go on to this one, which looks at them and calls flight_fired(), from a round of the drain.
 * What it sees in one round is one snapshot.
 */
struct flight_looks {
	struct sink *sink;
	void *ctx;
	uint64_t (*gone)(const void *ctx);           /* how many samples it has let go */
	uint64_t (*lets_go_before)(const void *ctx); /* what is older is about to go */
	void (*set_limit)(void *ctx,
			  uint64_t ticks); /* --worst: shorter calls than this are of no use */
};
void flight_look_with(struct flight *f, const struct flight_looks *looks);
/* since: --worst, when the call began. */
void flight_fired(void *flight, uint64_t since, uint64_t tsc);

struct flight_taken {
	char path[4096];
	uint64_t samples, left_out;
};
/*
 * From any thread, and it returns when the snapshot is there: everything up to the moment of the call.
 * why: one line.  -ESHUTDOWN: the recording ends; -EDQUOT: there are enough of them; others as they come.
 */
int flight_snapshot(struct flight *f, const char *why, struct flight_taken *out, struct err *err);

/* SIGUSR2 asks for one, too: blocked by the caller before there are threads, and in all of them. */
int flight_watch_signal(struct flight *f, struct err *err);
/* No more questions. */
void flight_stop(struct flight *f);
/* The drain thread has ended, and nobody stores any more: the last one. */
void flight_end(struct flight *f, const char *why);

/* How many there are, and the number of the last one: those that --worst has dropped had numbers, too. */
uint32_t flight_count(const struct flight *f);
uint32_t flight_last(const struct flight *f);
/* Samples that were in the ring at the end, or were looked at: those of all snapshots are among these and
 * the lost ones.  After drain_all(). */
uint64_t flight_passed(const struct flight *f);
/* Of the last one that failed; empty message: none did. */
const struct err *flight_error(const struct flight *f);

#endif
