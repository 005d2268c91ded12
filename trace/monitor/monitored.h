/* SPDX-License-Identifier: MIT */
/*
 * monitored.h - the intervals of `kron monitor`: what a row is, and the rows that a trace directory holds in its file
 * `monitor`.
 *
 * A value of a row is there a number, - for one that is not known, and n/of for a percentage; ~ marks an
 * estimate, ! an overrun.
 */
#ifndef TRACE_MONITOR_MONITORED_H
#define TRACE_MONITOR_MONITORED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/json.h"
#include "trace/monitor/reading.h"
#include "trace/reader.h"
#include "trace/table_lines.h"

struct monitor_row {
	uint64_t from_ns, to_ns; /* from the start of the monitoring */
	uint64_t stood_ns; /* how long the program was stopped at the end of it: not within to_ns */
	uint64_t skew_ns;  /* between the stops of the first and of the last thread */
	uint32_t threads;  /* that were stopped */
	bool was_frozen;   /* all stood while it was read */
	const struct reading *v; /* a column each: of the interval, for VALUE at its end */
};

#define MONITOR_COST_UNKNOWN UINT64_MAX /* of counting loads and stores */

struct monitor_summary {
	uint64_t real_ns;    /* from the start to the last reading */
	uint64_t stood_ns;   /* of which the program was stopped, and would have gone on */
	uint64_t probes_ns;  /* ... counted calls; or MONITOR_COST_UNKNOWN */
	uint64_t virtual_ns; /* real less both, as far as they are known */
	bool is_whole;       /* else the monitor was killed, and nobody knows the last three */
	uint64_t all_stood_ns;
	uint64_t intervals, freezes, failed_freezes;
	uint64_t longest_skew_ns;
	uint64_t overruns;  /* intervals in which a counter has overrun, or may have */
	struct err why_not; /* of the first freeze that failed */
};

/* What a row adds to the totals: sums, and of a value the last that is known. */
void monitored_add(struct reading *totals, const struct columns *columns,
		   const struct reading *row);
/* The values of a row as the file has them. */
void monitored_put_values(table_text *out, const struct columns *columns, const struct reading *v);

/* ---- for programs in a browser ---- */

/* count, ns, bytes, percent, value */
const char *monitored_kind(enum reading_kind kind);
/* null: it is not known.  What a number of theirs cannot hold exactly, from 2^53 on, is a string. */
void monitored_json_value(struct json *j, const struct column *c, const struct reading *r);

/* ---- what a trace has ---- */

struct monitored {
	struct columns columns;
	uint64_t every_ns;
	bool freezes, of_board;
	/* of the rows that next() has given so far; all of it after the last one */
	struct reading *totals; /* a column each */
	struct monitor_summary sum;
	uint64_t damaged; /* lines that made no sense */
	/* private */
	struct table_lines lines;
	struct reading *row;
	bool has_row; /* the first one was read to see where the columns end */
	struct monitor_row first;
};

/* false: it has none.  Of one trace, and not of several that were joined: trace_nodes(). */
bool monitored_open(struct monitored *m, const struct trace *t);
/* Good until the next call. */
bool monitored_next(struct monitored *m, struct monitor_row *row);
void monitored_close(struct monitored *m);
bool trace_is_monitored(const struct trace *t);

#endif
