/* SPDX-License-Identifier: MIT */
/* Insns: jump,relay
 * Two bytes after a call, and no five for a landing within their reach: two relays, in what is
 * left of the windows between, lead to the padding at the end. */
	.include "golden.h"
	.macro	jump_far to
	.byte	0xe9
	.long	\to - . - 4
	.fill	110, 1, 0xf4
	.endm
callee:	ret
	.fill	160, 1, 0xf4
function crowded, 1
	testl	%edi, %edi
	jz	1f
	call	callee
	incb	%al
1:	jump_far 2f
2:	movb	$1, %cl
	jump_far 3f
3:	movb	$1, %dl
	jump_far 4f
4:	movb	$2, %cl
	ret
end crowded
	.fill	12, 1, 0x90
