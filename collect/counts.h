/* SPDX-License-Identifier: MIT */
/*
 * counts.h - the Resource Counters as probes count with them (count:J).
 *
 *   lane           a table in the segment, an entry a thread (kron/segment.h)
 *   exact, device  the board's own registers
 */
#ifndef COLLECT_COUNTS_H
#define COLLECT_COUNTS_H

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

#endif
