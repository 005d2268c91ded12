/* SPDX-License-Identifier: MIT */
/*
 * live.h - a recording that goes on, by function: rates from the board (board/bus/rates.h), names
 * from
 * the tables of the trace that its recorder writes.  Disturbs neither.  For kron top and tui.
 */
#ifndef CMD_LIVE_H
#define CMD_LIVE_H

#include <sys/types.h>

#include "board/bus/bus.h"
#include "board/bus/rates.h"
#include "trace/reader.h"

struct live_row {
	uint32_t n; /* number of the function or of the user's event */
	uint64_t seen;
};

struct live {
	struct bus bus;
	struct rates rates;
	char dir[1024];  /* of the trace; "" unknown */
	struct trace *t; /* its tables as far as they are written, or NULL */
	off_t tables;    /* their size when they were read */
	double looked;   /* when */

	/* of the last look */
	VEC(struct live_row) rows; /* the busiest first */
	double seconds;            /* since the one before */
	double factor;             /* samples for each that was seen */
};

/* board: a name, NULL for $KRON_BOARD or the only recording.  The first look shows what is new since
 * now. */
int live_open(struct live *l, const char *board, struct err *err);
/* false: the recording has ended. */
bool live_look(struct live *l);
void live_close(struct live *l);

double live_rate(const struct live *l, const struct live_row *row); /* samples a second */
/* "name [module]", safe to show; for xfree(). */
char *live_name(const struct live *l, const struct live_row *row);

#endif
