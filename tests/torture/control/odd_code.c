/* SPDX-License-Identifier: MIT */
/*
 * odd_code.c - hand-written code: loop, loope, jrcxz and jecxz; calls by register, by memory, from
 * the stack, of the next instruction; data among code, in a function and between two; a
 * restartable sequence with its signature in the code; segment overrides; what syscall leaves.
 *
 * Build: O2 O0 O2,no-pie
 * Calls: loops=1000 calls=1000 leaf=4000 segments=1000 kernel=1000
 * Calls?: constants=1000 table_user=1000 restartable=100000
 */
#include "torture.h"
#include <stddef.h>
#include <sys/rseq.h>

#define FUNCTION(name) ".globl " #name "\n.type " #name ",@function\n" #name ": .cfi_startproc\n"
#define END(name) ".cfi_endproc\n.size " #name ", . - " #name "\n"

__asm__(".text\n" FUNCTION(loops) /* (n): 3n, by all that counts in rcx */
	"	mov	%edi, %ecx\n"
	"	xor	%eax, %eax\n"
	"	jrcxz	2f\n"
	"1:	inc	%eax\n"
	"	loop	1b\n"
	"	mov	%edi, %ecx\n"
	"	jecxz	2f\n"
	"3:	inc	%eax\n"
	"	cmp	%eax, %eax\n"
	"	loope	3b\n"
	"	mov	%edi, %ecx\n"
	"4:	inc	%eax\n"
	"	test	%eax, %eax\n"
	"	loopne	4b\n"
	"2:	ret\n" END(loops)

		FUNCTION(leaf) "lea 1(%rdi), %rax\n	ret\n" END(leaf)

			FUNCTION(
				calls) /* (x): x + 4 + its own address, taken by a call, less the same by lea */
	"	push	%rbx\n	.cfi_adjust_cfa_offset 8\n	.cfi_offset %rbx, -16\n"
	"	call	leaf\n"
	"	lea	leaf(%rip), %rbx\n"
	"	mov	%rax, %rdi\n"
	"	call	*%rbx\n"
	"	mov	%rax, %rdi\n"
	"	call	*leaf_pointer(%rip)\n"
	"	mov	%rax, %rdi\n"
	"	push	%rbx\n	.cfi_adjust_cfa_offset 8\n"
	"	call	*(%rsp)\n"
	"	pop	%rbx\n	.cfi_adjust_cfa_offset -8\n"
	"	call	1f\n	.cfi_adjust_cfa_offset 8\n"
	"1:	pop	%rdx\n	.cfi_adjust_cfa_offset -8\n"
	"	lea	1b(%rip), %rbx\n"
	"	sub	%rbx, %rdx\n"
	"	add	%rdx, %rax\n"
	"	pop	%rbx\n	.cfi_adjust_cfa_offset -8\n"
	"	ret\n" END(calls)

		FUNCTION(constants) /* data that it jumps over */
	"	mov	1f(%rip), %rax\n"
	"	jmp	2f\n"
	"1:	.quad	0x1122334455667788\n"
	"2:	ret\n" END(constants) "text_table: .long 0xe8e9ebc3, 0x0f0b0f0b, 0xc3c3c3c3, 7\n" FUNCTION(
		table_user) /* (i): text_table[i], which stands right before it */
	"	lea	text_table(%rip), %rdx\n"
	"	movslq	(%rdx,%rdi,4), %rax\n"
	"	ret\n" END(table_user)

		FUNCTION(
			restartable) /* (counter, struct rseq): once more, however often it is interrupted */
	"1:	lea	sequence(%rip), %rax\n"
	"	mov	%rax, 8(%rsi)\n"
	"2:	mov	(%rdi), %rdx\n"
	"	inc	%rdx\n"
	"	mov	%rdx, (%rdi)\n"
	"3:	ret\n"
	"	.byte	0x0f, 0xb9, 0x3d\n	.long 0x53053053\n"
	"4:	jmp	1b\n" END(
		restartable) "	.pushsection __rseq_cs, \"aw\"\n	.balign 32\n"
			     "sequence: .long 0, 0\n	.quad 2b, 3b - 2b, 4b\n	.popsection\n"

	FUNCTION(segments) /* the thread pointer by two ways, and a null selector's memory */
	"	mov	%fs:0, %rax\n"
	"	xor	%edx, %edx\n"
	"	sub	%fs:(%rdx), %rax\n"
	"	addq	$0, %fs:(%rdx)\n"
	"	ret\n" END(segments)

		FUNCTION(kernel) /* getpid: rcx is the address after the syscall */
	"	mov	$39, %eax\n"
	"	syscall\n"
	"1:	lea	1b(%rip), %rax\n"
	"	sub	%rcx, %rax\n"
	"	ret\n" END(
		kernel) "	.data\n	.balign 8\nleaf_pointer: .quad leaf\n	.text\n");

long loops(long n), leaf(long x), calls(long x), constants(void), table_user(long i);
long restartable(long *counter, void *rseq), segments(void), kernel(void);

int main(void)
{
	static const int table[] = {(int)0xe8e9ebc3, 0x0f0b0f0b, (int)0xc3c3c3c3, 7};
	void *rseq = (char *)__builtin_thread_pointer() + __rseq_offset;
	long counter = 0;

	for (long i = 0; i < 1000; i++) {
		CHECK(loops(i % 7) == 3 * (i % 7));
		CHECK(calls(i) == i + 4);
		CHECK(constants() == 0x1122334455667788);
		CHECK(table_user(i % 4) == table[i % 4]);
		CHECK(segments() == 0);
		CHECK(kernel() == 0);
	}
	for (long i = 0; __rseq_size && i < 100000; i++)
		restartable(&counter, rseq);
	CHECK(!__rseq_size || counter == 100000);
	printf("odd code\n");
	return 0;
}
