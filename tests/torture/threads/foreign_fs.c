/* SPDX-License-Identifier: MIT */
/*
 * foreign_fs.c - code that runs with %fs where it likes: at nothing, at memory of the program's
 * that is all zero, at memory that is all but zero; in the main thread, and in one that was made so.
 *
 * Such code calls no library.  Nobody may write near that %fs but the program, which does not.
 *
 * Build: O2 O0,no-pie
 * Flags: -fno-stack-protector -fcf-protection=none
 * Calls: work=46800 main=1
 * Exits: work=46800
 */
#define _GNU_SOURCE
#include "torture.h"
#include <asm/prctl.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#define CALLS 3900 /* more than a chunk's */
#define AREA 65536
#define HWCAP2_FSGSBASE_ 2

int arch_prctl(int code, unsigned long addr);

static unsigned char area[AREA] __attribute__((aligned(4096)));

OPAQUE long work(long n)
{
	return n * 3 + 1;
}

static inline __attribute__((always_inline)) long many(void)
{
	long n = 1;

	for (int i = 0; i < CALLS; i++)
		n = work(n);
	return n;
}

static inline __attribute__((always_inline)) long system_call(long nr, long a, long b, long c,
							      long d, long e)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
			 : "rcx", "r11", "memory");
	return ret;
}

/* ---- main, by each way to set the base ---- */

enum way { BY_LIBC, BY_SYSCALL, BY_INSTRUCTION, BY_BASE, WAYS };

static int can_write_base;

static __attribute__((noinline)) long run_at(enum way way, unsigned long base)
{
	unsigned long home;
	long n;

	if (arch_prctl(ARCH_GET_FS, (unsigned long)&home))
		return -1;
	switch (way) {
	case BY_LIBC:
		arch_prctl(ARCH_SET_FS, base);
		break;
	case BY_SYSCALL:
		syscall(SYS_arch_prctl, ARCH_SET_FS, base);
		break;
	case BY_INSTRUCTION:
		system_call(SYS_arch_prctl, ARCH_SET_FS, (long)base, 0, 0, 0);
		break;
	default:
		if (can_write_base)
			__asm__ volatile("wrfsbase %0" : : "r"(base) : "memory");
		else
			system_call(SYS_arch_prctl, ARCH_SET_FS, (long)base, 0, 0, 0);
	}
	n = many();
	system_call(SYS_arch_prctl, ARCH_SET_FS, (long)home, 0, 0, 0);
	return n;
}

static void fill(int byte)
{
	memset(area, byte, sizeof(area));
}

static int is_filled(int byte)
{
	for (int i = 0; i < AREA; i++)
		if (area[i] != (unsigned char)byte)
			return 0;
	return 1;
}

/* ---- threads ---- */

static volatile int running;
static volatile long sum;

static int thread(void *arg)
{
	(void)arg;
	sum = many();
	system_call(SYS_exit, 0, 0, 0, 0, 0);
	return 0;
}

#define THREAD_FLAGS                                                                        \
	(CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | \
	 CLONE_SETTLS | CLONE_CHILD_CLEARTID | CLONE_CHILD_SETTID)

static void run_thread(unsigned long base)
{
	char *stack = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(stack != MAP_FAILED);
	running = -1;
	CHECK(clone(thread, stack + 65536, THREAD_FLAGS, NULL, NULL, (void *)base, &running) > 0);
	while (running)
		syscall(SYS_futex, &running, FUTEX_WAIT, running, NULL, NULL, 0);
	munmap(stack, 65536);
}

int main(void)
{
	unsigned long middle = (unsigned long)area + AREA / 2;
	long n = many();

	can_write_base = (getauxval(AT_HWCAP2) & HWCAP2_FSGSBASE_) != 0;
	for (int way = 0; way < WAYS; way++) {
		fill(way & 1 ? 0xa5 : 0);
		CHECK(run_at(way, way & 1 ? middle : 0) == n);
		fill(way & 1 ? 0 : 0x5a);
		CHECK(run_at(way, middle) == n);
		CHECK(is_filled(way & 1 ? 0 : 0x5a));
	}
	fill(0);
	run_thread(0);
	CHECK(sum == n);
	run_thread(middle);
	CHECK(sum == n && is_filled(0));
	fill(0x77);
	run_thread(middle);
	CHECK(sum == n && is_filled(0x77));
	printf("%ld\n", n & 1);
	return 0;
}
