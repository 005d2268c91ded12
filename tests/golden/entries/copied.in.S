/* SPDX-License-Identifier: MIT */
/* Code that the program copies: jumps of seven bytes, by way of a word; none across two pages, and no
 * landing of others there. */
	.include "golden.h"
	.macro builtin name
	.balign 64, 0xcc
	function Builtins_\name, 1
	.endm
	.macro end_builtin name
	end Builtins_\name
	.endm
	.macro plain name
	builtin \name
	movq	%rdi, %rax
	addq	$1, %rax
	leaq	2(%rax), %rax
	ret
	end_builtin \name
	.endm

	.balign 4096, 0xcc
	/* five bytes at the start, then a target: enough for others, not here */
	builtin FiveOnly
	xorl	%eax, %eax
	testq	%rdi, %rdi
1:	decq	%rdi
	jne	1b
	ret
	end_builtin FiveOnly
	builtin TwoBytes
	jmp	*%rcx
	end_builtin TwoBytes
	builtin Ret
	ret
	end_builtin Ret
	builtin Loop
	leaq	-1(%rdi), %rdi
	leaq	2(%rsi), %rsi
	testq	%rdi, %rdi
	jne	Builtins_Loop
	movq	%rsi, %rax
	movq	%rax, %rdx
	ret
	end_builtin Loop
	plain A
	plain B
	plain C
	.org .text + 4096 - 3, 0xcc
	function Builtins_Crossing, 1
	movq	%rdi, %rax
	addq	$1, %rax
	leaq	2(%rax), %rax
	leaq	3(%rax), %rax
	ret
	end Builtins_Crossing
	/* the same page: whoever copies the stretch copies pages */
	.balign 16
function neighbour
	movb	$1, %al
	ret
end neighbour
	.balign 4096, 0xcc
function next_page
	movb	$1, %al
	ret
end next_page
	.balign 16
