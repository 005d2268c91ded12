/* SPDX-License-Identifier: MIT */
/* Insns: jump
 * One window for a straight run; stubs lead from one to the next. */
	.include "golden.h"
function run			/* to the branch target; a call ends it, too */
9:
	push	%rbx
	.cfi_adjust_cfa_offset 8
	movq	%rdi, %rbx
	testq	%rdi, %rdi
	je	1f
	incl	8(%rdi)
	leaq	16(%rdi), %rdi
	call	9b
1:	movl	8(%rbx), %eax
	decl	%eax
	jns	1b
	pop	%rbx
	.cfi_adjust_cfa_offset -8
	ret
end run
