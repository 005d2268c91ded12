/* SPDX-License-Identifier: MIT */
/*
 * stacks.S - takes one of kron_rt_stacks for CALL_C (thunk.inc), and gives it back.  Both have only
 * the registers that are named here.
 */
#include "runtime/core/lane.h"

	.text

/* %r9: its number, %r8: its end; %r9 = -1: all are in use.  Also %rcx, %r10. */
	.globl	kron_rt_take_stack
	.hidden	kron_rt_take_stack
	.type	kron_rt_take_stack, @function
	.p2align 4
kron_rt_take_stack:
	.cfi_startproc
	mov	$-1, %r9
1:	mov	kron_rt_stacks_taken(%rip), %rcx
	not	%rcx
	bsf	%rcx, %r10
	jz	2f
	lock bts %r10, kron_rt_stacks_taken(%rip)
	jc	1b
	mov	%r10, %r9
	lea	1(%r10), %r8
	shl	$RT_STACK_SHIFT, %r8
	add	kron_rt_stacks(%rip), %r8
2:	ret
	.cfi_endproc
	.size	kron_rt_take_stack, . - kron_rt_take_stack

/* %r9: its number */
	.globl	kron_rt_give_stack
	.hidden	kron_rt_give_stack
	.type	kron_rt_give_stack, @function
	.p2align 4
kron_rt_give_stack:
	.cfi_startproc
	lock btr %r9, kron_rt_stacks_taken(%rip)
	ret
	.cfi_endproc
	.size	kron_rt_give_stack, . - kron_rt_give_stack

	.section .note.GNU-stack, "", @progbits
