/* SPDX-License-Identifier: MIT */
/*
 * sys.h - system calls of the runtime, without libc and without errno.
 *
 * Every function returns what the kernel returned: >= 0, or -errno.  Types and constants come
 * from libc's headers; no function of libc is called.  Nothing here may touch errno, a lock or
 * thread data of the program.
 */
#ifndef RUNTIME_SYS_H
#define RUNTIME_SYS_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#include <asm/unistd.h>
#include <kron/sys6.h>

static inline long sys5(long nr, long a, long b, long c, long d, long e)
{
	return sys6(nr, a, b, c, d, e, 0);
}

static inline long sys4(long nr, long a, long b, long c, long d)
{
	register long r10 __asm__("r10") = d;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10)
			 : "rcx", "r11", "memory");
	return ret;
}

static inline long sys3(long nr, long a, long b, long c)
{
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(nr), "D"(a), "S"(b), "d"(c)
			 : "rcx", "r11", "memory");
	return ret;
}

static inline long sys2(long nr, long a, long b)
{
	return sys3(nr, a, b, 0);
}

static inline long sys1(long nr, long a)
{
	return sys3(nr, a, 0, 0);
}

static inline long sys0(long nr)
{
	return sys3(nr, 0, 0, 0);
}

static inline long sys_mmap(const void *addr, size_t len, int prot, int flags, int fd, uint64_t off)
{
	return sys6(__NR_mmap, (long)addr, (long)len, prot, flags, fd, (long)off);
}

static inline long sys_munmap(const void *addr, size_t len)
{
	return sys2(__NR_munmap, (long)addr, (long)len);
}

static inline long sys_mprotect(const void *addr, size_t len, int prot)
{
	return sys3(__NR_mprotect, (long)addr, (long)len, prot);
}

static inline long sys_madvise(const void *addr, size_t len, int advice)
{
	return sys3(__NR_madvise, (long)addr, (long)len, advice);
}

static inline long sys_close(int fd)
{
	return sys1(__NR_close, fd);
}

static inline int32_t sys_getpid(void)
{
	return (int32_t)sys0(__NR_getpid);
}

/* CLOCK_MONOTONIC, to a few ms; never 0. */
static inline uint64_t sys_now_ms(void)
{
	struct timespec ts = {0, 0};

	sys2(__NR_clock_gettime, CLOCK_MONOTONIC_COARSE, (long)&ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000 + 1;
}

static inline int32_t sys_gettid(void)
{
	return (int32_t)sys0(__NR_gettid);
}

/* mmap and friends fail with a value in [-4095, -1]; addresses are never there. */
static inline int sys_failed(long ret)
{
	return (unsigned long)ret > -4096ul;
}

/*
 * May the word that p lies in be read?  The kernel reads a set of signals there, and then does not know
 * what to do with it: EINVAL; else EFAULT, where we would have got a signal.
 */
static inline bool sys_is_readable(const void *p)
{
	return sys4(__NR_rt_sigprocmask, -1, (long)((uint64_t)p & ~7ul), 0, 8) == -EINVAL;
}

#endif
