/* SPDX-License-Identifier: MIT */
/* memory_test.c - write a pattern into words of local memory and read it back. */
#include "board/toolkit/memory_test.h"

uint32_t memory_pattern(uint32_t word, uint32_t flip)
{
	/* an odd factor maps 32 bits one to one; the shift brings high bits into the low ones */
	uint32_t v = (word + 1) * 0x9e3779b1u;

	return (v ^ v >> 16) ^ flip;
}

static uint32_t compare(uint32_t word, uint32_t flip, uint32_t read, struct memory_fault *faults,
			uint32_t max, uint32_t n)
{
	uint32_t wrote = memory_pattern(word, flip);

	if (read == wrote)
		return n;
	if (n < max)
		faults[n] = (struct memory_fault){.word = word, .wrote = wrote, .read = read};
	return n + 1;
}

uint32_t memory_test(struct bus *b, uint32_t start, uint32_t count, uint32_t flip, bool many,
		     struct memory_fault *faults, uint32_t max)
{
	uint32_t got[256], n = 0;

	for (uint32_t w = start; w < start + count; w++)
		bus_write32(b, KRON_BOARD_MEMORY + 4 * w, memory_pattern(w, flip));
	for (uint32_t w = start; w < start + count;) {
		uint32_t left = start + count - w, here = left < 256 ? left : 256;

		if (many)
			bus_read_memory(b, w, here, got);
		for (uint32_t i = 0; i < here; i++, w++)
			n = compare(w, flip,
				    many ? got[i] : bus_read32(b, KRON_BOARD_MEMORY + 4 * w),
				    faults, max, n);
	}
	return n;
}
