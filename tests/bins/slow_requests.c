/* SPDX-License-Identifier: MIT */
/*
 * slow_requests.c - threads that handle requests, some of which take long.
 *
 *   slow_requests N SEED THREADS
 *
 * N requests in each thread.  Twenty of the first thread's take 2, 4, ... 40 ms; SEED says which.  Prints the
 * twenty slowest of all: nanoseconds by the program's own clock, and microseconds of the stall in it, or 0.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define STALLS 20

struct request {
	int64_t ns;
	int stall_us;
};
static int n;
static struct request *requests; /* n of each thread */

__attribute__((noipa)) int work(int x)
{
	volatile int y = x;

	for (int i = 0; i < 200; i++)
		y += i;
	return y;
}

__attribute__((noipa)) void stall(int us)
{
	const struct timespec t = {0, us * 1000};

	nanosleep(&t, NULL);
}

__attribute__((noipa)) int handle(int request, int us)
{
	int r = work(request);

	if (us)
		stall(us);
	for (int i = 0; i < 5; i++)
		r += work(r);
	return r;
}

static int64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static void *thread(void *first)
{
	struct request *r = first;

	for (int i = 0; i < n; i++) {
		const int64_t from = now();

		handle(i, r[i].stall_us);
		r[i].ns = now() - from;
	}
	return NULL;
}

static int by_length(const void *a, const void *b)
{
	const struct request *x = a, *y = b;

	return x->ns < y->ns ? 1 : x->ns > y->ns ? -1 : 0;
}

int main(int argc, char **argv)
{
	pthread_t t[64];
	int threads = argc > 3 ? atoi(argv[3]) : 1;

	n = atoi(argv[1]);
	srand((unsigned)atoi(argv[2]));
	requests = calloc((size_t)(n * threads), sizeof(*requests));
	for (int i = 1; i <= STALLS; i++) {
		int at;

		do
			at = rand() % n;
		while (requests[at].stall_us);
		requests[at].stall_us = i * 2000;
	}
	for (int i = 0; i < threads; i++)
		pthread_create(&t[i], NULL, thread, requests + i * n);
	for (int i = 0; i < threads; i++)
		pthread_join(t[i], NULL);
	qsort(requests, (size_t)(n * threads), sizeof(*requests), by_length);
	for (int i = 0; i < STALLS; i++)
		printf("%lld %d\n", (long long)requests[i].ns, requests[i].stall_us);
	return 0;
}
