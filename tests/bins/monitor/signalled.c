/* SPDX-License-Identifier: MIT */
/*
 * signalled.c ROUNDS - takes signals and traps, counts them in its handlers, and says how many: for kron monitor.
 *
 *   signals N traps N
 *
 * Each round two threads and a child do all of it.  Signals that are ignored, and those that nobody takes before the end,
 * are none.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static struct {
	unsigned long signals, traps;
} * counts;
static __thread sigjmp_buf back;

static void take(int sig, siginfo_t *info, void *context)
{
	(void)context;
	__atomic_fetch_add(&counts->signals, 1, __ATOMIC_RELAXED);
	if (info->si_code > 0 && sig != SIGALRM && sig != SIGCHLD) {
		__atomic_fetch_add(&counts->traps, 1, __ATOMIC_RELAXED);
		siglongjmp(back, 1);
	}
}

static volatile int zero;

/* A trap of each kind, and the same signals sent by somebody. */
static void do_round(void)
{
	volatile int *nowhere = NULL;

	if (!sigsetjmp(back, 1))
		*nowhere = 1;
	if (!sigsetjmp(back, 1))
		zero = 7 / zero;
	if (!sigsetjmp(back, 1))
		__asm__ volatile("int3");
	if (!sigsetjmp(back, 1))
		__asm__ volatile("ud2");
	if (!sigsetjmp(back, 1))
		__asm__ volatile("hlt"); /* not for user mode: a SIGSEGV of another code */
	raise(SIGSEGV);
	raise(SIGTRAP);
	raise(SIGUSR1);
	raise(SIGUSR2); /* ignored */
}

static void *run(void *arg)
{
	for (long i = (long)arg; i; i--)
		do_round();
	return NULL;
}

static void *wait_for_ever(void *arg)
{
	sigset_t all;

	(void)arg;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	for (;;)
		pause();
	return NULL;
}

int main(int argc, char **argv)
{
	static const int taken[] = {SIGSEGV, SIGFPE, SIGTRAP, SIGILL, SIGUSR1};
	const struct sigaction take_it = {.sa_sigaction = take, .sa_flags = SA_SIGINFO},
			       ignore = {.sa_handler = SIG_IGN};
	const long rounds = argc > 1 ? atol(argv[1]) : 10;
	pthread_t t;
	pid_t pid;

	counts = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++)
		sigaction(taken[i], &take_it, NULL);
	sigaction(SIGUSR2, &ignore, NULL);
	pid = fork();
	if (!pid) {
		run((void *)rounds);
		_exit(0);
	}
	pthread_create(&t, NULL, run, (void *)rounds);
	run((void *)rounds);
	pthread_join(t, NULL);
	waitpid(pid, NULL, 0); /* SIGCHLD is ignored by default */
	printf("signals %lu traps %lu\n", counts->signals, counts->traps);
	fflush(stdout);
	/* whom exit_group(2) ends */
	for (int i = 0; i < 3; i++)
		pthread_create(&t, NULL, wait_for_ever, NULL);
	raise(SIGUSR2);
	usleep(20000);
	return 5;
}
