/* SPDX-License-Identifier: MIT */
/*
 * shared_tls.c - threads that were made without CLONE_SETTLS, so all have the thread data of their
 * maker; by libc's clone() and by the system call itself.  And a process that shares memory and
 * thread data with its parent and runs beside it.
 *
 * Build: O2
 * Flags: -fno-stack-protector -fcf-protection=none
 * Args: 60000
 * Calls: main=1
 * Modes: exe
 */
#define _GNU_SOURCE
#include "torture.h"
#include <linux/futex.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define THREADS 6
#define STACK 65536

static volatile int running[THREADS];
static long calls;

OPAQUE long work(long n)
{
	return n * 3 + 1;
}

static inline __attribute__((always_inline)) void leave(void)
{
	__asm__ volatile("syscall" : : "a"(SYS_exit), "D"(0) : "rcx", "r11", "memory");
	__builtin_unreachable();
}

static int thread(void *arg)
{
	long n = (long)arg;

	for (long i = 0; i < calls; i++)
		n = work(n);
	KEEP(n);
	leave();
	return 0;
}

#define FLAGS                                                                               \
	(CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | \
	 CLONE_CHILD_CLEARTID | CLONE_CHILD_SETTID)

static char *new_stack(void)
{
	char *at = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(at != MAP_FAILED);
	return at + STACK;
}

/* The child has nothing on its stack: it goes where %rbx says. */
static long raw_clone(unsigned long flags, char *stack, volatile int *tid)
{
	register long r10 __asm__("r10") = (long)tid;
	register long r8 __asm__("r8") = 0;
	long ret;

	__asm__ volatile("syscall\n\t"
			 "test %%rax,%%rax\n\t"
			 "jnz 1f\n\t"
			 "xor %%edi,%%edi\n\t"
			 "call *%%rbx\n\t"
			 "1:"
			 : "=a"(ret)
			 : "a"(SYS_clone), "D"(flags), "S"(stack), "d"(0), "r"(r10), "r"(r8),
			   "b"(thread)
			 : "rcx", "r11", "memory");
	return ret;
}

int main(int argc, char **argv)
{
	int status;
	pid_t child;

	calls = argc > 1 ? atol(argv[1]) : 60000;
	for (int i = 0; i < THREADS; i++) {
		running[i] = -1;
		if (i % 2)
			CHECK(raw_clone(FLAGS, new_stack(), &running[i]) > 0);
		else
			CHECK(clone(thread, new_stack(), FLAGS, (void *)1, NULL, NULL,
				    &running[i]) > 0);
	}
	child = clone(thread, new_stack(), CLONE_VM | SIGCHLD, (void *)1, NULL, NULL, NULL);
	CHECK(child > 0);
	for (long i = 0; i < calls; i++)
		KEEP(work(i));
	for (int i = 0; i < THREADS; i++)
		while (running[i])
			syscall(SYS_futex, &running[i], FUTEX_WAIT, running[i], NULL, NULL, 0);
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	printf("done\n");
	return 0;
}
