/* SPDX-License-Identifier: MIT */
/*
 * jit.c - code made at run time calls instrumented functions and is called by them; code that
 * is copied from the program, rewritten while it runs, moved, unmapped and mapped anew.
 *
 * A function's own bytes may be read (and do change under a tracer that patches); copies of
 * position-dependent jumps would break, so only generated code moves here.
 *
 * Build: O2
 * Calls: helper=30000 through=30000 main=1
 */
#include "torture.h"
#include <sys/mman.h>

static long total;

OPAQUE static long helper(long x)
{
	total += x;
	return x + 1;
}
OPAQUE static long through(long (*code)(long), long x)
{
	return code(x) + 1;
}

static size_t emit(unsigned char *p, long add)
{
	unsigned char *start = p;
	void *fn = (void *)helper;

	*p++ = 0x48, *p++ = 0x81, *p++ = 0xc7; /* add $imm32,%rdi */
	memcpy(p, &(int){(int)add}, 4), p += 4;
	*p++ = 0x48, *p++ = 0xb8; /* mov $helper,%rax */
	memcpy(p, &fn, 8), p += 8;
	*p++ = 0x48, *p++ = 0x83, *p++ = 0xec, *p++ = 8; /* sub $8,%rsp */
	*p++ = 0xff, *p++ = 0xd0;                        /* call *%rax */
	*p++ = 0x48, *p++ = 0x83, *p++ = 0xc4, *p++ = 8; /* add $8,%rsp */
	*p++ = 0xc3;
	return (size_t)(p - start);
}

int main(void)
{
	unsigned char *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	long want = 0;

	CHECK(code != MAP_FAILED);
	for (long i = 0; i < 30000; i++) {
		unsigned char *at = code + (i * 64) % 4096;
		long add = i % 1000;

		CHECK(emit(at, add) <= 64);
		CHECK(through((long (*)(long))at, i) == i + add + 2);
		want += i + add;
		if (i % 3000 == 2999) { /* W^X, elsewhere, and back */
			CHECK(!mprotect(code, 4096, PROT_READ | PROT_EXEC));
			CHECK(!munmap(code, 4096));
			code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
				    MAP_PRIVATE | MAP_ANONYMOUS | (i % 2 ? MAP_32BIT : 0), -1, 0);
			CHECK(code != MAP_FAILED);
		}
	}
	CHECK(total == want);
	printf("generated %ld\n", total);
	return 0;
}
