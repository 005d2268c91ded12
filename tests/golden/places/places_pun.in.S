/* SPDX-License-Identifier: MIT */
/* Insns: jump,pun
 * One byte after a call, followed by a branch target: what the next site begins with is the
 * distance of its jump.  A prefix there chooses a landing that is dead. */
	.include "golden.h"
function pun
9:
	subq	$8, %rsp
	.cfi_adjust_cfa_offset 8
	call	9b
	cmc
1:	leaq	-3(%rsi,%rsi), %rsi
	testb	$4, %sil
	jne	1b
	call	9b
	addq	$8, %rsp
	.cfi_adjust_cfa_offset -8
	movabsq	$0x1122334455667788, %rax
	movabsq	$0x2122334455667788, %rcx
	movabsq	$0x3122334455667788, %rdx
	movabsq	$0x4122334455667788, %r8
	ret
end pun
