/* SPDX-License-Identifier: MIT */
/* Traps run in the stub, which goes back after them for handlers that step over one.  Padding of
 * the function's own, which such a handler runs into, stays as it is. */
	.include "golden.h"
function undefined, 1
	ud2
end undefined
	.balign 16, 0x90
function stepped_over, 1
	ud2
	nop
	nop
	nop
	movl	$1, %eax
	ret
end stepped_over
	.balign 16, 0x90
function breakpoint, 1
	movl	%edi, %eax
	addl	$1, %eax
	int3
end breakpoint
	.balign 16, 0x90
