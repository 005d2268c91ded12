/* SPDX-License-Identifier: MIT */
/*
 * thread_storm.c - 64 threads at a time come and go, 3,200 in all; each does a little work.
 * Every one of them takes and leaves a lane, and thread ids get reused.
 *
 * Build: O2 O0
 * Flags: -pthread
 * Calls: thread_main=3200 work=320000 main=1
 * Exits: work=320000
 */
#include "torture.h"
#include <pthread.h>

#define AT_ONCE 64
#define ROUNDS 50
#define CALLS 100

OPAQUE static unsigned long work(unsigned long x)
{
	return x * 6364136223846793005ul + 1442695040888963407ul;
}
OPAQUE static void *thread_main(void *arg)
{
	unsigned long x = (unsigned long)arg;

	for (int i = 0; i < CALLS; i++)
		x = work(x);
	return (void *)x;
}

int main(void)
{
	pthread_t t[AT_ONCE];
	pthread_attr_t attr;
	unsigned long sum = 0;

	CHECK(!pthread_attr_init(&attr));
	CHECK(!pthread_attr_setstacksize(&attr, 65536));
	for (unsigned long round = 0; round < ROUNDS; round++) {
		for (unsigned long i = 0; i < AT_ONCE; i++)
			CHECK(!pthread_create(&t[i], &attr, thread_main,
					      (void *)(round * AT_ONCE + i)));
		for (int i = 0; i < AT_ONCE; i++) {
			void *got;

			CHECK(!pthread_join(t[i], &got));
			sum ^= (unsigned long)got;
		}
	}
	printf("storm %lu\n", sum);
	return 0;
}
