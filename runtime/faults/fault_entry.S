/* SPDX-License-Identifier: MIT */
/*
 * fault_entry.S - where the kernel delivers the signals of faults.h.
 *
 *   kernel ─► kron_rt_fault_entries[i] ─► kron_rt_fault() ─► the program's handler
 *                                              │                  │ returns to
 *                             a trap of ours ◄─┘                  ▼
 *                             rt_sigreturn      kron_rt_restore ─► kron_rt_resume()
 *                                                    └─► rt_sigreturn
 *
 * The program's handler is entered by a jump, with the registers and the stack that the kernel
 * made: nothing of ours lies between it and the signal frame but another return address there.
 */
#include "runtime/core/flags.inc"
#include "runtime/faults/faults.h"

	.text

	.globl	kron_rt_fault_entries
	.hidden	kron_rt_fault_entries
	.type	kron_rt_fault_entries, @function
	.p2align 4
kron_rt_fault_entries:
	.cfi_startproc
	.set	.Lindex, 0
	.rept	RT_FAULT_ENTRIES
	.p2align 4
	mov	$.Lindex, %eax
	jmp	.Lfault
	.set	.Lindex, .Lindex + 1
	.endr

	.p2align 4
.Lfault:
	push	%rdi
	.cfi_adjust_cfa_offset 8
	push	%rsi
	.cfi_adjust_cfa_offset 8
	push	%rdx
	.cfi_adjust_cfa_offset 8
	mov	%eax, %ecx
	mov	%rsp, %r8			/* struct rt_handler_args */
	pushfq					/* the kernel leaves AC as it was */
	.cfi_adjust_cfa_offset 8
	FLAGS_OF_C
	lea	-8(%rsp), %rsp
	.cfi_adjust_cfa_offset 8
	call	kron_rt_fault
	lea	8(%rsp), %rsp
	.cfi_adjust_cfa_offset -8
	popfq
	.cfi_adjust_cfa_offset -8
	pop	%rdx
	.cfi_adjust_cfa_offset -8
	pop	%rsi
	.cfi_adjust_cfa_offset -8
	pop	%rdi
	.cfi_adjust_cfa_offset -8
	mov	%rax, %rcx
	xor	%eax, %eax			/* as the kernel leaves it */
	test	%rcx, %rcx
	jz	1f
	lea	kron_rt_restore(%rip), %r11
	mov	%r11, (%rsp)
	jmp	*%rcx
1:	ret					/* the program's own restorer */
	.cfi_endproc
	.size	kron_rt_fault_entries, . - kron_rt_fault_entries

/*
 * The caller of the program's handler, as libc's __restore_rt is: a signal frame, whose
 * registers are those of the ucontext that %rsp points to.
 */
	.macro	IN_CONTEXT register, offset
	.cfi_escape 0x10, \register, 3, 0x77, (\offset & 0x7f) | 0x80, \offset >> 7
	.endm

	.type	kron_rt_restore, @function
	.p2align 4
	.cfi_startproc simple
	.cfi_signal_frame
	.cfi_escape 0x0f, 4, 0x77, 0xa0, 0x01, 0x06	/* CFA: the rsp there */
	IN_CONTEXT 8, 40
	IN_CONTEXT 9, 48
	IN_CONTEXT 10, 56
	IN_CONTEXT 11, 64
	IN_CONTEXT 12, 72
	IN_CONTEXT 13, 80
	IN_CONTEXT 14, 88
	IN_CONTEXT 15, 96
	IN_CONTEXT 5, 104
	IN_CONTEXT 4, 112
	IN_CONTEXT 6, 120
	IN_CONTEXT 3, 128
	IN_CONTEXT 1, 136
	IN_CONTEXT 0, 144
	IN_CONTEXT 2, 152
	IN_CONTEXT 7, 160
	IN_CONTEXT 16, 168
	nop					/* unwinders look one byte before it */
kron_rt_restore:
	mov	%rsp, %rdi			/* collect/live/signal_frames.c knows it by these bytes */
	call	.Lresume
	mov	$15, %rax			/* rt_sigreturn */
	syscall
	nop
/* For an action that is ours alone. */
	.globl	kron_rt_return
	.hidden	kron_rt_return
kron_rt_return:
	mov	$15, %rax
	syscall
	.cfi_endproc
	.size	kron_rt_restore, . - kron_rt_restore

/* Whatever flags the program's handler has left. */
.Lresume:
	.cfi_startproc
	pushfq
	FLAGS_OF_C
	lea	8(%rsp), %rsp
	jmp	kron_rt_resume
	.cfi_endproc

	.section .note.GNU-stack, "", @progbits
