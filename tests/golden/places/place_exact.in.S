/* SPDX-License-Identifier: MIT */
/* The same places as in place_store, on the exact bus. */
	.include "golden.h"
# way exact
# place 0x1000 before store word=96 value=5 ungated
# place 0x1005 before store word=8 value=-2 ungated
# place 0x1008 before store word=4 value=255 level=2
# place 0x1008 before count word=7 ungated
function exact
	movl	$1, %eax		# 1000
	addq	%rdi, %rax		# 1005
	adcq	%rsi, %rax		# 1008
	ret
end exact
	.balign 16
