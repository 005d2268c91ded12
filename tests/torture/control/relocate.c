/* SPDX-License-Identifier: MIT */
/*
 * relocate.c - functions whose first or last instructions mean something else elsewhere:
 * addresses relative to the instruction in all forms (with immediates after them, VEX and
 * EVEX encoded), short and long branches, jrcxz and loop, calls, and what looks at flags.
 *
 * Build: O2 O2,no-pie
 * Calls?: rip_lea=1000 rip_load=1000 rip_store=1000 rip_cmp_imm=1000 rip_mov_imm=1000
 * Calls?: rip_xmm=1000 rip_vex=1000 rip_push=1000 rip_call=1000 rip_jump=1000 short_jump=1000
 * Calls?: short_cond=1000 long_cond=1000 use_jrcxz=1000 use_loop=1000 call_first=1000
 * Calls?: two_conds=1000 call_second=1000 endbr_first=1000 rip_last=1000 lock_first=1000
 * Calls?: backwards=1000 rep_first=1000 fs_first=1000
 */
#include "torture.h"

long cell = 5, stored;
int small_cell = 7;
float four[4] __attribute__((aligned(16))) = {1, 2, 3, 4};
long plus_nine(long x);
long (*pointer)(long) = plus_nine;

#define F(name, body)                                                                    \
	long name(long);                                                                 \
	__asm__(".text\n.p2align 4\n.globl " #name "\n.type " #name ",@function\n" #name \
		":\n" body "\n.size " #name ",.-" #name "\n")

F(plus_nine, "lea 9(%rdi),%rax\nret");
F(rip_lea, "lea cell(%rip),%rax\nadd (%rax),%rdi\nmov %rdi,%rax\nret");
F(rip_load, "mov cell(%rip),%rax\nadd %rdi,%rax\nret");
F(rip_store, "mov %rdi,stored(%rip)\nmov stored(%rip),%rax\nret");
F(rip_cmp_imm, "cmpl $7,small_cell(%rip)\nsete %al\nmovzbl %al,%eax\nadd %rdi,%rax\nret");
F(rip_mov_imm, "movw $258,stored(%rip)\nmovzwl stored(%rip),%eax\nadd %rdi,%rax\nret");
F(rip_xmm, "movaps four(%rip),%xmm0\naddss 4+four(%rip),%xmm0\ncvtss2si %xmm0,%eax\n"
	   "add %rdi,%rax\nret");
F(rip_vex, "vmovaps four(%rip),%xmm1\nvaddss 8+four(%rip),%xmm1,%xmm0\ncvtss2si %xmm0,%eax\n"
	   "add %rdi,%rax\nret");
F(rip_push, "pushq cell(%rip)\npop %rax\nadd %rdi,%rax\nret");
F(rip_call, "sub $8,%rsp\ncall *pointer(%rip)\nadd $8,%rsp\nret");
F(rip_jump, "jmp *pointer(%rip)");
F(short_jump, "jmp 1f\nmov $-1,%eax\nret\n1: lea 1(%rdi),%rax\nret");
F(short_cond, "test %rdi,%rdi\nje 1f\nlea 1(%rdi),%rax\nret\n1: mov $1,%eax\nret");
F(long_cond, "test %rdi,%rdi\n.byte 0x0f,0x84\n.long 1f-.-4\nlea 1(%rdi),%rax\nret\n"
	     "1: mov $1,%eax\nret");
F(use_jrcxz, "mov %rdi,%rcx\njrcxz 1f\nlea 1(%rcx),%rax\nret\n1: mov $1,%eax\nret");
F(use_loop, "mov $4,%ecx\nlea 1(%rdi),%rax\n1: inc %rax\nloop 1b\nret");
F(call_first, "call plus_nine\ninc %rax\nret");
F(call_second, "mov %rdi,%rdi\ncall plus_nine\ninc %rax\nret");
F(two_conds, "cmp $5,%rdi\nja 1f\njb 2f\nmov $100,%eax\nret\n1: lea 1(%rdi),%rax\nret\n"
	     "2: lea 2(%rdi),%rax\nret");
F(endbr_first, "endbr64\nlea 1(%rdi),%rax\nret");
F(rip_last, "lea 1(%rdi),%rax\nmov %rax,stored(%rip)\nret");
F(lock_first, "lock incq stored(%rip)\nmov %rdi,%rax\nret");
/* The loop's head is the entry itself, and a jump back to it is not a new call. */
F(backwards, "dec %rdi\nmov %rdi,%rax\ntest $7,%dil\njne backwards\nret");
F(rep_first, "mov $3,%ecx\nmov %rdi,%rax\nmov $1,%esi\n1: add %rsi,%rax\ndec %ecx\njne 1b\n"
	     "repz ret");
F(fs_first, "mov %fs:0,%rax\ncmp %fs:0,%rax\nlea 1(%rdi),%rax\njne 1f\nret\n1: xor %eax,%eax\n"
	    "ret");

int main(void)
{
	long sum = 0;

	for (long i = 0; i < 1000; i++) {
		CHECK(rip_lea(i) == i + 5);
		CHECK(rip_load(i) == i + 5);
		CHECK(rip_store(i) == i && stored == i);
		CHECK(rip_cmp_imm(i) == i + 1);
		CHECK(rip_mov_imm(i) == i + 258);
		CHECK(rip_xmm(i) == i + 3);
		CHECK(!__builtin_cpu_supports("avx") || rip_vex(i) == i + 4);
		CHECK(rip_push(i) == i + 5);
		CHECK(rip_call(i) == i + 9);
		CHECK(rip_jump(i) == i + 9);
		CHECK(short_jump(i) == i + 1);
		CHECK(short_cond(i) == i + 1);
		CHECK(long_cond(i) == i + 1);
		CHECK(use_jrcxz(i) == i + 1);
		CHECK(use_loop(i) == i + 5);
		CHECK(call_first(i) == i + 10);
		CHECK(call_second(i) == i + 10);
		CHECK(two_conds(i) == (i > 5 ? i + 1 : i < 5 ? i + 2 : 100));
		CHECK(endbr_first(i) == i + 1);
		CHECK(rip_last(i) == i + 1 && stored == i + 1);
		stored = 0;
		CHECK(lock_first(i) == i && stored == 1);
		CHECK(backwards(8 * i + 5) == 8 * i);
		CHECK(rep_first(i) == i + 3);
		CHECK(fs_first(i) == i + 1);
		sum += i;
	}
	printf("relocated %ld\n", sum);
	return 0;
}
