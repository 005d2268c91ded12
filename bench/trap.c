/* SPDX-License-Identifier: MIT */
/*
 * trap.c - what a C store to an emulated board costs, beside what it is made of.
 *
 *   signal   a store that faults, and a handler that does nothing but skip it
 *   store    mk_ts1 = n, a bus cycle of the model
 *   load     x = mk_timestamp
 *
 * Each series in a child of its own, in turns.  trap --json; the board is $KRON_BOARD.
 */
#define _GNU_SOURCE
#include <mk.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "bench/median.h"

#define ROUNDS 9
#define STORES 20000u

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void skip(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)info;
	((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] += 2;
}

/* movl %ecx, (%rax) is two bytes. */
static double signal_ns(void)
{
	struct sigaction a = {.sa_sigaction = skip, .sa_flags = SA_SIGINFO};
	void *page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	double start;
	unsigned i;

	sigaction(SIGSEGV, &a, NULL);
	start = now_ns();
	for (i = 0; i < STORES; i++)
		__asm__ volatile("movl %%ecx, (%%rax)" : : "a"(page), "c"(i) : "memory");
	return (now_ns() - start) / STORES;
}

static double store_ns(void)
{
	double start;
	unsigned i;

	MK_DEFAULT_MAP();
	start = now_ns();
	for (i = 0; i < STORES; i++)
		mk_ts1 = i;
	return (now_ns() - start) / STORES;
}

static double load_ns(void)
{
	double start;
	unsigned i;

	MK_DEFAULT_MAP();
	start = now_ns();
	for (i = 0; i < STORES; i++)
		(void)mk_timestamp;
	return (now_ns() - start) / STORES;
}

static double in_child(double (*f)(void))
{
	double ns = 0;
	int p[2];

	if (pipe(p))
		exit(99);
	if (fork() == 0) {
		ns = f();
		_exit(write(p[1], &ns, sizeof(ns)) != sizeof(ns));
	}
	close(p[1]);
	if (read(p[0], &ns, sizeof(ns)) != sizeof(ns))
		exit(99);
	close(p[0]);
	wait(NULL);
	return ns;
}

int main(int argc, char **argv)
{
	static double series[3][ROUNDS];
	int r;

	for (r = 0; r < ROUNDS; r++) {
		series[0][r] = in_child(signal_ns);
		series[1][r] = in_child(store_ns);
		series[2][r] = in_child(load_ns);
	}
	printf(argc > 1 && argv[1][2] == 'j'
		       ? "{\"signal_ns\": %.1f, \"store_ns\": %.1f, \"load_ns\": %.1f}\n"
		       : "signal alone %.1f ns\nC store by trap %.1f ns\nC load by trap %.1f ns\n",
	       median_of(series[0], ROUNDS), median_of(series[1], ROUNDS),
	       median_of(series[2], ROUNDS));
	return 0;
}
