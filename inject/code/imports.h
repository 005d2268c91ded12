/* SPDX-License-Identifier: MIT */
/*
 * imports.h - the functions of other modules that an image calls: by which slots of its global
 * offset table, and which code of a procedure linkage table jumps through them.
 */
#ifndef INJECT_IMPORTS_H
#define INJECT_IMPORTS_H

#include "base/vec.h"
#include "inject/elf/elf_image.h"

struct import {
	const char *name;
	uint64_t slot; /* vaddr of the pointer that the dynamic linker fills in */
};

struct imports {
	struct import *v; /* sorted by slot */
	size_t n;
};

/* Of damaged tables, what can be read. */
void imports_find(struct imports *out, const struct elf_image *img);
void imports_free(struct imports *im);
/* The import whose slot this is, or NULL. */
const struct import *imports_at(const struct imports *im, uint64_t slot);
/* Of the linker's stub at vaddr ("jmp *slot(%rip)", perhaps after endbr64): the slot, else 0. */
uint64_t imports_stub_slot(const struct elf_image *img, uint64_t vaddr);

#endif
