/* SPDX-License-Identifier: MIT */
/*
 * samples.h - the samples in a board's local memory, oldest first.
 *
 *   simple, or not yet wrapped     0 ──────────────► pointer
 *   circular, wrapped              pointer ──► end, 0 ──► pointer
 *
 * After a wrap the oldest sample is cut off somewhere: the first place is looked for from which
 * one whole sample follows the other, with time that does not run back.
 */
#ifndef BUS_SAMPLES_H
#define BUS_SAMPLES_H

#include "bus/bus.h"

/* 5 or 21: how many words the sample has that begins with this one. */
static inline unsigned sample_words(uint32_t head)
{
	return (head >> KRON_HEAD_TYPE_SHIFT & KRON_HEAD_TYPE_MASK) == KRON_HEAD_TYPE_RESOURCE
		       ? KRON_RESOURCE_SIZE / 4
		       : KRON_SAMPLE_SIZE / 4;
}

/*
 * Hand every whole sample to put(to, words, n), which ends the walk by returning not 0.  The
 * board may go on sampling; what it has stored when the walk begins is what is read.
 * 0 also then; -EIO: the board is damaged.
 */
int bus_samples(struct bus *b, int (*put)(void *to, const uint32_t *words, unsigned n), void *to,
		struct err *err);

#endif
