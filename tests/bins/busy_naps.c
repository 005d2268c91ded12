/* SPDX-License-Identifier: MIT */
/*
 * busy_naps.c - threads of two processes that compute and sleep, and say of each of their calls
 * of work() what the kernel says: processor time and how often it was off the processor.
 *
 *   busy_naps              prints "TID CPU_NS WALL_NS VOLUNTARY FORCED" a line for each thread
 *   busy_naps exec         the same after an exec of itself
 */
#define _GNU_SOURCE
#ifdef __clang__
#define noipa noinline, optnone /* names stay as they are */
#endif
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static uint64_t now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

__attribute__((noipa)) static void compute(unsigned ms)
{
	uint64_t end = now(CLOCK_THREAD_CPUTIME_ID) + ms * 1000000ull;

	while (now(CLOCK_THREAD_CPUTIME_ID) < end)
		__asm__ volatile("");
}

__attribute__((noipa)) static void nap(long ms)
{
	const struct timespec t = {0, ms * 1000000};

	nanosleep(&t, NULL);
	__asm__ volatile("");
}

struct said {
	uint64_t cpu, wall;
	struct rusage use;
};

static void ask(struct said *s)
{
	s->cpu = now(CLOCK_THREAD_CPUTIME_ID);
	s->wall = now(CLOCK_MONOTONIC);
	getrusage(RUSAGE_THREAD, &s->use);
}

__attribute__((noipa)) static void work(struct said *before, struct said *after)
{
	ask(before);
	for (int i = 0; i < 8; i++) {
		compute(4);
		nap(3);
	}
	ask(after);
	__asm__ volatile("");
}

static void *thread(void *arg)
{
	struct said a, b;
	char line[200];
	int n;

	work(&a, &b);
	n = snprintf(line, sizeof(line), "%ld %ju %ju %ld %ld\n", syscall(SYS_gettid),
		     (uintmax_t)(b.cpu - a.cpu), (uintmax_t)(b.wall - a.wall),
		     b.use.ru_nvcsw - a.use.ru_nvcsw, b.use.ru_nivcsw - a.use.ru_nivcsw);
	if (write(STDOUT_FILENO, line, (size_t)n) != n)
		exit(1);
	return arg;
}

static void threads(void)
{
	pthread_t t[2];

	for (int i = 0; i < 2; i++)
		pthread_create(&t[i], NULL, thread, NULL);
	thread(NULL);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
}

int main(int argc, char **argv)
{
	pid_t child;

	if (argc > 1 && !strcmp(argv[1], "exec"))
		execl(argv[0], argv[0], (char *)NULL);
	child = fork();
	threads();
	if (child)
		waitpid(child, NULL, 0);
	return 0;
}
