/* SPDX-License-Identifier: MIT */
/*
 * flags.c - calls with flags that no C code expects, which must be as they were afterwards: AC, with which an
 * access that is not aligned is a fault, and DF, with which string instructions go down.
 *
 * Build: O2
 * Calls: inner=40000 outer=20000 main=1
 */
#include "torture.h"

#define AC 0x40000ul
#define DF 0x400ul

OPAQUE static int inner(int x)
{
	return x + 1;
}

OPAQUE static int outer(int x)
{
	return inner(x) + inner(x + 1);
}

static void set(unsigned long flags)
{
	__asm__ volatile("sub $128, %%rsp\n pushf\n or %0, (%%rsp)\n popf\n add $128, %%rsp"
			 :
			 : "r"(flags)
			 : "memory", "cc");
}

/* And clears them. */
static unsigned long get(void)
{
	unsigned long flags;

	__asm__ volatile(
		"sub $128, %%rsp\n pushf\n mov (%%rsp), %0\n andq $~0x40400, (%%rsp)\n popf\n"
		"add $128, %%rsp"
		: "=&r"(flags)
		:
		: "memory", "cc");
	return flags;
}

int main(void)
{
	const unsigned long wanted[] = {AC, DF, AC | DF, 0};
	int sum = 0;

	for (int i = 0; i < 20000; i++) {
		unsigned long flags;

		set(wanted[i % 4]);
		sum += outer(i);
		flags = get();
		CHECK((flags & (AC | DF)) == wanted[i % 4]);
	}
	printf("%d\n", sum);
	return 0;
}
