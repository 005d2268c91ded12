/* SPDX-License-Identifier: MIT */
/*
 * change.c - see change.h.
 *
 * Everything here runs in a thread that was stopped, while all others stand still, wherever they were:
 * in the middle of our own code, too.  So nothing is done while one of them asks the collector (it may be in
 * the table of blocks), and no lock is taken.
 */
#define _GNU_SOURCE
#include "runtime/faults/change.h"

#include <ucontext.h>
#include "runtime/core/rt.h"
#include "runtime/faults/spots.h"
#include "runtime/faults/unwind.h"
#include "runtime/sys/sys.h"
#include "runtime/sys/mini.h"

void kron_rt_resume(ucontext_t *uc) __attribute__((visibility("hidden")));

/* As for a handler that has changed RIP and returns (faults.c). */
static uint64_t into_stub(uint64_t pc)
{
	static ucontext_t uc; /* nothing was shown in it */

	uc.uc_mcontext.gregs[REG_RIP] = (long long)pc;
	kron_rt_resume(&uc);
	return (uint64_t)uc.uc_mcontext.gregs[REG_RIP];
}

void rt_change_move(struct kron_live_call *call)
{
	for (uint32_t i = 0; i < call->npcs && i < KRON_LIVE_PCS; i++)
		call->pc[i] = into_stub(call->pc[i]);
}

/* Is a thread in [addr, addr+len), or will one return to it? */
static bool is_inside(const struct kron_live_call *call, uint64_t addr, uint64_t len)
{
	for (uint32_t i = 0; i < call->npcs && i < KRON_LIVE_PCS; i++)
		if (call->pc[i] - addr < len)
			return true;
	return false;
}

static void sweep(const struct kron_live_call *call)
{
	for (uint32_t i = 0; i < rt_blocks_max(); i++) {
		const struct kron_tables *t = rt_block(i);
		uint64_t start, len;

		if (!t || !rt_block_is_released(i))
			continue;
		start = rt_block_start(t);
		len = rt_block_size(i);
		if (is_inside(call, start, len))
			continue;
		rt_unwind_remove(start);
		sys_munmap((void *)start, len);
	}
}

/* A thread may be in the middle of the table of blocks, of the lanes' mapping, of START. */
static bool is_asking(void)
{
	return !kron_rt.live || __atomic_load_n(&kron_rt.proc->asks, __ATOMIC_RELAXED);
}

static void find_goroutines(struct rt_answer *a, const struct kron_live_call *call)
{
	const uint32_t n = call->npcs < KRON_LIVE_PCS ? call->npcs : (uint32_t)KRON_LIVE_PCS;

	if (!call->goroutines || call->goroutines > n)
		return;
	a->goroutines = &call->pc[call->goroutines];
	a->ngoroutines = n - call->goroutines;
}

void rt_change_note_stop(struct kron_live_call *call)
{
	kron_rt.proc->stood_ms = sys_now_ms();
	call->stood = (uint64_t)&kron_rt.proc->stood_ms;
}

void rt_change(struct kron_live_call *call)
{
	struct kron_result res;
	struct rt_answer a;

	if (rt_ask_take(&a, call->sock)) {
		sys_close(call->sock);
		return;
	}
	if (kron_rt.live)
		rt_change_note_stop(call);
	mini_zero(&res, sizeof(res));
	res.magic = KRON_WIRE_MAGIC;
	res.kind = KRON_RESULT_END;
	res.pid = sys_getpid();
	if (a.reply.version != KRON_WIRE_VERSION) {
		res.code = KRON_RESULT_VERSION;
	} else if (is_asking()) {
		res.code = KRON_RESULT_BUSY;
	} else {
		find_goroutines(&a, call);
		if (a.reply.ncommands)
			rt_apply(&a, a.fd[0], &res);
		if (call->flags & KRON_LIVE_SWEEP &&
		    !kron_rt_stacks) /* else goroutines may stand there */
			sweep(call);
		rt_change_move(call);
	}
	rt_ask_end(&a, &res);
}
