/* SPDX-License-Identifier: MIT */
/*
 * thunk_constant.S - the probe into a lane that costs the same whether its sample is taken or
 * not, as a store to the hardware does (--constant-time).
 *
 * The gate of a level that is off says KRON_GATE_DROP.  The same instructions run, without a
 * branch on it: a claim of nothing instead of a claim of a slot, and the sample goes to a place
 * in the lane that nobody reads.  What differs: a dropped sample never fills a chunk, so it
 * never pays for the next one (one in 3,275 samples does).
 *
 * Otherwise this is thunk.S, which says what each step is for.
 */
#include "runtime/core/thunk.inc"

	.text

/*
 *   rdx  the lane     rdi  the slot     esi  the event     ecx  1 = take, 0 = drop, later head
 */
	.macro	PROBE_CONSTANT name, own
	THUNK	\name
	ENTER
	mov	%eax, %esi
	SAVE_FLAGS
	and	$1, %ecx			/* KRON_GATE_TAKE */
.Lagain\@:
	OWN_LANE .Lslow\@
	CLAIM_OR_DROP %rcx, %ecx, .Lslow\@
	PAYLOAD	\own, 32, %eax
	mov	%eax, 12(%rdi)
	mov	%esi, 16(%rdi)
	mov	kron_rt_cpu_offset(%rip), %rax
	mov	%fs:(%rax), %eax
	cmp	%eax, RT_LANE_CPU(%rdx)
	jne	.Lother_cpu\@
.Lstore\@:
	FINISH_SAMPLE
.Ldone\@:
	.cfi_remember_state
	LEAVE

	/* The record of the move is for the next sample that is taken to make. */
.Lother_cpu\@:
	.cfi_restore_state
	test	%ecx, %ecx
	jz	.Lstore\@
	RECORD_MOVE
	mov	$1, %ecx
	jmp	.Lagain\@

	/* kron_rt_slow_constant(event, payload, take) */
.Lslow\@:
	mov	%esi, %edi
	PAYLOAD	\own, 32, %esi
	mov	%ecx, %edx
	CALL_C	kron_rt_slow_constant, 40
	jmp	.Ldone\@
	END_THUNK \name
	.endm

	PROBE_CONSTANT	kron_rt_probe_constant, 0
	PROBE_CONSTANT	kron_rt_payload_constant, 1

	.section .note.GNU-stack, "", @progbits
