/* SPDX-License-Identifier: MIT */
/*
 * space.h - where in an address space a trampoline block may lie.  Pure: works on a list of
 * mappings that somebody else read.
 */
#ifndef INJECT_SPACE_H
#define INJECT_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct space_mapping {
	uint64_t start, end;
	bool is_heap;  /* grows up */
	bool is_stack; /* grows down: the rlimit's room below it is taken */
};

/*
 * Address of a free, page-aligned gap of len bytes such that every byte of it and every byte
 * of [text_lo, text_hi) are within rel32 reach of each other; nearest below the module first,
 * then above; never right above a heap, below a stack, in the window of the board, or so low
 * that a non-PIE program's heap would soon grow into it.  0 when there is none.
 * maps is sorted by start.
 */
uint64_t space_find(const struct space_mapping *maps, size_t n, uint64_t text_lo, uint64_t text_hi,
		    size_t len);
/* A gap below 2 GiB, for what code anywhere reaches by an absolute address: right below the board's
 * window, else as high as there is one. */
uint64_t space_find_low(const struct space_mapping *maps, size_t n, size_t len);
/*
 * space_find() with this many free bytes on both sides, else half of that, and so on:
 * mmap() of other threads takes a gap from one of its ends.
 */
uint64_t space_find_apart(const struct space_mapping *maps, size_t n, uint64_t text_lo,
			  uint64_t text_hi, size_t len, uint64_t apart);

#endif
