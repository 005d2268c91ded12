/* SPDX-License-Identifier: MIT */
/*
 * device.h - bus device: a real board, or a file in its place, that the probes store to.
 *
 * What it captures is on the board and stays there.  The trace has the tables: which function is
 * which event, which thread is which source address.
 */
#ifndef COLLECT_DEVICE_H
#define COLLECT_DEVICE_H

#include "base/err.h"
#include "board/bus/bus.h"
#include "collect/board_setup.h"
#include "collect/segment.h"

struct device_board {
	struct bus bus;
	bool open;
	bool answers; /* there is a board; else the stores went into memory */
};

struct device_end {
	uint64_t samples;  /* Trace samples that its local memory has room for and has got */
	uint64_t overruns; /* triggers that found the chip's FIFO full */
	uint64_t waited;   /* NODECLKs */
};

/*
 * Open and set up what is at path, sampling off, and give each CPU that the program may run on
 * its line in the segment.  -EXDEV: two of these CPUs have the same line.
 */
int device_board_open(struct device_board *d, const char *path, struct segment *seg,
		      const struct board_setup *s, struct err *err);
void device_board_end(struct device_board *d, struct device_end *out);
void device_board_close(struct device_board *d);

#endif
