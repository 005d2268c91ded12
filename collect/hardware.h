/* SPDX-License-Identifier: MIT */
/*
 * hardware.h - bus device: a real board, or a file in its place, that the probes store to.
 *
 * What it captures is on the board and stays there.  The trace has the tables: which function is
 * which event, which thread is which source address.
 */
#ifndef COLLECT_HARDWARE_H
#define COLLECT_HARDWARE_H

#include "base/err.h"
#include "board/bus/bus.h"
#include "collect/board_setup.h"
#include "collect/segment.h"

struct hardware_board {
	struct bus bus;
	bool open;
	bool answers; /* there is a board; else the stores went into memory */
};

struct hardware_end {
	uint64_t samples;  /* Trace samples that its local memory has room for and has got */
	uint64_t overruns; /* triggers that found the chip's FIFO full */
	uint64_t waited;   /* NODECLKs */
};

/*
 * Open and set up what is at path, sampling off, and give each CPU that the program may run on
 * its line in the segment.  -EXDEV: two of these CPUs have the same line.
 */
int hardware_board_open(struct hardware_board *d, const char *path, struct segment *seg,
			const struct board_setup *s, struct err *err);
void hardware_board_end(struct hardware_board *d, struct hardware_end *out);
void hardware_board_close(struct hardware_board *d);

#endif
