/* SPDX-License-Identifier: MIT */
/* markers.c - USDT probes: arguments in registers and constants, one with a semaphore. */
#define _SDT_HAS_SEMAPHORES 1
#include <stdio.h>
#include <stdlib.h>
#include <sys/sdt.h>

unsigned short demo_turn_semaphore __attribute__((section(".probes")));
unsigned short demo_guarded_semaphore __attribute__((section(".probes")));
unsigned short demo_end_semaphore __attribute__((section(".probes")));

__attribute__((noinline)) static int turn(int i)
{
	DTRACE_PROBE2(demo, turn, i, 42);
	if (__builtin_expect(demo_guarded_semaphore, 0))
		DTRACE_PROBE1(demo, guarded, i * 2);
	return i + 1;
}

int main(void)
{
	int n = 0;

	while (n < 25)
		n = turn(n);
	DTRACE_PROBE(demo, end);
	printf("%d %d\n", n, demo_guarded_semaphore);
	return 0;
}
