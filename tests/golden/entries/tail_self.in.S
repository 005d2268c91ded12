/* SPDX-License-Identifier: MIT */
/* A function that tears down its frame and jumps to its start calls itself: exit and entry. */
	.include "golden.h"
function tail_self
	push	%rbx
	.cfi_adjust_cfa_offset 8
	movl	%edi, %ebx
	leal	-1(%rbx), %edi
	testl	%edi, %edi
	je	1f
	pop	%rbx
	.cfi_remember_state
	.cfi_adjust_cfa_offset -8
	movl	%edi, %esi
	jmp	tail_self
1:	.cfi_restore_state
	pop	%rbx
	.cfi_adjust_cfa_offset -8
	ret
end tail_self
function both	/* a loop to the start, and a tail call of itself */
	testl	%edi, %edi
	leal	-1(%rdi), %edi
	jg	both
	push	%rbx
	.cfi_adjust_cfa_offset 8
	movl	%esi, %ebx
	leal	-1(%rbx), %esi
	movl	%esi, %edi
	pop	%rbx
	.cfi_adjust_cfa_offset -8
	.byte	0x0f, 0x85
	.long	both - . - 4
	ret
end both
	.balign 16
	.hidden	tail_self, both
