/* SPDX-License-Identifier: MIT */
/*
 * starts.c - tells the collector of programs that this process is about to start: kron/segment.h,
 * "programs that are being started".
 *
 * In shared memory and without a system call of its own but getpid() and geteuid(), so that it can
 * be done in a vfork child, and that a kill at any instruction leaves the truth: a program that the
 * collector has not heard of.
 */
#include "runtime/core/rt.h"
#include "runtime/hooks/hooks.h"
#include "runtime/sys/sys.h"
#include "runtime/sys/mini.h"

uint32_t rt_start_enter(void)
{
	struct kron_starts *s = kron_starts(kron_rt.ctl);
	uint64_t who = (uint32_t)sys_getpid() | (uint64_t)sys0(__NR_geteuid) << 32;
	uint32_t i;

	for (i = 0; i < KRON_STARTS_MAX; i++) {
		uint64_t none = 0;

		if (__atomic_compare_exchange_n(&s->start[i], &none, who, false, __ATOMIC_RELAXED,
						__ATOMIC_RELAXED))
			return i;
	}
	__atomic_fetch_add(&s->unlisted, 1, __ATOMIC_RELAXED);
	return KRON_STARTS_MAX;
}

/* The execve has failed. */
void rt_start_leave(uint32_t i)
{
	struct kron_starts *s = kron_starts(kron_rt.ctl);

	if (i < KRON_STARTS_MAX)
		__atomic_store_n(&s->start[i], 0, __ATOMIC_RELAXED);
	else
		__atomic_fetch_sub(&s->unlisted, 1, __ATOMIC_RELAXED);
}

void rt_start_untraced(enum kron_untraced why)
{
	__atomic_fetch_add(&kron_starts(kron_rt.ctl)->untraced[why], 1, __ATOMIC_RELAXED);
}
