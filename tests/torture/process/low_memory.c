/* SPDX-License-Identifier: MIT */
/*
 * low_memory.c - maps fixed low addresses, as emulators and sanitizers do: all that is free
 * below 2 GiB in steps, without replacing anything, then MAP_32BIT until it has enough.
 *
 * Build: O2 O2,no-pie
 * Calls: touch=200 main=1
 */
#include "torture.h"
#include <sys/mman.h>

OPAQUE static void touch(char *p)
{
	p[0] = 1;
	p[4095] = 2;
}

int main(void)
{
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
	int got = 0;

	/* 0x10000000 to 0x60000000: kron documents that it takes 0x6b000000-0x6d200000 */
	for (uintptr_t at = 0x10000000; at < 0x60000000; at += 0x800000) {
		char *p = mmap((void *)at, 4096, PROT_READ | PROT_WRITE,
			       flags | MAP_FIXED_NOREPLACE, -1, 0);

		if (p == MAP_FAILED)
			continue;
		CHECK(p == (char *)at);
		got++;
		if (got <= 100)
			touch(p);
	}
	CHECK(got >= 150);
	for (int i = 0; i < 100; i++) {
		char *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, flags | MAP_32BIT, -1, 0);

		CHECK(p != MAP_FAILED && (uintptr_t)p < 0x80000000);
		touch(p);
	}
	puts("low memory");
	return 0;
}
