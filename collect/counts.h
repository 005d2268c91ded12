/* SPDX-License-Identifier: MIT */
/*
 * counts.h - the Resource Counters as probes count with them (count:J).
 *
 *   lane           a table in the segment, an entry a thread (kron/segment.h)
 *   exact, device  the board's own registers
 *
 * And the counters of calls, one a function (kron/segment.h: struct kron_calls):
 *
 *   thread's chunks ──process gone: calls_release()──► shared chunks
 *         └─────────────────── calls_read() ─────────────────┘
 */
#ifndef COLLECT_COUNTS_H
#define COLLECT_COUNTS_H

#include "base/err.h"
#include "collect/journal.h"
#include "collect/board_setup.h"
#include "collect/segment.h"

/* Lane bus: no counts yet. */
void counts_start(struct segment *seg);
/* Lane bus, before the first probe counts: pages for the first threads' entries.  Without them
 * they count more slowly.  From any thread, any number of times. */
void counts_make_room(struct segment *seg);
/* A board's counters that these bits name: software increments, from zero on. */
void counts_set_up(struct bus *b, uint16_t counters);
/* The process is gone: other threads may have its entries, with what has been counted there. */
void counts_release(struct segment *seg, uint32_t uid);
void counts_read_board(struct bus *b, uint64_t out[KRON_COUNTERS]);
/* Session lines counter.J, of those that are not zero. */
void counts_write(struct journal *j, const uint64_t counts[KRON_COUNTERS]);
/* Lane bus: session lines counters.K, of the virtual counters that are not zero. */
void counts_write_virtual(struct journal *j, const struct segment *seg);

/* From any thread. */
/* Before functions below `end` are counted: shared chunks for them.  -ENOMEM: no chunk is free. */
int calls_make_room(struct segment *seg, uint32_t end, struct err *err);
/* The process is gone: what it counted stays, its chunks are free. */
void calls_release(struct segment *seg, uint32_t uid);
/* Adds to out, by number, what has been counted up to now: of functions below `end`. */
void calls_read(const struct segment *seg, uint64_t *out, uint32_t end);

#endif
