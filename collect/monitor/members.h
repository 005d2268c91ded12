/* SPDX-License-Identifier: MIT */
/*
 * members.h - from a variable to a member of it, as its module's debug information has them:
 *
 *   queue.len   head->next->n   table[3].id
 */
#ifndef COLLECT_MONITOR_MEMBERS_H
#define COLLECT_MONITOR_MEMBERS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "inject/elf/elf_image.h"
#include "trace/monitor/reading.h"

#define MEMBER_STEPS 6u

struct member {
	unsigned nsteps;
	int32_t step
		[MEMBER_STEPS]; /* added to the variable's address; each later one to the pointer that is there */
	unsigned bytes;
	enum value_type type;
};

/* Where the way to a member begins in the name; NULL: it is a variable's. */
const char *member_way(const char *name);
/*
 * Is the variable, whose symbol has this address in the file, what it is to be shown as?  size 0: as an unsigned number of
 * its own size.  True also where nobody knows.  False: why not, without the name in front.
 */
bool member_fits(const struct elf_image *img, const char *name, uint64_t vaddr, unsigned size,
		 enum value_type type, struct err *why);
/* False: why it is not known, without the name in front. */
bool member_find(struct member *out, const struct elf_image *img, const char *name,
		 struct err *why);

#endif
