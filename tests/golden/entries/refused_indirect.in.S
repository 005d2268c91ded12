/* SPDX-License-Identifier: MIT */
/* An indirect jump nobody can resolve: only what keeps every address alive. */
	.include "golden.h"
function computed
	pushq	%rbx		/* one byte: the window would need two instructions */
	.cfi_adjust_cfa_offset 8
	movq	%rdi, %rbx
	imulq	$7, %rsi, %rax
	addq	%rbx, %rax
	jmp	*%rax
	popq	%rbx
	.cfi_adjust_cfa_offset -8
	ret
end computed
function computed_long
	movl	$5, %ecx	/* five bytes alone: fine */
	imulq	%rcx, %rax
	pushq	%rax
	.cfi_adjust_cfa_offset 8
	addq	%rdi, %rax
	jmp	*%rax
end computed_long
	.balign 16
