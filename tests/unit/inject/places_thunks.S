/* SPDX-License-Identifier: MIT */
/*
 * places_thunks.S - the payload thunk and the action thunk of test_places.c, to the contract of
 * wire.h: they spoil %rax (and the first %rcx), and nothing else.
 *
 *   test_payload: event %eax, gate %ecx, payload 8(%rsp)   -> saw_payload(event, gate, payload)
 *   test_action:  code %eax, data 8(%rsp)                  -> saw_action(code, data)
 */
	.macro	THUNK name, function
	.globl	\name
	.type	\name, @function
	.p2align 4
\name:
	pushfq
	push	%rcx
	push	%rdx
	push	%rsi
	push	%rdi
	push	%r8
	push	%r9
	push	%r10
	push	%r11
	push	%rbp
	mov	%rsp, %rbp
	cld
	mov	%eax, %edi
	mov	%ecx, %esi
	mov	88(%rbp), %rdx
	and	$-16, %rsp
	call	\function
	mov	%rbp, %rsp
	pop	%rbp
	pop	%r11
	pop	%r10
	pop	%r9
	pop	%r8
	pop	%rdi
	pop	%rsi
	pop	%rdx
	pop	%rcx
	popfq
	mov	$-1, %rax
	.endm

	.text
	THUNK	test_payload, saw_payload
	mov	$-1, %rcx
	ret
	THUNK	test_action, saw_action
	ret

	.section .note.GNU-stack, "", @progbits
