/* SPDX-License-Identifier: MIT */
/* elf_lookup.h - a function of the libraries after us in ld.so's list. */
#ifndef RUNTIME_ELF_LOOKUP_H
#define RUNTIME_ELF_LOOKUP_H

#include <stdint.h>

/*
 * What a call of `name` would reach if libkron-rt.so did not define it; NULL when nobody else
 * does.  The list may change meanwhile only after the libraries that a program starts with.
 */
void *elf_lookup_next(const char *name) __attribute__((visibility("hidden")));
/* Where libkron-rt.so lies: its l_addr. */
uint64_t elf_own_start(void) __attribute__((visibility("hidden")));

#endif
