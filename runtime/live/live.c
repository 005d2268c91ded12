/* SPDX-License-Identifier: MIT */
/*
 * live.c - the runtime comes into a process that runs, and leaves it again.
 *
 * Everything here runs in a thread that was stopped, on our own stack, while all other threads stand
 * still: text may be changed, handlers exchanged.  Whoever called says where the threads are, and puts
 * them where we say: into a stub, if what they are about to execute is there now (ATTACH), and out of
 * it again (HOME).
 */
#define _GNU_SOURCE
#include <sys/mman.h>
#include "runtime/core/rt.h"
#include "runtime/faults/change.h"
#include "runtime/faults/faults.h"
#include "runtime/faults/spots.h"
#include "runtime/faults/unwind.h"
#include "runtime/hooks/hooks.h"
#include "runtime/live/live.h"
#include "runtime/static/static.h"
#include "runtime/sys/memory.h"
#include "runtime/sys/sys.h"
#include "runtime/sys/mini.h"

static bool has_data;

bool rt_has_data(void)
{
	return has_data;
}

uint64_t rt_live_entry(void)
{
	return (uint64_t)kron_live_entry;
}

uint32_t rt_hello_flags(void)
{
	return KRON_HELLO_LIVE;
}

/* We have no access to ld.so's state.  Asking too often costs time only. */
bool rt_modules_are_settled(void)
{
	return true;
}

/* ---- faults.h, unwind.h: as in dynamic.c, but that no unwinder or debugger is told ---- */

void rt_faults_board(void)
{
	rt_faults_take_cut();
}

void rt_unwind_add(uint64_t addr, uint64_t len)
{
	int i = rt_blocks_add(addr, len);

	if (i >= 0)
		rt_faults_block(rt_block((uint32_t)i));
}

void rt_unwind_remove(uint64_t addr)
{
	rt_blocks_remove(addr);
}

/* ---- where the threads are ---- */

/* The instruction of the module in front of which the thread stands; 0: it is in the middle of a
 * probe, or of us. */
static uint64_t out_of_stub(uint64_t pc)
{
	const struct kron_tables *t = rt_block_at(pc);
	struct rt_spot s;

	if (!t)
		return rt_is_own_code(pc) ? 0 : pc;
	if (!rt_spot_at(t, pc, &s) || pc != s.start || rt_spot_depth(t, &s, 0))
		return 0;
	return s.insn;
}

static void move_home(struct kron_live_call *call)
{
	for (uint32_t i = 0; i < call->npcs && i < KRON_LIVE_PCS; i++)
		call->pc[i] = out_of_stub(call->pc[i]);
	rt_faults_restorers(call->restorer, KRON_LIVE_SIGNALS);
}

/* ---- it comes ---- */

static void attach(struct kron_live_call *call)
{
	char *envp[] = {call->entry, NULL};
	struct kron_result res;
	struct rt_answer a;

	has_data = true;
	mini_zero(&res, sizeof(res));
	if (!rt_env_read(envp) || rt_ask_take(&a, call->sock)) {
		sys_close(call->sock);
		return;
	}
	kron_rt.collector_pid = call->collector_pid;
	kron_rt_thread_init(call->flags & KRON_LIVE_FSGSBASE, call->flags & KRON_LIVE_RDPID,
			    call->data_from, call->data_end);
	kron_rt_mark_init(call->rseq_offset);
	kron_rt.parent_flags = KRON_PROC_STATIC; /* a sample takes as long as there */
	rt_begin(&a, &res);
	if (res.code == KRON_RESULT_OK)
		rt_faults_take_all();
	kron_rt.env_hidden = true; /* there is nothing of ours */
	kron_rt.no_children |= !(call->flags & KRON_LIVE_CHILDREN);
	kron_rt.attached = !(call->flags & KRON_LIVE_STARTS);
	kron_rt.leaves = call->flags & KRON_LIVE_LEAVES;
	if (kron_rt.live)
		rt_change_note_stop(call);
	res.magic = KRON_WIRE_MAGIC;
	res.kind = KRON_RESULT_END;
	res.flags &= KRON_RESULT_AGAIN;
	res.pid = sys_getpid();
	rt_change_move(call);
	rt_ask_end(&a, &res);
	if (kron_rt.live && call->flags & KRON_LIVE_QUIET) {
		kron_rt_tid_offset = call->tid_offset;
		rt_quiet();
	}
}

/* ---- it goes ---- */

static void leave(uint64_t tsc)
{
	if (!kron_rt.live) /* attaching has failed before that */
		return;
	rt_faults_give_all();
	rt_proc_leave(tsc);
	kron_rt.live = false;
	rt_pages_leave();
	rt_unmap_all(false);
	if (kron_rt_stacks)
		sys_munmap(kron_rt_stacks, (uint64_t)RT_STACKS << RT_STACK_SHIFT);
}

void kron_rt_live(struct kron_live_call *call)
{
	if (call->op == KRON_LIVE_ATTACH)
		attach(call);
	else if (call->op == KRON_LIVE_HOME)
		move_home(call);
	else if (call->op == KRON_LIVE_LEAVE)
		leave(call->tsc), call->rseq_offset = kron_rt_mark_offset;
	else if (call->op == KRON_LIVE_CHANGE)
		rt_change(call);
	__atomic_store_n(&call->done, 1, __ATOMIC_RELEASE);
}
