/* SPDX-License-Identifier: MIT */
/*
 * truth.h - a program counts its own calls, by caller and callee, in a file that is mapped shared:
 * it is right whatever ends the program, and children count into it, too.
 *
 *   #define CALLS(X) X(main, work) X(nobody, handler)      who calls whom, as far as it counts
 *   #define TIMES(X) X(work)                               whose time it measures
 *   #include "truth.h"
 *   CALL(main, work); work();                              in the caller, before the call
 *   CALL(nobody, handler);                                 in a function that nobody calls
 *   TIMED(work, 30, work());                               a call that takes 30 ms at least
 *
 * The file, which $TRUTH names: rows of 64 bytes of name and two numbers.  "caller>callee" and its
 * calls; "=function", the milliseconds that its calls take at least and the nanoseconds that they
 * took at most, by a clock outside.  Counting is an addition in memory: no call, no frame.
 */
#ifndef NESTING_TRUTH_H
#define NESTING_TRUTH_H

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#ifdef __clang__
#define NOINLINE __attribute__((noinline))
#else
#define NOINLINE __attribute__((noipa))
#endif
/* Without it the last call would be a jump; with it the function goes on after the call. */
#define STAYS() __asm__ volatile("" ::: "memory")

#ifndef TIMES
#define TIMES(X)
#endif

enum {
#define X(caller, callee) T_##caller##_##callee,
	CALLS(X)
#undef X
#define X(function) T_time_##function,
		TIMES(X)
#undef X
			T_ROWS
};

struct truth_row {
	char name[64];
	uint64_t n, most_ns;
};
extern struct truth_row *volatile truth;

#define CALL(caller, callee) \
	((void)__atomic_fetch_add(&truth[T_##caller##_##callee].n, 1, __ATOMIC_RELAXED))

/*
 * To the clock outside, a call begins before it and ends after what is called next: an end that is
 * inferred is known no sooner.
 */
#define TIMED(function, ms, call)                                                   \
	do {                                                                        \
		struct timespec truth_a, truth_b;                                   \
		clock_gettime(CLOCK_MONOTONIC, &truth_a);                           \
		call;                                                               \
		after();                                                            \
		clock_gettime(CLOCK_MONOTONIC, &truth_b);                           \
		truth[T_time_##function].n += (ms);                                 \
		truth[T_time_##function].most_ns +=                                 \
			(uint64_t)((truth_b.tv_sec - truth_a.tv_sec) * 1000000000 + \
				   truth_b.tv_nsec - truth_a.tv_nsec);              \
	} while (0)
void after(void);

#ifndef TRUTH_ELSEWHERE
struct truth_row *volatile truth;

NOINLINE void after(void)
{
	STAYS();
}

__attribute__((constructor)) static void truth_open(void)
{
	static const char *const names[T_ROWS] = {
#define X(caller, callee) #caller ">" #callee,
		CALLS(X)
#undef X
#define X(function) "=" #function,
			TIMES(X)
#undef X
	};
	const char *path = getenv("TRUTH");
	int fd = open(path ? path : "/dev/null", O_RDWR | O_CREAT, 0600);

	if (fd < 0 || ftruncate(fd, T_ROWS * sizeof(struct truth_row)))
		abort();
	truth = (struct truth_row *)mmap(NULL, T_ROWS * sizeof(struct truth_row),
					 PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (truth == MAP_FAILED)
		abort();
	close(fd);
	for (int i = 0; i < T_ROWS; i++)
		strcpy(truth[i].name, names[i]);
}
#endif

#endif
