/* SPDX-License-Identifier: MIT */
/*
 * shapes.c - what compilers do to functions: cold parts, clones, tail calls, switches through
 * tables, pointers to static functions, computed gotos.  A subject of tests/e2e/patch/twins.py; it is
 * also run, so that profile-guided builds have a profile.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOINLINE __attribute__((noinline))
#define COLD __attribute__((cold, noinline))

static volatile int sink;
static jmp_buf back;

COLD static void complain(const char *what, int n)
{
	fprintf(stderr, "%s %d\n", what, n);
	sink += n;
}

COLD static int complain_and_count(int n)
{
	sink ^= n;
	return n + sink;
}

NOINLINE static int checked(int n)
{
	if (__builtin_expect(n < 0, 0))
		abort();
	return n * 3;
}

NOINLINE static int checked_with_frame(int n, char *buf)
{
	char local[64];

	memset(local, n, sizeof(local));
	if (__builtin_expect(n > 100000, 0)) {
		complain("too large", n);
		complain(local, n + 1);
		return -1;
	}
	memcpy(buf, local, sizeof(local));
	return checked(n) + buf[3];
}

NOINLINE static int tail(int n)
{
	sink++;
	return checked(n + 1);
}

NOINLINE static int tail_if(int n)
{
	if (n & 1)
		return tail(n);
	return checked(n - 1);
}

/* its only way to the cold function is a jump */
NOINLINE static int tail_cold(int n)
{
	if (__builtin_expect(n == 12345, 0))
		return complain_and_count(n);
	return n + sink;
}

NOINLINE static const char *name_of(int n)
{
	switch (n) {
	case 0:
		return "zero";
	case 1:
		return "one";
	case 2:
		return "two";
	case 3:
		return "three";
	case 4:
		return "four";
	case 5:
		return "five";
	case 6:
		return "six";
	default:
		__builtin_unreachable();
	}
}

NOINLINE static int dispatch(int n, char *buf)
{
	switch (n) {
	case 0:
		return tail(n);
	case 1:
		return tail_if(n);
	case 2:
		return checked_with_frame(n, buf);
	case 3:
		return (int)strlen(buf);
	case 4:
		sink += 7;
		return sink;
	case 5:
		return tail_cold(n);
	case 6:
		complain("six", n);
		abort();
	case 7:
		return buf[n];
	case 8:
		return checked(buf[1]);
	default:
		abort();
	}
}

static int add(int a, int b)
{
	return a + b;
}
static int sub(int a, int b)
{
	return a - b;
}
static int divide(int a, int b)
{
	if (__builtin_expect(!b, 0))
		abort();
	return a / b;
}
static int (*const table[])(int, int) = {add, sub, divide};

NOINLINE static int interpret(const unsigned char *code)
{
	static void *const labels[] = {&&inc, &&dec, &&dbl, &&end};
	int acc = 0;

	goto *labels[*code++ & 3];
inc:
	acc++;
	goto *labels[*code++ & 3];
dec:
	acc--;
	goto *labels[*code++ & 3];
dbl:
	acc *= 2;
	if (__builtin_expect(acc > 1000000, 0))
		complain("overflow", acc);
	goto *labels[*code++ & 3];
end:
	return acc;
}

NOINLINE static int sum(int n, ...)
{
	va_list ap;
	int s = 0;

	va_start(ap, n);
	while (n--)
		s += va_arg(ap, int);
	va_end(ap);
	return s;
}

NOINLINE static int deep(int n)
{
	return n ? deep(n - 1) + n : 0;
}

NOINLINE static int even(int n);
NOINLINE static int odd(int n)
{
	return n ? even(n - 1) : 0;
}
NOINLINE static int even(int n)
{
	return n ? odd(n - 1) : 1;
}

NOINLINE static void leave(int n)
{
	if (n > 3)
		longjmp(back, n);
	sink += n;
}

NOINLINE static int compare(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

/* a candidate for .part: cheap test, costly rest */
static int partial(int n, char *buf)
{
	if (n < 3)
		return n;
	for (int i = 0; i < n; i++) {
		buf[i & 63] ^= sum(2, i, n);
		sink += checked(i);
		if (buf[i & 63] == 77)
			complain("77", i);
	}
	return deep(n) + (int)strlen(buf);
}

NOINLINE int partial_a(int n, char *buf)
{
	return partial(n, buf) + 1;
}
NOINLINE int partial_b(int n, char *buf)
{
	return partial(n + 1, buf) ^ 5;
}

__attribute__((constructor)) static void before_main(void)
{
	sink = 1;
}
__attribute__((destructor)) static void after_main(void)
{
	sink = 0;
}

int shapes_extra(int n);

int main(int argc, char **argv)
{
	static const unsigned char code[] = {0, 0, 2, 2, 1, 3};
	int numbers[] = {3, 1, 2}, total = 0;
	char buf[65] = "text";

	(void)argv;
	for (int i = 0; i < 300; i++) {
		total += dispatch(i % 6, buf);
		total += table[i % 3](i, 1 + i % 5);
		total += tail_if(i) + tail_cold(i) + even(i & 15);
		total += (int)strlen(name_of(i % 7));
		total += partial_a(i & 7, buf) + partial_b(i & 7, buf) + shapes_extra(i);
	}
	qsort(numbers, 3, sizeof(int), compare);
	if (!setjmp(back))
		leave(argc + 3);
	total += interpret(code) + sum(3, 1, 2, numbers[0]);
	printf("%d\n", total != 0);
	return 0;
}
