/* SPDX-License-Identifier: MIT */
/*
 * go_table.h - the table of functions that every Go program carries, stripped or not.
 *
 * Go's runtime walks stacks and prints panics by it, so no option of the linker leaves it out.  It
 * has the start and the name of each function; the end is where the next one starts.
 */
#ifndef INJECT_GO_TABLE_H
#define INJECT_GO_TABLE_H

#include "inject/elf/elf_image_impl.h"

struct go_table {
	const struct elf_image *img;
	const uint8_t *bytes; /* from the header on; size of them are in the file */
	uint64_t size;
	uint64_t vaddr;
	uint64_t text;  /* what the entries of newer tables count from */
	uint64_t index; /* of the first entry, from the header */
	uint64_t funcs; /* what the offsets in the entries count from, likewise */
	uint64_t n;
	struct elf_strings names;
	uint8_t word; /* size of the two numbers of an entry */
};

struct go_function {
	uint64_t start, end; /* as the table says, not looked at */
	const char *name;    /* "" when it lies */
};

/*
 * 0, or -ENOENT: none is to be seen; -ENOTSUP with a sentence: of a version of Go that is not known
 * here; -EINVAL with a sentence: damaged.
 */
int go_table_find(struct go_table *out, const struct elf_image *img, struct err *err);
/* false: nothing that could be believed stands there. */
bool go_table_function(const struct go_table *t, uint64_t i, struct go_function *out);
#endif
