/* SPDX-License-Identifier: MIT */
/*
 * histogram.h - lengths of intervals, sorted and counted.
 *
 *   as they are    one bin for each length that occurs
 *   nbins > 0      this many bins of one width, from the shortest to the longest
 */
#ifndef TOOLKIT_HISTOGRAM_H
#define TOOLKIT_HISTOGRAM_H

#include "base/vec.h"
#include "board/toolkit/tally.h"

struct histogram_bin {
	int64_t from, to; /* ticks, both included */
	uint64_t count;
};

struct histogram {
	VEC(struct histogram_bin) bins;
	uint64_t total, largest; /* of all bins, of the fullest */
};

#define HISTOGRAM_BINS_MAX 10000

void histogram_make(struct histogram *h, const struct tally_sum *s, uint64_t nbins);
void histogram_free(struct histogram *h);

/* Put the lengths into the order of their begins. */
void histogram_chronological(struct tally_sum *s);

#endif
