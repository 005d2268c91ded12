/* SPDX-License-Identifier: MIT */
/*
 * show.h - the intervals of `kron monitor` as a table, a line each, or as JSON, an object a line; totals last.
 * Each line is written out at once.
 */
#ifndef CMD_MONITOR_SHOW_H
#define CMD_MONITOR_SHOW_H

#include <stdio.h>

#include "collect/monitor/monitor.h"
#include "collect/monitor/pictures.h"

struct show {
	FILE *out;
	bool json, freezes;
	bool of_board; /* and not of a program, whose time is what it would have taken */
	const struct columns *columns;
	bool has_begun;
	bool draws;   /* diagrams, and no row an interval */
	bool is_live; /* to a terminal: again after each interval, over what was there */
	struct pictures pictures;
	unsigned lines; /* of those that are there */
};

/* ctx is a struct show: for monitor.on_row. */
/* After the columns are known. */
void show_begin(struct show *s);
void show_end(struct show *s);
void show_row(void *ctx, const struct monitor_row *row);
void show_totals(struct show *s, const struct monitor_summary *sum, const struct reading *totals);

#endif
