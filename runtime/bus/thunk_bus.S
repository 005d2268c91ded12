/* SPDX-License-Identifier: MIT */
/*
 * thunk_bus.S - the probes that go to a board: a bus cycle of the model (exact), or
 * a store to the real one (device).
 */
#include "runtime/core/thunk.inc"

	.text

/* kron_rt_exact(event, payload, gate) */
	.macro	PROBE_EXACT name, own
	THUNK	\name, 4
	ENTER
	mov	%eax, %edi
	mov	%ecx, %edx
	SAVE_FLAGS
	PAYLOAD	\own, 32, %esi
	CALL_C	kron_rt_exact, 40, RT_STACK_BOARD
	LEAVE
	END_THUNK \name
	.endm

	PROBE_EXACT	kron_rt_probe_exact, 0
	PROBE_EXACT	kron_rt_payload_exact, 1

#ifndef RT_STATIC /* thread data of glibc's: kron_rt_lane, rseq */
/*
 * The hardware puts into a sample what the Source Address Register of the active CPU ID line
 * holds, so the register of our CPU's line must be ours when the trigger arrives.  Between
 * looking and storing nobody else may run on this CPU: an rseq critical section, which the
 * kernel starts again when we are moved, preempted or interrupted in it.
 *
 *   section   which CPU?  its line is another CPU's, too: leave, the trigger is lost
 *             owner[line] is us:    store the trigger                                (commit)
 *             another's or nobody's: owner = 0, register = us, owner = us, then the trigger
 *
 * Cut off anywhere, what is left is right for whoever comes next: owner names whom the register
 * belongs to, or nobody while that is in doubt.  All these stores come from this CPU, so all
 * threads on it see them in this order.
 *
 * A vfork child runs on its parent's thread data, and the kernel starts nothing again for it.
 * Until its exec it is protected only as far as its five instructions are not interrupted.
 *
 * The kernel keeps the CPU number where rdpid reads it, and in the limit of GDT segment 0x7b, whose
 * reading takes longer than all the rest; inside the section that and rseq's cpu_id are the same, but in
 * a vfork child it is cpu_id that is out of date.
 *
 *   esi  event     edi  our source address     ecx  filter level     eax, rdx  scratch
 */
	THUNK	kron_rt_probe_hardware
	ENTER
	mov	%eax, %esi
	SAVE_FLAGS
	shr	$4, %ecx
.Lagain:
	mov	kron_rt_lane_at(%rip), %rdi	/* OWN_LANE, in two operations less */
	test	%rdi, %rdi
	jz	.Lunknown
	LANE_AT	.Lunknown
	mov	RT_LANE_KNOWN(%rdx), %edi
	test	%edi, %edi			/* zero, too, in a forked child */
	jz	.Lunknown
.Lrestart:
	mov	kron_rt_cpu_offset(%rip), %rdx
	lea	.Lsection(%rip), %rax
	mov	%rax, %fs:(RT_RSEQ_CS - RT_RSEQ_CPU)(%rdx)

.Lstart:
	.globl	kron_rt_hardware_start, kron_rt_hardware_end
	.hidden	kron_rt_hardware_start, kron_rt_hardware_end
kron_rt_hardware_start:
	mov	%fs:(%rdx), %eax
	test	%eax, %eax
	js	.Llost				/* a thread without rseq */
	cmpb	$0, kron_rt_has_rdpid(%rip)
	je	.Lno_rdpid
	rdpid	%rax
	jmp	.Lcpu
.Lno_rdpid:
	mov	$0x7b, %eax
	lsl	%eax, %eax
.Lcpu:
	and	$0xfff, %eax			/* the node is above it */
	mov	%eax, %edx
	and	$7, %edx
	shl	$RT_LINE_SHIFT, %edx
	cmp	%eax, RT_LINE_CPU(%rdx)
	jne	.Llost
	cmp	%edi, RT_LINE_OWNER(%rdx)
	je	1f
	movl	$0, RT_LINE_OWNER(%rdx)
	and	$7, %eax
	mov	%edi, RT_HARDWARE_SOURCE(, %rax, 4)
	mov	%edi, RT_LINE_OWNER(%rdx)
1:	mov	%esi, RT_HARDWARE_TRACE(, %rcx, 4)
.Lend:
kron_rt_hardware_end:

.Ldone:
	.cfi_remember_state
	LEAVE

	.long	RT_RSEQ_SIG
.Laborted:
	.cfi_restore_state
	jmp	.Lrestart

.Lunknown:
	SAVE	%rsi
	SAVE	%rcx
	CALL_C	kron_rt_meet, 56
	BACK	%rcx
	BACK	%rsi
	test	%al, %al
	jnz	.Lagain
	jmp	.Ldone

.Llost:
	CALL_C	kron_rt_lose, 40
	jmp	.Ldone
	END_THUNK kron_rt_probe_hardware

	/* struct rseq_cs */
	.section .data.rel.ro, "aw", @progbits
	.balign 32
.Lsection:
	.long	0, 0
	.quad	.Lstart
	.quad	.Lend - .Lstart
	.quad	.Laborted
	.text
#endif

/*
 * The payload thunk of blocks with Resource samples on the lane bus: their trace samples go the
 * usual way, which does not want to know the gate.  kron_rt_resource(event, payload)
 */
	THUNK	kron_rt_payload_counters, 4
	movzbl	%ch, %ecx			/* KRON_GATE_RESOURCE; flags stay */
	jrcxz	.Ltrace
	jmp	.Lresource
.Ltrace:
	jmp	kron_rt_payload
.Lresource:
	ENTER
	mov	%eax, %edi
	SAVE_FLAGS
	PAYLOAD	1, 32, %esi
	CALL_C	kron_rt_resource, 40
	LEAVE
	END_THUNK kron_rt_payload_counters

/*
 * The way to the calling thread's table of pages: FIND_PAGES to %rdx, and ADD_PAGES from there adds its address to
 * %rcx.  %rax and %rcx are gone.
 */
#ifndef RT_STATIC
	.macro	FIND_PAGES none
	cmpl	$0, kron_rt_strange(%rip)
	jne	\none
	mov	kron_rt_words@gottpoff(%rip), %rdx
	.endm

	.macro	ADD_PAGES
	add	%fs:8(%rdx), %rcx
	.endm
#else
	.macro	FIND_PAGES none
	SAVE	%rdi
	FIND_LANE .Lno_lane, .Lnumber
.Llane:
	BACK	%rdi
	mov	RT_LANE_PAGES(%rdx), %rdx
	test	%rdx, %rdx
	jz	\none
	.endm

	.macro	ADD_PAGES
	add	%rdx, %rcx
	.endm
#endif

/* kron_rt_action(code, data, flags) */
	THUNK	kron_rt_action_thunk, 4
	TOUCH_FIRST
	SAVE	%rcx
	SAVE	%rdx
	SAVE	%rdi
	SAVE	%rsi
	mov	%rax, %rdi
	mov	40(%rsp), %rsi
	SAVE_FLAGS
	/* A reference to memory in one page that is known is counted here, as trampolines do it; lines are not. */
	test	%edi, %edi
	jns	.Lno_reference
	test	$RT_ACTION_REPEATED | RT_ACTION_LINES, %edi
	jnz	.Lin_c
	FIND_PAGES .Lin_c
	mov	%rsi, %rcx
	shr	$9, %rcx
	test	$RT_ACTION_BY_FUNCTION, %edi
	jnz	.Lby_function
	and	$RT_PAGE_TABLE_MASK, %ecx
	ADD_PAGES
	mov	(%rcx), %rcx
.Lrecord:
	mov	%rsi, %rax
	xor	RT_NO_PAGE(%rcx), %rax
	movzwl	%di, %edx
	add	%rdx, %rax
	cmp	$4096, %rax
	ja	.Lin_c
	mov	%edi, %eax
	shr	$16, %eax
	mov	%eax, %edx
	and	$15, %eax
	shr	$4, %edx
	and	$15, %edx
	add	%rax, RT_NO_PAGE + 8(%rcx)
	add	%rdx, RT_NO_PAGE + 16(%rcx)
	jmp	.Lcounted
.Lby_function:				/* KRON_PAGE_SALT() */
	mov	%rdi, %rax
	shr	$32, %rax
	imul	$RT_PAGE_SALT, %eax, %eax
	shr	$RT_PAGE_SALT_SHIFT, %eax
	shl	$3, %eax
	xor	%eax, %ecx
	and	$RT_FUNCTION_TABLE_MASK, %ecx
	ADD_PAGES
	mov	(%rcx), %rcx
	mov	%rdi, %rax
	shr	$32, %rax
	cmp	%eax, RT_NO_PAGE + 28(%rcx)
	je	.Lrecord
.Lin_c:
	pushfq					/* for DF; as deep as SAVE_FLAGS has touched */
	.cfi_adjust_cfa_offset 8
	BACK	%rdx
	CALL_C	kron_rt_action, 48, RT_STACK_BOARD
.Lcounted:
	.cfi_remember_state
	BACK_FLAGS
	BACK	%rsi
	BACK	%rdi
	BACK	%rdx
	BACK	%rcx
	ret

	.cfi_restore_state
#ifndef RT_STATIC
	.set	.Lno_reference, .Lin_c
#else
	/* Nor do trampolines count here: a count, or a call, of a thread that has counters. */
.Lno_reference:
	test	$RT_ACTION_COUNT | RT_ACTION_CALLS, %edi
	jz	.Lin_c
	SAVE	%rdi
	FIND_LANE .Lno_lane, .Lcounting_number
.Lcounting:
	BACK	%rdi
	test	$RT_ACTION_CALLS, %edi
	jnz	.Lcall
	mov	RT_LANE_COUNTS(%rdx), %rdx
	test	%rdx, %rdx
	jz	.Lin_c
	mov	%edi, %ecx
	test	$RT_ACTION_GATED, %edi
	jz	.Lopen
	shr	$8, %ecx
	and	$15, %ecx
	mov	RT_GATES(%rcx), %al
	and	$3, %al
	cmp	$RT_GATE_TAKE, %al
	jne	.Lcounted
	mov	%edi, %ecx
.Lopen:
	and	$127, %ecx
	add	%rsi, -8 * RT_WORD_INCREMENT(%rdx, %rcx, 8)
	jmp	.Lcounted
.Lcall:
	movzbl	RT_ACTION_NUMBER + 1(%rsi), %eax	/* below 32,768; by bytes, for the program's AC may be set */
	shl	$8, %eax
	movzbl	RT_ACTION_NUMBER(%rsi), %ecx
	or	%ecx, %eax
	xor	%ecx, %ecx
.Lpart:
	cmp	$RT_CALLS_IN_CHUNK, %eax
	jb	.Lin_part
	sub	$RT_CALLS_IN_CHUNK, %eax
	inc	%ecx
	cmp	$RT_CALLS_PARTS, %ecx
	jb	.Lpart
	jmp	.Lin_c
.Lin_part:
	mov	RT_LANE_CALLS(%rdx, %rcx, 8), %rcx
	test	%rcx, %rcx
	jz	.Lin_c
	incq	RT_CALLS_FIRST(%rcx, %rax, 8)
	jmp	.Lcounted

	.cfi_adjust_cfa_offset 8		/* %rdi, again */
.Lcounting_number:
	FIND_LANE_BY_NUMBER .Lno_lane, .Lcounting
.Lnumber:
	FIND_LANE_BY_NUMBER .Lno_lane, .Llane
.Lno_lane:
	BACK	%rdi
	jmp	.Lin_c
#endif
	END_THUNK kron_rt_action_thunk

	.section .note.GNU-stack, "", @progbits
