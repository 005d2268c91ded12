/* SPDX-License-Identifier: MIT */
/*
 * plug.c - a library for the dlopen programs.  ID makes each copy's results its own.
 */
#include <stdlib.h>

#ifndef ID
#define ID 0
#endif

static int constructed;
static __thread int thread_calls;

__attribute__((noinline)) static int plug_inner(int x)
{
	__asm__ volatile("" : "+r"(x));
	return x + 10 * ID + constructed;
}
/* A switch, so that the library has jump tables and relocations of its own. */
int plug_select(int n);
int plug_select(int n)
{
	thread_calls++;
	switch (n & 7) {
	case 0:
		return plug_inner(1);
	case 1:
		return plug_inner(2) * 2;
	case 2:
		return plug_inner(4) - 3;
	case 3:
		return abs(plug_inner(-8));
	case 4:
		return plug_inner(16) ^ 5;
	case 5:
		return plug_inner(32) / 3;
	case 6:
		return plug_inner(64) << 1;
	default:
		return thread_calls > 0 ? plug_inner(128) : -1;
	}
}
int plug_work(int x);
int plug_work(int x)
{
	__asm__ volatile("" : "+r"(x));
	return plug_inner(x);
}
__attribute__((constructor)) static void plug_start(void)
{
	constructed = 1;
}
__attribute__((destructor)) static void plug_stop(void)
{
	constructed = 0;
}
