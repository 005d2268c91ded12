/* SPDX-License-Identifier: MIT */
/* Stores to a device: one instruction without a gate; to a register of 64 bits; with a gate. */
	.include "golden.h"
# way device
# place 0x1000 before store word=96 value=5 ungated
# place 0x1005 before store word=8 value=-2 ungated
# place 0x1008 before store word=4 value=255 level=2
# place 0x1008 before count word=7 ungated
function store
	movl	$1, %eax		# 1000
	addq	%rdi, %rax		# 1005
	adcq	%rsi, %rax		# 1008
	ret
end store
	.balign 16
