/* SPDX-License-Identifier: MIT */
/*
 * siglongjmp.c - leaves signal handlers by siglongjmp while a timer fires into the work.
 *
 * The jump may leave a probe half done: its claimed sample stays a hole, and the next probe
 * of the thread must not mind.  Round N ends when the timer has fired once in it.
 *
 * A trigger that waits for room when the handler jumps is lost, and counted as lost.
 *
 * Build: O2 O0
 * Lossy: yes
 */
#include "torture.h"
#include <setjmp.h>
#include <sys/time.h>

#define ROUNDS 150

static sigjmp_buf back;
static volatile sig_atomic_t armed;
static volatile unsigned long work_done;

OPAQUE static unsigned long leaf(unsigned long x)
{
	return x * 2862933555777941757ul + 3037000493ul;
}
OPAQUE static unsigned long work(unsigned long x)
{
	for (int i = 0; i < 50; i++)
		x = leaf(x);
	return x;
}
OPAQUE static void note(void)
{
	KEEP(1);
}
OPAQUE static void on_alarm(int sig)
{
	(void)sig;
	note();
	if (armed) {
		armed = 0;
		siglongjmp(back, 1);
	}
}

int main(void)
{
	const struct itimerval fast = {{0, 500}, {0, 500}}, off = {{0, 0}, {0, 0}};
	struct sigaction sa = {.sa_handler = on_alarm};
	volatile int jumps = 0;

	CHECK(!sigaction(SIGALRM, &sa, NULL));
	CHECK(!setitimer(ITIMER_REAL, &fast, NULL));
	while (jumps < ROUNDS) {
		if (sigsetjmp(back, 1) == 0) {
			armed = 1;
			for (;;)
				work_done += work((unsigned long)jumps) & 1;
		}
		jumps++;
	}
	CHECK(!setitimer(ITIMER_REAL, &off, NULL));
	printf("jumped out of %d handlers\n", jumps);
	return 0;
}
