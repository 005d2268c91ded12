/* SPDX-License-Identifier: MIT */
/*
 * plan_source.h - what a plan is made from: the bytes of a file and of its debug file, as one sum.
 *
 *   file, debug files ─► identities ─► text in the cache ─────────────────────► sum
 *                  └──► bytes ─► content.h ─────────────────────────────────────┘
 *
 * The sum alone says which plan is right.  Summing takes time (1.2 GB/s and processor), so what came
 * out is kept under the files' identities: device, inode, length, mtime, ctime.  That is as good
 * only where nobody can change a file and leave its identity as it was: see is_settled() in
 * plan_source.c.  Of all other files the sum is made anew in each recording.
 */
#ifndef COLLECT_PLAN_SOURCE_H
#define COLLECT_PLAN_SOURCE_H

#include <stdbool.h>

#include "collect/cache/cache_dir.h"
#include "collect/cache/content.h"
#include "inject/elf/elf_image.h"

struct plan_source {
	const struct elf_image *img;
	struct content content;
	bool is_known;   /* it came from the cache's texts: no byte was read for it */
	bool is_told;    /* the name means these files and no others */
	bool is_settled; /* nobody can have changed them without a trace */
	char name[sizeof(CACHE_TEXT) + CONTENT_TEXT]; /* of the text */
};

/* dir: the cache's folder. */
void plan_source_find(struct plan_source *s, const struct elf_image *img, int dir);
/* Of bytes that came from the texts: sums them after all, for who needs to be sure. */
void plan_source_sum(struct plan_source *s, int dir);
/* After the plan was made: were the bytes the same all the time? */
bool plan_source_stayed(const struct plan_source *s);

/* How old a change has to be, in nanoseconds; 0: that of the head comment.  For tests. */
void plan_source_set_age(int64_t ns);

#endif
