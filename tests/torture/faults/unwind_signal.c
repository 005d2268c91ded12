/* SPDX-License-Identifier: MIT */
/*
 * unwind_signal.c - a profiler's handler walks the stack from wherever SIGPROF stopped it, and
 * must reach main each time, also when it stopped in the middle of a probe.
 *
 * Build: O2
 * Flags: -pthread
 * Calls: outer=1 main=1
 */
#include "torture.h"
#include <execinfo.h>
#include <sys/time.h>

static volatile sig_atomic_t samples, bad;
static uintptr_t main_lo, main_hi;
static volatile unsigned long sink;

static void on_prof(int sig)
{
	void *frames[64];
	int n = backtrace(frames, 64), found = 0;

	(void)sig;
	for (int i = 0; i < n; i++)
		if ((uintptr_t)frames[i] > main_lo && (uintptr_t)frames[i] < main_hi)
			found = 1;
	if (!found)
		bad++;
	samples++;
}

OPAQUE static unsigned long leaf(unsigned long x)
{
	return x * 2862933555777941757ul + 3037000493ul;
}
OPAQUE static unsigned long middle(unsigned long x)
{
	return leaf(x) + leaf(x + 1);
}
OPAQUE static void outer(void)
{
	unsigned long x = 1;

	while (samples < 200) {
		sink = x = middle(x);
		for (int i = 0; i < 20; i++)
			__builtin_ia32_pause();
	}
}

int main(void)
{
	const struct itimerval fast = {{0, 1000}, {0, 1000}}, off = {{0, 0}, {0, 0}};
	struct sigaction sa = {.sa_handler = on_prof, .sa_flags = SA_RESTART};
	void *warm[4];

	main_lo = (uintptr_t)main;
	main_hi = main_lo + 2048;
	backtrace(warm, 4); /* loads libgcc_s outside the handler */
	CHECK(!sigaction(SIGALRM, &sa, NULL));
	CHECK(!setitimer(ITIMER_REAL, &fast, NULL));
	outer();
	CHECK(!setitimer(ITIMER_REAL, &off, NULL));
	if (bad) {
		fprintf(stderr, "%d of %d stacks did not reach main\n", (int)bad, (int)samples);
		return 1;
	}
	puts("all stacks reach main");
	return 0;
}
