/* SPDX-License-Identifier: MIT */
/*
 * pop_return.c - code that takes its own return address off the stack.
 *
 * The old PIC thunk (call to the next instruction, pop) in the first bytes of a function; a
 * function that pops its return address and jumps to it; one that finds its arguments after
 * the call and returns past them; one that compares the address with where it was called.
 *
 * Build: O2 O0 O2,no-pie
 * Calls?: here=1000 pop_and_jump=1000 inline_data=1000 returns_where=1000
 */
#include "torture.h"

uintptr_t here(void);
extern char here_expected[];
long pop_and_jump(long);
long inline_data(void);
long read_inline(void);
uintptr_t returns_where(void);
uintptr_t ask_where(void);
extern char ask_where_next[];

__asm__(".text\n"
	".p2align 4\n"
	".globl here\n.type here,@function\n"
	"here:\n"
	"	call here_expected\n"
	".globl here_expected\n"
	"here_expected:\n"
	"	pop %rax\n"
	"	ret\n"
	".size here,.-here\n"

	".p2align 4\n"
	".globl pop_and_jump\n.type pop_and_jump,@function\n"
	"pop_and_jump:\n"
	"	pop %rcx\n"
	"	lea 3(%rdi),%rax\n"
	"	jmp *%rcx\n"
	".size pop_and_jump,.-pop_and_jump\n"

	".p2align 4\n"
	".globl inline_data\n.type inline_data,@function\n"
	"inline_data:\n"
	"	pop %rdx\n"
	"	movslq (%rdx),%rax\n"
	"	add $4,%rdx\n"
	"	push %rdx\n"
	"	ret\n"
	".size inline_data,.-inline_data\n"

	".p2align 4\n"
	".globl read_inline\n.type read_inline,@function\n"
	"read_inline:\n"
	"	call inline_data\n"
	"	.long 12345\n"
	"	nop\n"
	"	ret\n"
	".size read_inline,.-read_inline\n"

	".p2align 4\n"
	".globl returns_where\n.type returns_where,@function\n"
	"returns_where:\n"
	"	mov (%rsp),%rax\n"
	"	ret\n"
	".size returns_where,.-returns_where\n"

	".p2align 4\n"
	".globl ask_where\n.type ask_where,@function\n"
	"ask_where:\n"
	"	call returns_where\n"
	".globl ask_where_next\n"
	"ask_where_next:\n"
	"	ret\n"
	".size ask_where,.-ask_where\n");

OPAQUE static int returned_to(const char *lo, const char *hi)
{
	const char *to = __builtin_return_address(0);

	return to > lo && to < hi;
}

OPAQUE static void caller(void)
{
	CHECK(returned_to((char *)caller, (char *)caller + 4096));
}

int main(void)
{
	long sum = 0;

	for (long i = 0; i < 1000; i++) {
		CHECK(here() == (uintptr_t)here_expected);
		CHECK(pop_and_jump(i) == i + 3);
		CHECK(read_inline() == 12345);
		CHECK(ask_where() == (uintptr_t)ask_where_next);
		caller();
		sum += i;
	}
	printf("popped %ld\n", sum);
	return 0;
}
