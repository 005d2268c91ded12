/* SPDX-License-Identifier: MIT */
/* A call may end a window: its return address is the original one. */
	.include "golden.h"
function direct
	subq	$8, %rsp
	.cfi_adjust_cfa_offset 8
	call	callee
	addq	$8, %rsp
	.cfi_adjust_cfa_offset -8
	ret
end direct
function through_register
	push	%rbx
	.cfi_adjust_cfa_offset 8
	movq	%rdi, %rbx
	call	*%rbx
	pop	%rbx
	.cfi_adjust_cfa_offset -8
	nopl	0(%rax)
	ret
end through_register
function through_high_register
	subq	$8, %rsp
	.cfi_adjust_cfa_offset 8
	call	*%r10
	addq	$8, %rsp
	.cfi_adjust_cfa_offset -8
	ret
end through_high_register
function through_memory
	call	*pointer(%rip)
	addl	$1, %eax
	nopl	0(%rax)
	ret
end through_memory
function through_stack	/* the push would move what %rsp points to */
	nop
	call	*8(%rsp)
	addl	$1, %eax
	nopl	0(%rax)
	ret
end through_stack
function ends_in_call	/* a return address after it would lie in the jump */
	nop
	call	*%rax
end ends_in_call
	.balign 16
function callee
	leaq	1(%rdi), %rax
	nopl	0(%rax)
	ret
end callee
	.balign 16
	.data
pointer: .quad	0
	.hidden	callee
