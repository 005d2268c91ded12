/* SPDX-License-Identifier: MIT */
/* Windows that reach over padding: after a short jump, after a ret. */
	.include "golden.h"
function jumps
	jmp	1f
	nopl	0(%rax)
1:	leaq	1(%rdi), %rax
	nopl	0(%rax)
	ret
end jumps
function short_one
	movb	$1, %al
	ret
end short_one
	.balign 16
