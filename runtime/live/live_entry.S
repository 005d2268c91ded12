/* SPDX-License-Identifier: MIT */
/*
 * live_entry.S - where a thread that was stopped calls the runtime: kron/live.h.
 *
 * Its registers are with whoever stopped it, %rsp is the end of our stack, %rdi the call.  There is
 * no way back: it sleeps until it is stopped again.  Vector registers are not touched.
 */
#include <asm/unistd.h>
#include "runtime/core/flags.inc"

	.section .text.live, "ax", @progbits
	.globl	kron_live_entry
	.hidden	kron_live_entry
	.p2align 4
kron_live_entry:
	.cfi_startproc
	.cfi_undefined %rip
	xor	%ebp, %ebp
	pushfq
	FLAGS_OF_C
	lea	8(%rsp), %rsp
	call	kron_rt_live
1:	mov	$__NR_pause, %eax
	syscall
	jmp	1b
	.cfi_endproc

	.section .note.GNU-stack, "", @progbits
