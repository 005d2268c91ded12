/* SPDX-License-Identifier: MIT */
/*
 * thunk_hook.S - where every hook of the process comes in: with all that a probe's thunk promises
 * (thunk.S), but for the argument registers, which the hook may change.
 */
#include "runtime/core/thunk.inc"
#include <asm/unistd.h>

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
	TOUCH_FIRST RT_STACK_HOOK
	/* most system calls are none of ours: back, without a look at the flags */
	lea	-RT_HOOK_SYSTEM_CALL(%rax), %ecx
	jrcxz	1f
	jmp	2f
1:	mov	8(%rsp), %ecx			/* rax */
	.set	.Lbefore, 0
	.irp	number, __NR_rt_sigaction, __NR_clone, __NR_execve, __NR_mlockall, __NR_prctl, __NR_arch_prctl, \
		__NR_seccomp, __NR_execveat, __NR_clone3
	lea	(.Lbefore - \number)(%rcx), %rcx
	jrcxz	2f
	.set	.Lbefore, \number
	.endr
	ret
2:	mov	16(%rsp), %rcx
	push	%rbp
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %rbp, 0
	mov	%rsp, %rbp
	.cfi_def_cfa_register %rbp
	pushfq
	FLAGS_OF_C
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
	call_on_stack kron_rt_hook
	lea	-72(%rbp), %rsp
	give_stack
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
