/* SPDX-License-Identifier: MIT */
/* tails_lib.c - tails.c's library: jumps within it, by its linker's stubs, and back. */
#define TRUTH_ELSEWHERE
#include "tails.h"
#include "truth.h"

static volatile int sum;

NOINLINE void lib_leaf(int n)
{
	sum += n;
}

NOINLINE void lib_over(int n)
{
	sum++;
	CALL(lib_over, lib_leaf);
	lib_leaf(n + 1);
}

NOINLINE void lib_wait(void (*f)(void))
{
	sum++;
	CALL(lib_wait, wait_sleep);
	f();
}

NOINLINE void lib_pointer(void (*f)(int), int n)
{
	sum++;
	CALL(lib_pointer, leaf);
	f(n);
}
