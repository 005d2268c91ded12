/* SPDX-License-Identifier: MIT */
/*
 * nite_memory.c - local memory, out of the way of the samples that the board stores meanwhile;
 * the registers that everybody may look at; the clock.
 */
#include <inttypes.h>

#include "board/toolkit/memory_test.h"
#include "board/toolkit/nite.h"

#define BLOCK 4096u

void nite_memory(struct nite *n)
{
	struct tester *t = &n->t;
	uint32_t count = 1 + nite_random(n, BLOCK), pointer = tester_pointer(t);
	uint32_t room = KRON_BOARD_MEMORY_WORDS - NITE_BEHIND - NITE_AHEAD - count;
	uint32_t start = (pointer + NITE_AHEAD + nite_random(n, room)) & KRON_MAP_WORD, faults;
	uint32_t flip = nite_random(n, UINT32_MAX);
	bool many = nite_random(n, 2);
	struct memory_fault f;

	if (start + count > KRON_BOARD_MEMORY_WORDS)
		start = KRON_BOARD_MEMORY_WORDS - count; /* by less than a block */
	if (!tester_lock_memory(t, start, count)) {
		n->kind[NITE_MEMORY].skipped += count;
		return;
	}
	/* the pointer may have come nearer before the lock was there */
	if (((start - tester_pointer(t)) & KRON_MAP_WORD) < NITE_AHEAD - BLOCK ||
	    ((tester_pointer(t) - pointer) & KRON_MAP_MASK) > NITE_AHEAD) {
		n->kind[NITE_MEMORY].skipped += count;
	} else {
		faults = memory_test(&t->bus, start, count, flip, many, &f, 1);
		if (faults)
			tester_error(t,
				     "memory: %" PRIu32 " of %" PRIu32 " words from %06" PRIx32
				     " on, the first %06" PRIx32 ": wrote %08" PRIx32
				     ", read %08" PRIx32,
				     faults, count, start, f.word, f.wrote, f.read);
		n->kind[NITE_MEMORY].done += count;
	}
	tester_unlock_memory(t, start, count);
}

/* Bits of the CSR that come and go with the samples. */
#define CSR_MOVING (KRON_CSR_FIFO_FULL | KRON_CSR_SHADOW_BUSY | KRON_CSR_BIT161)

void nite_registers(struct nite *n)
{
	struct tester *t = &n->t;

	if (t->seat)
		test_source_register(t, t->seat);
	tester_expect(t, "CSR", chip_read32(t, KRON_WORD_CSR) & ~CSR_MOVING,
		      KRON_CSR_SAMPLING | KRON_CSR_WAIT | KRON_CSR_READ_WAIT | KRON_CSR_MODE64);
	tester_expect(t, "Configuration Register", bus_read32(&t->bus, KRON_BOARD_CONFIG),
		      KRON_CONFIG_VERSION | KRON_CONFIG_DEFAULT);
	tester_expect(t, "Filter Register", chip_read32(t, KRON_WORD_FILTER), 0xffffffff);
	tester_expect(t, "Overrun Counter", chip_read32(t, KRON_WORD_OVERRUN), 0);
	tester_expect(t, "Source Address Register 0", chip_read32(t, KRON_WORD_SOURCE),
		      NITE_SOURCE);
	n->kind[NITE_REGISTERS].done += 5;
}

void nite_clock(struct nite *n)
{
	struct test_clock now;

	/* over the whole run, so that the time between two readings hardly counts */
	test_clock_read(&n->t, &now);
	test_clock_rate(&n->t, &n->start, &now, bus_timestamp_hz(KRON_CONFIG_DEFAULT));
	n->kind[NITE_CLOCK].done++;
}
