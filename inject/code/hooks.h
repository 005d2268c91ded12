/* SPDX-License-Identifier: MIT */
/*
 * hooks.h - where in an image the runtime itself must act (enum kron_hook).
 */
#ifndef INJECT_HOOKS_H
#define INJECT_HOOKS_H

#include "inject/code/code_map.h"
#include <kron/wire.h>

/*
 * Fill vaddr[h] for each hook whose symbol this image defines and whose module it is (by
 * DT_SONAME: libc.so.6, or ld.so for _dl_debug_state), 0 for the others.  Returns how many.  In a
 * static program with symbols: those of libc's that the runtime serves there.
 */
unsigned hooks_find(const struct elf_image *img, uint64_t vaddr[KRON_HOOK_SYMBOLS]);

/* Where in the function that has its symbol the hook stands: at the start, or in front of the system call
 * or after it; 0: there is none. */
uint64_t hooks_place(const struct code_map *map, enum kron_hook h, const struct function *f);

/* Are its instructions to be looked at?  Not in libc and ld.so, where symbols say enough. */
bool hooks_has_instructions(const struct elf_image *img);
/* The first offset from `at` on where such an instruction may begin, of n bytes; n: nowhere. */
uint64_t hooks_next(const uint8_t *code, uint64_t at, uint64_t n);
/*
 * Must the runtime act in front of the instruction at vaddr, whose bytes these are: a `syscall` whose
 * number may be one that it acts on (only what stands right in front of it tells), or one that
 * changes %fs?  KRON_HOOK_COUNT: no.
 */
enum kron_hook hooks_at(const struct code_map *map, uint64_t vaddr, const uint8_t *code,
			uint64_t avail);

/*
 * Where unwinders and longjmp take the stack pointer back: the first such instruction from offset *at on, of n
 * bytes at vaddr; its offset goes to *at.  KRON_HOOK_COUNT: there is none.
 */
enum kron_hook hooks_next_unwind(const struct code_map *map, uint64_t vaddr, const uint8_t *code,
				 uint64_t n, uint64_t *at);

#endif
