/* SPDX-License-Identifier: MIT */
/*
 * thunk.S - where every probe of the process comes in.
 *
 * The code that calls it is in the trampolines; wire.h has it byte by byte.  It has left the
 * red zone and saved %rax and %rcx.  Every other register, and every flag, belongs to the
 * interrupted program and must leave as it came.  No vector or x87 register is touched, here
 * or in what is called from here.
 *
 * Speed: rdtsc takes the time of some 25 instructions and waits for nothing, so all the rest
 * runs in its shadow.  Keep it that way: no locked instruction, no serialising one.
 */
#include "runtime/core/thunk.inc"

	.text

/*
 * kron_rt_probe: %eax = event.  Clobbers %rax and %rcx, which the trampoline restores.
 *
 *   rdx  the lane          rdi  the slot          ecx  the event, later the head
 *
 * Interrupted by a signal whose handler has probes: before the xadd, we continue with the
 * lane as the handler left it; after it, the slot is ours wherever it lies (lane.h).
 */
	.macro	PROBE_LANE name, own
	THUNK	\name
	TOUCH_FIRST
	SAVE	%rdx
	SAVE	%rdi
	mov	%eax, %ecx
	SAVE_FLAGS
.Lagain\@:
	OWN_LANE .Lslow\@
	movabs	$RT_CLAIM_STEP, %rdi
	PAYLOAD	\own, 24, %eax
	xadd	%rdi, RT_LANE_CLAIM(%rdx)
	test	%rdi, %rdi
	jns	.Lslow\@
	shl	$16, %rdi
	shr	$16, %rdi
	mov	%eax, 12(%rdi)			/* at once: see board/model/holes.h */
	mov	%ecx, 16(%rdi)
	mov	kron_rt_cpu_offset(%rip), %rax
	mov	%fs:(%rax), %eax
	cmp	%eax, RT_LANE_CPU(%rdx)
	jne	.Lother_cpu\@
	FINISH_SAMPLE
.Ldone\@:
	.cfi_remember_state
	BACK_FLAGS
	BACK	%rdi
	BACK	%rdx
	ret

.Lother_cpu\@:
	.cfi_restore_state
	SAVE	%rcx
	RECORD_MOVE
	BACK	%rcx
	jmp	.Lagain\@

	/* No lane yet, or no room in it.  kron_rt_slow(event, payload) takes the sample. */
.Lslow\@:
	SAVE	%rsi
	mov	%ecx, %edi
	PAYLOAD	\own, 32, %esi
	CALL_C	kron_rt_slow, 40
	BACK	%rsi
	jmp	.Ldone\@
	END_THUNK \name
	.endm

	PROBE_LANE	kron_rt_probe, 0
	PROBE_LANE	kron_rt_payload, 1

/*
 * kron_rt_wide: the same with a payload of 64 bits, in two slots of one claim: the upper half, then
 * the sample (board.h).  Where there is anything to do but that, C does it; it is given the claim,
 * whose slots it fills.
 */
	THUNK	kron_rt_wide
	TOUCH_FIRST
	SAVE	%rdx
	SAVE	%rdi
	mov	%eax, %ecx
	SAVE_FLAGS
	OWN_LANE .Lnone
	movabs	$(RT_CLAIM_STEP * RT_WIDE_SLOTS), %rdi
	xadd	%rdi, RT_LANE_CLAIM(%rdx)
	test	%rdi, %rdi
	jns	.Lnone
	mov	%rdi, %rax
	sar	$RT_CLAIM_COUNT_SHIFT, %rax
	cmp	$-RT_WIDE_SLOTS, %rax
	jg	.Lclaimed			/* fewer are left */
	mov	kron_rt_cpu_offset(%rip), %rax
	mov	%fs:(%rax), %eax
	cmp	%eax, RT_LANE_CPU(%rdx)
	jne	.Lclaimed
	shl	$16, %rdi
	shr	$16, %rdi
	PAYLOAD	1, 24, %rax
	mov	%eax, (20 + 12)(%rdi)		/* at once: see board/model/holes.h */
	shr	$32, %rax
	mov	%ecx, (20 + 16)(%rdi)
	mov	%eax, 12(%rdi)
	movl	$EVENT_WIDE, 16(%rdi)
	mov	RT_LANE_SOURCE(%rdx), %ecx
	mov	%ecx, 8(%rdi)
	mov	%ecx, (20 + 8)(%rdi)
	mov	RT_LANE_HEAD(%rdx), %ecx
	rdtsc
	and	$-2, %eax			/* as in STAMP */
	mov	%eax, 4(%rdi)
	mov	%eax, (20 + 4)(%rdi)
	and	$HEAD_TIME_MASK, %edx
	or	%ecx, %edx
	mov	%edx, (%rdi)
	mov	%edx, 20(%rdi)			/* last: now the sample exists */
.Lwide_done:
	.cfi_remember_state
	BACK_FLAGS
	BACK	%rdi
	BACK	%rdx
	ret

.Lnone:
	.cfi_restore_state
	xor	%edi, %edi
	/* kron_rt_slow_wide(event, payload, claim) */
.Lclaimed:
	SAVE	%rsi
	mov	%rdi, %rdx
	mov	%ecx, %edi
	PAYLOAD	1, 32, %rsi
	CALL_C	kron_rt_slow_wide, 40
	BACK	%rsi
	jmp	.Lwide_done
	END_THUNK kron_rt_wide

	.section .note.GNU-stack, "", @progbits
