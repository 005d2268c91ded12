/* SPDX-License-Identifier: MIT */
/* Insns: jump,detour
 * One byte between branch targets: both ways there are displaced and lead into its stub. */
	.include "golden.h"
function detour
	movl	%edi, %eax
	testl	%edi, %edi
	js	1f
	leal	1(%rdi,%rdi), %edx
1:	cmc
2:	adcl	%edx, %eax
	js	2b
	ret
end detour
