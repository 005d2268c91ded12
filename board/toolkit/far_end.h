/* SPDX-License-Identifier: MIT */
/*
 * far_end.h - samples as they come over a board's cable, for mk_rdsample --follow and --cable.
 *
 *   board, or FIFO, file, socket, standard input ──bytes──► whole samples ──words of mk.dat──► output
 */
#ifndef TOOLKIT_FAR_END_H
#define TOOLKIT_FAR_END_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "board/bus/bus.h"

struct far_end {
	FILE *out;
	bool follow;           /* the end of a file is not the end */
	volatile int *stop;    /* set by a signal */
	uint8_t held[1 << 15]; /* bytes of a sample that is not all there yet, and what came last */
	size_t n;
	/* results */
	uint64_t trace, resource;
	uint64_t damaged; /* bytes in no sample, left out */
};

/* Takes them from the board, until it is removed. */
int far_end_of_board(struct far_end *f, struct bus *b, struct err *err);
/* Of "-", a FIFO or file, or unix:PATH, where a connection is waited for; until its end. */
int far_end_of_path(struct far_end *f, const char *path, struct err *err);

#endif
