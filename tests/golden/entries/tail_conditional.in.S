/* SPDX-License-Identifier: MIT */
/* A conditional jump out of the function is an exit when it is taken. */
	.include "golden.h"
function long_one
	testl	%edi, %edi
	leaq	1(%rdi), %rax
	.byte	0x0f, 0x84
	.long	target - . - 4
	leaq	2(%rdi), %rax
	nopl	0(%rax)
	ret
end long_one
function short_one
	leaq	1(%rdi), %rax
	nopl	0(%rax)
	testl	%edi, %edi
	jne	target
	leaq	2(%rdi), %rax
	nopl	0(%rax)
	ret
end short_one
function target
	leaq	1(%rdi), %rax
	nopl	0(%rax)
	ret
end target
	.balign 16
	.hidden	target
