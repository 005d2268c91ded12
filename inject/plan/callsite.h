/* SPDX-License-Identifier: MIT */
/*
 * callsite.h - probes of functions whose own code cannot carry them: where other modules call
 * them, at the linker's stubs.
 *
 *   caller   call f@plt ─► stub: jmp ─► [probe] jmp *slot(%rip) ─► f
 *            call *slot(%rip): jmp ─► [probe] push; jmp *slot(%rip) ─► f
 *
 * The stub's code is patched and not the slot.  So the dynamic linker may fill the slot whenever
 * it likes (lazily, or after a dlopen), the pages of the slots may be read-only, and the address
 * of a function is what it was.  Calls within the module of the function, and calls by pointers,
 * are not seen.
 */
#ifndef INJECT_CALLSITE_H
#define INJECT_CALLSITE_H

#include "inject/elf/callsite_links.h"
#include "inject/plan/plan.h"

struct code_map;
/* The jumps of all its stubs become functions without a name (is_stub), for places to be there. */
void callsite_add_stubs(struct functions *fns, const struct elf_image *img,
			const struct callsite_links *l);
/* The same for the one by which a function of this name is called.  Its vaddr; 0: there is none. */
uint64_t callsite_add_stub(struct functions *fns, const struct elf_image *img,
			   const struct callsite_links *l, const char *name);
/* Which of the calls that are not known yet and that `wanted` has are there: by the map of the
 * image, or, without one, by that of the functions that hold them. */
void callsite_check_calls(struct callsite_links *l, const struct code_map *map);
int callsite_find_calls(struct callsite_links *l, const struct elf_image *img,
			const uint8_t *wanted, struct err *err);

/*
 * A plan of stubs and calls alone: each place of the request is one (callsite_import.jump,
 * callsite_call.vaddr).
 * PLACE_AFTER: when the function has returned.  For that the stub calls it, as an interposer
 * would, so it must be one that callsite_knows(); stubs without frame information are refused.
 */
int callsite_make_plan(struct plan **out, const struct elf_image *img,
		       const struct plan_request *request, struct err *err);

/* A place at a function's start that only wants to know what the caller knows, too. */
bool callsite_is_entry(const struct plan *plan, const struct plan_probe *p);
/* Entries, and places there, that the plan could not place in the code and that other modules can
 * reach get TACTIC_CALLSITE: what `kron record` would do about them. */
void callsite_mark(struct plan *plan, const struct elf_image *img, uint32_t tactics);
/*
 * A function of the C library's interface that takes its arguments in registers, returns once at
 * most, and does not care who calls it.  The name may have a version ("malloc@@GLIBC_2.2.5").
 */
bool callsite_knows(const char *name);
/* May this set of tactics (0: the default) go to the callers? */
bool callsite_is_on(uint32_t tactics);

#endif
