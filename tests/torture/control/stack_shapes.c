/* SPDX-License-Identifier: MIT */
/*
 * stack_shapes.c - frames of all kinds: aligned by hand, alloca and VLAs, larger than a page
 * with stack probes, larger than the guard, on a thread's smallest stack, and a check that the
 * stack is aligned wherever a call arrives.
 *
 * Build: O2 O0 O2,no-pie
 * Flags: -pthread -fstack-clash-protection -fstack-protector-all
 * Calls: aligned_frame=2000 vla=2000 allocas=2000 large=200 alignment=4000 on_tiny_stack=20
 */
#include "torture.h"
#include <alloca.h>
#include <limits.h>
#include <pthread.h>

OPAQUE static void alignment(void)
{
	/* 16 at the call, so 8 at the entry, 0 with the frame pointer pushed */
	CHECK(((uintptr_t)__builtin_frame_address(0) & 15) == 0);
}
OPAQUE static long aligned_frame(long n)
{
	_Alignas(64) volatile char block[192];

	CHECK(((uintptr_t)block & 63) == 0);
	block[n % 192] = (char)n;
	alignment();
	return block[n % 192] + n;
}
OPAQUE static long vla(long n)
{
	volatile char v[n + 1];

	v[n] = 3;
	v[0] = 4;
	alignment();
	return v[n] + v[0];
}
OPAQUE static long allocas(long n)
{
	char *last = NULL;
	long count = 0;

	for (long i = 0; i < n % 10 + 1; i++) {
		char **p = alloca((size_t)(16 + n % 100));

		*p = last;
		last = (char *)p;
	}
	for (char *p = last; p; p = *(char **)p)
		count++;
	return count;
}
OPAQUE static long large(long n)
{
	volatile char block[300000];

	for (size_t i = 0; i < sizeof(block); i += 4000)
		block[i] = (char)n;
	return block[4000 * (n % 50)];
}
OPAQUE static void *on_tiny_stack(void *arg)
{
	volatile char block[2048];

	block[0] = 1;
	KEEP(block);
	return arg;
}

int main(void)
{
	pthread_attr_t attr;

	CHECK(!pthread_attr_init(&attr));
	CHECK(!pthread_attr_setstacksize(&attr, PTHREAD_STACK_MIN));
	for (long i = 0; i < 2000; i++) {
		CHECK(aligned_frame(i) == (char)i + i);
		CHECK(vla(i) == (i ? 7 : 8));
		CHECK(allocas(i) == i % 10 + 1);
		if (i % 10 == 0)
			CHECK(large(i) == (char)i);
	}
	for (int i = 0; i < 20; i++) {
		pthread_t t;

		CHECK(!pthread_create(&t, &attr, on_tiny_stack, NULL));
		CHECK(!pthread_join(t, NULL));
	}
	puts("stacks");
	return 0;
}
