/* SPDX-License-Identifier: MIT */
/*
 * work.c - sixteen functions, one for each filter level, called on command.
 *
 *     $ echo 3 1000 | work        calls step_3 a thousand times
 *     12345                       nanoseconds that it took
 *
 * `kron record -g 3=step_3 ...` puts the probes of step_3 into group 3.
 */
#include <stdio.h>
#include <time.h>

static volatile unsigned long sum;

#define STEP(n)                                                         \
	__attribute__((noinline)) static void step_##n(unsigned long i) \
	{                                                               \
		sum += i ^ (n);                                         \
	}
STEP(0)
STEP(1)
STEP(2)
STEP(3)
STEP(4)
STEP(5)
STEP(6)
STEP(7)
STEP(8)
STEP(9)
STEP(10)
STEP(11)
STEP(12)
STEP(13)
STEP(14)
STEP(15)

static void (*const steps[16])(unsigned long) = {
	step_0, step_1, step_2,  step_3,  step_4,  step_5,  step_6,  step_7,
	step_8, step_9, step_10, step_11, step_12, step_13, step_14, step_15,
};

static long nanoseconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000L + ts.tv_nsec;
}

int main(void)
{
	unsigned level;
	long calls;

	while (scanf("%u %ld", &level, &calls) == 2) {
		void (*step)(unsigned long) = steps[level % 16];
		long start = nanoseconds();

		for (long i = 0; i < calls; i++)
			step((unsigned long)i);
		printf("%ld\n", nanoseconds() - start);
		fflush(stdout);
	}
	return 0;
}
