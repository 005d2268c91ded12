/* SPDX-License-Identifier: MIT */
/*
 * spots.h - looks things up in a block's tables (kron/tables.h).  Async-signal-safe.
 */
#ifndef RUNTIME_SPOTS_H
#define RUNTIME_SPOTS_H

#include <stdbool.h>
#include <stdint.h>
#include <kron/tables.h>

struct rt_spot {
	uint64_t start; /* in the stub */
	uint64_t insn;  /* in the module */
	enum kron_shape shape;
};

uint64_t rt_block_start(const struct kron_tables *t) __attribute__((visibility("hidden")));
/* The spot that holds pc; false in the block's head and after its stubs. */
bool rt_spot_at(const struct kron_tables *t, uint64_t pc, struct rt_spot *out)
	__attribute__((visibility("hidden")));
/* The first spot of the instruction, false when it was not displaced. */
bool rt_spot_of(const struct kron_tables *t, uint64_t insn, struct rt_spot *out)
	__attribute__((visibility("hidden")));
/* How far the stack has been moved where the spot is `pos` bytes old. */
uint64_t rt_spot_depth(const struct kron_tables *t, const struct rt_spot *s, uint64_t pos)
	__attribute__((visibility("hidden")));
/* The trap of ours at addr, or NULL. */
const struct kron_trap *rt_trap_at(const struct kron_tables *t, uint64_t addr)
	__attribute__((visibility("hidden")));

/* The instruction itself, in its new place. */
static inline bool rt_spot_is_insn(enum kron_shape shape)
{
	return shape == KRON_SHAPE_INSN || shape == KRON_SHAPE_CALL ||
	       shape == KRON_SHAPE_CALL_RELATIVE || shape == KRON_SHAPE_RESULT;
}

#endif
