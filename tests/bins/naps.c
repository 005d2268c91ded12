/* SPDX-License-Identifier: MIT */
/* naps.c - functions that take a known time: 20 ms, 10 ms, and one that contains both.
 * With an argument: a nap of that many us in nap_10(), and nothing else. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void nap(long us)
{
	const struct timespec t = {0, us * 1000};

	nanosleep(&t, NULL);
}
__attribute__((noinline)) static void nap_20(void)
{
	nap(20000);
	__asm__ volatile("");
}
__attribute__((noinline)) static void nap_10(long us)
{
	nap(us);
	__asm__ volatile("");
}
__attribute__((noinline)) static void both(void)
{
	nap_20();
	nap_10(10000);
	__asm__ volatile("");
}

int main(int argc, char **argv)
{
	if (argc > 1) {
		nap_10(atol(argv[1]));
		return 0;
	}
	for (int i = 0; i < 5; i++)
		both();
	puts("slept");
	return 0;
}
