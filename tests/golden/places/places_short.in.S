/* SPDX-License-Identifier: MIT */
/* Insns: jump,short
 * Two bytes between branch targets: the landing lies after the jump of a long window. */
	.include "golden.h"
function host
	movabsq	$0x1122334455667788, %rax
	movq	8(%rdi), %rcx
	testl	%ecx, %ecx
	jns	2f
	jmp	1f
1:	cltq
2:	addq	%rcx, %rax
	ret
end host
