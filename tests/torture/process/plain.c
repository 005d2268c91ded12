/* SPDX-License-Identifier: MIT */
/*
 * plain.c - nothing but calls: the program that is also built static, copied setuid, started
 * through ld.so, stripped.
 *
 * Build: O2 O0 O2,no-pie O2,strip O2,no-pie,strip O2,relro
 * Calls: work=1000 main=1
 */
#include "torture.h"

OPAQUE static unsigned long work(unsigned long x)
{
	return x * 2862933555777941757ul + 3037000493ul;
}

int main(void)
{
	unsigned long x = 1;

	for (int i = 0; i < 1000; i++)
		x = work(x);
	printf("plain %lu\n", x);
	return 3;
}
