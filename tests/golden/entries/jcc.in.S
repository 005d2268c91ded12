/* SPDX-License-Identifier: MIT */
/* Conditional jumps in windows become long ones; loop and jrcxz hop over a jump. */
	.include "golden.h"
function short_jcc
	testl	%edi, %edi
	js	1f
	movl	%edi, %eax
	nopl	0(%rax)
	ret
1:	negl	%edi
	leal	2(%rdi), %eax
	ret
end short_jcc
function jrcxz_in
	movl	%edi, %ecx
	jrcxz	1f
	decl	%ecx
	nopl	0(%rax)
1:	leal	1(%rcx), %eax
	nopl	0(%rax)
	ret
end jrcxz_in
function loop_in
	movl	%edi, %ecx
	loop	1f
	decl	%ecx
	nopl	0(%rax)
1:	leal	1(%rcx), %eax
	nopl	0(%rax)
	ret
end loop_in
	.balign 16
