/* SPDX-License-Identifier: MIT */
/* One instruction of five bytes, a ret with padding behind it. */
	.include "golden.h"
function plain
	movl	$1, %eax
	addl	%edi, %eax
	ret
end plain
	.balign 16
