/* SPDX-License-Identifier: MIT */
/* tails.c - functions that end with a jump into another one.  tests/e2e/reports/nesting.py looks whether the
 * compiler has made jumps of them. */
#include "tails.h"
#include "truth.h"

static volatile int sum;

NOINLINE void leaf(int n)
{
	sum += n;
}

NOINLINE void direct(int n)
{
	sum++;
	CALL(direct, leaf);
	leaf(n);
}

NOINLINE void chain(int n)
{
	sum++;
	CALL(chain, direct);
	direct(n + 1);
}

/* libc, which is not always traced */
NOINLINE void wait_sleep(void)
{
	sum++;
	usleep(3000);
}

NOINLINE void wait_chain(void)
{
	sum++;
	CALL(wait_chain, wait_sleep);
	wait_sleep();
}

static void (*volatile somewhere)(int) = leaf;

NOINLINE void pointer(int n)
{
	sum++;
	CALL(pointer, leaf);
	somewhere(n);
}

NOINLINE void conditional(int n)
{
	sum++;
	if (!(n & 1))
		return;
	CALL(conditional, leaf);
	leaf(n);
}

NOINLINE void between(void)
{
	sum++;
}

/* In turn with another call, from the same frame. */
NOINLINE void twice(void)
{
	for (int i = 0; i < 3; i++) {
		CALL(twice, wait_sleep);
		wait_sleep();
		CALL(twice, between);
		between();
	}
	STAYS();
}

NOINLINE void nested_sleep(void)
{
	CALL(nested_sleep, wait_sleep);
	wait_sleep();
	STAYS();
}

NOINLINE int odd(unsigned n);

NOINLINE int even(unsigned n)
{
	sum++;
	if (!n)
		return 1;
	CALL(even, odd);
	return odd(n - 1);
}

NOINLINE int odd(unsigned n)
{
	sum++;
	if (!n)
		return 0;
	CALL(main, even); /* which is there already: its frame ends, and with it ours */
	return even(n - 1);
}

/* works on, and ends with a call all the same */
NOINLINE void works(int n)
{
	CALL(works, leaf);
	leaf(n);
	CALL(works, direct);
	direct(n);
}

NOINLINE void over(int n)
{
	sum++;
	CALL(over, lib_leaf);
	lib_leaf(n);
}

int main(int argc, char **argv)
{
	int turns = argc > 1 ? atoi(argv[1]) : 1000;

	(void)argv;
	for (int i = 0; i < 5; i++) {
		CALL(main, direct);
		direct(i);
		CALL(main, chain);
		chain(i);
		CALL(main, pointer);
		pointer(i);
		CALL(main, conditional);
		conditional(i);
		CALL(main, over);
		over(i);
		CALL(main, lib_over);
		lib_over(i);
		CALL(main, lib_pointer);
		lib_pointer(leaf, i);
		CALL(main, works);
		works(i);
	}
	CALL(main, wait_sleep);
	CALL(main, after);
	TIMED(wait_sleep, 3, wait_sleep());
	CALL(main, wait_chain);
	CALL(main, after);
	TIMED(wait_chain, 3, wait_chain());
	CALL(main, lib_wait);
	CALL(main, after);
	TIMED(lib_wait, 3, lib_wait(wait_sleep));
	CALL(main, nested_sleep);
	CALL(main, after);
	TIMED(nested_sleep, 3, nested_sleep());
	CALL(main, twice);
	twice();
	CALL(main, even);
	return even((unsigned)turns) ? 0 : 1;
}
