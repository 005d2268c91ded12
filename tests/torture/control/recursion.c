/* SPDX-License-Identifier: MIT */
/*
 * recursion.c - 60,000 frames deep, three times; every level must be recorded on its way
 * down and on its way up.
 *
 * Build: O2 O0 O2,no-pie
 * Flags: -fno-optimize-sibling-calls
 * Calls: descend=180003 bottom=3 main=1
 * Exits?: descend=180003 bottom=3
 */
#include "torture.h"
#include <sys/resource.h>

#define DEPTH 60000

OPAQUE static long bottom(long n)
{
	return n;
}
OPAQUE static long descend(long n)
{
	return n ? descend(n - 1) + 1 : bottom(1);
}

int main(void)
{
	for (int i = 0; i < 3; i++)
		CHECK(descend(DEPTH) == DEPTH + 1);
	printf("deep %d\n", DEPTH);
	return 0;
}
