/* SPDX-License-Identifier: MIT */
/*
 * apply_elf.h - the static writer: what must change in an ELF file to have a plan's probes.
 *
 * An image and a plan go in, what is new comes out part by part; somebody else copies the file and
 * writes them into the copy.  So neither a file of a gigabyte nor its block is ever in memory.
 *
 *   ┌──────────────────┐  0
 *   │ ELF header       │  e_phoff, e_phnum
 *   │ segments         │  with jumps: one at each site
 *   │ sections …       │
 *   ├──────────────────┤  the old end, up to the next page
 *   │ program headers  │  ┐ one more PT_LOAD, R-X: the table, moved here because it has grown,
 *   │ note "kron"      │  │ the block, and the start-up code where there is some; its data (zeros)
 *   │ block            │  │ and what follows them are two more
 *   │ [start-up code]  │  ┘
 *   ├──────────────────┤
 *   │ the plan         │  not loaded (patch_info.h)
 *   │ section headers  │  of files that have some: the old ones, one each for the note, the
 *   ├──────────────────┤  block and the plan, and their names
 *   │ data of its own  │  of files that had some past the old end: they stand there, too
 *   └──────────────────┘
 *
 * The new segment lies above all others in memory, and, when that costs no more than a hole of
 * some megabytes, as far from the first segment as in the file: kernels before 5.18 tell a
 * program the address of its headers by that.  What lay in the file before stays where it was.
 */
#ifndef INJECT_APPLY_ELF_H
#define INJECT_APPLY_ELF_H

#include "inject/elf/elf_image.h"
#include "inject/disk/patch_info.h"
#include "inject/plan/plan.h"

/*
 * What takes the new parts: bytes at offsets of a file that is a copy of the old one, none of them
 * twice; gaps past its end are zeros.  0, or -errno with a sentence.
 */
struct elf_sink {
	int (*put)(void *ctx, uint64_t off, const void *bytes, uint64_t len, struct err *err);
	void *ctx;
};

struct elf_patched {
	uint64_t size; /* of the new file */
};

/* Can this file be patched at all?  Ask before planning: 0, or -errno with a sentence. */
int apply_elf_check(const struct elf_image *img, struct err *err);

/* How the plan must be made for it. */
struct plan_options apply_elf_options(const struct elf_image *img);

/*
 * what->plan, made with those options, goes in as a whole: patch_plan_trim() first.
 *
 * what->has_jumps: they stand in the text of the new file.  Without them its text is that of the
 * old one, byte by byte, and whoever wakes the probes writes them: a probe that sleeps with a
 * jump to it is not free (entry and exit of all functions of gcc's cc1: 1.7 times its time), one that
 * nothing leads to is.
 *
 * -ERANGE when the block does not reach the code, -ENOTSUP with a sentence, or what the sink says:
 * what it has is worth nothing then.
 */
int apply_elf_make(struct elf_patched *out, const struct elf_sink *to, const struct elf_image *img,
		   const struct patch_info *what, struct err *err);

#endif
