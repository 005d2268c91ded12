/* SPDX-License-Identifier: MIT */
/*
 * counted.c - calls work() from threads, forked children, threads of theirs, signal handlers and
 * a child that is killed, and says in the end how often it was called by all of them.  stop() is
 * called once in between, when `early` calls have been made.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 6
#define CALLS 20000

static long *called; /* shared by all processes */

__attribute__((noinline, noclone)) long work(long x)
{
	__atomic_fetch_add(called, 1, __ATOMIC_RELAXED);
	return x * 3 + 1;
}

__attribute__((noinline, noclone)) void stop(void)
{
	__asm__ volatile("nop; nop; nop; nop; nop");
}

static volatile long sink;

static void *run(void *unused)
{
	(void)unused;
	for (long i = 0; i < CALLS; i++)
		sink = work(i);
	return NULL;
}

static void on_signal(int sig)
{
	sink = work(sig);
}

static void threads(void)
{
	pthread_t t[THREADS];

	for (int i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, run, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
}

static void child(int how)
{
	pid_t pid = fork();

	if (!pid) {
		if (how == 1)
			threads();
		run(NULL);
		if (how == 2)
			kill(getpid(), SIGKILL);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
}

int main(void)
{
	struct itimerval often = {{0, 500}, {0, 500}}, never;
	struct sigaction act;

	memset(&act, 0, sizeof(act));
	memset(&never, 0, sizeof(never));
	called = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	for (long i = 0; i < 10; i++)
		sink = work(i);
	stop();
	act.sa_handler = on_signal;
	act.sa_flags = SA_RESTART;
	sigaction(SIGALRM, &act, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	threads();
	for (int how = 0; how < 3; how++)
		child(how);
	setitimer(ITIMER_REAL, &never, NULL);
	printf("%ld\n", __atomic_load_n(called, __ATOMIC_RELAXED));
	return 0;
}
