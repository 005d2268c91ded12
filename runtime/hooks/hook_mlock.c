/* SPDX-License-Identifier: MIT */
/*
 * hook_mlock.c - mlockall() without what is ours.
 *
 * The kernel locks all that a process has mapped, and first compares the size of all that with the
 * program's limit.  So with probes a program could fail to lock its memory, and would keep the whole
 * pool there.  The hook makes the system call and then unlocks what is ours, but for libkron-rt.so.
 * Where only ours has made it too much, what is the program's is locked mapping by mapping.  What the
 * program does then is a system call that changes nothing.
 *
 *   mlockall ── 0 ───────────────────────────────────────────────► munlock ours
 *      └─ ENOMEM, and the rest would fit ── mlock each of the rest ──┘
 *
 * What we map later is unlocked when it is there (rt_unlock()): with MCL_FUTURE it has to fit for a
 * moment.  Our mappings that grow stay unlocked.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include "runtime/sys/memory.h"
#include "runtime/sys/procfile.h"
#include "runtime/core/rt.h"
#include "runtime/hooks/hooks.h"
#include "runtime/faults/faults.h"
#include "runtime/faults/spots.h"
#include "runtime/faults/unwind.h"
#include "runtime/sys/signals.h"
#include "runtime/sys/sys.h"

#ifndef MLOCK_ONFAULT
#define MLOCK_ONFAULT 1u
#endif

/* ---- what is ours ---- */

#define TAIL_SIZE (KRON_WINDOW_SIZE - KRON_CTL_OFFSET)

struct span {
	uint64_t start, size;
};

/* The i-th mapping of ours; false: there are no more.  One of size 0 does not exist. */
static bool own_span(uint32_t i, struct span *s)
{
	enum { TAIL, MEMORY, WINDOW, STACKS, POOL, PRIVATE, BLOCKS };
	const struct kron_tables *t;

	*s = (struct span){0};
	switch (i) {
	case TAIL:
		*s = (struct span){(uint64_t)kron_rt.ctl, TAIL_SIZE};
		break;
	case MEMORY:
		*s = (struct span){(uint64_t)kron_rt.board.memory, KRON_MEMORY_BYTES};
		break;
	case WINDOW:
		if (rt_bus() == KRON_BUS_HARDWARE)
			*s = (struct span){KRON_WINDOW_ADDR, KRON_BOARD_SIZE};
		break;
	case STACKS:
		*s = (struct span){(uint64_t)kron_rt_stacks, (uint64_t)RT_STACKS << RT_STACK_SHIFT};
		break;
	case POOL:
		*s = (struct span){(uint64_t)kron_rt.pool, rt_pool_size()};
		break;
	case PRIVATE:
		*s = (struct span){(uint64_t)kron_rt.proc, rt_private_size()};
		break;
	default:
		if (i - BLOCKS >= rt_blocks_max())
			return false;
		t = rt_block(i - BLOCKS);
		if (t)
			*s = (struct span){rt_block_start(t), rt_block_size(i - BLOCKS)};
		break;
	}
	if (!s->start)
		s->size = 0;
	return true;
}

static bool is_ours(uint64_t addr)
{
	struct span s;
	uint32_t i;

	if (rt_is_own_code(addr))
		return true;
	for (i = 0; own_span(i, &s); i++)
		if (addr - s.start < s.size)
			return true;
	return false;
}

static void unlock_ours(void)
{
	struct span s;
	uint32_t i;

	for (i = 0; own_span(i, &s); i++)
		if (s.size)
			sys2(__NR_munlock, (long)s.start, (long)s.size);
}

/* ---- what is not ---- */

#define VSYSCALL (1ull << 63) /* no mapping of the process, though it is listed */

static bool next_foreign(struct rt_procfile *maps, struct rt_mapping *m)
{
	while (rt_mapping_read(maps, m))
		if (m->start < VSYSCALL && !is_ours(m->start))
			return true;
	return false;
}

static bool rest_would_fit(void)
{
	struct rt_procfile maps;
	struct rt_mapping m;
	struct rlimit limit;
	uint64_t size = 0;

	if (sys4(__NR_prlimit64, 0, RLIMIT_MEMLOCK, 0, (long)&limit) != 0 ||
	    !rt_procfile_open(&maps, "/proc/self/maps"))
		return false;
	while (next_foreign(&maps, &m))
		size += m.end - m.start;
	rt_procfile_close(&maps);
	return size <= (limit.rlim_cur & -4096ull);
}

/* Like mlockall(), mapping by mapping; like it, skips what cannot be locked. */
static bool lock_rest(uint64_t flags)
{
	const uint64_t on_fault = flags & MCL_ONFAULT ? MLOCK_ONFAULT : 0;
	struct rt_procfile maps;
	struct rt_mapping m;
	long ret = flags & MCL_FUTURE ? sys1(__NR_mlockall, (long)(flags & ~(uint64_t)MCL_CURRENT))
				      : sys0(__NR_munlockall);

	if (ret || !rt_procfile_open(&maps, "/proc/self/maps"))
		return false;
	while (next_foreign(&maps, &m)) {
		if (on_fault)
			sys3(__NR_mlock2, (long)m.start, (long)(m.end - m.start), (long)on_fault);
		else
			sys2(__NR_mlock, (long)m.start, (long)(m.end - m.start));
	}
	rt_procfile_close(&maps);
	return true;
}

/* ---- the hook ---- */

static bool lock_all(uint64_t flags)
{
	long ret = sys1(__NR_mlockall, (long)flags);

	if (ret == -ENOMEM && flags & MCL_CURRENT && rest_would_fit())
		ret = lock_rest(flags) ? 0 : ret;
	if (ret == 0)
		unlock_ours();
	return ret == 0;
}

void rt_hook_mlockall(uint64_t *number, uint64_t *first, uint64_t *second)
{
	uint64_t mask;

	if (kron_rt.quiet)
		return;
	mask = rt_signals_block();
	if (lock_all((uint32_t)*first)) {
		/* munlock() of nothing succeeds.  After a failure the program's own call fails again. */
		*number = __NR_munlock;
		*first = *second = 0;
	}
	rt_signals_restore(mask);
}

void rt_unlock(uint64_t addr, uint64_t size)
{
	sys2(__NR_munlock, (long)addr, (long)size);
}
