/* SPDX-License-Identifier: MIT */
/* Several short instructions; an exit that takes the ones before it. */
	.include "golden.h"
function multi
	push	%rbx
	.cfi_adjust_cfa_offset 8
	movl	%edi, %ebx
	leal	1(%rbx), %eax
	addl	%esi, %eax
	xorl	%ebx, %eax
	pop	%rbx
	.cfi_adjust_cfa_offset -8
	ret
end multi
function next, 1	/* no padding in front of it */
	leaq	1(%rdi), %rax
	leaq	1(%rax), %rax
	ret
end next
	.balign 16
