/* SPDX-License-Identifier: MIT */
/*
 * Counts: flags and a register dead, one at a time, none; several made at once because nothing
 * between them can be seen; one with a gate.
 */
	.include "golden.h"
# place 0x1000 before count word=1 ungated
# place 0x1005 before count word=1 ungated
# place 0x1008 before count word=1 ungated
# place 0x100b before count word=2 ungated
# place 0x100d before count word=3 ungated
# place 0x1013 before count word=4 level=5
function count
	movl	$1, %eax		# 1000
	addq	%rdi, %rax		# 1005
	cmpq	%rsi, %rax		# 1008
	jg	1f			# 100b
	movq	%rax, 8(%rsi)		# 100d
1:	nop
	nop
	testb	$1, (%rdi)
	setne	(%rsi)
	ret
end count
	.balign 16
