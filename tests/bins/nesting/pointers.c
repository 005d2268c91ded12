/* SPDX-License-Identifier: MIT */
/*
 * pointers.c - functions that end with jumps through pointers: to one that is recorded, and to libc's, after
 * which another one is called from the same place.
 */
/* clang-format off */
#define CALLS(X)                                                                           \
	X(main, away) X(main, heavy) X(main, relay) X(relay, chosen) X(main, light)
/* clang-format on */
#include "truth.h"

static volatile long sum;

NOINLINE size_t away(size_t (*volatile *length)(const char *), const char *s)
{
	sum++;
	return (*length)(s);
}

/* no pointer leads to these two */
NOINLINE void heavy(void)
{
	struct timespec begin, now;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	do {
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((now.tv_sec - begin.tv_sec) * 1000000000 + now.tv_nsec - begin.tv_nsec < 300000);
}

NOINLINE void light(void)
{
	sum++;
}

NOINLINE int chosen(int n)
{
	return n + 1;
}

NOINLINE int relay(int (*volatile *f)(int), int n)
{
	sum++;
	CALL(relay, chosen);
	return (*f)(n);
}

int main(void)
{
	size_t (*volatile length)(const char *) = strlen;
	int (*volatile f)(int) = chosen;

	for (int i = 0; i < 50; i++) {
		CALL(main, away);
		sum += (long)away(&length, "abc");
		CALL(main, heavy);
		heavy();
		CALL(main, relay);
		sum += relay(&f, i);
		CALL(main, light);
		light();
	}
	return 0;
}
