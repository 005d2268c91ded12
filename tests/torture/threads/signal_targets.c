/* SPDX-License-Identifier: MIT */
/*
 * signal_targets.c - whom do signals of the process reach?
 *
 * A thread is busy, main sleeps, and SIGPROF comes as the process uses processor time.  The kernel
 * gives it to the thread whose time it was, unless that one has it blocked; then another thread gets
 * it, and main's sleep is interrupted.
 *
 * Args: how many signals to wait for.  Prints how many of them main got.
 */
#define _GNU_SOURCE
#include "torture.h"
#include <pthread.h>
#include <sys/time.h>

static volatile int wanted, at_main, total;
static pthread_t main_thread;

OPAQUE long work(long n)
{
	return n * 3 + 1;
}

static void on_signal(int sig)
{
	(void)sig;
	if (pthread_equal(pthread_self(), main_thread))
		__atomic_fetch_add(&at_main, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&total, 1, __ATOMIC_RELAXED);
}

static void *busy(void *arg)
{
	long n = 0;

	(void)arg;
	while (total < wanted)
		n = work(n);
	KEEP(n);
	return NULL;
}

static void every(long microseconds)
{
	struct itimerval it = {{0, microseconds}, {0, microseconds}};

	CHECK(!setitimer(ITIMER_PROF, &it, NULL));
}

int main(int argc, char **argv)
{
	struct sigaction sa = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
	pthread_t t;

	wanted = argc > 1 ? atoi(argv[1]) : 1000;
	main_thread = pthread_self();
	CHECK(!sigaction(SIGPROF, &sa, NULL));
	CHECK(!pthread_create(&t, NULL, busy, NULL));
	every(1000);
	pthread_join(t, NULL); /* a nap would end, and cost time of main's own */
	every(0);
	printf("%d\n", at_main);
	return 0;
}
