/* SPDX-License-Identifier: MIT */
/* Insns: jump,short,evict,arrivals,detour,pun
 * What is left: a prefix that code jumps over, which many ways lead to; a byte after a call
 * with nothing dead at any distance. */
	.include "golden.h"
function tight
9:
	subq	$8, %rsp
	.cfi_adjust_cfa_offset 8
	call	9b
	cmc
1:	jmp	2f
2:	addq	$8, %rsp
	.cfi_adjust_cfa_offset -8
	js	1b
	ret
end tight
function skips
	testl	%edi, %edi
	je	1f
	.byte	0xf0		/* lock */
1:	incl	(%rsi)
	addl	%edi, %eax
	ret
end skips
