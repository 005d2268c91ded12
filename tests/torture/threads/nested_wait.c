/* SPDX-License-Identifier: MIT */
/*
 * nested_wait.c - a handler that may interrupt itself (SA_NODEFER), on a small stack of its own.
 *
 * With --when-full wait its probes may have to wait.  If the next signal came meanwhile, and its
 * handler waited, too, they would nest without end; untraced they nest hardly ever, for the handler
 * takes some microseconds of each millisecond.
 *
 * Args: calls of work(), and of a handler's function; microseconds between signals.  tests/e2e/record/unseen.py
 * stops the recorder while it runs, or has signals come faster than a sleep of any length is over.
 */
#define _GNU_SOURCE
#include "torture.h"
#include <sys/mman.h>
#include <time.h>

#define STACK 65536

static volatile long sum;
static int handler_calls = 100;

OPAQUE long work(long n)
{
	return n * 3 + 1;
}

OPAQUE long handle(long n)
{
	return n * 5 + 1;
}

static void on_signal(int sig)
{
	long n = sig;

	for (int i = 0; i < handler_calls; i++)
		n = handle(n);
	sum = n;
}

int main(int argc, char **argv)
{
	long calls = argc > 1 ? atol(argv[1]) : 1000, n = 1;
	struct sigaction sa = {.sa_handler = on_signal,
			       .sa_flags = SA_NODEFER | SA_ONSTACK | SA_RESTART};
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
	const struct timespec between = {.tv_nsec = 1000 * (argc > 3 ? atol(argv[3]) : 1000)};
	struct itimerspec every = {.it_interval = between, .it_value = between};
	/* nothing below it: who goes too deep dies of it */
	char *at = mmap(NULL, 2 * STACK, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	stack_t ss = {.ss_sp = at + STACK, .ss_size = STACK};
	timer_t timer;

	if (argc > 2)
		handler_calls = atoi(argv[2]);
	CHECK(at != MAP_FAILED && !mprotect(at + STACK, STACK, PROT_READ | PROT_WRITE));
	CHECK(!sigaltstack(&ss, NULL) && !sigaction(SIGUSR1, &sa, NULL));
	CHECK(!timer_create(CLOCK_MONOTONIC, &event, &timer));
	CHECK(!timer_settime(timer, 0, &every, NULL));
	for (long i = 0; i < calls; i++)
		n = work(n);
	every = (struct itimerspec){{0, 0}, {0, 0}};
	CHECK(!timer_settime(timer, 0, &every, NULL));
	KEEP(n);
	printf("done\n");
	return 0;
}
