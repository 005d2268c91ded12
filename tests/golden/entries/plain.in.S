/* SPDX-License-Identifier: MIT */
/* One instruction of five bytes, a ret followed by padding. */
	.include "golden.h"
function plain
	movl	$1, %eax
	addl	%edi, %eax
	ret
end plain
	.balign 16
