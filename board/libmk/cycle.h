/* SPDX-License-Identifier: MIT */
/*
 * cycle.h - what an access of the CPU to the window is on the bus.
 *
 * The board takes transfers of 32 and 64 bits at multiples of four (NISTIR 5993, 2.1).  So:
 *   - 4 or 8 aligned bytes are one cycle;
 *   - 16 bytes and more are cycles of 8 in local memory, of 4 elsewhere (there, the words lie
 *     four bytes apart and each is a register of its own);
 *   - a load of less than a word, or across words, reads every word that it touches and takes
 *     its bytes from them;
 *   - a store of less than a word: byte enables are not implemented.  In local memory it is a
 *     read and a write of the word, so that copies of any length work; elsewhere it is refused.
 *
 * Async-signal-safe.
 */
#ifndef LIBMK_CYCLE_H
#define LIBMK_CYCLE_H

#include <stdbool.h>
#include <stdint.h>

#include "board/model/access.h"

/* The emulated board that this process has mapped. */
void cycle_use(const struct board *b);

/* Are `bytes` bytes at this address all in the window? */
static inline bool cycle_is_window(uint64_t addr, uint64_t bytes)
{
	return addr - KRON_WINDOW_ADDR < KRON_BOARD_SIZE &&
	       addr - KRON_WINDOW_ADDR + bytes <= KRON_BOARD_SIZE;
}
static inline bool cycle_is_memory(uint64_t addr)
{
	return addr - KRON_WINDOW_ADDR >= KRON_BOARD_MEMORY;
}

void cycle_load(uint64_t addr, void *out, unsigned bytes);
bool cycle_can_store(uint64_t addr, unsigned bytes);
/* Only what cycle_can_store() allows. */
void cycle_store(uint64_t addr, const void *in, unsigned bytes);

#endif
