/* SPDX-License-Identifier: MIT */
/*
 * thunk_static.S - the probes of a static program: static.h has the way to the lane.
 *
 * Otherwise this is thunk.S, and thunk_constant.S, which say what each step is for.  What comes before
 * rdtsc runs in its shadow here as well, as long as nothing is locked and nothing waits: rdtscp, which
 * has the processor's number with the time, takes 12 ns more than rdtsc, a locked claim 8.
 *
 *   rsi  the event      rdx  the lane      rdi  the slot
 *   r8   constant time: 1 = take, 0 = drop
 */
#include "runtime/core/thunk.inc"

	.text

/* The number of the processor, to %eax. */
	.macro	READ_CPU no_rdpid
	cmpb	$0, kron_rt_has_rdpid(%rip)
	je	\no_rdpid
	rdpid	%rax
	.endm

	.macro	READ_CPU_OTHERWISE back
	mov	$RT_CPU_SELECTOR, %eax
	lsl	%eax, %eax
	jmp	\back
	.endm

	.macro	PROBE_STATIC name, own
	THUNK	\name
	ENTER
	mov	%eax, %esi
	SAVE_FLAGS
.Lagain\@:
	FIND_LANE .Lslow\@, .Lnumber\@
.Lfound\@:
	movabs	$RT_CLAIM_STEP, %rdi
	PAYLOAD	\own, 32, %eax
	xadd	%rdi, RT_LANE_CLAIM(%rdx)
	test	%rdi, %rdi
	jns	.Lslow\@
	shl	$16, %rdi
	shr	$16, %rdi
	mov	%eax, 12(%rdi)			/* at once: see board/model/holes.h */
	mov	%esi, 16(%rdi)
	READ_CPU .Lno_rdpid\@
.Lcpu\@:
	and	$0xfff, %eax			/* the node is above it */
	cmp	%eax, RT_LANE_CPU(%rdx)
	jne	.Lother_cpu\@
	FINISH_SAMPLE
.Ldone\@:
	.cfi_remember_state
	LEAVE

.Lnumber\@:
	.cfi_restore_state
	FIND_LANE_BY_NUMBER .Lslow\@, .Lfound\@

.Lno_rdpid\@:
	READ_CPU_OTHERWISE .Lcpu\@

.Lother_cpu\@:
	RECORD_MOVE
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

/*
 * --clock every:N: runtime/dynamic/thunk_sparse.S says what each step is for.  Without rseq_cs kron_rt_clock_mask is 0,
 * and each sample reads the clock.
 */
	.macro	PROBE_STATIC_SPARSE name, timed
	THUNK	\name
	ENTER
	mov	%eax, %esi
	SAVE_FLAGS
.Lagain\@:
	FIND_LANE .Lslow\@, .Lnumber\@
.Lfound\@:
	movabs	$RT_CLAIM_STEP, %rdi
	PAYLOAD	0, 32, %eax
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
	mov	%esi, 16(%rdi)
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
	LEAVE
	.cfi_restore_state

.Lread\@:
	shr	$16, %rdi
	mov	%eax, 12(%rdi)
	mov	%esi, 16(%rdi)
	mov	kron_rt_mark_offset(%rip), %rax
	test	%rax, %rax
	jz	.Lno_mark\@
	lea	kron_rt_mark(%rip), %rcx
.Lswitched\@:
	mov	%rcx, %fs:(%rax)
.Lno_mark\@:
	READ_CPU .Lno_rdpid\@
.Lcpu\@:
	and	$0xfff, %eax			/* the node is above it */
	cmp	%eax, RT_LANE_CPU(%rdx)
	jne	.Lother_cpu\@
	mov	RT_LANE_SOURCE(%rdx), %ecx
	mov	%ecx, 8(%rdi)
.Lno_stamp\@:
	mov	%rdx, %rsi			/* the event is in its place */
	SHARED_STAMP
	jmp	.Lstore\@

.Lnumber\@:
	FIND_LANE_BY_NUMBER .Lslow\@, .Lfound\@

.Lno_rdpid\@:
	READ_CPU_OTHERWISE .Lcpu\@

.Lother_cpu\@:
	RECORD_MOVE
	jmp	.Lagain\@

.Lslow\@:
	mov	%esi, %edi
	PAYLOAD	0, 32, %esi
	CALL_C	kron_rt_slow, 40
	jmp	.Ldone\@
	END_THUNK \name
	.endm

	PROBE_STATIC_SPARSE	kron_rt_probe_sparse, 0
	PROBE_STATIC_SPARSE	kron_rt_probe_timed, 1

	.globl	kron_rt_mark_start, kron_rt_mark_aborted
	.hidden	kron_rt_mark_start, kron_rt_mark_aborted
kron_rt_mark_start:
	ud2				/* RT_MARK_LEN */
	.long	RT_RSEQ_SIG
kron_rt_mark_aborted:
	ud2

/* --constant-time. */
	.macro	PROBE_STATIC_CONSTANT name, own
	THUNK	\name
	ENTER
	SAVE	%r8
	mov	%eax, %esi
	SAVE_FLAGS
	mov	%ecx, %r8d
	and	$1, %r8d			/* KRON_GATE_TAKE */
.Lagain\@:
	FIND_LANE .Lslow\@, .Lnumber\@
.Lfound\@:
	CLAIM_OR_DROP %r8, %r8d, .Lslow\@
	PAYLOAD	\own, 40, %eax
	mov	%eax, 12(%rdi)
	mov	%esi, 16(%rdi)
	READ_CPU .Lno_rdpid\@
.Lcpu\@:
	and	$0xfff, %eax			/* the node is above it */
	cmp	%eax, RT_LANE_CPU(%rdx)
	jne	.Lother_cpu\@
.Lstore\@:
	FINISH_SAMPLE
.Ldone\@:
	.cfi_remember_state
	BACK_FLAGS
	BACK	%r8
	BACK	%rsi
	BACK	%rdi
	BACK	%rdx
	ret

.Lnumber\@:
	.cfi_restore_state
	FIND_LANE_BY_NUMBER .Lslow\@, .Lfound\@

.Lno_rdpid\@:
	READ_CPU_OTHERWISE .Lcpu\@

.Lother_cpu\@:
	test	%r8d, %r8d
	jz	.Lstore\@
	RECORD_MOVE
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

/* 64 bits of payload: kron_rt_slow_wide(event, payload, no claim). */
	THUNK	kron_rt_wide, 4
	ENTER
	mov	%eax, %edi
	SAVE_FLAGS
	PAYLOAD	1, 32, %rsi
	xor	%edx, %edx
	CALL_C	kron_rt_slow_wide, 40
	LEAVE
	END_THUNK kron_rt_wide

	.section .note.GNU-stack, "", @progbits
