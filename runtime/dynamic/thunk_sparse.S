/* SPDX-License-Identifier: MIT */
/*
 * thunk_sparse.S - the probe into a lane that reads the clock for one sample of N only (--clock every:N).
 *
 * The other N - 1 copy the lane's stamp: head and time of the last reading, with bit 0 of the time set, which
 * says that it is a copy.  Every other sample of a lane has an even time, its own.  So a reader knows of
 * a copy that it was taken after that reading and before the next one that follows it in the lane.
 *
 * Which one reads is in its claim: the count of free slots is a multiple of N.  There is no counter that a
 * signal handler could disturb.
 *
 * A thread that was off its processor reads the clock, too: a copy would not show how long it waited.  The
 * kernel clears rseq's rseq_cs whenever it switches to another thread or runs a signal handler.  So rseq_cs
 * holds our mark, a critical section that nobody executes.  While the mark is there the thread has not moved,
 * and its processor's number need not be read.
 *
 *   mark            gone: it is put there, then the processor is looked at, then the clock is read
 *   stamp is 0      none yet, or the thread was moved to another processor: the sample reads the clock
 *   compared        a reading that a handler interrupted, and renewed the stamp, is made again: so stamps never go
 *                   back, and none is older than a reading in a later slot that was there before it was copied
 *
 * Without rdtsc there is no shadow for the rest to run in; what is left is the claim's way through
 * memory.  Otherwise this is thunk.S, which says what each step is for.
 */
#include "runtime/core/thunk.inc"

	.text

/*
 *   rdx  the lane     rdi  the slot     ecx  the event, later what goes into the slot
 *
 * timed: each sample reads (--timed).
 */
	.macro	SPARSE name, timed
	THUNK	\name
	TOUCH_FIRST
	SAVE	%rdx
	SAVE	%rdi
	mov	%eax, %ecx
	SAVE_FLAGS
.Lagain\@:
	OWN_LANE .Lslow\@
	movabs	$RT_CLAIM_STEP, %rdi
	PAYLOAD	0, 24, %eax
	xadd	%rdi, RT_LANE_CLAIM(%rdx)
	test	%rdi, %rdi
	jns	.Lslow\@
	rol	$16, %rdi			/* the count, in front of the address */
	.if \timed
	jmp	.Lread\@
	.else
	test	%edi, kron_rt_clock_mask(%rip)
	jz	.Lread\@
	shr	$16, %rdi
	mov	%eax, 12(%rdi)			/* at once: see board/model/holes.h */
	mov	%ecx, 16(%rdi)
	mov	kron_rt_mark_offset(%rip), %rax
	lea	kron_rt_mark(%rip), %rcx
	cmp	%rcx, %fs:(%rax)
	jne	.Lswitched\@
	mov	RT_LANE_SOURCE(%rdx), %ecx
	mov	%ecx, 8(%rdi)
	mov	RT_LANE_STAMP(%rdx), %rcx
	test	%ecx, %ecx
	jz	.Lno_stamp\@
	.endif
.Lstore\@:
	mov	%rcx, %rax
	shr	$32, %rax
	mov	%eax, 4(%rdi)
	mov	%ecx, (%rdi)			/* last: now the sample exists */
.Ldone\@:
	.cfi_remember_state
	BACK_FLAGS
	BACK	%rdi
	BACK	%rdx
	ret

.Lread\@:
	.cfi_restore_state
	.cfi_remember_state
	shr	$16, %rdi
	mov	%eax, 12(%rdi)
	mov	%ecx, 16(%rdi)
.Lswitched\@:
	mov	kron_rt_mark_offset(%rip), %rax
	lea	kron_rt_mark(%rip), %rcx
	mov	%rcx, %fs:(%rax)
	mov	16(%rdi), %ecx
	mov	kron_rt_cpu_offset(%rip), %rax
	mov	%fs:(%rax), %eax
	cmp	%eax, RT_LANE_CPU(%rdx)
	jne	.Lother_cpu\@
	mov	RT_LANE_SOURCE(%rdx), %ecx
	mov	%ecx, 8(%rdi)
.Lno_stamp\@:
	SAVE	%rsi
	mov	%rdx, %rsi
	SHARED_STAMP
	BACK	%rsi
	jmp	.Lstore\@

.Lother_cpu\@:
	.cfi_restore_state
	.cfi_remember_state
	SAVE	%rcx
	RECORD_MOVE
	BACK	%rcx
	jmp	.Lagain\@

.Lslow\@:
	.cfi_restore_state
	SAVE	%rsi
	mov	%ecx, %edi
	PAYLOAD	0, 32, %esi
	CALL_C	kron_rt_slow, 40
	BACK	%rsi
	jmp	.Ldone\@
	END_THUNK \name
	.endm

	SPARSE	kron_rt_probe_sparse, 0
	SPARSE	kron_rt_probe_timed, 1

	/* struct rseq_cs, which the kernel checks */
	.hidden	kron_rt_mark
	.globl	kron_rt_mark
.Lmark_start:
	ud2
.Lmark_end:
	.long	RT_RSEQ_SIG
.Lmark_aborted:
	ud2
	.section .data.rel.ro, "aw", @progbits
	.balign 32
kron_rt_mark:
	.long	0, 0
	.quad	.Lmark_start
	.quad	.Lmark_end - .Lmark_start
	.quad	.Lmark_aborted

	.section .note.GNU-stack, "", @progbits
