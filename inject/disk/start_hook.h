/* SPDX-License-Identifier: MIT */
/*
 * start_hook.h - where a library's start-up code is called: in front of the first instructions of
 * what the dynamic linker calls when it has loaded the library.
 *
 *   DT_INIT's function, or one of DT_INIT_ARRAY:
 *     [endbr64]  jmp ─► start-up code ─► the displaced instructions ─► back
 */
#ifndef INJECT_START_HOOK_H
#define INJECT_START_HOOK_H

#include "inject/code/code_map.h"
#include "inject/plan/plan.h"

#define START_HOOK_JUMP 5u
#define START_HOOK_MAX 32u /* displaced bytes */
#define START_HOOK_CODE_MAX 160u
#define START_HOOKS_MAX 8u

struct start_hook {
	uint64_t vaddr; /* of the first displaced instruction */
	uint8_t len;    /* of all of them */
	bool ends;      /* the last one leads elsewhere */
};

/* Where that can be, best first; how many. */
size_t start_hooks_find(struct start_hook out[START_HOOKS_MAX], const struct code_map *map);
/* The first of them that is apart from the plan's sites, or NULL.  selected: a byte a function, whose
 * sites count, and those with places; NULL: all. */
const struct start_hook *start_hook_choose(const struct start_hook *hooks, size_t n,
					   const struct plan *plan, const uint8_t *selected);
/* The displaced instructions for the address vaddr: START_HOOK_CODE_MAX bytes are enough.  Returns
 * how many there are, 0 when something is out of reach. */
size_t start_hook_emit(uint8_t *out, const struct start_hook *hook, const struct elf_image *img,
		       uint64_t vaddr);

#endif
