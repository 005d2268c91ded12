/* SPDX-License-Identifier: MIT */
/*
 * static_entry.S - where a static program from `kron patch` begins: kron/start.h has the picture.
 *
 * At e_entry the stack pointer is aligned and points to argc, %rdx may hold a function for
 * atexit(), and the kernel promises nothing about the rest.  The program's own entry gets all of
 * it as we got it, every register and flag.
 */
	.section .text.start, "ax", @progbits
	.globl	kron_start_entry, kron_start_leave
	.p2align 4
kron_start_entry:
	.cfi_startproc
	.cfi_undefined %rip
	endbr64
	pushfq
	push	%rax
	push	%rbx
	push	%rcx
	push	%rdx
	push	%rbp
	push	%rsi
	push	%rdi
	push	%r8
	push	%r9
	push	%r10
	push	%r11
	cld
	mov	%rsp, %rbp
	lea	96(%rsp), %rdi
	and	$-16, %rsp
	call	kron_rt_static
	mov	%rbp, %rsp
	pop	%r11
	pop	%r10
	pop	%r9
	pop	%r8
	pop	%rdi
	pop	%rsi
	pop	%rbp
	pop	%rdx
	pop	%rcx
	pop	%rbx
	pop	%rax
	popfq
	/* kron patch fills it in; the assembler must not choose a short one */
	.byte	0xe9
kron_start_leave:
	.long	0
	.cfi_endproc

	.section .note.GNU-stack, "", @progbits
