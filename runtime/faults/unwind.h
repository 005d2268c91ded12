/* SPDX-License-Identifier: MIT */
/*
 * unwind.h - the trampoline blocks of the process, for unwinders, debuggers and fault handlers.
 */
#ifndef RUNTIME_UNWIND_H
#define RUNTIME_UNWIND_H

#include <stdbool.h>
#include <stdint.h>
#include <kron/tables.h>

#define RT_BLOCKS_MAX 4096u

/* ---- blocks.c: its place in the table; -1: it has none, faults in it are shown as they are ---- */
int rt_blocks_add(uint64_t addr, uint64_t len) __attribute__((visibility("hidden")));
int rt_blocks_remove(uint64_t addr) __attribute__((visibility("hidden")));

/* A block was mapped, or is about to be unmapped.  One thread at a time. */
void rt_unwind_add(uint64_t addr, uint64_t len) __attribute__((visibility("hidden")));
void rt_unwind_remove(uint64_t addr) __attribute__((visibility("hidden")));

/* Is there a place for one more in the table? */
bool rt_unwind_has_room(void) __attribute__((visibility("hidden")));
/* Has a block the instruction in its stubs, instead of the text? */
bool rt_is_displaced(uint64_t insn) __attribute__((visibility("hidden")));

/* The block's text is not patched any more; its stubs may be entered all the same. */
void rt_unwind_release(uint64_t addr) __attribute__((visibility("hidden")));

/* Does patched text of some block lie there, that nobody has claimed yet?  It is claimed now. */
bool rt_unwind_claim(uint64_t addr, uint64_t len) __attribute__((visibility("hidden")));

/* The tables of the block that holds pc, or NULL.  Async-signal-safe, as is the next. */
const struct kron_tables *rt_block_at(uint64_t pc) __attribute__((visibility("hidden")));
/* The i-th block's, or NULL; i below rt_blocks_max(). */
const struct kron_tables *rt_block(uint32_t i) __attribute__((visibility("hidden")));
uint64_t rt_block_size(uint32_t i) __attribute__((visibility("hidden")));
uint32_t rt_blocks_max(void) __attribute__((visibility("hidden")));
/* Those of the block whose module's patched text holds pc: the first, and one after another. */
const struct kron_tables *rt_block_of_text(uint64_t pc) __attribute__((visibility("hidden")));
const struct kron_tables *rt_block_of_text_next(const struct kron_tables *after, uint64_t pc)
	__attribute__((visibility("hidden")));
/* rt_unwind_release() was called for the i-th. */
bool rt_block_is_released(uint32_t i) __attribute__((visibility("hidden")));

#endif
