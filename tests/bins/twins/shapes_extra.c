/* SPDX-License-Identifier: MIT */
/* shapes_extra.c - many functions of many sizes, by macros; a second object file for twins.py. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOINLINE __attribute__((noinline))

static volatile int count;
static volatile char bytes[256];

NOINLINE static int fail(int n)
{
	count += n;
	return -n;
}

#define SMALL(i)                             \
	NOINLINE static int small_##i(int n) \
	{                                    \
		return n * i + count;        \
	}
#define GUARD(i)                                         \
	NOINLINE static int guard_##i(int n)             \
	{                                                \
		if (__builtin_expect(n == -1000 - i, 0)) \
			abort();                         \
		return small_##i(n) ^ i;                 \
	}
#define FRAME(i)                                           \
	NOINLINE static int frame_##i(int n)               \
	{                                                  \
		char local[16 + 8 * i];                    \
		memset(local, n, sizeof(local));           \
		if (__builtin_expect(bytes[i] == 99, 0)) { \
			puts(local);                       \
			exit(i);                           \
		}                                          \
		bytes[i] = local[n & 15];                  \
		return guard_##i(n) + local[3];            \
	}
#define LOOP(i)                                                  \
	NOINLINE static int loop_##i(int n)                      \
	{                                                        \
		int s = 0;                                       \
		for (int k = 0; k < (n & 7) + i; k++) {          \
			if (__builtin_expect(bytes[k] == 98, 0)) \
				return fail(k);                  \
			s += frame_##i(k);                       \
		}                                                \
		return s;                                        \
	}
#define SWITCH(i)                                             \
	NOINLINE static int switch_##i(int n)                 \
	{                                                     \
		switch (n % 9) {                              \
		case 0:                                       \
			return small_##i(n);                  \
		case 1:                                       \
			return guard_##i(n);                  \
		case 2:                                       \
			return frame_##i(n);                  \
		case 3:                                       \
			return loop_##i(n);                   \
		case 4:                                       \
			count += i;                           \
			return count;                         \
		case 5:                                       \
			return n - i;                         \
		case 6:                                       \
			bytes[n & 255] = i;                   \
			return 0;                             \
		case 7:                                       \
			return fail(n) & 1;                   \
		default:                                      \
			return n > 100000 ? (abort(), 0) : n; \
		}                                             \
	}
#define ALL(i) SMALL(i) GUARD(i) FRAME(i) LOOP(i) SWITCH(i)

/* clang-format off */
ALL(1)
ALL(2) ALL(3) ALL(4) ALL(5) ALL(6) ALL(7) ALL(8) ALL(9) ALL(10) ALL(11) ALL(12) ALL(13) ALL(14)
ALL(15) ALL(16) ALL(17) ALL(18) ALL(19) ALL(20) ALL(21) ALL(22) ALL(23) ALL(24) ALL(25) ALL(26)
ALL(27) ALL(28) ALL(29) ALL(30)
	/* clang-format on */

	typedef int (*function)(int);

#define ROW(i) switch_##i, loop_##i
static const function functions[] = {
	ROW(1),  ROW(2),  ROW(3),  ROW(4),  ROW(5),  ROW(6),  ROW(7),  ROW(8),  ROW(9),  ROW(10),
	ROW(11), ROW(12), ROW(13), ROW(14), ROW(15), ROW(16), ROW(17), ROW(18), ROW(19), ROW(20),
};

#define DIRECT(i) s += switch_##i(n);

int shapes_extra(int n)
{
	int s = functions[n % (int)(sizeof(functions) / sizeof(*functions))](n);

	/* clang-format off */
	DIRECT(21) DIRECT(22) DIRECT(23) DIRECT(24) DIRECT(25)
	DIRECT(26) DIRECT(27) DIRECT(28) DIRECT(29) DIRECT(30)
		/* clang-format on */
		return s;
}
