/* SPDX-License-Identifier: MIT */
/*
 * apply_elf.h - the static writer: what must change in an ELF file to have a plan's probes.
 *
 * Pure: an image and a plan go in, a list of edits comes out; somebody else copies the file and
 * applies them, so a file of a gigabyte is never in memory.
 *
 *   ┌──────────────────┐  0
 *   │ ELF header       │  e_phoff, e_phnum
 *   │ segments         │  with jumps: one at each site
 *   │ sections …       │
 *   ├──────────────────┤  the old end, up to the next page
 *   │ program headers  │  ┐ one more PT_LOAD, R-X: the table, moved here because it has grown
 *   │ note "kron"      │  │ by two entries, and the block
 *   │ block            │  ┘
 *   ├──────────────────┤
 *   │ the plan         │  not loaded (patch_info.h)
 *   │ section headers  │  of files that have some: the old ones, one each for the note, the
 *   ├──────────────────┤  block and the plan, and their names
 *   │ data of its own  │  of files that had some behind the old end: they stand there, too
 *   └──────────────────┘
 *
 * The new segment lies above all others in memory, and, when that costs no more than a hole of
 * some megabytes, as far from the first segment as in the file: kernels before 5.18 tell a
 * program the address of its headers by that.  What lay in the file before stays where it was.
 */
#ifndef INJECT_APPLY_ELF_H
#define INJECT_APPLY_ELF_H

#include "base/vec.h"
#include "inject/elf_image.h"
#include "inject/patch_info.h"
#include "inject/plan.h"

struct elf_edit { /* bytes that stand at off in the new file */
	uint64_t off, len;
	const uint8_t *bytes;
};

struct elf_edits {
	VEC(struct elf_edit) v; /* by off; they do not overlap; gaps past the end are zeros */
	uint64_t size;          /* of the new file */
	uint64_t sites;
	uint64_t block_len;
	void *owned; /* what the edits point into */
};

/* Can this file be patched at all?  Ask before planning: 0, or -errno with a sentence. */
int apply_elf_check(const struct elf_image *img, struct err *err);

/* How the plan must be made for it. */
struct plan_options apply_elf_options(const struct elf_image *img);

/*
 * what->plan, made with those options, goes in as a whole: patch_plan_trim() first.
 *
 * what->has_jumps: they stand in the text of the new file.  Without them its text is that of the
 * old one, byte by byte, and whoever wakes the probes writes them: a probe that sleeps behind a
 * jump is not free (entry and exit of all functions of gcc's cc1: 1.7 times its time), one that
 * nothing leads to is.
 *
 * -ERANGE when the block does not reach the code, -ENOTSUP with a sentence.
 */
int apply_elf_make(struct elf_edits *out, const struct elf_image *img,
		   const struct patch_info *what, struct err *err);
void elf_edits_free(struct elf_edits *e);

#endif
