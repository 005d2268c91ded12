/* SPDX-License-Identifier: MIT */
/*
 * waits.c - THREADS threads call step() CALLS times each, and wait for each other after each call:
 * none goes on before all have come.  Each call is one entry and one exit.
 *
 *   waits THREADS CALLS
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_barrier_t all;
static int calls;

__attribute__((noinline)) static int step(int x)
{
	__asm__ volatile("" : "+r"(x));
	return x + 1;
}

static void *thread_main(void *arg)
{
	int x = 0;

	for (int i = 0; i < calls; i++) {
		x = step(x);
		pthread_barrier_wait(&all);
	}
	return x == calls ? arg : NULL;
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 1;
	pthread_t t[256];

	calls = argc > 2 ? atoi(argv[2]) : 1;
	if (n < 1 || n > 256 || pthread_barrier_init(&all, NULL, (unsigned)n))
		return 2;
	for (int i = 1; i < n; i++)
		if (pthread_create(&t[i], NULL, thread_main, &all))
			return 3;
	if (!thread_main(&all))
		return 4;
	for (int i = 1; i < n; i++) {
		void *end;

		if (pthread_join(t[i], &end) || !end)
			return 5;
	}
	printf("steps %d\n", n * calls);
	return 0;
}
