/* SPDX-License-Identifier: MIT */
/*
 * stalls.c - threads that handle requests, one of which takes long, and says so.
 *
 *   stalls THREADS REQUESTS STALL_MS [leave]
 *
 * In the middle of its requests the last thread sleeps STALL_MS in one; 0: nobody does.  `leave`:
 * each request is left by longjmp(), and the thread sleeps STALL_MS after one of them instead.
 *
 * A request measures itself, and its caller measures the call.  Lines "call TID NUMBER BEGIN END
 * CALLED RETURNED", in nanoseconds of CLOCK_MONOTONIC, say which have taken more than a millisecond
 * to the caller.  On a busy machine a thread may lose its processor between CALLED and BEGIN.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct call {
	long tid, number;
	uint64_t begin, end;       /* within the request */
	uint64_t called, returned; /* around it */
};
struct worker {
	pthread_t thread;
	long number;
	struct call slow[4096];
	uint32_t nslow;
	struct call last;
	jmp_buf out;
};

static long requests, stall_ms;
static int nthreads, leave;

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void nap_us(long us)
{
	struct timespec ts = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};

	nanosleep(&ts, NULL);
}

__attribute__((noinline)) unsigned long tick(unsigned long x)
{
	__asm__ volatile("" : "+r"(x));
	return x * 2862933555777941757ul + 3037000493ul;
}

static void note(struct worker *w, uint64_t called)
{
	w->last.called = called;
	w->last.returned = now_ns();
	if (w->last.returned - called > 1000000 && w->nslow < 4096)
		w->slow[w->nslow++] = w->last;
}

/* Calls itself once, so that its inner call ends before it. */
__attribute__((noinline)) unsigned long handle(struct worker *w, long number, int inner)
{
	uint64_t begin = now_ns();
	unsigned long x = (unsigned long)number;

	for (int i = 0; i < 20; i++)
		x = tick(x);
	if (!inner)
		x += handle(w, number, 1);
	else if (stall_ms && !leave && w->number == nthreads - 1 && number == requests / 2)
		nap_us(stall_ms * 1000);
	if (!inner)
		w->last = (struct call){syscall(SYS_gettid), number, begin, now_ns(), 0, 0};
	if (!inner && leave)
		longjmp(w->out, 1);
	__asm__ volatile("" : "+r"(x));
	return x;
}

static void *work(void *arg)
{
	struct worker *w = arg;
	volatile unsigned long x = 0;

	for (volatile long i = 0; i < requests; i++) {
		volatile uint64_t called = now_ns();

		if (!leave || !setjmp(w->out))
			x += handle(w, i, 0);
		note(w, called);
		x += tick(x);
		if (stall_ms && leave && w->number == nthreads - 1 && i == requests / 2)
			nap_us(stall_ms * 1000);
		else if (i % 16 == 0)
			nap_us(50);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	struct worker *w;

	if (argc < 4)
		return 2;
	nthreads = atoi(argv[1]);
	requests = atol(argv[2]);
	stall_ms = atol(argv[3]);
	leave = argc > 4;
	w = calloc((size_t)nthreads, sizeof(*w));
	for (int i = 0; i < nthreads; i++) {
		w[i].number = i;
		pthread_create(&w[i].thread, NULL, work, &w[i]);
	}
	for (int i = 0; i < nthreads; i++) {
		pthread_join(w[i].thread, NULL);
		for (uint32_t k = 0; k < w[i].nslow; k++)
			printf("call %ld %ld %lu %lu %lu %lu\n", w[i].slow[k].tid,
			       w[i].slow[k].number, w[i].slow[k].begin, w[i].slow[k].end,
			       w[i].slow[k].called, w[i].slow[k].returned);
	}
	free(w);
	return 0;
}
