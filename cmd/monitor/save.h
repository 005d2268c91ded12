/* SPDX-License-Identifier: MIT */
/*
 * save.h - the intervals of `kron monitor` as a trace directory.  Each is in the file before the next one ends, so
 * whoever kills the monitor loses none.
 *
 *   save_begin  the directory, the machine, the columns
 *   save_start  when the monitoring began
 *   save_row    an interval; of a full disk save_end() tells
 *   save_end    how long it was; without it the trace is cut off
 */
#ifndef CMD_MONITOR_SAVE_H
#define CMD_MONITOR_SAVE_H

#include "board/bus/clock.h"
#include "collect/monitor/monitor.h"
#include "trace/writer.h"

struct save {
	struct trace_writer *w; /* NULL: nothing is saved */
	const char *dir;
	const struct columns *columns;
	struct time_point begun;
	double hz;
	uint64_t start_ns;
	uint64_t failed_ns; /* the end of the first row that was not written at once */
	int error;          /* then why, negative */
};

/* What is watched. */
struct save_subject {
	const char *command; /* or "kron monitor --pid ..." */
	const char *of;      /* program, processes, board */
	bool freezes;
	uint64_t every_ns;
};

int save_begin(struct save *s, const char *dir, const struct columns *columns,
	       const struct save_subject *what, struct err *err);
/* start_ns: of CLOCK_MONOTONIC. */
void save_start(struct save *s, uint64_t start_ns);
void save_row(struct save *s, const struct monitor_row *row);
/* how: "exited N", "signal N" or "running".  -errno, with a sentence: what is saved is not all. */
int save_end(struct save *s, const struct monitor_summary *sum, const char *how, struct err *err);
/* Nothing was watched: the directory goes. */
void save_drop(struct save *s);

#endif
