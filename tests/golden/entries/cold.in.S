/* SPDX-License-Identifier: MIT */
/* Exits of a cold part are its parent's; the part has no entry. */
	.include "golden.h"
function parent
	testl	%edi, %edi
	.byte	0x0f, 0x88
	.long	parent.cold - . - 4
	leal	1(%rdi), %eax
	ret
end parent
	.balign 16
	.section .text.unlikely, "ax"
	.type	parent.cold, @function
parent.cold:
	.cfi_startproc
	leal	2(%rdi), %eax
	notl	%eax
	ret
	.cfi_endproc
	.size	parent.cold, . - parent.cold
	.balign 16
	.hidden	parent
