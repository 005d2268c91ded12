/* SPDX-License-Identifier: MIT */
/*
 * sys.h - the system calls behind the functions that libmk stands in for, without errno.
 *
 * Raw, so that the same code serves libmk.so, libmk.a and static programs: there is no "next"
 * sigaction() to look up in those.  They return what the kernel returned.
 */
#ifndef LIBMK_SYS_H
#define LIBMK_SYS_H

#include <signal.h>
#include <stdint.h>
#include <asm/unistd.h>
#include <kron/sys6.h>

static inline long sys4(long nr, long a, long b, long c, long d)
{
	return sys6(nr, a, b, c, d, 0, 0);
}

/* A signal set as the kernel has it: bit n - 1 is signal n. */
typedef uint64_t sys_mask;
#define SYS_BIT(signal) ((sys_mask)1 << ((signal)-1))

static inline long sys_sigmask(int how, const sys_mask *set, sys_mask *old)
{
	return sys4(__NR_rt_sigprocmask, how, (long)set, (long)old, sizeof(sys_mask));
}

/* What the kernel takes and gives; glibc's struct sigaction is laid out differently. */
struct sys_action {
	void (*handler)(int, siginfo_t *, void *);
	uint64_t flags;
	void (*restorer)(void);
	sys_mask mask;
};

static inline long sys_sigaction(int signal, const struct sys_action *set, struct sys_action *old)
{
	return sys4(__NR_rt_sigaction, signal, (long)set, (long)old, sizeof(sys_mask));
}

/* Send this thread a signal with this siginfo; the kernel lets anybody do that to himself. */
static inline long sys_queue_to_self(int signal, const siginfo_t *info)
{
	long pid = sys4(__NR_getpid, 0, 0, 0, 0);
	long tid = sys4(__NR_gettid, 0, 0, 0, 0);

	return sys4(__NR_rt_tgsigqueueinfo, pid, tid, signal, (long)info);
}

#endif
