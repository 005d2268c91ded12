/* SPDX-License-Identifier: MIT */
/*
 * loghist.h - a histogram of any number of durations in little memory.
 *
 *   0 1 2 ... 63 | 64 66 .. 126 | 128 132 .. 252 | 256 ...     where bins begin
 *   width 1      | 2            | 4              | 8
 *
 * Each octave has 32 bins of one width, so a bin is never wider than a 32nd of its values: a
 * percentile, given as the middle of its bin, is off by 1/64 (1.6%) at most, and below 64
 * by nothing.  Only octaves that occur take memory, 128 bytes each: 7.5 KiB at the very most.
 */
#ifndef TRACE_LOGHIST_H
#define TRACE_LOGHIST_H

#include <stdint.h>
#include <stdio.h>

#include "base/json.h"
#include "trace/reader.h"

#define LOGHIST_BITS 5
#define LOGHIST_BINS (1u << LOGHIST_BITS) /* of an octave */
#define LOGHIST_ERROR_PERCENT (100.0 / (2 * LOGHIST_BINS))

struct loghist {     /* all zero: empty */
	uint32_t *v; /* octaves [first, first + n), LOGHIST_BINS each; full at 2^32 - 1 */
	uint8_t first, n;
};

void loghist_grow(struct loghist *h, unsigned octave);
/* The smallest bin middle that at least percent of all values do not exceed; 0 if empty. */
uint64_t loghist_percentile(const struct loghist *h, unsigned percent);
void loghist_free(struct loghist *h);

/*
 * Bars, a line each, of the part that is used: "  1.000 us -   1.999 us  #####  123  4.5%".
 * Values are TSC ticks.  An octave a line, finer where the values are close together.
 */
void loghist_print(const struct loghist *h, const struct trace *t, FILE *out);
/* How many bins a line is of, a power of two: lines begin at multiples of it. */
unsigned loghist_line(const struct loghist *h);
uint64_t loghist_count(const struct loghist *h); /* of all values */
/* An array of [from_ns, to_ns, count] of the bins that are not empty; from and to included. */
void loghist_json(const struct loghist *h, const struct trace *t, struct json *j);

/* Bins are numbered on over the octaves; the first two octaves are the values below 64. */
static inline unsigned loghist_bin(uint64_t v)
{
	unsigned shift;

	if (v < 2 * LOGHIST_BINS)
		return (unsigned)v;
	shift = 63 - LOGHIST_BITS - (unsigned)__builtin_clzll(v);
	return shift * LOGHIST_BINS + (unsigned)(v >> shift);
}

static inline void loghist_add(struct loghist *h, uint64_t v)
{
	unsigned bin = loghist_bin(v), octave = bin / LOGHIST_BINS;
	uint32_t *n;

	if (octave - h->first >= h->n)
		loghist_grow(h, octave);
	n = &h->v[bin - h->first * LOGHIST_BINS];
	*n += *n != UINT32_MAX;
}

#endif
