/* SPDX-License-Identifier: MIT */
/*
 * nite.h - mk_nite_test: what several of it may do to one board at once, and what not.
 *
 *   what                       shared: each process by its seat s, 1 to 7       alone (-x)
 *   local memory               a block at a time, locked, away from samples     likewise
 *   samples                    all; own ones by their user data                 all
 *   Source Address Registers   register s; register 0 is everybody's, constant  all
 *   Resource Counters          2s and 2s + 1, by fields that leave the others   all
 *   CSR, Filter, Configuration,
 *   pointer, resets, High      only looked at: what one process writes there,   written
 *   Order, test mode, errors   another one's samples would feel
 *
 * The chip is in 64-bit mode, so that each access is one bus cycle and needs no High Order
 * register, and waits where its FIFO is full, so that no sample may ever be missing.
 */
#ifndef TOOLKIT_NITE_H
#define TOOLKIT_NITE_H

#include "board/toolkit/chip_test.h"

#define NITE_SOURCE 0x0004e17eu /* in Source Address Register 0 while the test runs */

/*
 * Samples go round the memory and memory tests are in their way.  So the words ahead of the
 * memory address pointer p are divided up:
 *
 *   p ──► 128 K: nobody may ──► 256 K: no new ──► blocks may ──► 3 M: samples of the last ──► p
 *         hold a lock here,     lock here         be locked      1 M words, perhaps not
 *         or nobody samples                       here           read yet
 *
 * Whoever tests a block of memory locks it.  Whoever wants to sample asks first whether the next
 * 128 K are free: all batches that can be on their way, one a process, are shorter than that, so
 * none comes into a locked block.  Whoever has read samples asks afterwards how far the pointer
 * has come: less than 1 M, and nobody can have locked a block where they lie.  However long a
 * process is stopped between two instructions, no test meets another.
 */
#define NITE_FREE 0x20000u
#define NITE_AHEAD 0x40000u
#define NITE_BEHIND 0x100000u
/*
 * Timestamp clocks, 2.5 s: the pointer moves 5M words a second at most, and its 24 bits are
 * unique within 16M.
 */
#define NITE_SAFE 25000000u
#define NITE_BATCH 64u

enum nite_kind {
	NITE_MEMORY,
	NITE_SAMPLES,
	NITE_REGISTERS,
	NITE_COUNTERS,
	NITE_CLOCK,
	NITE_ALONE,
	NITE_KINDS
};

struct nite {
	struct tester t;
	uint64_t random;
	uint32_t own;      /* high half of the user data of our samples */
	uint32_t seq;      /* low half of the next one */
	uint32_t value[2]; /* what our two counters stand at between tests */
	struct test_clock start;
	struct {
		uint64_t done;    /* words, samples, values, counts, readings */
		uint64_t skipped; /* somebody may have come between */
		uint64_t errors;
	} kind[NITE_KINDS];
	uint64_t passes;
};

/* One sample in memory that a batch waits for. */
struct nite_batch {
	unsigned n, found;
	bool resource[NITE_BATCH];
	uint64_t after[NITE_BATCH], before[NITE_BATCH]; /* sample i was taken between these */
	uint32_t seq;
	uint32_t at;      /* pointer value of the next word to look at */
	uint32_t pointer; /* before the first trigger */
	uint64_t began;   /* Timestamp then */
	bool framed;      /* `at` is the first word of a sample */
	uint64_t last;    /* timestamp of the sample before */
};

uint32_t nite_random(struct nite *n, uint32_t below);
static inline unsigned nite_counter(const struct nite *n)
{
	return 2 * n->t.seat; /* seat 0: counters 0 and 1 */
}

/* nite_memory.c, nite_samples.c, nite_counters.c: for everybody */
void nite_memory(struct nite *n);
void nite_samples(struct nite *n);
void nite_registers(struct nite *n);
void nite_counters(struct nite *n);
void nite_clock(struct nite *n);
/* Our two counters off and at known values. */
void nite_park_counters(struct nite *n);

/* The board initialised, with registers as this test wants them.  Timestamp 0. */
void nite_init_board(struct nite *n);

/* nite_alone.c: one of the tests that need the whole board, which it leaves initialised */
void nite_alone(struct nite *n);

#endif
