/* SPDX-License-Identifier: MIT */
/*
 * start_code.h - what goes into a program or library besides its block: kron/start.h, bytes and
 * place.
 *
 *   start-up code │ zeros for its data, not in the file │ how to wake the probes
 *                                                          │ a library's displaced instructions
 */
#ifndef INJECT_START_CODE_H
#define INJECT_START_CODE_H

#include <stddef.h>
#include <stdint.h>

#include "inject/bind/bind.h"
#include "inject/elf/elf_image.h"
#include "inject/disk/patch_info.h"

/* Made by scripts/embed-start of runtime/kron-start: what of it is in the file. */
extern const unsigned char start_code[];
extern const size_t start_code_size;

struct start_part {
	uint64_t vaddr;   /* page-aligned */
	uint64_t len;     /* of all three, multiple of the page size */
	uint64_t entry;   /* what e_entry must be, or where a library's jump leads */
	uint8_t *code;    /* start_code_size bytes */
	uint64_t wake_at; /* from vaddr */
	uint8_t *wake;
	uint64_t wake_len;
};

/* The least that it takes, without the last part; *data: how much of it are the zeros. */
uint64_t start_part_min(uint64_t *data);
/* Where a sleeping block's hooks lead, for the address vaddr. */
uint64_t start_part_hook(uint64_t vaddr);
/* The frame information of its code: bytes, and offset from vaddr. */
const uint8_t *start_part_frame(uint64_t *off, size_t *len);
/*
 * How the block's bytes differ when it is awake on a board of its own: function n has the events
 * 2n and 2n + 1 (patch_info_first_number()), places have the next numbers, or the user's.
 *
 * asleep: how the file's block is bound.  Each part of that is added; with jumps: those of its
 * sites, too, which the file's text does not have.  -ERANGE as bind_next().
 */
struct start_wake;
struct start_wake *start_wake_open(const struct patch_info *what, const struct binding *asleep);
int start_wake_add(struct start_wake *w, const struct bind_part *asleep, bool jumps,
		   struct err *err);
/* For start-up code at vaddr: allocated. */
void start_wake_make(struct start_wake *w, uint8_t **out, uint64_t *len, uint64_t vaddr,
		     const struct elf_image *img);
void start_wake_close(struct start_wake *w);

/*
 * For the address vaddr, directly after the block, which is bound like b; in front of the program's
 * entry point, or of what->hook in a library.  -ERANGE when that is too far away.
 */
int start_part_make(struct start_part *out, uint64_t vaddr, uint64_t entry,
		    const struct elf_image *img, const struct patch_info *what,
		    const struct binding *b, uint64_t block_len, struct start_wake *wake,
		    struct err *err);
void start_part_free(struct start_part *part);

#endif
