/* SPDX-License-Identifier: MIT */
/*
 * pthread_cancel.c - threads are cancelled, deferred (in a cancellation point several frames
 * down) and asynchronously (anywhere, so also in the middle of a probe).
 *
 * Deferred cancellation unwinds through instrumented frames, and every clean-up handler must
 * run.  The asynchronous one hits a loop of calls.
 *
 * Build: O2 O0
 * Flags: -pthread -fexceptions
 * Calls: on_cleanup=420 wait_deferred=100 spin=100
 */
#include "torture.h"
#include <pthread.h>
#include <time.h>

static int cleaned;
static volatile unsigned long sink;

OPAQUE static void on_cleanup(void *arg)
{
	__atomic_add_fetch((int *)arg, 1, __ATOMIC_RELAXED);
}
OPAQUE static void sleep_deep(int n)
{
	if (n == 0) {
		for (;;)
			pause();
	}
	sleep_deep(n - 1);
	KEEP(n);
}
OPAQUE static void frames(int n, pthread_barrier_t *b)
{
	pthread_cleanup_push(on_cleanup, &cleaned);
	if (n == 0) {
		pthread_barrier_wait(b);
		sleep_deep(5);
	}
	frames(n - 1, b);
	pthread_cleanup_pop(0);
}
OPAQUE static void *wait_deferred(void *barrier)
{
	frames(3, barrier);
	return NULL;
}
OPAQUE static unsigned long leaf(unsigned long x)
{
	return x * 6364136223846793005ul + 1;
}
OPAQUE static void *spin(void *barrier)
{
	unsigned long x = 1;

	/* not before: cancelled inside, a barrier would stay unusable */
	pthread_barrier_wait(barrier);
	CHECK(!pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL));
	for (;;)
		sink = x = leaf(x);
	return NULL;
}

static void cancel_rounds(void *(*fn)(void *), unsigned delay_us)
{
	const struct timespec d = {0, delay_us * 1000l};
	pthread_barrier_t b;
	void *got;

	CHECK(!pthread_barrier_init(&b, NULL, 2));
	for (int i = 0; i < 100; i++) {
		pthread_t t;

		CHECK(!pthread_create(&t, NULL, fn, &b));
		pthread_barrier_wait(&b);
		if (delay_us)
			nanosleep(&d, NULL);
		CHECK(!pthread_cancel(t));
		CHECK(!pthread_join(t, &got));
		CHECK(got == PTHREAD_CANCELED);
	}
	pthread_barrier_destroy(&b);
}

/* Cancelled with a request that is pending already when the thread reaches testcancel. */
OPAQUE static void *pending(void *arg)
{
	pthread_cleanup_push(on_cleanup, &cleaned);
	CHECK(!pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL));
	pthread_barrier_wait(arg);
	pthread_barrier_wait(arg);
	CHECK(!pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL));
	pthread_testcancel();
	CHECK(0);
	pthread_cleanup_pop(0);
	return NULL;
}

int main(void)
{
	pthread_barrier_t b;

	cancel_rounds(wait_deferred, 0);
	CHECK(cleaned == 400);
	cancel_rounds(spin, 200);
	CHECK(!pthread_barrier_init(&b, NULL, 2));
	for (int i = 0; i < 20; i++) {
		pthread_t t;

		CHECK(!pthread_create(&t, NULL, pending, &b));
		pthread_barrier_wait(&b);
		CHECK(!pthread_cancel(t));
		pthread_barrier_wait(&b);
		CHECK(!pthread_join(t, NULL));
	}
	CHECK(cleaned == 420);
	printf("cancelled %d\n", cleaned);
	return 0;
}
