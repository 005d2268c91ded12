/* SPDX-License-Identifier: MIT */
/* memory_test.h - write a pattern into words of local memory and read it back. */
#ifndef TOOLKIT_MEMORY_TEST_H
#define TOOLKIT_MEMORY_TEST_H

#include "board/bus/bus.h"

struct memory_fault {
	uint32_t word, wrote, read;
};

/*
 * Every word of the pattern differs from every other of the 4M, so that a word that lands at a
 * wrong address shows; `flip` is all ones to get each bit both ways, or anything.
 */
uint32_t memory_pattern(uint32_t word, uint32_t flip);

/*
 * Words [start, start + count): write all, then read all; single reads, or the bus's way to
 * read many.  Keeps the first max faults; returns how many there were.
 */
uint32_t memory_test(struct bus *b, uint32_t start, uint32_t count, uint32_t flip, bool many,
		     struct memory_fault *faults, uint32_t max);

#endif
