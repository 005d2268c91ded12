/* SPDX-License-Identifier: MIT */
/*
 * dynamic_tid.c - the calling thread's number without a system call, for after a seccomp filter.
 *
 *   %fs ─► thread data of libc: [ … | tid | … ]     the word that the kernel clears when the
 *                                 ▲                 thread ends (set_tid_address, clone)
 *                                 └ tid_offset, as the kernel says at START
 *
 * libc gives that word's address to the kernel for every thread that it makes, at the same place
 * in each one's thread data, and has the kernel put the number there, for children of its fork()
 * too.  A raw clone leaves the parent's number there: it is not an answer in a child whose thread was
 * registered with it (`registered`, which the child inherits).
 */
#include <linux/prctl.h>
#include "runtime/core/rt.h"
#include "runtime/core/thread.h"
#include "runtime/dynamic/dynamic.h"
#include "runtime/sys/sys.h"

#define THREAD_DATA_MAX 8192 /* glibc's struct pthread has some 2 KiB */

static long tid_offset;
/* What the thread's lane was last registered with. */
static RT_THREAD uint32_t registered;

static uint32_t tid_word(void)
{
	uint32_t tid;

	__asm__ volatile("movl %%fs:(%1), %0" : "=r"(tid) : "r"(tid_offset));
	return tid;
}

void rt_tid_find(void)
{
	uint64_t at = 0;
	long offset;

	/* -EINVAL where the kernel was built without it: then there is no number */
	if (sys2(__NR_prctl, PR_GET_TID_ADDRESS, (long)&at))
		return;
	offset = (long)(at - (uint64_t)__builtin_thread_pointer());
	if (offset <= 0 || offset > THREAD_DATA_MAX || offset % 4)
		return;
	tid_offset = offset;
	if (tid_word() != (uint32_t)sys_gettid())
		tid_offset = 0;
}

long rt_tid_offset(void)
{
	return tid_offset;
}

void rt_tid_registered(uint32_t tid)
{
	if (!rt_is_strange())
		registered = tid;
}

uint32_t rt_tid_known(bool forked)
{
	uint32_t tid = tid_offset && !rt_is_strange() ? tid_word() : 0;

	if (!tid || (forked && (!registered || registered == tid)))
		return 0;
	return tid <= KRON_SOURCE_TID_MASK ? tid : 0;
}
