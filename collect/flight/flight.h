/* SPDX-License-Identifier: MIT */
/*
 * flight.h - `kron record --flight`: the pool is a ring that nobody empties, and a snapshot is a copy of
 * it, as a trace of its own.
 *
 *   kron snapshot ─┐
 *   SIGUSR2 ───────┼─► flight_snapshot() ─► the drain thread: snapshot_take() ─► DIR/001, 002, ...
 *   --snapshot-on ─┘                                  ▲
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
	const char *text; /* "64M", "10s"; NULL: no flight recorder */
	uint64_t bytes;   /* of samples; 0: by time */
	uint64_t ns;      /* so long is kept; 0: by size */
	uint64_t most;    /* snapshots, but for that at the end; 0: FLIGHT_SNAPSHOTS */
	const char *on;   /* --snapshot-on, a trigger; NULL: nobody looks at the samples */
};

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
 * gone(): how many it has let go.  What it sees in one round is one snapshot.
 */
void flight_look_with(struct flight *f, struct sink *looks, uint64_t (*gone)(const void *ctx),
		      const void *ctx);
void flight_fired(void *flight, uint64_t tsc);

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

uint32_t flight_count(const struct flight *f);
/* Of the last one that failed; empty message: none did. */
const struct err *flight_error(const struct flight *f);

#endif
