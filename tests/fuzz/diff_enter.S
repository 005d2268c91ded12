/* SPDX-License-Identifier: MIT */
/* diff_enter.S - into a function with given registers, and out of it (diff_run.c). */
	.set	THUNK_SP, 152	/* KRON_THUNK_SP */

	.text
	.globl	run_enter, run_return, run_leave, run_on_signal, diff_thunk, diff_payload_thunk, diff_action_thunk
	.type	run_enter, @function
run_enter:
	push	%rbx
	push	%rbp
	push	%r12
	push	%r13
	push	%r14
	push	%r15
	mov	%rsp, run_host_sp(%rip)
	mov	run_fp_mask(%rip), %eax
	xor	%edx, %edx
	xrstor64 run_fp_in(%rip)
	cmpb	$0, run_has_fs(%rip)
	je	1f
	rdfsbase %rax
	mov	%rax, run_host_fs(%rip)
	mov	run_guest_fs(%rip), %rax
	wrfsbase %rax
1:	pushq	run_in + 128(%rip)
	popf
	mov	run_in + 0(%rip), %rax
	mov	run_in + 8(%rip), %rcx
	mov	run_in + 16(%rip), %rdx
	mov	run_in + 24(%rip), %rbx
	mov	run_in + 40(%rip), %rbp
	mov	run_in + 48(%rip), %rsi
	mov	run_in + 56(%rip), %rdi
	mov	run_in + 64(%rip), %r8
	mov	run_in + 72(%rip), %r9
	mov	run_in + 80(%rip), %r10
	mov	run_in + 88(%rip), %r11
	mov	run_in + 96(%rip), %r12
	mov	run_in + 104(%rip), %r13
	mov	run_in + 112(%rip), %r14
	mov	run_in + 120(%rip), %r15
	mov	run_in + 32(%rip), %rsp
	jmp	*run_at(%rip)

run_return:
	mov	%rax, run_out + 0(%rip)
	mov	%rcx, run_out + 8(%rip)
	mov	%rdx, run_out + 16(%rip)
	mov	%rbx, run_out + 24(%rip)
	mov	%rsp, run_out + 32(%rip)
	mov	%rbp, run_out + 40(%rip)
	mov	%rsi, run_out + 48(%rip)
	mov	%rdi, run_out + 56(%rip)
	mov	%r8, run_out + 64(%rip)
	mov	%r9, run_out + 72(%rip)
	mov	%r10, run_out + 80(%rip)
	mov	%r11, run_out + 88(%rip)
	mov	%r12, run_out + 96(%rip)
	mov	%r13, run_out + 104(%rip)
	mov	%r14, run_out + 112(%rip)
	mov	%r15, run_out + 120(%rip)
	mov	run_host_sp(%rip), %rsp
	pushf
	popq	run_out + 128(%rip)
	cld
	pushf
	andl	$~0x40000, (%rsp)	/* AC: our own accesses may be unaligned */
	popf
	mov	run_fp_mask(%rip), %eax
	xor	%edx, %edx
	xsave64	run_fp_out(%rip)
run_leave:
	cmpb	$0, run_has_fs(%rip)
	je	1f
	mov	run_host_fs(%rip), %rax
	wrfsbase %rax
1:	fninit
	ldmxcsr	run_mxcsr(%rip)
	vzeroupper
	pop	%r15
	pop	%r14
	pop	%r13
	pop	%r12
	pop	%rbp
	pop	%rbx
	ret
	.size	run_enter, . - run_enter

	/* The handler proper wants our own thread data. */
	.type	run_on_signal, @function
run_on_signal:
	pushf
	andl	$~0x40000, (%rsp)	/* AC, likewise */
	popf
	cmpb	$0, run_has_fs(%rip)
	je	1f
	rdfsbase %rax
	mov	%rax, run_guest_fs_now(%rip)
	mov	run_host_fs(%rip), %rax
	wrfsbase %rax
1:	sub	$8, %rsp
	call	run_handle_signal
	add	$8, %rsp
	test	%al, %al		/* the function goes on */
	je	2f
	cmpb	$0, run_has_fs(%rip)
	je	2f
	mov	run_guest_fs_now(%rip), %rax
	wrfsbase %rax
2:	ret
	.size	run_on_signal, . - run_on_signal

	/* Keeps event and stack pointer.  Changes what a thunk may change, and no flag. */
	.type	diff_thunk, @function
diff_thunk:
	mov	run_next_event(%rip), %rcx
	mov	%rax, (%rcx)
	lea	THUNK_SP(%rsp), %rax
	mov	%rax, 8(%rcx)
	lea	16(%rcx), %rcx
	mov	%rcx, run_next_event(%rip)
	ret
	.size	diff_thunk, . - diff_thunk

	/* Event and kind of sample, and the payload. */
	.type	diff_payload_thunk, @function
diff_payload_thunk:
	push	%rdx
	mov	run_next_event(%rip), %rdx
	mov	%eax, (%rdx)
	mov	%ecx, 4(%rdx)
	mov	16(%rsp), %eax
	mov	%rax, 8(%rdx)
	lea	16(%rdx), %rdx
	mov	%rdx, run_next_event(%rip)
	pop	%rdx
	ret
	.size	diff_payload_thunk, . - diff_payload_thunk

	/* What is stored where, marked as that. */
	.type	diff_action_thunk, @function
diff_action_thunk:
	push	%rdx
	mov	run_next_event(%rip), %rdx
	mov	%eax, (%rdx)
	movl	$0xac710, 4(%rdx)
	mov	16(%rsp), %rax
	mov	%rax, 8(%rdx)
	lea	16(%rdx), %rdx
	mov	%rdx, run_next_event(%rip)
	pop	%rdx
	ret
	.size	diff_action_thunk, . - diff_action_thunk
diff_thunks_end:
	.globl	diff_thunks_end

	.section .rodata
	.p2align 2
run_mxcsr:
	.long	0x1f80
	.section .note.GNU-stack, "", @progbits
