/* SPDX-License-Identifier: MIT */
/*
 * hook_child.c - says in the lane where a child begins and ends that borrows its parent's memory.
 *
 *   parent  vfork(), posix_spawn() ──► VFORK, SPAWN │ sleeps ...                      │ goes on
 *   child                                           │ its samples, CHILD_ENDS, execve │
 *
 * The child runs on its parent's thread data, so its samples lie in its parent's lane; a reader that
 * did not know it would take what the child never returned from for calls of the parent
 * (trace/analysis/pairs_child.c).  It has to have a lane by then: its children register none.
 *
 * Nothing is said after a seccomp filter: who we are, only a system call tells.
 */
#include <linux/sched.h>
#include "runtime/core/rt.h"
#include "runtime/hooks/hooks.h"
#include "runtime/core/thread.h"
#include "runtime/sys/sys.h"

static bool can_speak(void)
{
	const struct rt_lane *lane = rt_thread_lane();

	return !kron_rt.quiet && !rt_lane_is_mute() && rt_bus() == KRON_BUS_LANE && lane &&
	       lane->tid;
}

static void speak(uint32_t event, uint64_t sp)
{
	rt_lane_record(event, (uint32_t)sp, (uint32_t)sys_gettid());
}

/* A child registers no lane, so that its parent's is there when it has samples. */
static void open_lane(void)
{
	if (!kron_rt.quiet && !rt_lane_is_mute() && rt_bus() == KRON_BUS_LANE)
		rt_lane_self_open();
}

void rt_hook_vfork(uint64_t sp)
{
	open_lane();
	if (can_speak())
		speak(KRON_EVENT_VFORK, sp);
}

void rt_hook_spawn(uint64_t sp)
{
	open_lane();
	if (can_speak())
		speak(KRON_EVENT_SPAWN, sp);
}

void rt_hook_child_clone(uint64_t flags, uint64_t sp)
{
	if ((flags & CLONE_VFORK) && (flags & CLONE_VM))
		rt_hook_spawn(sp);
}

bool rt_child_ends(uint64_t sp)
{
	if (!can_speak() || rt_proc_is_ours())
		return false;
	speak(KRON_EVENT_CHILD_ENDS, sp);
	return true;
}

void rt_child_lives(uint64_t sp)
{
	speak(KRON_EVENT_CHILD_LIVES, sp);
}
