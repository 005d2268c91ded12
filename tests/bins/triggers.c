/* SPDX-License-Identifier: MIT */
/*
 * triggers.c - an exact number of triggers: THREADS threads call tick() CALLS times each.
 * Each call is one entry and one exit.
 *
 *   triggers THREADS CALLS
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static long calls;

__attribute__((noinline)) static unsigned long tick(unsigned long x)
{
	__asm__ volatile("" : "+r"(x));
	return x * 2862933555777941757ul + 3037000493ul;
}
static void *thread_main(void *arg)
{
	unsigned long x = (unsigned long)arg;

	for (long i = 0; i < calls; i++)
		x = tick(x);
	return (void *)(x | 1);
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 1;
	pthread_t t[64];

	calls = argc > 2 ? atol(argv[2]) : 1000;
	if (n < 1 || n > 64)
		return 2;
	for (long i = 1; i < n; i++)
		if (pthread_create(&t[i], NULL, thread_main, (void *)i))
			return 3;
	thread_main(NULL);
	for (int i = 1; i < n; i++)
		pthread_join(t[i], NULL);
	printf("%d threads, %ld calls each\n", n, calls);
	return 0;
}
