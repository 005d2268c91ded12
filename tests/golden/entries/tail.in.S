/* SPDX-License-Identifier: MIT */
/* Tail jumps: long, short, through a register, through a pointer. */
	.include "golden.h"
function tail_long
	leaq	1(%rdi), %rdi
	addq	$2, %rdi
	.byte	0xe9
	.long	target - . - 4
end tail_long
function tail_short
	leaq	1(%rdi), %rdi
	addq	$2, %rdi
	jmp	target
end tail_short
function tail_register
	movq	8(%rdi), %rax
	addq	$2, %rdi
	jmp	*%rax
end tail_register
function tail_pointer
	leaq	1(%rdi), %rdi
	addq	$2, %rdi
	jmp	*pointer(%rip)
end tail_pointer
function target
	leaq	1(%rdi), %rax
	nopl	0(%rax)
	ret
end target
	.balign 16
	.hidden	target
	.data
pointer: .quad	0
