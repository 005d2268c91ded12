/* SPDX-License-Identifier: MIT */
/*
 * register.c - a lane for each thread, at its first trigger.
 *
 * Once a thread, with signals blocked: a handler's probe would register the same thread.  Threads do
 * not tell when they end, so their lanes are found by asking the kernel.
 */
#include <errno.h>
#include "runtime/sys/memory.h"
#include "runtime/core/rt.h"
#include "runtime/core/thread.h"
#include "runtime/sys/signals.h"
#include "runtime/sys/sys.h"
#include "runtime/sys/mini.h"

#define SWEEP_MIN 64u

#define GUESSES 1024u

static uint32_t index_of(uint32_t i)
{
	return (kron_rt.proc->first_lane + i) % RT_LANES_MAX;
}

/* The i-th lane that this process has given out. */
static struct rt_lane *lane_at(uint32_t i)
{
	return &kron_rt.lanes[index_of(i)];
}

/* By the number's low bits: which lane it was last time. */
static uint32_t guesses[GUESSES];

struct rt_lane *rt_lane_of(uint32_t tid)
{
	const struct rt_proc *p = kron_rt.proc;
	uint32_t used = __atomic_load_n(&p->lanes_used, __ATOMIC_ACQUIRE);
	uint32_t *guess = &guesses[tid % GUESSES];
	uint32_t i = __atomic_load_n(guess, __ATOMIC_RELAXED);

	if (i < used && __atomic_load_n(&lane_at(i)->tid, __ATOMIC_RELAXED) == tid)
		return lane_at(i);
	for (i = 0; i < used; i++) {
		if (__atomic_load_n(&lane_at(i)->tid, __ATOMIC_RELAXED) == tid) {
			__atomic_store_n(guess, i, __ATOMIC_RELAXED);
			return lane_at(i);
		}
	}
	return NULL;
}

static void lanes_sweep(uint32_t tid)
{
	struct rt_proc *p = kron_rt.proc;
	uint32_t used = __atomic_load_n(&p->lanes_used, __ATOMIC_RELAXED);
	uint32_t i;

	for (i = 0; i < used; i++) {
		struct rt_lane *lane = lane_at(i);
		uint32_t owner = __atomic_load_n(&lane->tid, __ATOMIC_RELAXED);

		if (owner == 0 || owner == RT_TID_DEAD)
			continue;
		/* A lane with our number is an earlier thread's: we are only registering now. */
		if (owner != tid && sys3(__NR_tgkill, p->pid, owner, 0) != -ESRCH)
			continue;
		if (__atomic_compare_exchange_n(&lane->tid, &owner, RT_TID_DEAD, false,
						__ATOMIC_RELAXED, __ATOMIC_RELAXED))
			__atomic_fetch_add(&p->lanes_dead, 1, __ATOMIC_RELAXED);
	}
}

static struct rt_lane *lane_reuse(uint32_t tid)
{
	struct rt_proc *p = kron_rt.proc;
	uint32_t used = __atomic_load_n(&p->lanes_used, __ATOMIC_RELAXED);
	uint32_t i;

	if (__atomic_load_n(&p->lanes_dead, __ATOMIC_RELAXED) == 0)
		return NULL;
	for (i = 0; i < used; i++) {
		uint32_t dead = RT_TID_DEAD;

		if (__atomic_compare_exchange_n(&lane_at(i)->tid, &dead, tid, false,
						__ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
			__atomic_fetch_sub(&p->lanes_dead, 1, __ATOMIC_RELAXED);
			return lane_at(i);
		}
	}
	return NULL;
}

static struct rt_lane *lane_fresh(uint32_t tid)
{
	struct rt_proc *p = kron_rt.proc;
	uint32_t used = __atomic_load_n(&p->lanes_used, __ATOMIC_RELAXED);

	while (used < RT_LANES_MAX && rt_private_holds(index_of(used) + 1)) {
		/* Release: the lane can be touched; partner: rt_lane_of(). */
		if (__atomic_compare_exchange_n(&p->lanes_used, &used, used + 1, false,
						__ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
			kron_rt.lanes_before++;
			__atomic_store_n(&lane_at(used)->tid, tid, __ATOMIC_RELAXED);
			return lane_at(used);
		}
	}
	return NULL;
}

/*
 * A lane for a new thread.  Threads do not tell when they end, so the lanes of dead ones are
 * found by asking the kernel, each time that twice as many are used as after the last look.
 */
static struct rt_lane *lane_get(uint32_t tid)
{
	struct rt_proc *p = kron_rt.proc;
	struct rt_lane *lane = lane_reuse(tid);
	uint32_t used = __atomic_load_n(&p->lanes_used, __ATOMIC_RELAXED);
	uint32_t sweep_at = __atomic_load_n(&p->sweep_at, __ATOMIC_RELAXED);

	if (!lane && used >= (sweep_at ? sweep_at : SWEEP_MIN)) {
		lanes_sweep(tid);
		used -= __atomic_load_n(&p->lanes_dead, __ATOMIC_RELAXED);
		sweep_at = 2 * used < SWEEP_MIN ? SWEEP_MIN : 2 * used;
		if (sweep_at > RT_LANES_MAX)
			sweep_at = RT_LANES_MAX;
		__atomic_store_n(&p->sweep_at, sweep_at, __ATOMIC_RELAXED);
		lane = lane_reuse(tid);
	}
	return lane ? lane : lane_fresh(tid);
}

static struct rt_lane *lane_register(struct rt_lane *lane, uint32_t tid)
{
	if (!lane)
		return NULL;
	lane->claim = RT_CLAIM_NONE;
	lane->known = 0;
	lane->lost = 0;
	lane->work = 0;
	lane->taken = lane->leaving = 0;
	if (lane->pages) /* they lead to records of the thread before */
		rt_pages_clear(lane->pages);
	lane->page_free = 0;
	lane->source = KRON_SOURCE(kron_rt.ctl->node, tid);
	rt_tid_registered(tid);
	rt_thread_set_lane(lane);
	return lane;
}

/*
 * The calling thread's lane, made if there is none.  NULL: this thread cannot have one.
 *
 * A lane that is registered is used as it is, also by a vfork child, which runs on its
 * parent's thread data while the parent sleeps.  It never registers one itself: the name in
 * it would be a process that is about to be another program.
 */
struct rt_lane *rt_lane_self(void)
{
	struct rt_lane *lane = rt_thread_lane();
	uint32_t tid;

	if (lane && lane->tid)
		return lane;
	if (!rt_proc_ensure() || !rt_proc_is_ours())
		return NULL;
	tid = (uint32_t)sys_gettid();
	lane = rt_thread_check(tid);
	return lane ? lane : lane_register(lane_get(tid), tid);
}

struct rt_lane *rt_lane_self_open(void)
{
	struct rt_lane *lane = rt_thread_lane();
	uint64_t mask;

	if (lane && lane->tid && !rt_thread_shares(lane))
		return lane;
	mask = rt_signals_block();
	lane = rt_lane_self();
	rt_signals_restore(mask);
	return lane;
}

/*
 * The same without a system call.  Lanes of dead threads cannot be found then.  Signals are open:
 * a handler's trigger that finds us at work is lost.  `registering` is not taken over by a child
 * that the handler forks: there it names another process.
 */
struct rt_lane *rt_lane_self_quiet(void)
{
	static uint32_t common; /* where threads have no word of their own */
	struct rt_lane *lane = rt_thread_lane();
	struct rt_own *own = rt_thread_own();
	uint32_t *registering = own ? &own->registering : &common;
	uint32_t me = kron_rt.proc->uid + 1;
	uint32_t tid;

	if (lane && lane->tid)
		return lane;
	/* Partners: handlers on this thread, or where the word is common, other threads. */
	if (__atomic_exchange_n(registering, me, __ATOMIC_ACQUIRE) == me)
		return NULL;
	tid = rt_proc_ensure_quiet(lane != NULL) ? rt_tid_known(false) : 0;
	lane = tid ? lane_reuse(tid) : NULL;
	if (tid && !lane)
		lane = lane_fresh(tid);
	lane = lane_register(lane, tid);
	__atomic_store_n(registering, 0, __ATOMIC_RELEASE);
	return lane;
}
