/* SPDX-License-Identifier: MIT */
/*
 * patch_info.h - what a file from `kron patch` says about its own probes.
 *
 * Its block is code with every probe asleep.  To wake them, and to show them, somebody must
 * know where they are and what they are: the plan, as far as the block does not say it
 * itself.  A note (PT_NOTE, owner "kron") gives the place of it:
 *
 *   offset  size  after the owner's name (struct patch_note)
 *        0     4  PATCH_VERSION
 *        4     4  PATCH_HAS_JUMPS: the jumps to the block stand in the text; PATCH_HAS_START
 *        8    16  block's vaddr, length
 *       24    16  file offset and length of the plan's description
 *       40     8  checksum of the plan's description
 *       48     8  checksum of the block without its head
 *       56     8  id: the same bytes as in the block's head at KRON_BLOCK_ID
 *
 * The description follows everything else in the file and is never loaded; its form is in
 * patch_info_impl.h.  Fixups other than probes and hooks are not in it, for the block has them
 * done: it is the same wherever the module is loaded.
 *
 * Nothing in the file is believed: patch_info_read() refuses what contradicts itself, the
 * block or the patched text.
 */
#ifndef INJECT_PATCH_INFO_H
#define INJECT_PATCH_INFO_H

#include <kron/exec.h>
#include "inject/elf/elf_image.h"
#include "inject/plan/plan.h"
#include "inject/disk/start_hook.h"

/* Bump when the description's form changes, or the sequences of stub.h that bind.c fills in. */
#define PATCH_VERSION 17u

#define PATCH_HAS_JUMPS 1u
#define PATCH_HAS_BOARD 4u                  /* a dynamic one with it: for KRON_BOARD only */
#define PATCH_HAS_START KRON_NOTE_HAS_START /* a static program with start-up code of ours */
#define PATCH_OWN_HOOK 8u /* hooks that wrap handlers lead to that code without a recorder, too */

struct patch_note {
	uint32_t version, flags;
	uint64_t block_vaddr, block_len;
	uint64_t info_off, info_len;
	uint64_t info_sum, block_sum;
	uint8_t id[KRON_BLOCK_ID_LEN];
};
_Static_assert(sizeof(struct patch_note) == 64, "the table above");

/* An event of the user's probes (-p, -P): plan_probe.event is an index of these. */
struct patch_event {
	char *name;
	char *payload;   /* what the user called it; NULL: none */
	uint64_t vaddr;  /* of its first place */
	uint32_t number; /* with has_number: the user's */
	uint8_t level;
	bool has_number;
	bool is_named; /* by the user: one event wherever its places are */
	bool is_resource;
};

struct patch_info {
	struct plan *plan; /* bound whole it makes the file's block */
	uint8_t *levels;   /* a byte a function: the filter level that kron patch was told */
	struct patch_event *events;
	size_t nevents;
	uint64_t *semaphores; /* vaddrs, of USDT probes */
	size_t nsemaphores;
	uint32_t first_number; /* patch_info_first_number() is no less */
	bool has_jumps;        /* the text has the jumps to the block */
	/* Not in the file: where a library's start-up code is to be called; NULL: nowhere. */
	const struct start_hook *hook;
	bool no_board; /* likewise: it is not to wake by KRON_BOARD */
	/* set by patch_info_read(): */
	uint64_t block_vaddr, block_len;
	uint8_t id[KRON_BLOCK_ID_LEN];
};

/* Has the image a note of ours? */
bool patch_info_is_there(const struct elf_image *img);
/* Where nobody gives numbers (KRON_BOARD): that of the plan's first function, after all that the
 * user chose. */
uint32_t patch_info_first_number(const struct patch_info *info);
/* Does it wake by KRON_BOARD? */
bool patch_info_has_board(const struct elf_image *img);
/* Is it a static program that can wake its probes by itself? */
bool patch_info_has_start(const struct elf_image *img);
/* -ENOENT when there is none; -EINVAL with a sentence when it is damaged or not for us. */
int patch_info_read(struct patch_info *out, const struct elf_image *img, struct err *err);
void patch_info_free(struct patch_info *info);
/* Of a block, one part after the other: this one is at `at`, sum that of those before. */
uint64_t patch_block_sum(const uint8_t *part, uint64_t at, uint64_t len, uint64_t sum);
void patch_events_free(struct patch_event *events, size_t n);

/*
 * The other way: the part of a plan that is in a file.  patch_plan_trim() leaves in the plan
 * the entries and exits of the functions of which selected[] is set, hooks and places;
 * levels[] becomes that of the functions that are left.  The plan must not be one of a file.
 */
void patch_plan_trim(struct plan *p, const uint8_t *selected, uint8_t *levels);
/* Allocated.  note gets info_len, info_sum and id; its block_vaddr must stand there. */
uint8_t *patch_info_encode(const struct patch_info *info, struct patch_note *note);

#endif
