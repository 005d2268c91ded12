/* SPDX-License-Identifier: MIT */
/*
 * proc.c - the process's slot in the board's process table.
 *
 * A program gets its slot at START.  A forked child finds its process page wiped and takes a
 * slot of its own at its first trigger, by compare-and-swap in shared memory: no socket, no
 * lock.  What may not happen here: a child that only borrows its parent's memory (vfork,
 * posix_spawn, clone with CLONE_VM) taking a slot in the parent's name.
 */
#include <linux/kcmp.h>
#include <errno.h>
#include "runtime/core/rt.h"
#include "runtime/core/thread.h"
#include "runtime/sys/processor.h"
#include "runtime/sys/sys.h"
#include "runtime/sys/mini.h"

struct rt kron_rt;

void rt_proc_count_lost(uint64_t n)
{
	const struct rt_proc *p = kron_rt.proc;

	if (__atomic_load_n(&p->state, __ATOMIC_ACQUIRE) == RT_PROC_LIVE)
		__atomic_fetch_add(&kron_rt.procs[p->slot].lost, n, __ATOMIC_RELAXED);
	else
		__atomic_fetch_add(&kron_rt.ctl->lost_unowned, n, __ATOMIC_RELAXED);
}

bool rt_proc_is_ours(void)
{
	return kron_rt.proc->pid == sys_getpid();
}

/*
 * The process page is wiped, so this is a child with memory of its own, or a child of such a
 * one that borrows its memory.  Only the kernel can tell.  Where it does not (no CONFIG_KCMP,
 * not allowed), the former: the latter takes a child that ran nothing traced before vfork.
 */
static bool shares_memory_with_parent(int32_t pid)
{
	int32_t parent = (int32_t)sys0(__NR_getppid);

	return parent > 0 && sys5(__NR_kcmp, pid, parent, KCMP_VM, 0, 0) == 0;
}

static bool slot_take(uint32_t slot, uint32_t uid)
{
	struct kron_proc *s = &kron_rt.procs[slot];
	uint64_t word = __atomic_load_n(&s->state, __ATOMIC_RELAXED);

	/* Acquire: pairs with the collector's release when it freed the slot. */
	return (word & 0xff) == KRON_PROC_FREE &&
	       __atomic_compare_exchange_n(&s->state, &word, (uint64_t)uid << 8 | KRON_PROC_CLAIMED,
					   false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static uint32_t slot_find(uint32_t uid)
{
	uint32_t slot;

	/* From the front: the collector has made sure of the pages there. */
	for (slot = 0; slot < KRON_PROCS_MAX; slot++) {
		if (slot_take(slot, uid))
			return slot;
	}
	return KRON_PROC_NONE;
}

bool rt_proc_claim(enum kron_proc_origin origin, int32_t pid, uint32_t ticket)
{
	struct rt_proc *p = kron_rt.proc;
	uint32_t uid = __atomic_add_fetch(&kron_rt.ctl->next_uid, 1, __ATOMIC_RELAXED);
	uint32_t slot = slot_find(uid);
	struct kron_proc *s;

	if (slot == KRON_PROC_NONE)
		return false;
	s = &kron_rt.procs[slot];
	p->pid = pid;
	s->pid = p->pid;
	s->parent_uid = kron_rt.parent_uid;
	s->start_tsc = rt_tsc();
	s->lost = 0;
	s->left_tsc = 0;
	s->origin = origin;
	s->ticket = ticket;
	s->flags = kron_rt.parent_flags;
	/* The first process of a new namespace: its pids mean nothing to the collector, nor
	 * the collector's to it. */
	if (origin == KRON_PROC_FORK && p->pid == 1) {
		s->flags |= KRON_PROC_FOREIGN_PIDNS;
		kron_rt.collector_pid = 0;
	}
	/* Release: the collector reads the fields once it sees LIVE. */
	__atomic_store_n(&s->state, (uint64_t)uid << 8 | KRON_PROC_LIVE, __ATOMIC_RELEASE);

	p->uid = uid;
	p->slot = slot;
	/* The thread that forked still points to its parent's lane, in memory that is wiped:
	 * until it registers nobody else may have that one. */
	p->first_lane = kron_rt.lanes_before % RT_LANES_MAX;
	kron_rt.parent_uid = uid;
	__atomic_store_n(&p->state, RT_PROC_LIVE, __ATOMIC_RELEASE);
	rt_log("slot claimed", slot);
	return true;
}

void rt_proc_leave(uint64_t tsc)
{
	const struct rt_proc *p = kron_rt.proc;

	/* Release: nothing is stored after that; partner: is_task_dead(). */
	if (__atomic_load_n(&p->state, __ATOMIC_ACQUIRE) == RT_PROC_LIVE)
		__atomic_store_n(&kron_rt.procs[p->slot].left_tsc, tsc, __ATOMIC_RELEASE);
}

/* By the one thread that has made the state CLAIMING. */
static bool claim_for_fork(int32_t pid)
{
	if (rt_proc_claim(KRON_PROC_FORK, pid, 0))
		return true;
	__atomic_store_n(&kron_rt.proc->state, RT_PROC_REFUSED, __ATOMIC_RELEASE);
	return false;
}

bool rt_proc_ensure(void)
{
	struct rt_proc *p = kron_rt.proc;
	uint32_t state = RT_PROC_NONE;

	if (__atomic_load_n(&p->state, __ATOMIC_ACQUIRE) == RT_PROC_LIVE) {
		/* The collector notes after START that our pid is foreign; children inherit it. */
		kron_rt.parent_flags =
			__atomic_load_n(&kron_rt.procs[p->slot].flags, __ATOMIC_RELAXED);
		return true;
	}
	if (kron_rt.quiet || shares_memory_with_parent(sys_getpid()))
		return false;
	if (!__atomic_compare_exchange_n(&p->state, &state, RT_PROC_CLAIMING, false,
					 __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE)) {
		/* Another thread of a child that was just forked is at it, signals blocked. */
		while (state == RT_PROC_CLAIMING) {
			sys0(__NR_sched_yield);
			state = __atomic_load_n(&p->state, __ATOMIC_ACQUIRE);
		}
		return state == RT_PROC_LIVE;
	}
	return claim_for_fork(sys_getpid());
}

/*
 * A forked child's pid is the number of its first thread, the one that forked.  Only a thread that
 * had a lane in the parent is known to be that one: other threads of the child wait for it.  A
 * vfork child of such a child runs on its thread data and takes the slot in its name, rightly.
 */
bool rt_proc_ensure_quiet(bool had_lane)
{
	struct rt_proc *p = kron_rt.proc;
	uint32_t state = RT_PROC_NONE;
	uint32_t tid;

	if (__atomic_load_n(&p->state, __ATOMIC_ACQUIRE) == RT_PROC_LIVE)
		return true;
	tid = had_lane ? rt_tid_known(true) : 0;
	if (!tid || !__atomic_compare_exchange_n(&p->state, &state, RT_PROC_CLAIMING, false,
						 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return false;
	return claim_for_fork((int32_t)tid);
}
