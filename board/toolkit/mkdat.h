/* SPDX-License-Identifier: MIT */
/*
 * mkdat.h - reads mk.dat: the samples as they lay in board memory, each 32-bit word
 * little-endian, one after the other, no header (include/kron/board.h has the layout).
 *
 *   | Trace, 20 bytes | Trace | Resource, 84 bytes | Trace | ... | part of one |
 *
 * A sample says by its header byte how long it is, and nothing else marks where one begins.  So
 * after a damaged place (files of interrupted runs put together, a circular memory's oldest
 * sample cut in two) the reader has to find the next beginning.  See sample_find().
 *
 * Never trusts a byte, never fails on garbage: what is not a sample is counted and left out.
 */
#ifndef TOOLKIT_MKDAT_H
#define TOOLKIT_MKDAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <kron/board.h>

#include "base/err.h"
#include "board/bus/find_sample.h"

#define MKDAT_FILE "mk.dat" /* the name that NIST's programs agree on */

struct mkdat_sample {
	uint64_t time; /* 56 bits */
	uint64_t data; /* user data */
	uint32_t source;
	uint8_t header; /* the whole byte */
	uint8_t cpu;
	bool resource;
	uint32_t counter[KRON_COUNTERS]; /* Resource samples only */
};

/* What was read so far; all of it adds up to `bytes`. */
struct mkdat_count {
	uint64_t bytes;
	uint64_t trace, resource; /* samples */
	uint64_t damaged;         /* bytes that are in no sample... */
	uint64_t places;          /* ...and in how many places */
	uint64_t cut;             /* bytes of a last sample that is not all there */
};

struct mkdat {
	struct mkdat_count count;
	int fd;
	bool eof;
	bool in_damage;     /* the bytes before `at` are damaged: no new place */
	uint64_t last_time; /* of the last sample, if has_last */
	bool has_last;
	uint8_t *buf;
	size_t at, n; /* buf[at..n) is not used yet */
};

/* Reads from fd, which stays the caller's.  mkdat_close() frees the buffer. */
void mkdat_open(struct mkdat *m, int fd);
/* 1: *s is the next sample; 0: no more; -errno: the file cannot be read. */
int mkdat_next(struct mkdat *m, struct mkdat_sample *s, struct err *err);
void mkdat_close(struct mkdat *m);

void mkdat_add(struct mkdat_count *sum, const struct mkdat_count *c);
/* "12 bytes in 2 places are not samples and were left out", or NULL when all is well */
const char *mkdat_complaint(const struct mkdat_count *c, char *out, size_t size);

/* The sample at p, whose length sample_size() knows. */
void mkdat_decode(const uint8_t *p, struct mkdat_sample *s);

#endif
