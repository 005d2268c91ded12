/* SPDX-License-Identifier: MIT */
/*
 * counter.c - counts its calls where they outlive it: for the tests that kill programs.
 *
 *   counter FILE THREADS [fork]
 *
 * Each thread calls work_N() without end and adds one to its word of FILE, a shared mapping,
 * after each call has returned.  So at a kill the word is a lower bound of the entries that
 * were stored, and one less than an upper bound.  With "fork" half of the work is a child's.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>
#include <signal.h>

static volatile uint64_t *count;

#define WORK(n)                                                                      \
	__attribute__((noinline)) static unsigned long work_##n(unsigned long x)     \
	{                                                                            \
		__asm__ volatile("" : "+r"(x));                                      \
		return x * 2862933555777941757ul + n; /* no two alike: GCC merges */ \
	}                                                                            \
	static void *run_##n(void *arg)                                              \
	{                                                                            \
		unsigned long x = 1;                                                 \
		for (;;) {                                                           \
			x = work_##n(x);                                             \
			__asm__ volatile("" : : "r"(x) : "memory");                  \
			count[8 * n]++;                                              \
			/* slow enough that the collector keeps up */                \
			for (int i = 0; i < 60; i++)                                 \
				__builtin_ia32_pause();                              \
		}                                                                    \
		return arg;                                                          \
	}
WORK(0)
WORK(1)
WORK(2)
WORK(3)
static void *(*const run[])(void *) = {run_0, run_1, run_2, run_3};

int main(int argc, char **argv)
{
	int fd, threads, first = 0;
	pthread_t t;

	if (argc < 3)
		return 2;
	threads = atoi(argv[2]);
	fd = open(argv[1], O_RDWR | O_CREAT, 0600);
	if (threads < 1 || threads > 2 || fd < 0 || ftruncate(fd, 4096))
		return 3;
	count = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (count == MAP_FAILED)
		return 4;
	close(fd);
	if (argc > 3 && !strcmp(argv[3], "fork") && fork() == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		first = 2;
	}
	for (int i = 1; i < threads; i++)
		if (pthread_create(&t, NULL, run[first + i], NULL))
			return 5;
	run[first](NULL);
	return 0;
}
