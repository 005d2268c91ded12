/* SPDX-License-Identifier: MIT */
/* Refused: no room, and what cannot run elsewhere. */
	.include "golden.h"
	.fill	144, 1, 0xf4		/* no padding within 127 bytes */
function one_byte
	ret
end one_byte
function crowd, 1
	movb	$1, %al
	ret
end crowd
	.fill	144, 1, 0xf4
function begins_transaction
	xbegin	1f
	xend
1:	ret
end begins_transaction
	.balign 16
