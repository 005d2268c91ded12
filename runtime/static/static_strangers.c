/* SPDX-License-Identifier: MIT */
/*
 * static_strangers.c - threads whose thread data is not what a C library made for them.
 *
 * The thunks read a word of it, whose place is known from one thread, and take no lock.  So every thread
 * must have a word there, and none another's data (runtime/dynamic/strangers.c: likewise, by the same
 * hooks).  A process that runs was looked at by whoever stopped it.
 */
#define _GNU_SOURCE
#include <asm/prctl.h>
#include <linux/sched.h>
#include "runtime/core/rt.h"
#include "runtime/core/thread.h"
#include "runtime/static/static.h"
#include "runtime/sys/sys.h"

#define PAGE 4096ul

static bool strange;                /* atomic */
static int32_t data_from, data_end; /* they only narrow; atomic */

void rt_data_init(int32_t from, int32_t end)
{
	data_from = from;
	data_end = end;
	if (from == end)
		rt_strangers_come();
}

void rt_data_range(int32_t *from, int32_t *end)
{
	*from = __atomic_load_n(&data_from, __ATOMIC_SEQ_CST);
	*end = __atomic_load_n(&data_end, __ATOMIC_SEQ_CST);
}

bool rt_is_strange(void)
{
	return __atomic_load_n(&strange, __ATOMIC_RELAXED);
}

void rt_strangers_come(void)
{
	__atomic_store_n(&strange, true, __ATOMIC_SEQ_CST);
	rt_numbers_end();
}

/* ---- data that a thread will have ---- */

static void raise_to(int32_t *bound, int32_t to)
{
	int32_t seen = __atomic_load_n(bound, __ATOMIC_SEQ_CST);

	while (seen < to && !__atomic_compare_exchange_n(bound, &seen, to, false, __ATOMIC_SEQ_CST,
							 __ATOMIC_SEQ_CST))
		;
}

static void lower_to(int32_t *bound, int32_t to)
{
	int32_t seen = __atomic_load_n(bound, __ATOMIC_SEQ_CST);

	while (seen > to && !__atomic_compare_exchange_n(bound, &seen, to, false, __ATOMIC_SEQ_CST,
							 __ATOMIC_SEQ_CST))
		;
}

static bool is_readable(uint64_t at)
{
	return sys_is_readable((const void *)at);
}

/* The range becomes what can be read at this base, too.  False: nothing can, or not the number. */
static bool fits(uint64_t base)
{
	const uint64_t page = base & -PAGE;
	int32_t from, end;
	long offset;

	if (kron_rt.quiet)
		return true; /* nobody may be asked; it does, mostly */
	if (!is_readable(base))
		return false;
	rt_data_range(&from, &end);
	if (base + (uint64_t)(int64_t)from < page && !is_readable(page - 8))
		raise_to(&data_from, -(int32_t)(base - page));
	if (base + (uint64_t)(int64_t)end > page + PAGE && !is_readable(page + PAGE))
		lower_to(&data_end, (int32_t)(page + PAGE - base));
	rt_data_range(&from, &end);
	offset = __atomic_load_n(&kron_rt_tid_offset, __ATOMIC_SEQ_CST);
	return !offset || (offset >= from && offset + 4 <= end);
}

/* ---- hooks ---- */

/* The data were copied from another thread's, with the word by which that is found. */
static bool is_copy(uint64_t base)
{
	uint64_t word;

	if (kron_rt.quiet)
		return false;
	word = *(const uint64_t *)base;
	return word != base && word % sizeof(word) == 0 && is_readable(word) &&
	       *(const uint64_t *)word == word;
}

/* A child that shares memory has data of its own, or is waited for. */
void rt_hook_clone(uint64_t flags, uint64_t tls)
{
	if (rt_is_strange())
		return;
	if (flags & CLONE_SETTLS ? tls == rt_fs_base() || !fits(tls) || is_copy(tls)
				 : flags & CLONE_VM && !(flags & CLONE_VFORK))
		rt_strangers_come();
}

/* At its start a program points %fs to its data: nobody has a number then. */
void rt_hook_arch_prctl(uint64_t code, uint64_t addr)
{
	if ((int)code != ARCH_SET_FS || rt_is_strange())
		return;
	if (kron_rt_tid_offset ? kron_rt.quiet || addr != rt_fs_base() : !fits(addr))
		rt_strangers_come();
}

void rt_hook_fs(void)
{
	if (!rt_is_strange())
		rt_strangers_come();
}
