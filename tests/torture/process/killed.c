/* SPDX-License-Identifier: MIT */
/*
 * killed.c - dies by the signal that its argument names, from inside an instrumented function.
 *
 * Build: O2
 * Args: 11
 * Calls: die=1 main=1
 */
#include "torture.h"

OPAQUE static void die(int sig)
{
	if (sig == SIGSEGV)
		*(volatile int *)8 = 1;
	if (sig == SIGILL)
		__asm__ volatile("ud2");
	if (sig == SIGFPE)
		__asm__ volatile("idivl %0" : : "r"(0), "a"(1), "d"(0));
	if (sig == SIGABRT)
		abort();
	kill(getpid(), sig);
}

int main(int argc, char **argv)
{
	printf("dying\n");
	fflush(stdout);
	die(argc > 1 ? atoi(argv[1]) : SIGTERM);
	return 0;
}
