/* SPDX-License-Identifier: MIT */
/* registers.h - the registers of a board by name, for kron ctl. */
#ifndef CMD_REGISTERS_H
#define CMD_REGISTERS_H

#include <stdbool.h>
#include <stdint.h>

struct reg {
	uint32_t offset; /* in the board's address space */
	unsigned word;   /* of the chip; only for those of more than 32 bits */
	unsigned bits;
};

/*
 * "csr", "source3", "trace0", "memory4096" (a word of local memory), or an offset: "0x1004",
 * "4100", which must be that of a word, inside the 32 MiB.
 */
bool registers_find(const char *text, struct reg *out);

#endif
