/* SPDX-License-Identifier: MIT */
/*
 * tailcalls.c - tail calls: direct, mutually recursive millions deep, through a pointer table,
 * through a pointer argument, out of a loop, and conditional.
 *
 * The depth would overflow the stack if a probe turned one of the jumps into a call.
 *
 * Build: O2 O2,no-pie
 * Flags: -foptimize-sibling-calls
 * Calls: even=250001 odd=250000 step_a=1000 step_b=1000 step_c=1000 dispatch=3000
 * Calls: apply=2000 twice=1000 thrice=1000 search=1000
 */
#include "torture.h"

#define DEEP 500000

OPAQUE int odd(unsigned long n);
OPAQUE int even(unsigned long n)
{
	if (n == 0)
		return 1;
	return odd(n - 1);
}
OPAQUE int odd(unsigned long n)
{
	if (n == 0)
		return 0;
	return even(n - 1);
}

typedef long step_fn(long);
OPAQUE static long step_a(long x)
{
	KEEP(x);
	return x + 1;
}
OPAQUE static long step_b(long x)
{
	KEEP(x);
	return x * 2;
}
OPAQUE static long step_c(long x)
{
	KEEP(x);
	return x - 3;
}
static step_fn *const steps[] = {step_a, step_b, step_c};

OPAQUE long dispatch(unsigned n, long x)
{
	return steps[n](x);
}

OPAQUE static long twice(long x)
{
	KEEP(x);
	return 2 * x;
}
OPAQUE static long thrice(long x)
{
	KEEP(x);
	return 3 * x;
}
OPAQUE long apply(long x, step_fn *fn)
{
	return fn(x + 1);
}

OPAQUE long search(const long *v, long n, long what, step_fn *found)
{
	for (long i = 0; i < n; i++)
		if (v[i] == what)
			return found(i);
	return -1;
}
OPAQUE static long found_at(long i)
{
	KEEP(i);
	return i;
}

int main(void)
{
	static const long v[] = {5, 4, 3, 2, 1};
	long sum = 0;

	CHECK(even(DEEP) == 1);
	for (long i = 0; i < 1000; i++) {
		CHECK(dispatch(0, i) == i + 1);
		CHECK(dispatch(1, i) == i * 2);
		CHECK(dispatch(2, i) == i - 3);
		CHECK(apply(i, twice) == (i + 1) * 2);
		CHECK(apply(i, thrice) == (i + 1) * 3);
		CHECK(search(v, 5, i % 6, found_at) == (i % 6 ? 5 - i % 6 : -1));
		sum += i;
	}
	printf("tail %ld\n", sum);
	return 0;
}
