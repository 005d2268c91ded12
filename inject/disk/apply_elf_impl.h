/* SPDX-License-Identifier: MIT */
/* apply_elf_impl.h - what apply_elf.c and apply_elf_check.c share; for nobody else. */
#ifndef INJECT_APPLY_ELF_IMPL_H
#define INJECT_APPLY_ELF_IMPL_H

#include "inject/disk/apply_elf.h"

#define LOADS_MAX 3u
#define NEW_HEADERS (LOADS_MAX + 2u) /* PT_LOAD, PT_NOTE, PT_GNU_EH_FRAME if there is none */

/* Program header i, of a file whose headers were checked. */
Elf64_Phdr apply_elf_header(const struct elf_image *img, const Elf64_Ehdr *eh, size_t i);

#endif
