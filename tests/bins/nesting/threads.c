/* SPDX-License-Identifier: MIT */
/* threads.c - threads that end by pthread_exit, by cancellation, by returning, and by exit. */
/* clang-format off */
#define CALLS(X)                                                                             \
	X(nobody, returning) X(nobody, leaving) X(nobody, cancelled) X(leaving, deeper)      \
	X(cancelled, waits) X(returning, leaf) X(deeper, leaf) X(main, leaf) X(main, ends)   \
	X(nobody, sleeping) X(sleeping, waits)
/* clang-format on */
#include "truth.h"
#include <pthread.h>

static volatile int sum;

NOINLINE void leaf(void)
{
	sum++;
}

NOINLINE void deeper(void)
{
	CALL(deeper, leaf);
	leaf();
	pthread_exit(NULL);
}

NOINLINE void *leaving(void *arg)
{
	CALL(nobody, leaving);
	CALL(leaving, deeper);
	deeper();
	return arg;
}

NOINLINE void *returning(void *arg)
{
	CALL(nobody, returning);
	CALL(returning, leaf);
	leaf();
	return arg;
}

NOINLINE void waits(void)
{
	for (;;)
		pause();
}

NOINLINE void *cancelled(void *arg)
{
	CALL(nobody, cancelled);
	CALL(cancelled, waits);
	waits();
	return arg;
}

NOINLINE void *sleeping(void *arg)
{
	CALL(nobody, sleeping);
	CALL(sleeping, waits);
	waits();
	return arg;
}

NOINLINE void ends(void)
{
	exit(0);
}

int main(void)
{
	void *(*const threads[])(void *) = {returning, leaving, cancelled, sleeping};
	pthread_t t[12];

	for (int i = 0; i < 12; i++)
		pthread_create(&t[i], NULL, threads[i % 4], NULL);
	for (int i = 2; i < 12; i += 4) {
		while (!truth[T_cancelled_waits].n)
			usleep(100);
		pthread_cancel(t[i]);
	}
	for (int i = 0; i < 12; i++)
		if (i % 4 != 3)
			pthread_join(t[i], NULL);
	while (truth[T_sleeping_waits].n < 3)
		usleep(100);
	CALL(main, leaf);
	leaf();
	CALL(main, ends);
	ends();
	return 1;
}
