/* SPDX-License-Identifier: MIT */
/*
 * find_sample.h - where samples begin in bytes of board memory or of mk.dat.
 *
 * A sample says by its header how long it is, and nothing else marks where one begins.
 */
#ifndef BUS_FIND_SAMPLE_H
#define BUS_FIND_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <kron/board.h>

#define SAMPLE_TIME_BITS 56

/* Bytes of the sample whose first 4 bytes are at p: 20, 84, or 0: that is not a header. */
size_t sample_size(const uint8_t *p);
uint32_t sample_word(const uint8_t *p); /* the 4 bytes at p, little-endian */
uint64_t sample_time(const uint8_t *p); /* the timestamp, in the first 8 bytes */
/* The signed difference b - a of two timestamps, which count modulo 2^56. */
int64_t sample_elapsed(uint64_t a, uint64_t b);
/* A sample of this time may be the next one of the same board. */
bool sample_can_follow(uint64_t before, uint64_t time);

/*
 * How many samples follow one another from p on, at most max: each with a header, none earlier
 * than the one before or much later.  *end: bytes used.  *moved, if not NULL: the last is later
 * than the first.
 */
size_t sample_chain(const uint8_t *p, size_t n, size_t max, size_t *end, bool *moved);

/* Samples in a row that make a place believable in the middle of data. */
#define SAMPLE_CHAIN_MIN 3u

/*
 * The beginning of a sample in p[0..n), looked for at 0, step, 2 * step ... below limit, or n
 * if there is none: the offset that begins the longest chain.  `whole`: the data end at n,
 * so a chain that reaches the end is complete.  max: samples of a chain that are enough.
 */
size_t sample_find(const uint8_t *p, size_t n, size_t limit, size_t step, size_t max, bool whole);

#endif
