/* SPDX-License-Identifier: MIT */
/*
 * thunk_hook.S - where every hook of the process comes in: with all that a probe's thunk promises
 * (thunk.S), but for the argument registers, which the hook may change.
 */
	.text

/*
 * kron_rt_hook_thunk: %eax = hook number.  Calls kron_rt_hook(hook, struct rt_regs *) with the
 * argument registers as the hooked function got them, and gets them back (rt.h: struct rt_regs).
 */
	.globl	kron_rt_hook_thunk
	.hidden	kron_rt_hook_thunk
	.type	kron_rt_hook_thunk, @function
	.p2align 4
kron_rt_hook_thunk:
	.cfi_startproc
	push	%rbp
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %rbp, 0
	mov	%rsp, %rbp
	.cfi_def_cfa_register %rbp
	pushfq
	cld
	push	%r11
	push	%r10
	push	%r9
	push	%r8
	push	%rcx
	push	%rdx
	push	%rsi
	push	%rdi
	mov	%rsp, %rsi
	mov	%eax, %edi
	and	$-16, %rsp
	call	kron_rt_hook
	mov	-48(%rbp), %rax			/* rcx, which the trampoline restores */
	mov	%rax, 24(%rbp)
	lea	-72(%rbp), %rsp
	pop	%rdi
	pop	%rsi
	pop	%rdx
	pop	%rcx
	pop	%r8
	pop	%r9
	pop	%r10
	pop	%r11
	popfq
	pop	%rbp
	.cfi_def_cfa %rsp, 8
	ret
	.cfi_endproc
	.size	kron_rt_hook_thunk, . - kron_rt_hook_thunk

	.section .note.GNU-stack, "", @progbits
