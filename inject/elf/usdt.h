/* SPDX-License-Identifier: MIT */
/*
 * usdt.h - the probes that a program's author wrote into it: notes of owner "stapsdt", as
 * <sys/sdt.h> makes them.  Each names a nop, and where its arguments are at that place.
 *
 *   note   pc, base, semaphore: 8 bytes each; provider, name, arguments: strings
 *   args   "8@%rdi -4@-20(%rbp) 4@$3"       size@operand in the assembler's spelling
 */
#ifndef INJECT_USDT_H
#define INJECT_USDT_H

#include <stdbool.h>
#include <stdint.h>

#include "inject/elf/elf_image.h"

struct usdt_note {
	uint64_t vaddr;
	uint64_t semaphore; /* vaddr of a counter of 16 bits that must not be zero, or 0 */
	const char *provider, *name, *args;
};

/* All of them, in the file's order; fn returns false to stop. */
void usdt_for_each(const struct elf_image *img, bool (*fn)(const struct usdt_note *n, void *ctx),
		   void *ctx);

enum usdt_operand { USDT_NONE, USDT_REGISTER, USDT_CONSTANT, USDT_MEMORY, USDT_ODD };
struct usdt_arg {
	uint8_t kind; /* enum usdt_operand; NONE: there is no such argument */
	uint8_t reg;
	uint64_t value;
	const char *text; /* as it stands in the note, `len` signs */
	unsigned len;
};
/* The argument of this number, from 1. */
void usdt_arg(const char *args, unsigned number, struct usdt_arg *out);

#endif
