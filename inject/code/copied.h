/* SPDX-License-Identifier: MIT */
/*
 * copied.h - code of which a program is known to make copies that it runs.
 *
 *   V8's builtins   a stretch of the text that V8 maps once more beside the code that it compiles:
 *                   from the file, or by mremap, or it copies the bytes (node, deno, chromium).
 *                   Position independent; refers to nothing outside.
 *   templates       single functions whose bytes are copied and then filled in
 *
 * A jump whose distance counts from where it stands leads astray in a copy.  So in the stretch
 * jumps are absolute, by way of a word below 2 GiB (WINDOW_FAR), and none lies across two pages,
 * because a copy may have some pages of the file and some of the memory.  What stands in a template
 * is never touched.
 *
 * Both are known by their symbols.  Of other programs nobody can tell what they copy.
 */
#ifndef INJECT_COPIED_H
#define INJECT_COPIED_H

#include "inject/code/functions.h"

struct copied_code {
	uint64_t lo, hi; /* whole pages; lo == hi: no stretch */
};

void copied_find(struct copied_code *c, const struct functions *f);
/* Some of it lies in the pages of the stretch. */
bool copied_has(const struct copied_code *c, const struct function *f);
bool copied_is_template(const struct function *f);

#endif
