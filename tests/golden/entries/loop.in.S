/* SPDX-License-Identifier: MIT */
/* A loop at the first instruction: its turns pass the entry probe by. */
	.include "golden.h"
function near
	shrl	$1, %edi
	jne	near
	leal	1(%rdi), %eax
	ret
end near
function far
	shrl	$1, %edi
	je	1f
	leal	1(%rdi), %eax
	nopl	0(%rax)
	.byte	0xe9
	.long	far - . - 4
1:	leal	2(%rdi), %eax
	ret
end far
function by_loop
	leal	-1(%rdi), %edi
	addl	%edi, %eax
	loop	by_loop
	leal	2(%rdi), %eax
	ret
end by_loop
	.balign 16
	.fill	144, 1, 0xf4
function no_room	/* the jump that closes the loop stands alone after a target */
	leal	-1(%rdi), %edi
	leal	-1(%rsi), %esi
	testl	%esi, %esi
	jne	1f
	negl	%edi
1:	jmp	no_room
2:	ret
end no_room
	.fill	140, 1, 0xf4
	.balign 16
	.hidden	near, far, by_loop, no_room
