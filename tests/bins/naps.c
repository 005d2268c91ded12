/* SPDX-License-Identifier: MIT */
/* naps.c - functions that take a known time: 20 ms, 10 ms, and one that contains both. */
#include <stdio.h>
#include <time.h>

static void nap(long ms)
{
	const struct timespec t = {0, ms * 1000000};

	nanosleep(&t, NULL);
}
__attribute__((noinline)) static void nap_20(void)
{
	nap(20);
	__asm__ volatile("");
}
__attribute__((noinline)) static void nap_10(void)
{
	nap(10);
	__asm__ volatile("");
}
__attribute__((noinline)) static void both(void)
{
	nap_20();
	nap_10();
	__asm__ volatile("");
}

int main(void)
{
	for (int i = 0; i < 5; i++)
		both();
	puts("slept");
	return 0;
}
