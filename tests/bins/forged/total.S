/* SPDX-License-Identifier: MIT */
/*
 * total.S - two libraries that differ in one byte, and in what a plan of them must be.
 *
 *   total(n)   plain: 1 + 2 + ... + n; its loop leads into the first five bytes of the function.
 *              -DFORGED: n; the loop begins after the sixth byte, and those five are free.
 *
 * Who patches the plain one by the other's plan breaks the loop.
 */
	.text
	.globl	total
	.type	total, @function
total:
	.cfi_startproc
	movl	%edi, %ecx
	xorl	%eax, %eax
1:	addl	%ecx, %eax
2:	decl	%ecx
#ifdef FORGED
	jne	2b
#else
	jne	1b
#endif
	ret
	.cfi_endproc
	.size	total, . - total
	.p2align 5 /* where a short jump may land */

	.globl	last
	.type	last, @function
last:
	.cfi_startproc
	ret
	.cfi_endproc
	.size	last, . - last
	.section .note.GNU-stack, "", @progbits
