/* SPDX-License-Identifier: MIT */
/*
 * looks.c - works now and then and looks how often it has worked; says both, which is the truth.
 *
 *   looks N steps           a line a look: how often work() has been called
 *   looks N killed          N looks, two works before each, and an end by SIGKILL
 *   looks N waits           the same, a line, and a long sleep
 *   looks N storm           threads, a forked child, and a handler that works and looks, too
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 4

static long works, times;
static volatile long handled;

__attribute__((noipa)) void work(void)
{
	works++;
}

__attribute__((noipa)) void look(long i)
{
	(void)i;
}

__attribute__((noipa)) void look_inside(void)
{
}

static void handle(int signal)
{
	(void)signal;
	handled++;
	work();
	look_inside();
}

static void *run(void *arg)
{
	for (long i = 0; i < times; i++) {
		work();
		look(i);
	}
	return arg;
}

static void storm(void)
{
	struct itimerval timer = {{0, 200}, {0, 200}}, off = {{0, 0}, {0, 0}};
	struct sigaction sa;
	pthread_t t[THREADS];

	memset(&sa, 0, sizeof(sa));
	sa.sa_handler = handle;
	sa.sa_flags = SA_RESTART;
	sigaction(SIGALRM, &sa, NULL);
	setitimer(ITIMER_REAL, &timer, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, run, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	setitimer(ITIMER_REAL, &off, NULL);
	if (!fork()) {
		run(NULL);
		_exit(0);
	}
	wait(NULL);
	printf("%ld %ld\n", (THREADS + 1) * times, handled);
}

int main(int argc, char **argv)
{
	const char *how = argc > 2 ? argv[2] : "";

	times = argc > 1 ? atol(argv[1]) : 0;
	if (!strcmp(how, "storm")) {
		storm();
		return 0;
	}
	for (long i = 0; i < times; i++) {
		for (int k = strcmp(how, "steps") ? 2 : (int)(i % 7); k; k--)
			work();
		look(i);
		if (!strcmp(how, "steps"))
			printf("%ld\n", works);
	}
	if (!strcmp(how, "killed"))
		raise(SIGKILL);
	puts("there");
	fflush(stdout);
	if (!strcmp(how, "waits"))
		sleep(100);
	return 0;
}
