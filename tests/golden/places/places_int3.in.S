/* SPDX-License-Identifier: MIT */
/* Insns: jump,int3
 * One byte that only a trap can take. */
	.include "golden.h"
function trap
9:
	subq	$8, %rsp
	.cfi_adjust_cfa_offset 8
	call	9b
	cmc
1:	addq	$8, %rsp
	.cfi_adjust_cfa_offset -8
	js	1b
	ret
end trap
