/* SPDX-License-Identifier: MIT */
/* Two bytes where five cannot be displaced: a short jump to a landing. */
	.include "golden.h"
function to_padding		/* the exit's block is two bytes and a branch target */
	movl	%edi, %eax
	testl	%edi, %edi
	jns	1f
	negl	%eax
	push	%rax
	.cfi_adjust_cfa_offset 8
1:	cltq
	ret
	.byte	0xe9		/* what follows the ret is another block */
	.long	1b - . - 4
	nopl	0(%rax)
end to_padding
	.balign 32
	.fill	140, 1, 0xf4		/* no padding within 127 bytes from here on */
function to_guest, 1		/* no padding near: after the jump of the entry's window */
	movabsq	$0x1122334455667788, %rax
	testl	%edi, %edi
	jns	1f
	incl	%eax
1:	cltq
	ret
	.byte	0xeb, 0xfb
end to_guest
	.fill	140, 1, 0xf4
function evicts, 1		/* ten bytes of code move out for one */
	movl	%edi, %eax
	addl	$1, %eax
	testl	%edi, %edi
	js	1f
	movabsq	$0x1122334455667788, %rdx
	addl	%edx, %eax
1:	cltq
	ret
	.byte	0xeb, 0xfb
end evicts
	.fill	140, 1, 0xf4
function grows, 1		/* one short window for entry and exit */
	movb	$1, %al
	ret
end grows
function behind, 1
	ret
end behind
	.fill	12, 1, 0xcc
function too_far, 1		/* nothing within 127 bytes but instructions that are targets */
	testl	%edi, %edi
	jns	1f
	.rept	70
	jns	2f
2:	incl	%edi
	.endr
1:	cltq
	ret
	.rept	70
	jns	2f
2:	incl	%edi
	.endr
	jmp	1b
end too_far
	.balign 16
