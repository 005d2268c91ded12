/* SPDX-License-Identifier: MIT */
/* peek.c - see peek.h */
#include "runtime/memory/peek.h"

#include <asm/prctl.h>
#include <cpuid.h>
#include <sys/uio.h>
#include "runtime/core/rt.h"
#include "runtime/sys/sys.h"
#include "runtime/sys/mini.h"

#define PAGE 4096u
#define CPUID_RTM (1u << 11)           /* leaf 7, %ebx */
#define CPUID_ALWAYS_ABORTS (1u << 11) /* %edx */

#ifndef ARCH_GET_CPUID
#define ARCH_GET_CPUID 0x1011
#endif

enum transactions { UNKNOWN, THERE, NOT_THERE };

/* cpuid itself may be forbidden (ARCH_SET_CPUID), and would fault. */
static enum transactions look_for_transactions(void)
{
	unsigned a, b, c, d;

	if (!sys2(__NR_arch_prctl, ARCH_GET_CPUID, 0) || !__get_cpuid_count(7, 0, &a, &b, &c, &d))
		return NOT_THERE;
	return b & CPUID_RTM && !(d & CPUID_ALWAYS_ABORTS) ? THERE : NOT_THERE;
}

/* Whoever looks finds the same. */
static bool has_transactions(void)
{
	static uint8_t known;
	uint8_t seen = __atomic_load_n(&known, __ATOMIC_RELAXED);

	if (seen == UNKNOWN) {
		rt_busy_begin();
		if (!kron_rt.quiet) {
			seen = (uint8_t)look_for_transactions();
			__atomic_store_n(&known, seen, __ATOMIC_RELAXED);
		}
		rt_busy_end();
	}
	return seen == THERE;
}

/* An abort leaves %eax something else, and all other registers and memory as they were. */
static bool peek_at_once(void *to, uint64_t from, size_t n)
{
	uint32_t status = UINT32_MAX;

	__asm__ volatile("xbegin 1f\n\trep movsb\n\txend\n1:"
			 : "+a"(status), "+D"(to), "+S"(from), "+c"(n)
			 :
			 : "memory", "cc");
	return status == UINT32_MAX;
}

/* What the kernel can read of it; of each page all or nothing. */
static size_t peek_by_kernel(void *to, uint64_t from, size_t n)
{
	size_t first = PAGE - from % PAGE;
	struct iovec local = {to, n};
	struct iovec remote[2] = {{(void *)from, n}, {0, 0}};
	long got = 0;

	if (first < n) {
		remote[0].iov_len = first;
		remote[1] = (struct iovec){(void *)(from + first), n - first};
	}
	rt_busy_begin();
	if (!kron_rt.quiet)
		got = sys6(__NR_process_vm_readv, sys_getpid(), (long)&local, 1, (long)remote,
			   first < n ? 2 : 1, 0);
	rt_busy_end();
	return got < 0 ? 0 : (size_t)got;
}

size_t rt_peek_some(void *to, uint64_t from, size_t n)
{
	if (from > UINT64_MAX - n)
		return 0;
	if (from % PAGE + n <= PAGE && has_transactions() && peek_at_once(to, from, n))
		return n;
	return peek_by_kernel(to, from, n);
}

bool rt_peek(void *to, uint64_t from, size_t n)
{
	return rt_peek_some(to, from, n) == n;
}
