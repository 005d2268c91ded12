/* SPDX-License-Identifier: MIT */
/*
 * tiny.c - functions of one to five bytes, with room after them and without.
 *
 * The aligned ones have padding that a jump may take.  Between the packed ones there is none:
 * five bytes written over one of them destroy its neighbour.
 *
 * Build: O2 O0 O2,no-pie
 * Calls: wide_ret=1000 wide_nop_ret=1000 wide_zero=1000 wide_same=1000 wide_five=1000
 * Calls: wide_six=1000
 * Calls?: packed_ret=1000 packed_zero=1000 packed_same=1000 packed_rep=1000 packed_one=1000
 * Calls?: packed_jump=1000 last_ret=1000
 * Exits: wide_ret=1000 wide_nop_ret=1000 wide_zero=1000 wide_same=1000 wide_five=1000
 * Exits: wide_six=1000
 */
#include "torture.h"

#define FUNCTION(name, align, body)                                                              \
	long name(long);                                                                         \
	__asm__(".text\n" align ".globl " #name "\n.type " #name ",@function\n" #name ":\n" body \
		"\n.size " #name ",.-" #name "\n")

#define WIDE ".p2align 4\n"
FUNCTION(wide_ret, WIDE, "ret");
FUNCTION(wide_nop_ret, WIDE, "nop\nret");
FUNCTION(wide_zero, WIDE, "xor %eax,%eax\nret");
FUNCTION(wide_same, WIDE, "mov %rdi,%rax\nret");
FUNCTION(wide_five, WIDE, "lea 1(%rdi),%rax\nret");
FUNCTION(wide_six, WIDE, "mov $7,%eax\nret");
/* The first packed one is aligned, the others start where their neighbour ends. */
FUNCTION(packed_ret, WIDE, "ret");
FUNCTION(packed_zero, "", "xor %eax,%eax\nret");
FUNCTION(packed_same, "", "mov %rdi,%rax\nret");
FUNCTION(packed_rep, "", "repz ret");
FUNCTION(packed_one, "", "push $1\npop %rax\nret");
FUNCTION(packed_jump, "", "jmp packed_same");
FUNCTION(last_ret, "", "ret");
__asm__(".p2align 4\n");

int main(void)
{
	long sum = 0;

	for (long i = 0; i < 1000; i++) {
		wide_ret(i);
		wide_nop_ret(i);
		CHECK(wide_zero(i) == 0);
		CHECK(wide_same(i) == i);
		CHECK(wide_five(i) == i + 1);
		CHECK(wide_six(i) == 7);
		packed_ret(i);
		CHECK(packed_zero(i) == 0);
		packed_rep(i);
		CHECK(packed_one(i) == 1);
		CHECK(packed_jump(i) == i);
		last_ret(i);
		sum += i;
	}
	printf("tiny %ld\n", sum);
	return 0;
}
