/* SPDX-License-Identifier: MIT */
/*
 * jump_into_entry.c - computed jumps land inside the first five bytes of functions.
 *
 * A jump written over those bytes would be entered in its middle.  Three ways to get there:
 * a table of addresses in the data, an address made by arithmetic in the function itself,
 * and labels as values.
 *
 * Build: O2 O0 O2,no-pie
 * Calls?: via_table=1000 via_sum=1000 threaded=1000 via_relative=1000
 */
#include "torture.h"

/* Each adds one for each round; every loop goes through a jump to entry + 3. */
long via_table(long rounds, long acc);
long via_sum(long rounds, long acc);
long via_relative(long rounds, long acc);
extern char via_table_second[], via_sum_second[];

__asm__(".text\n"
	".p2align 4\n"
	".globl via_table\n"
	".type via_table,@function\n"
	"via_table:\n"
	"	dec %rdi\n" /* three bytes */
	".globl via_table_second\n"
	"via_table_second:\n"
	"	inc %rsi\n"
	"	lea table_of_targets(%rip),%rdx\n"
	"	dec %rdi\n"
	"	js 1f\n"
	"	jmp *(%rdx)\n"
	"1:	mov %rsi,%rax\n"
	"	ret\n"
	".size via_table,.-via_table\n"
	".section .data.rel.ro,\"aw\"\n"
	".p2align 3\n"
	"table_of_targets: .quad via_table_second\n"
	".text\n");

__asm__(".text\n"
	".p2align 4\n"
	".globl via_sum\n"
	".type via_sum,@function\n"
	"via_sum:\n"
	"	dec %rdi\n"
	".globl via_sum_second\n"
	"via_sum_second:\n"
	"	inc %rsi\n"
	"	lea via_sum(%rip),%rdx\n"
	"	add $3,%rdx\n"
	"	dec %rdi\n"
	"	js 1f\n"
	"	jmp *%rdx\n"
	"1:	mov %rsi,%rax\n"
	"	ret\n"
	".size via_sum,.-via_sum\n");

/* A table of 32-bit distances, as switches have them in PIE, but with a target at entry + 1. */
__asm__(".text\n"
	".p2align 4\n"
	".globl via_relative\n"
	".type via_relative,@function\n"
	"via_relative:\n"
	"	push %rbx\n"
	"3:	inc %rsi\n"
	"	lea 4f(%rip),%rbx\n"
	"	mov %rdi,%rdx\n"
	"	dec %rdi\n"
	"	and $1,%edx\n"
	"	cmp $0,%rdi\n"
	"	jl 1f\n"
	"	movslq (%rbx,%rdx,4),%rdx\n"
	"	add %rbx,%rdx\n"
	"	jmp *%rdx\n"
	"1:	lea (%rsi),%rax\n"
	"	pop %rbx\n"
	"	ret\n"
	".size via_relative,.-via_relative\n"
	".section .rodata\n"
	".p2align 2\n"
	"4:	.long 3b-4b, 3b-4b\n"
	".text\n");

OPAQUE long threaded(const unsigned char *program, long acc)
{
	static void *const step[] = {&&add, &&twice, &&halt};

	goto *step[*program++];
add:
	acc++;
	goto *step[*program++];
twice:
	acc *= 2;
	goto *step[*program++];
halt:
	return acc;
}

int main(void)
{
	static const unsigned char program[] = {0, 0, 1, 0, 1, 1, 0, 2};
	long sum = 0;

	for (long i = 0; i < 1000; i++) {
		CHECK(via_table(10, i) == i + 10);
		CHECK(via_sum(10, i) == i + 10);
		CHECK(via_relative(10, i) == i + 11);
		CHECK(threaded(program, i) == (((i + 2) * 2 + 1) * 4) + 1);
		sum += via_table_second - (char *)via_table;
	}
	printf("jumped %ld\n", sum);
	return 0;
}
