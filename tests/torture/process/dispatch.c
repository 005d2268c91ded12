/* SPDX-License-Identifier: MIT */
/*
 * dispatch.c - a program that has its own system calls dispatched to a handler (PR_SET_SYSCALL_USER_DISPATCH, Linux
 * 5.11): any other system call in its threads would be a signal that nobody expects.
 *
 * Build: O2
 * Calls: asks=2000 count=2000 main=1
 */
#define _GNU_SOURCE
#include "torture.h"
#include <signal.h>
#include <sys/prctl.h>
#include <ucontext.h>

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#endif

static volatile char selector;
static volatile int hits;

OPAQUE static void count(void)
{
	hits++;
}

static void on_call(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	selector = 0;
	CHECK(info->si_syscall == 0xe000);
	count();
	((ucontext_t *)context)->uc_mcontext.gregs[REG_RAX] = 4711;
}

OPAQUE static long asks(void)
{
	long result;

	__asm__ volatile("syscall" : "=a"(result) : "a"(0xe000) : "rcx", "r11", "memory");
	return result;
}

int main(void)
{
	struct sigaction a = {.sa_sigaction = on_call, .sa_flags = SA_SIGINFO};

	CHECK(!sigaction(SIGSYS, &a, NULL));
	CHECK(!prctl(PR_SET_SYSCALL_USER_DISPATCH, 1, 0L, 0L, &selector));
	for (int i = 0; i < 2000; i++) {
		selector = 1;
		CHECK(asks() == 4711);
		selector = 0;
	}
	printf("%d\n", hits);
	return 0;
}
