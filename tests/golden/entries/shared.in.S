/* SPDX-License-Identifier: MIT */
/* Entry and exit in one window. */
	.include "golden.h"
function ret_only
	ret
end ret_only
function xor_ret
	xorl	%eax, %eax
	ret
end xor_ret
function grows		/* the exit finds no room of its own: the entry's window grows */
	movl	$1, %eax
	ret
end grows
function behind, 1
	leaq	1(%rdi), %rax
	addq	$1, %rax
	ret
end behind
	.balign 16
