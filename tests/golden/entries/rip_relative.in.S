/* SPDX-License-Identifier: MIT */
/* Operands that count from rip, with and without an immediate after them. */
	.include "golden.h"
function load
	movq	word(%rip), %rax
	ret
end load
function compare
	cmpl	$0x12345678, word(%rip)
	sete	%al
	ret
end compare
function address
	leaq	word(%rip), %rax
	nopl	0(%rax)
	ret
end address
	.balign 16
	.data
	.hidden	word
	.globl	word
word:	.quad	0
