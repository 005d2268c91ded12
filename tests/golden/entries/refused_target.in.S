/* SPDX-License-Identifier: MIT */
/* Something else may land inside a window of five bytes: refused, or taken by a short jump. */
	.include "golden.h"
function into_entry
	movl	%edi, %eax
1:	addl	$1, %eax
	cmpl	$10, %eax
	jl	1b
	nopl	0(%rax)
	ret
end into_entry
function into_exit
	leal	1(%rdi), %eax
	testl	%edi, %edi
	jns	1f
	notl	%eax
	incl	%eax
1:	ret
end into_exit
function address_taken, 1
	leaq	1f(%rip), %rax
	testl	%edi, %edi
	incl	%eax
1:	ret
end address_taken
function after_call, 1
	subq	$8, %rsp
	.cfi_adjust_cfa_offset 8
	leaq	1(%rdi), %rdi
	call	into_entry
	pop	%rdx
	.cfi_adjust_cfa_offset -8
	ret
end after_call
function from_outside, 1	/* its second instruction is another function's business */
	movl	%edi, %eax
inner:	addl	$1, %eax
	nopl	0(%rax)
	ret
end from_outside
function jumps_in
	leal	1(%rdi), %eax
	incl	%eax
	.byte	0xe9
	.long	inner - . - 4
end jumps_in
	.balign 16
	.hidden	into_entry
