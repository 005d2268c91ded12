/* SPDX-License-Identifier: MIT */
/*
 * hops.c - more threads than CPUs, each moving from one to the next, each with a function of its
 * own: whatever a tracer says of hop_N must carry the number of thread N, which is printed.
 *
 *   hops ROUNDS
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int rounds;
static cpu_set_t cpus;

static void move_to(int n)
{
	cpu_set_t one;
	int cpu = 0;

	n %= CPU_COUNT(&cpus);
	while (!CPU_ISSET(cpu, &cpus) || n-- > 0)
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	sched_setaffinity(0, sizeof(one), &one);
}

#define HOP(n)                                                \
	__attribute__((noinline)) static int inner_##n(int x) \
	{                                                     \
		__asm__ volatile("" : "+r"(x));               \
		return x * 3 + n;                             \
	}                                                     \
	__attribute__((noinline)) static int hop_##n(int x)   \
	{                                                     \
		const int inner = x % 4;                      \
                                                              \
		for (int i = 0; i < inner; i++)               \
			x += inner_##n(i) & 1;                \
		__asm__ volatile("" : "+r"(x));               \
		return x + n;                                 \
	}                                                     \
	static void *run_##n(void *arg)                       \
	{                                                     \
		printf("%d %d\n", n, gettid());               \
		for (int i = 0; i < rounds; i++) {            \
			if (i % 8 == 0)                       \
				move_to(i / 8 + n);           \
			hop_##n(i);                           \
			if (i % 32 == n)                      \
				sched_yield();                \
		}                                             \
		return arg;                                   \
	}
HOP(0)
HOP(1)
HOP(2)
HOP(3)
HOP(4)
HOP(5)
HOP(6)
HOP(7)
HOP(8)
HOP(9)
static void *(*const run[])(void *) = {run_0, run_1, run_2, run_3, run_4,
				       run_5, run_6, run_7, run_8, run_9};
#define THREADS ((int)(sizeof(run) / sizeof(run[0])))

int main(int argc, char **argv)
{
	pthread_t t[THREADS];

	rounds = argc > 1 ? atoi(argv[1]) : 100;
	sched_getaffinity(0, sizeof(cpus), &cpus);
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&t[i], NULL, run[i], NULL))
			return 3;
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	return 0;
}
