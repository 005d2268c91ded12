/* SPDX-License-Identifier: MIT */
/*
 * snippets.S - functions for test_stub.c, which runs each in place and patched.  Each shows
 * one thing that a window or an instruction in it can be.  A snippet gets random registers and
 * flags, but %rdi points to the middle of 4 KiB of scratch memory.
 *
 * The events that a snippet must give stand in test_stub.c's table, found by reading the code
 * below, not by running the planner.
 */
	.text

.macro	snippet name
	.p2align 4
	.globl	snip_\name
	.type	snip_\name, @function
snip_\name:
	.cfi_startproc
.endm
.macro	end name
	.cfi_endproc
	.size	snip_\name, . - snip_\name
.endm

/* ---- windows ---- */

snippet	one			/* one instruction of five bytes */
	movl	$0x12345678, %eax
	addq	%rbx, %rax
	nopl	0(%rax)
	ret
end	one

snippet	many			/* five of one and two bytes */
	push	%rbx
	.cfi_adjust_cfa_offset 8
	push	%rbp
	.cfi_adjust_cfa_offset 8
	push	%r12
	.cfi_adjust_cfa_offset 8
	xorl	%ebx, %ebx
	adcq	%rsi, %rbx
	movq	%rbx, %rax
	pop	%r12
	.cfi_adjust_cfa_offset -8
	pop	%rbp
	.cfi_adjust_cfa_offset -8
	pop	%rbx
	.cfi_adjust_cfa_offset -8
	ret
end	many

snippet	ret_only
	ret
end	ret_only

snippet	xor_ret
	xorl	%eax, %eax
	ret
end	xor_ret

snippet	mov_ret			/* entry window of exactly five bytes, exit without room: grows */
	movl	$7, %eax
	ret
	.byte	0x0f, 0xff, 0xc0 /* no padding */
end	mov_ret

/* The exit's block is two bytes, a branch target and followed by another block: a short jump to
 * a landing.  Padding, a window's rest, code that is moved out. */
snippet	short_padding
	movl	%esi, %eax
	testl	%esi, %esi
	jns	1f
	negl	%eax
1:	cltq
	ret
	jmp	1b
end	short_padding
	.p2align 4

snippet	short_guest
	movabsq	$0x1122334455667788, %rax
	testl	%esi, %esi
	jns	1f
	incl	%eax
1:	cltq
	ret
	jmp	1b
	.p2align 4, 0xf4	/* no padding: hlt */
end	short_guest

snippet	short_evicts
	movl	%esi, %eax
	addl	$1, %eax
	testb	$1, %sil
	jz	1f
	movabsq	$0x1122334455667788, %rdx
	adcl	%edx, %eax
1:	cltq
	ret
	jmp	1b
	.p2align 4, 0xf4
end	short_evicts

/* A ret of one byte that jumps lead to, code after it: each way to it is probed. */
snippet	arrivals
	movl	%esi, %eax
	testb	$1, %sil
	jz	1f
	leal	1(%rax), %eax
	cmpl	$100, %edx
	ja	1f
	addl	%edx, %eax
	testb	$2, %sil
	jnz	2f
1:	ret
2:	leal	3(%rax), %eax
	testb	$4, %sil
	jz	3f
	jmp	1b
3:	rorl	$3, %eax
	jmp	1b
	.p2align 4, 0xf4
end	arrivals

snippet	short_grows
	movb	$1, %al
	ret
	.byte	0xf4, 0xf4, 0xf4
end	short_grows

snippet	short_after_call
	subq	$8, %rsp
	.cfi_adjust_cfa_offset 8
	call	callee
	pop	%rdx
	.cfi_adjust_cfa_offset -8
	ret
	hlt
end	short_after_call
	.fill	8, 1, 0x90

snippet	dots			/* one byte each, and each a branch target: detours */
	testb	$1, %sil
	jne	1f
	testb	$2, %sil
	jne	2f
	xorl	%eax, %eax
	jmp	3f
1:	cmc
2:	incq	%rbx
	testb	$4, %bl
	jne	1b
3:	cltq
4:	stc
	testb	$8, %sil
	leaq	1(%rsi), %rsi
	jne	4b
	jmp	5f
5:	ret
	.byte	0xeb, 0xfd		/* to the ret, which nothing reaches */
end	dots

snippet	after_nop		/* one byte after a call, then a branch target: a pun */
	subq	$8, %rsp
	.cfi_adjust_cfa_offset 8
	call	callee
	cmc
1:	leaq	-3(%rsi,%rsi), %rsi
	testb	$4, %sil
	jne	1b
	call	callee
	stc
2:	addq	$8, %rsp
	.cfi_adjust_cfa_offset -8
	andl	$31, %esi
	movabsq	$0x1122334455667788, %rax
	movabsq	$0x2122334455667788, %rcx
	movabsq	$0x3122334455667788, %rdx
	decl	%esi
	js	3f
	subq	$8, %rsp
	.cfi_adjust_cfa_offset 8
	jmp	2b
	.cfi_adjust_cfa_offset -8
3:	ret
end	after_nop

snippet	joined			/* jumps lead to where calls return */
	subq	$8, %rsp
	.cfi_adjust_cfa_offset 8
	andl	$31, %esi
	testb	$1, %sil
	je	1f			/* round the call */
	call	callee
1:	cmc
	sbbl	%ebx, %ebx
	jrcxz	2f
	testb	$2, %sil
	jne	2f
	call	callee
2:	leal	-1(%rsi), %esi		/* the head of a loop, too */
	testb	$4, %bl
	jne	4f
3:	decl	%esi
	call	*callee_pointer(%rip)
4:	testl	%esi, %esi
	js	5f
	testb	$1, %sil
	je	2b
	testb	$2, %sil
	je	3b
	jmp	1b
5:	addq	$8, %rsp
	.cfi_adjust_cfa_offset -8
	ret
end	joined

snippet	lock_skip		/* a jump over a prefix, into an instruction */
	leaq	(%rdi), %rdx
	testb	$1, %sil
	je	1f
	.byte	0xf0			/* lock */
1:	incq	(%rdx)
	adcq	$7, 8(%rdx)
	movq	(%rdx), %rax
	ret
end	lock_skip

snippet	pairs			/* two bytes between branch targets */
	testb	$1, %sil
	je	1f
	xorl	%eax, %eax
1:	xchgl	%eax, %ecx
	jc	2f
	incl	%ebx
2:	addl	%ecx, %eax
3:	decb	%sil
	js	4f
	jmp	3b
4:	cltq
	ret
end	pairs

snippet	ret_imm
	leaq	8(%rsi), %rax
	nopl	0(%rax)
	ret	$16
end	ret_imm

snippet	rep_ret
	incq	%rax
	nopl	0(%rax)
	rep ret
end	rep_ret

snippet	many_exits
	testb	$1, %sil
	jne	1f
	testb	$2, %sil
	jne	2f
	movq	%rsi, %rax
	shrq	$3, %rax
	ret
1:	leaq	1(%rsi), %rax
	stc
	ret
2:	leaq	2(%rsi), %rax
	clc
	ret
end	many_exits

/* ---- flags ---- */

snippet	flags_in		/* reads every flag that came in */
	pushfq
	.cfi_adjust_cfa_offset 8
	popq	%rax
	.cfi_adjust_cfa_offset -8
	sbbq	%rdx, %rdx
	cmovoq	%rsi, %rcx
	ret
end	flags_in

snippet	flags_out		/* leaves flags that the caller would read */
	addq	%rsi, %rax
	adcq	%rdx, %rcx
	cmpq	%r8, %r9
	ret
end	flags_out

snippet	flags_all
	movq	%rsi, %rax
	andl	$0xcd5, %eax	/* all arithmetic flags and DF */
	orl	$0x202, %eax
	pushq	%rax
	.cfi_adjust_cfa_offset 8
	popfq
	.cfi_adjust_cfa_offset -8
	ret
end	flags_all

/* ---- operands ---- */

snippet	rip_load
	movq	word(%rip), %rax
	addq	%rsi, %rax
	ret
end	rip_load

snippet	rip_store		/* an immediate follows the displacement */
	movl	$0x1234, word(%rip)
	addl	$-5, word+4(%rip)
	xchgq	%rax, word(%rip)
	ret
end	rip_store

snippet	rip_imm8
	cmpb	$17, word(%rip)
	sete	%al
	nopl	0(%rax)
	ret
end	rip_imm8

snippet	rip_lea
	leaq	word(%rip), %rax
	subq	%rdi, %rax
	ret
end	rip_lea

snippet	rip_sse
	movdqu	vector(%rip), %xmm0
	movq	%xmm0, %rax
	ret
end	rip_sse

snippet	rsp_relative
	movq	(%rsp), %rax	/* own return address */
	movq	8(%rsp), %rcx
	leaq	-8(%rsp), %rdx
	ret
end	rsp_relative

snippet	red_zone
	movq	%rsi, -8(%rsp)
	movq	%rax, -128(%rsp)
	movq	%rcx, -64(%rsp)
	movq	-8(%rsp), %rax
	ret
end	red_zone

snippet	string
	movl	$16, %ecx
	leaq	64(%rdi), %rsi
	cld
	rep movsb
	ret
end	string

snippet	memory
	lock addq %rsi, (%rdi)
	xaddq	%rax, 8(%rdi)
	cmpxchgq %rdx, 16(%rdi)
	ret
end	memory

snippet	frame
	enter	$32, $0
	.cfi_def_cfa_offset 16
	.cfi_offset %rbp, -16
	.cfi_def_cfa_register %rbp
	movq	%rsi, -8(%rbp)
	movq	-8(%rbp), %rax
	leave
	.cfi_def_cfa %rsp, 8
	ret
end	frame

snippet	syscall			/* leaves its own address in %rcx */
	movl	$39, %eax	/* getpid */
	syscall
	xorl	%ecx, %ecx
	xorl	%r11d, %r11d
	ret
end	syscall

snippet	syscall_flags		/* finds the flags of its caller in %r11, and still has them */
	movl	$39, %eax
	syscall
	movq	%r11, %rdx
	adcq	$0, %r8
	ret
end	syscall_flags

/* ---- branches in windows ---- */

snippet	jcc_short
	testl	%esi, %esi
	js	1f
	incq	%rax
	nopl	0(%rax)
	ret
1:	decq	%rax
	nopl	0(%rax)
	ret
end	jcc_short

snippet	jcc_long
	cmpl	%esi, %edx
	.byte	0x0f, 0x8f	/* jg rel32 */
	.long	1f - . - 4
	incq	%rax
	nopl	0(%rax)
	ret
1:	decq	%rax
	nopl	0(%rax)
	ret
end	jcc_long

snippet	jrcxz_in
	movzbl	%sil, %ecx
	jrcxz	1f
	movq	%rcx, %rax
	ret
	nopl	0(%rax)
1:	movq	$-1, %rax
	ret
end	jrcxz_in

snippet	loop_in			/* the window holds a loop instruction that leads forward */
	movzbl	%sil, %ecx
	loop	1f
	movq	%rcx, %rax
	ret
	nopl	0(%rax)
1:	leaq	1(%rcx), %rax
	ret
end	loop_in

snippet	jmp_short
	jmp	1f
	.byte	0x66, 0x0f, 0x1f, 0x44, 0, 0 /* padding */
1:	movq	%rsi, %rax
	nopl	0(%rax)
	ret
end	jmp_short

/* ---- loops at the first instruction ---- */

snippet	loop_head
	shrq	$1, %rsi
	jne	snip_loop_head
	movq	%rdi, %rax
	ret
end	loop_head

snippet	loop_head_far		/* closed by a jump that is not a neighbour of the entry */
	shrq	$1, %rsi
	je	1f
	addq	%rsi, %rax
	testb	$1, %sil
	jne	2f
	jmp	snip_loop_head_far
2:	incq	%rdx
	.byte	0xe9		/* jmp rel32 */
	.long	snip_loop_head_far - . - 4
1:	movq	%rdi, %rcx
	ret
end	loop_head_far

snippet	loop_head_self		/* entry and loop in one window */
	decb	%sil
	jne	snip_loop_head_self
	ret
end	loop_head_self

/* ---- calls ---- */

	.p2align 4
	.type	callee, @function
callee:				/* not traced: gives its return address, and what lies above */
	.cfi_startproc
	movq	(%rsp), %rax
	movq	8(%rsp), %rdx
	ret
	.cfi_endproc
	.size	callee, . - callee

snippet	call_last
	subq	$8, %rsp
	.cfi_adjust_cfa_offset 8
	call	callee
	addq	$8, %rsp
	.cfi_adjust_cfa_offset -8
	ret
end	call_last

snippet	call_register
	leaq	callee(%rip), %rax
	push	%rbx
	.cfi_adjust_cfa_offset 8
	call	*%rax
	pop	%rbx
	.cfi_adjust_cfa_offset -8
	nopl	0(%rax)
	ret
end	call_register

snippet	call_first		/* the call alone is the window, its stack unaligned */
	call	callee
	nopl	0(%rax)
	nopl	0(%rax)
	ret
end	call_first

snippet	call_register_first
	xchgq	%r8, %r9
	call	*callee_pointer(%rip)
	nopl	0(%rax)
	ret
end	call_register_first

snippet	call_high		/* REX.B */
	movq	callee_pointer(%rip), %r11
	nop
	push	%rbx
	.cfi_adjust_cfa_offset 8
	call	*%r11
	pop	%rbx
	.cfi_adjust_cfa_offset -8
	xorl	%r11d, %r11d
	ret
end	call_high

snippet	call_by_stack		/* through what lies on the stack */
	leaq	callee(%rip), %rax
	push	%rax
	.cfi_adjust_cfa_offset 8
	push	%rbx
	.cfi_adjust_cfa_offset 8
	call	*8(%rsp)
	movl	$1, %ecx
	call	*(%rsp,%rcx,8)
	popq	%rbx
	.cfi_adjust_cfa_offset -8
	popq	%rsi
	.cfi_adjust_cfa_offset -8
	ret
end	call_by_stack

snippet	recurse
	andl	$7, %esi
	je	1f
	decl	%esi
	call	snip_recurse
	incq	%rdx
1:	leaq	1(%rdx), %rax
	nopl	0(%rax)
	ret
end	recurse

/* ---- tail jumps ---- */

snippet	tail_long
	movq	%rsi, %rax
	nopl	0(%rax)
	.byte	0xe9
	.long	snip_one - . - 4
end	tail_long

snippet	tail_short
	leaq	3(%rsi), %rax
	nopl	0(%rax)
	jmp	snip_tail_short_target
end	tail_short
snippet	tail_short_target
	leaq	1(%rax), %rax
	nopl	0(%rax)
	ret
end	tail_short_target

snippet	tail_register
	leaq	callee_jumped(%rip), %rax
	nopl	0(%rax)
	jmp	*%rax
end	tail_register

snippet	tail_memory
	movq	%rsi, %rdx
	nopl	0(%rax)
	jmp	*callee_jumped_pointer(%rip)
end	tail_memory

	.p2align 4
	.type	callee_jumped, @function
callee_jumped:			/* not traced */
	.cfi_startproc
	movq	(%rsp), %rcx
	ret
	.cfi_endproc
	.size	callee_jumped, . - callee_jumped

snippet	tail_conditional
	testl	%esi, %esi
	.byte	0x0f, 0x88	/* js rel32 */
	.long	snip_one - . - 4
	movq	%rsi, %rax
	nopl	0(%rax)
	ret
end	tail_conditional

snippet	tail_conditional_short
	testl	%esi, %esi
	js	snip_tail_conditional_target
	movq	%rsi, %rax
	nopl	0(%rax)
	ret
end	tail_conditional_short
snippet	tail_conditional_target
	leaq	1(%rsi), %rax
	nopl	0(%rax)
	ret
end	tail_conditional_target

snippet	switch
	andl	$3, %esi
	cmpl	$3, %esi
	ja	5f
	leaq	table(%rip), %rdx
	movslq	(%rdx,%rsi,4), %rax
	addq	%rdx, %rax
	notrack jmp *%rax
1:	movl	$1, %eax
	ret
2:	movl	$2, %eax
	nopl	0(%rax)
	ret
3:	movl	$3, %eax
	nopl	0(%rax)
	ret
4:	leaq	4(%rsi), %rax
5:	ret
end	switch
	.section .rodata
	.p2align 2
table:	.long	1b - table, 2b - table, 3b - table, 4b - table
	.text

snippet	pop_return		/* takes its own return address off the stack and back */
	popq	%rcx
	.cfi_adjust_cfa_offset -8
	movq	%rsi, %rax
	pushq	%rcx
	.cfi_adjust_cfa_offset 8
	ret
end	pop_return

	.p2align 4

	.section .data.rel, "aw"
	.p2align 4
callee_pointer:
	.quad	callee
callee_jumped_pointer:
	.quad	callee_jumped
	.data
	.p2align 4
	.globl	word
word:	.quad	0x1122334455667788
vector:	.quad	0x0102030405060708, 0x1112131415161718

/* ---- the frame around a snippet ---- */

/*
 * void run_snippet(void): run_fn with registers and flags of run_in on the stack run_in.rsp,
 * then its registers and flags in run_out.  struct regs of test_stub.c: rax rcx rdx rbx rsp
 * rbp rsi rdi r8..r15 flags, 8 bytes each.
 */
	.text
	.p2align 4
	.globl	run_snippet
	.type	run_snippet, @function
run_snippet:
	push	%rbx
	push	%rbp
	push	%r12
	push	%r13
	push	%r14
	push	%r15
	movq	%rsp, saved_sp(%rip)
	pushq	run_in+128(%rip)
	popfq
	movq	run_in(%rip), %rax
	movq	run_in+8(%rip), %rcx
	movq	run_in+16(%rip), %rdx
	movq	run_in+24(%rip), %rbx
	movq	run_in+32(%rip), %rsp
	movq	run_in+40(%rip), %rbp
	movq	run_in+48(%rip), %rsi
	movq	run_in+56(%rip), %rdi
	movq	run_in+64(%rip), %r8
	movq	run_in+72(%rip), %r9
	movq	run_in+80(%rip), %r10
	movq	run_in+88(%rip), %r11
	movq	run_in+96(%rip), %r12
	movq	run_in+104(%rip), %r13
	movq	run_in+112(%rip), %r14
	movq	run_in+120(%rip), %r15
	call	*run_fn(%rip)
	movq	%rsp, run_out+32(%rip)
	movq	saved_sp(%rip), %rsp	/* a mov, so the flags are still the snippet's */
	pushfq
	popq	run_out+128(%rip)
	movq	%rax, run_out(%rip)
	movq	%rcx, run_out+8(%rip)
	movq	%rdx, run_out+16(%rip)
	movq	%rbx, run_out+24(%rip)
	movq	%rbp, run_out+40(%rip)
	movq	%rsi, run_out+48(%rip)
	movq	%rdi, run_out+56(%rip)
	movq	%r8, run_out+64(%rip)
	movq	%r9, run_out+72(%rip)
	movq	%r10, run_out+80(%rip)
	movq	%r11, run_out+88(%rip)
	movq	%r12, run_out+96(%rip)
	movq	%r13, run_out+104(%rip)
	movq	%r14, run_out+112(%rip)
	movq	%r15, run_out+120(%rip)
	cld
	pop	%r15
	pop	%r14
	pop	%r13
	pop	%r12
	pop	%rbp
	pop	%rbx
	ret
	.size	run_snippet, . - run_snippet

/*
 * The thunk of the test: writes event, the stack pointer of the program (KRON_THUNK_SP above
 * its own) and all registers and flags to the next of seen[], then spoils %rax and %rcx, as
 * the contract allows, and nothing else.
 *   (%rsp) return into the trampoline, 8 rax, 16 rcx, 24.. red zone
 */
	.p2align 4
	.globl	test_thunk
	.type	test_thunk, @function
test_thunk:
	pushfq
	pushq	%rdx
	movq	seen_n(%rip), %rdx
	cmpq	$63, %rdx
	ja	1f
	incq	seen_n(%rip)
	imulq	$144, %rdx, %rdx
	leaq	seen(%rip), %rcx
	leaq	(%rcx,%rdx), %rcx
	movl	%eax, %eax
	movq	%rax, 136(%rcx)		/* event */
	movq	24(%rsp), %rax		/* the program's rax */
	movq	%rax, (%rcx)
	movq	32(%rsp), %rax		/* and rcx */
	movq	%rax, 8(%rcx)
	movq	(%rsp), %rdx
	movq	%rdx, 16(%rcx)
	movq	%rbx, 24(%rcx)
	leaq	168(%rsp), %rax		/* 152 + two pushes */
	movq	%rax, 32(%rcx)
	movq	%rbp, 40(%rcx)
	movq	%rsi, 48(%rcx)
	movq	%rdi, 56(%rcx)
	movq	%r8, 64(%rcx)
	movq	%r9, 72(%rcx)
	movq	%r10, 80(%rcx)
	movq	%r11, 88(%rcx)
	movq	%r12, 96(%rcx)
	movq	%r13, 104(%rcx)
	movq	%r14, 112(%rcx)
	movq	%r15, 120(%rcx)
	movq	8(%rsp), %rax
	movq	%rax, 128(%rcx)
1:	popq	%rdx
	popfq
	movq	$-1, %rax
	movq	$-1, %rcx
	ret
	.size	test_thunk, . - test_thunk

	.bss
	.p2align 4
	.globl	run_in, run_out, run_fn, seen, seen_n
run_in:	.skip	136
run_out: .skip	136
run_fn:	.skip	8
saved_sp: .skip	8
seen_n:	.skip	8
seen:	.skip	144 * 64

	.section .note.GNU-stack, "", @progbits
