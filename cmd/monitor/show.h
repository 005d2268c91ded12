/* SPDX-License-Identifier: MIT */
/*
 * show.h - the intervals of `kron monitor` as they come: as a table or JSON (trace/report/report_monitor.h), or as
 * diagrams.  Each line is written out at once.
 */
#ifndef CMD_MONITOR_SHOW_H
#define CMD_MONITOR_SHOW_H

#include "collect/monitor/monitor.h"
#include "collect/monitor/pictures.h"
#include "trace/report/report_monitor.h"

struct show {
	struct monitor_table table; /* out NULL: nothing is shown */
	bool draws;                 /* diagrams, and no row an interval */
	bool is_live; /* to a terminal: again after each interval, over what was there */
	struct pictures pictures;
	unsigned lines; /* of those that are there */
};

/* After the columns are known. */
void show_begin(struct show *s);
void show_end(struct show *s);
void show_row(struct show *s, const struct monitor_row *row);
void show_totals(struct show *s, const struct monitor_summary *sum, const struct reading *totals);

#endif
