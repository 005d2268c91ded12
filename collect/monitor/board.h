/* SPDX-License-Identifier: MIT */
/*
 * board.h - the counters of a board: those Resource Counters that are enabled at the start, the words that
 * its samples have filled, the Wait and the Overrun Error Counter.
 *
 * They have the widths of the reports, and so an interval can be too long for them.  Resource Counters
 * stick at their maximum, which is seen; the others go round, which is not, but how long they need for
 * that at least is known (`board_column.round_ns`).
 */
#ifndef COLLECT_MONITOR_BOARD_H
#define COLLECT_MONITOR_BOARD_H

#include "base/err.h"
#include "board/bus/bus.h"
#include "trace/monitor/reading.h"

#define MONITOR_BOARD_FIXED 3u /* columns before the Resource Counters */

struct board_column {
	char name[16];
	uint64_t mask;     /* its width */
	uint64_t round_ns; /* goes round in this time at the earliest; 0: sticks at its maximum */
	uint64_t last, total;
};

struct monitor_board {
	struct bus bus;
	unsigned ncolumns;
	struct board_column column[MONITOR_BOARD_FIXED + KRON_COUNTERS];
	unsigned counter
		[KRON_COUNTERS]; /* which Resource Counter the columns after the fixed ones are */
	uint64_t read_ns;
};

/* name: as of bus_open(). */
int monitor_board_open(struct monitor_board *b, const char *name, struct err *err);
/* The counts so far, a reading each; those that may have overrun since the last reading say so. */
void monitor_board_read(struct monitor_board *b, struct reading *out);
/* An interval in which nothing that goes round can overrun, with time to spare for ends that come late. */
uint64_t monitor_board_longest_ns(const struct monitor_board *b);
void monitor_board_close(struct monitor_board *b);

#endif
