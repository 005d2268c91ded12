/* SPDX-License-Identifier: MIT */
/*
 * slow_board.h - a second MultiKron board, for tests: every clock edge is a step.
 *
 * Written from the two reports and the readings alone, in another way than board/model/model*.c:
 * queues of bytes, counters that are counted, one oscillator tick at a time.  What the fast
 * model computes for a million ticks at once must be what this one arrives at.
 */
#ifndef TESTS_SLOW_BOARD_H
#define TESTS_SLOW_BOARD_H

#include <stdbool.h>
#include <stdint.h>

#include "board/model/model.h"

struct slow_sample {
	uint8_t bytes[20];
	bool resource;
};

struct slow_field {
	unsigned enable, mode, clock; /* as a read shows them */
};

struct slow_counters {
	uint32_t counter[16], shadow[16];
	struct slow_field field[16];
	unsigned tens, hundreds;
};

/* All 8,192 counters lie in one array; `in` is those of the page that is in the chip. */
struct slow_vc {
	struct slow_counters in;
	uint32_t *all; /* not inside: states are copied */
	unsigned page;
	uint64_t timestamp;
	uint32_t high;
	bool mode32, cpu_waits, memory_waits;
	bool stored; /* by this cycle, the page before */
};

struct slow_board {
	struct model_geometry geometry;
	uint64_t tick;
	bool half_tick;
	unsigned ts_count;

	/* chip */
	bool sampling, write_wait, read_wait, mode32, wait_states, fifo_lost, shadow_lost;
	uint32_t filter, high, wait, overrun;
	uint64_t timestamp;
	uint32_t source[8];
	struct slow_counters counters;
	bool external[16];
	struct slow_sample fifo[16];
	unsigned nfifo, out;
	bool shadow_busy, network_off;
	uint64_t network_delay; /* NODECLKs until the next byte */

	struct slow_vc vc;

	/* board */
	uint32_t config, map;
	bool memory_full;
	uint8_t queue[1024];
	unsigned nqueue;
	unsigned busy;     /* ticks that the sequence still takes */
	unsigned taking;   /* bytes that it takes: 4 memory, 2 cable */
	uint64_t progress; /* counts bytes and sequences */

	/* words for memory, in the order in which they were written */
	struct model_store stored[4096];
	unsigned nstored;

	/* values of 16 bits over the cable, likewise, and how many have not been taken there */
	uint16_t cabled[8192];
	unsigned ncabled, waiting;
};

void slow_power_on(struct slow_board *b, const struct model_geometry *g);
void slow_advance(struct slow_board *b, uint64_t now);
void slow_cycle(struct slow_board *b, uint64_t now, struct model_cycle *c);
void slow_take(struct slow_board *b, uint64_t now, unsigned n);
void slow_external(struct slow_board *b, uint64_t now, unsigned counter, bool high);
uint32_t slow_csr(const struct slow_board *b);

#endif
