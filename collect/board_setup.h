/* SPDX-License-Identifier: MIT */
/*
 * board_setup.h - puts a board into the state that a recording needs, and says what its time is.
 */
#ifndef COLLECT_BOARD_SETUP_H
#define COLLECT_BOARD_SETUP_H

#include <stdbool.h>
#include <stdint.h>

#include <kron/segment.h>
#include "board/model/access.h"
#include "board/bus/bus.h"
#include "board/bus/clock.h"

struct board_setup {
	enum kron_when_full when_full;
	uint32_t filter;
	uint32_t config; /* besides KRON_CONFIG_DEFAULT */
	uint8_t lines;   /* CPU_ID lines, one hot; 0: external ones */
	bool mode32;     /* a bus of 32 bits: the upper half of the data is zero */
};

/* Reset it and set it up: local memory from word 0 on, sampling off. */
void board_setup_make(struct bus *b, const struct board_setup *s);
/*
 * What a board that is used as it stands still needs: a line a CPU, its memory in use and
 * circular.  Returns its Configuration Register for board_setup_restore().
 */
uint32_t board_setup_adopt(struct bus *b, const struct board_setup *s);
void board_setup_restore(struct bus *b, uint32_t config);
void board_setup_sampling(struct bus *b, bool on);

/* ---- time ---- */

/* The board's timestamp at one moment of the machine's counter, and how they go on. */
struct board_clock {
	uint64_t tsc, ticks;
	double ticks_per_tsc;
	double hz; /* nominal */
};

void board_clock_read(struct board_clock *c, const struct board *b);
/* c NULL: the counter itself. */
uint64_t board_clock_ticks(const struct board_clock *c, uint64_t tsc);
/* As time_point_take(), with the board's timestamp instead of the counter. */
void board_time_point(const struct board *b, struct time_point *t);

#endif
