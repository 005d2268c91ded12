/* SPDX-License-Identifier: MIT */
/* A ret of one byte that jumps lead to, followed by code: probed on every way to it. */
	.include "golden.h"
function arrivals
	testl	%edi, %edi
	jns	1f		/* taken: the exit */
	leal	1(%rdi), %eax
	cmpl	$1, %esi
	je	1f		/* taken: the exit */
	leal	2(%rdi), %eax
	cmpl	$7, %edx
	jne	2f		/* not taken: the exit */
1:	ret
2:	leal	3(%rdi), %eax
	addl	%edx, %eax
	cmpl	$9, %edx
	je	3f
	jmp	1b		/* the exit */
3:	leal	4(%rdi), %eax
	jmp	1b
end arrivals
function by_loop, 1		/* loop has no condition that can be turned round */
	movl	%edi, %ecx
	leal	1(%rdi), %eax
	loop	1f
	addl	$1, %eax
	cmpl	$3, %eax
	jne	2f
1:	ret
2:	leal	3(%rdi), %eax
	jmp	1b
end by_loop
function inner, 1		/* somebody outside jumps to its ret */
	testl	%edi, %edi
	leal	1(%rdi), %eax
	jns	1f
	leal	2(%rdi), %eax
	.globl	inner_ret
inner_ret:
1:	ret
	leal	3(%rdi), %eax
	jmp	1b
end inner
	.balign 16
	.hidden	inner_ret
