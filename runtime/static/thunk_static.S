/* SPDX-License-Identifier: MIT */
/*
 * thunk_static.S - the probes of a static program: static.h has the way to the lane.
 *
 * Time and processor come from one instruction, rdtscp, so the sample's header names the very
 * processor whose clock was read.  The claim is locked.
 *
 *   rsi  the event, then the lane      rdx  the lane      rdi  the slot
 *   r8   constant time (thunk_constant.S): 1 = take, 0 = drop
 */
#include "runtime/core/thunk.inc"
#include "runtime/static/static.h"

	.text

/* The calling thread's lane, to %rdx; %rax, %rcx are gone, %rdi is where its number lies. */
	.macro	FIND_LANE slow
	mov	kron_rt_tid_offset(%rip), %rdi
	test	%rdi, %rdi
	jz	\slow				/* zero, too, when rdfsbase is not for us */
	rdfsbase %rdx
	mov	%rdx, %rax
	shr	$RT_THREADS_BASE_SHIFT, %rax
	imul	$RT_THREADS_HASH, %eax, %eax
	shr	$(32 - RT_THREADS_SHIFT), %eax
	shl	$RT_THREAD_SHIFT, %eax
	lea	kron_rt_threads(%rip), %rcx
	cmp	%rdx, (%rcx, %rax)
	jne	\slow
	mov	RT_THREAD_LANE(%rcx, %rax), %rdx
	test	%rdx, %rdx
	jz	\slow
	mov	%fs:(%rdi), %edi
	cmp	%edi, RT_LANE_TID(%rdx)
	jne	\slow
	.endm

/* As in thunk.S: the slot becomes the record of the move, the sample takes the next one. */
	.macro	MOVE_CPU
	SAVE	16(%rdi)
	movl	$EVENT_CPU, 16(%rdi)
	mov	%ecx, 12(%rdi)
	mov	%eax, 4(%rdi)
	mov	%ecx, %eax
	shl	$HEAD_CPU_SHIFT, %eax
	or	$HEAD_TRACE, %eax
	mov	%eax, RT_LANE_HEAD(%rsi)
	mov	%ecx, RT_LANE_CPU(%rsi)
	and	$HEAD_TIME_MASK, %edx
	or	%eax, %edx
	mov	%edx, (%rdi)
	BACK	%rsi
	mov	%esi, %esi
	.endm

/* All but the time and the head, which is for processor %ecx then.  Equal: it is the lane's. */
	.macro	BEGIN_SAMPLE
	mov	%eax, 12(%rdi)			/* at once: see board/model/holes.h */
	mov	%esi, 16(%rdi)
	mov	RT_LANE_SOURCE(%rdx), %eax
	mov	%eax, 8(%rdi)
	mov	%rdx, %rsi
	rdtscp
	and	$0xfff, %ecx			/* the node is above it */
	cmp	%ecx, RT_LANE_CPU(%rsi)
	.endm

	.macro	STAMP_STATIC
	mov	%eax, 4(%rdi)
	shl	$HEAD_CPU_SHIFT, %ecx
	and	$HEAD_TIME_MASK, %edx
	lea	HEAD_TRACE(%rcx, %rdx), %edx
	mov	%edx, (%rdi)			/* last: now the sample exists */
	.endm

	.macro	PROBE_STATIC name, own
	THUNK	\name
	ENTER
	mov	%eax, %esi
	SAVE_FLAGS
.Lagain\@:
	FIND_LANE .Lslow\@
	movabs	$RT_CLAIM_STEP, %rdi
	lock xadd %rdi, RT_LANE_CLAIM(%rdx)
	test	%rdi, %rdi
	jns	.Lslow\@
	shl	$16, %rdi
	shr	$16, %rdi
	PAYLOAD	\own, 32, %eax
	BEGIN_SAMPLE
	jne	.Lother_cpu\@
	STAMP_STATIC
.Ldone\@:
	.cfi_remember_state
	LEAVE

.Lother_cpu\@:
	.cfi_restore_state
	MOVE_CPU
	jmp	.Lagain\@

.Lslow\@:
	mov	%esi, %edi
	PAYLOAD	\own, 32, %esi
	CALL_C	kron_rt_slow, 40
	jmp	.Ldone\@
	END_THUNK \name
	.endm

	PROBE_STATIC	kron_rt_probe, 0
	PROBE_STATIC	kron_rt_payload, 1

/* --constant-time: thunk_constant.S says how.  What finds the lane is the same for both ways. */
	.macro	PROBE_STATIC_CONSTANT name, own
	THUNK	\name
	ENTER
	SAVE	%r8
	mov	%eax, %esi
	SAVE_FLAGS
	mov	%ecx, %r8d
	and	$1, %r8d			/* KRON_GATE_TAKE */
.Lagain\@:
	FIND_LANE .Lslow\@
	CLAIM_OR_DROP %r8, %r8d, .Lslow\@, lock
	PAYLOAD	\own, 40, %eax
	BEGIN_SAMPLE
	jne	.Lother_cpu\@
.Lstore\@:
	STAMP_STATIC
.Ldone\@:
	.cfi_remember_state
	BACK_FLAGS
	BACK	%r8
	BACK	%rsi
	BACK	%rdi
	BACK	%rdx
	ret

.Lother_cpu\@:
	.cfi_restore_state
	test	%r8d, %r8d
	jz	.Lstore\@
	MOVE_CPU
	jmp	.Lagain\@

	/* kron_rt_slow_constant(event, payload, take) */
.Lslow\@:
	mov	%esi, %edi
	PAYLOAD	\own, 40, %esi
	mov	%r8d, %edx
	CALL_C	kron_rt_slow_constant, 48
	jmp	.Ldone\@
	END_THUNK \name
	.endm

	PROBE_STATIC_CONSTANT	kron_rt_probe_constant, 0
	PROBE_STATIC_CONSTANT	kron_rt_payload_constant, 1

	.section .note.GNU-stack, "", @progbits
