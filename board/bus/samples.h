/* SPDX-License-Identifier: MIT */
/*
 * samples.h - the samples in a board's local memory, oldest first.
 *
 *   simple, or not yet wrapped     0 ──────────────► pointer
 *   circular, wrapped              pointer ──► end, 0 ──► pointer
 *
 * See local_memory.h for where they begin after a wrap; here one is handed on at a time.
 */
#ifndef BUS_SAMPLES_H
#define BUS_SAMPLES_H

#include "board/bus/bus.h"

/*
 * Hand every whole sample to put(to, words, n), which ends the walk by returning not 0.  The
 * board may go on sampling; what it has stored when the walk begins is what is read.
 * 0 also then; -EIO: the board is damaged.
 */
int bus_samples(struct bus *b, int (*put)(void *to, const uint32_t *words, unsigned n), void *to,
		struct err *err);

#endif
