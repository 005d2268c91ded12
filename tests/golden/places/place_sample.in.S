/* SPDX-License-Identifier: MIT */
/* Samples at any instruction: payloads of every kind. */
	.include "golden.h"
# place 0x1000 before trace level=3 reg=rdi
# place 0x1004 before trace reg=rcx
# place 0x1007 before trace reg=rsp
# place 0x1007 after trace imm=77
# place 0x100e before trace payload=address
# place 0x1015 before trace payload=address
# place 0x101c before trace payload=address
# place 0x1022 before trace payload=address
# place 0x1027 before trace payload=address
# place 0x1027 after trace payload=address
# place 0x102a before resource payload=zero
# place 0x102a after trace
# place 0x1003 before trace
# place 0x1 before trace
function sample
	leaq	8(%rdi), %rax			# 1000
	movq	%rdx, %rcx			# 1004
	movl	$7, %r8d			# 1007
	nop
	movl	%eax, -16(%rsp,%rcx,8)		# 100e
	nopl	(%rax)
	incl	(%rcx,%rax,2)
	addq	$1, %rax
	movl	here(%rip), %edx
	movq	%fs:-8(%rdx), %rsi
	movq	(%rax), %rax
	ret
end sample
	.balign 16
	.data
	.globl here
	.hidden here
here:	.quad	0
