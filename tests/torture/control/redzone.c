/* SPDX-License-Identifier: MIT */
/*
 * redzone.c - a leaf keeps 128 bytes of data below its stack pointer across its exit probe,
 * and a function is called with data of its caller in its own red zone (asm to asm).
 *
 * Build: O2 O2,no-pie
 * Calls: fills_red_zone=20000 jumps_with_red_zone=20000
 * Calls?: reads_red_zone=20000
 */
#include "torture.h"

unsigned long fills_red_zone(unsigned long);
unsigned long jumps_with_red_zone(unsigned long);
unsigned long reads_red_zone(unsigned long);

/* fills, then leaves through one of many rets; main cannot look below its stack, so the tail
 * called function does: it starts with the same stack pointer. */
__asm__(".text\n.p2align 4\n.globl fills_red_zone\n.type fills_red_zone,@function\n"
	"fills_red_zone:\n"
	"	mov %rdi,%rax\n"
	"	mov $-128,%rcx\n"
	"1:	mov %rax,(%rsp,%rcx)\n"
	"	inc %rax\n"
	"	add $8,%rcx\n"
	"	jne 1b\n"
	"	mov $-128,%rcx\n"
	"	xor %eax,%eax\n"
	"	jmp 2f\n"
	"	.p2align 4\n"
	"2:	add (%rsp,%rcx),%rax\n"
	"	add $8,%rcx\n"
	"	jne 2b\n"
	"	ret\n"
	".size fills_red_zone,.-fills_red_zone\n"

	".p2align 4\n.globl jumps_with_red_zone\n.type jumps_with_red_zone,@function\n"
	"jumps_with_red_zone:\n"
	"	mov %rdi,%rax\n"
	"	mov $-128,%rcx\n"
	"1:	mov %rax,(%rsp,%rcx)\n"
	"	inc %rax\n"
	"	add $8,%rcx\n"
	"	jne 1b\n"
	"	jmp reads_red_zone\n"
	".size jumps_with_red_zone,.-jumps_with_red_zone\n"

	".p2align 4\n.globl reads_red_zone\n.type reads_red_zone,@function\n"
	"reads_red_zone:\n"
	"	mov $-128,%rcx\n"
	"	xor %eax,%eax\n"
	"2:	add (%rsp,%rcx),%rax\n"
	"	add $8,%rcx\n"
	"	jne 2b\n"
	"	ret\n"
	".size reads_red_zone,.-reads_red_zone\n");

OPAQUE static long compiled_leaf(long n)
{
	volatile long v[14];
	long sum = 0;

	for (int i = 0; i < 14; i++)
		v[i] = n + i;
	for (int i = 0; i < 14; i++)
		sum += v[i];
	return sum;
}

int main(void)
{
	unsigned long sum = 0;

	for (unsigned long i = 0; i < 20000; i++) {
		CHECK(fills_red_zone(i) == 16 * i + 120);
		CHECK(jumps_with_red_zone(i) == 16 * i + 120);
		CHECK(compiled_leaf((long)i) == 14 * (long)i + 91);
		sum += i;
	}
	printf("red zone %lu\n", sum);
	return 0;
}
