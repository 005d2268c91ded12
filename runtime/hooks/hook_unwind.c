/* SPDX-License-Identifier: MIT */
/*
 * hook_unwind.c - says in the lane that frames were left for good, by an exception or longjmp.
 *
 *   caller ─ catches ─ f ─ throws ─ _Unwind_RaiseException      none of them but `catches` goes on
 *                    ▲            ▲
 *                    to           from: the unwinder's own frame
 *
 * Calls that end so pass no exit.  Here is where all unwinders end (KRON_HOOK_UNWIND ...), so neither the
 * functions that are left nor the one that goes on need probes for it.  A thread without a lane has no calls
 * that anybody knows of.
 *
 * longjmp also changes stacks, of coroutines for instance: what lies between the two may go on then, so `from` is not
 * said.
 */
#include "runtime/core/rt.h"
#include "runtime/core/thread.h"
#include "runtime/hooks/hooks.h"

#define POPPED 8u /* the address of what goes on lies at the new stack's top */

static uint64_t word_at(uint64_t addr)
{
	return *(const volatile uint64_t *)addr; /* which the program reads next */
}

static uint64_t goes_on_at(uint32_t hook, const struct rt_regs *r)
{
	switch (hook) {
	case KRON_HOOK_UNWIND:
		return r->rcx + POPPED;
	case KRON_HOOK_UNWIND_LLVM: /* and %rdi above it */
		return word_at(r->rdi + 56) + 2 * POPPED;
	case KRON_HOOK_LONGJMP:
		return r->r8;
	default:
		return word_at(r->rdi + 48);
	}
}

void rt_hook_unwind(uint32_t hook, const struct rt_regs *r, uint64_t from)
{
	const struct rt_lane *lane = rt_thread_lane();

	if (rt_lane_is_mute() || rt_bus() != KRON_BUS_LANE || !lane || !lane->tid)
		return;
	if (hook == KRON_HOOK_UNWIND || hook == KRON_HOOK_UNWIND_LLVM)
		rt_lane_record(KRON_EVENT_UNWINDS, (uint32_t)from, lane->tid);
	rt_lane_record(KRON_EVENT_UNWOUND, (uint32_t)goes_on_at(hook, r), lane->tid);
}
