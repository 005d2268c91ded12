/* SPDX-License-Identifier: MIT */
/*
 * shares.c - functions whose names contain each other's, one that calls itself, one that several
 * others call, in two threads: whose share of the time is it?
 */
#include <pthread.h>
#include <time.h>

static void spin(long us)
{
	struct timespec begin, now;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while ((now.tv_sec - begin.tv_sec) * 1000000 + (now.tv_nsec - begin.tv_nsec) / 1000 < us);
}

__attribute__((noinline)) void leaf(void)
{
	spin(2000);
}

__attribute__((noinline)) void remain(void)
{
	leaf();
	spin(3000);
}

__attribute__((noinline)) void domain(int depth)
{
	spin(1000);
	if (depth)
		domain(depth - 1);
	leaf();
}

__attribute__((noinline)) void *mainland(void *x)
{
	spin(20000);
	remain();
	leaf();
	return x;
}

int main(void)
{
	pthread_t thread;
	int failed = pthread_create(&thread, NULL, mainland, NULL);

	domain(3);
	remain();
	spin(1000);
	return failed || pthread_join(thread, NULL);
}
