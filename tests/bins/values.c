// SPDX-License-Identifier: MIT
/*
 * values.c - functions whose arguments and addresses the program itself adds up and prints:
 *
 *     values [ROUNDS [THREADS [NS]]]
 *
 * write_to() stores through pointers into data, stack and heap, in THREADS threads; a signal each NS
 * nanoseconds runs a handler that does so, too.  Prints where the three lie, and for each how often
 * it was written to, and the sum of the addresses.
 */
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>

#define HIDDEN __attribute__((noinline, noipa))

static long data[64];
static uint64_t count[3], sum[3]; /* of data, stack, heap */

HIDDEN void write_to(volatile long *p, long v);
HIDDEN void write_to(volatile long *p, long v)
{
	*p = v;
}

HIDDEN long narrow(long a, long b);
HIDDEN long narrow(long a, long b)
{
	return a + b;
}

HIDDEN double show(long a, unsigned long b, double d, const double *at);
HIDDEN double show(long a, unsigned long b, double d, const double *at)
{
	return (double)a + (double)b + d + *at;
}

static void note(int which, const volatile long *p)
{
	__atomic_fetch_add(&count[which], 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&sum[which], (uint64_t)p, __ATOMIC_RELAXED);
}

static void on_alarm(int sig)
{
	(void)sig;
	note(0, &data[63]);
	write_to(&data[63], 1);
	narrow(7, 8);
}

static long rounds = 10;
static long *stack_of_main, *heap_of_main;

static void *work(void *arg)
{
	long stack[16], *heap = malloc(16 * sizeof(*heap));

	if (arg == &data) {
		stack_of_main = stack;
		heap_of_main = heap;
	}
	for (long i = 0; i < rounds; i++) {
		note(0, &data[i % 32]);
		write_to(&data[i % 32], i);
		if (i % 7 == 3)
			narrow(i, 1);
		note(1, &stack[i % 16]);
		write_to(&stack[i % 16], i);
		note(2, &heap[i * 5 % 16]);
		write_to(&heap[i * 5 % 16], i);
	}
	if (arg == &data)
		printf("data %p stack %p heap %p\n", (void *)data, (void *)stack_of_main,
		       (void *)heap_of_main);
	return heap; /* never freed: each thread's lies elsewhere */
}

int main(int argc, char **argv)
{
	int threads = argc > 2 ? atoi(argv[2]) : 0;
	long us = argc > 3 ? atol(argv[3]) / 1000 : 0;
	struct itimerval often = {{0, us}, {0, us}}, never = {{0, 0}, {0, 0}};
	const double d = -2.5;
	pthread_t t[64];

	rounds = argc > 1 ? atol(argv[1]) : 10;
	signal(SIGALRM, on_alarm);
	setitimer(ITIMER_REAL, &often, NULL);
	for (int i = 0; i < threads && i < 64; i++)
		pthread_create(&t[i], NULL, work, NULL);
	work(&data);
	for (int i = 0; i < threads && i < 64; i++)
		pthread_join(t[i], NULL);
	setitimer(ITIMER_REAL, &never, NULL);
	show(-7, ~0ul, d, &d);
	for (int i = 0; i < 3; i++)
		printf("%" PRIu64 " %" PRIu64 "\n", count[i], sum[i]);
	return 0;
}
