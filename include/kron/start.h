/* SPDX-License-Identifier: MIT */
/*
 * start.h - the start-up code that `kron patch` adds to a static program.
 *
 *   e_entry ─► entry ─┬─ nothing asked for ────────────────────► jmp, to the program's own entry
 *                     └─ KRON_RT or KRON_BOARD: attach, wake ─┘
 *
 * It is the runtime, compiled without thread data and linked for address 0 without a single
 * relocation, so it runs wherever it is loaded, before the program has relocated itself:
 *
 *   +0          struct kron_start, code, constants      in the file, read and execute
 *   +data_off   data_len bytes                          in the file a hole; the code maps zero
 *                                                       pages there, read and write, if it is
 *                                                       asked to do anything
 */
#ifndef KRON_START_H
#define KRON_START_H

#include <stdint.h>

#define KRON_START_MAGIC 0x545241545352544bull /* "KTRSTART" read as bytes */

struct kron_start {
	uint64_t magic;
	uint32_t entry; /* what e_entry is to be: offset from here */
	uint32_t leave; /* of the jump's rel32 that kron patch fills in: to the program's entry */
	uint32_t data_off; /* multiple of the page size */
	uint32_t data_len; /* likewise */
};
_Static_assert(sizeof(struct kron_start) == 24, "static.ld");

#endif
