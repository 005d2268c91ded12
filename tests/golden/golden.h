/* SPDX-License-Identifier: MIT */
/* golden.h - a function of a golden case; align 1 puts it directly after the one before. */
.macro	function name, align=16
	.balign \align
	.globl	\name
	.type	\name, @function
\name:
	.cfi_startproc
.endm
.macro	end name
	.cfi_endproc
	.size	\name, . - \name
.endm
	.section .note.GNU-stack, "", @progbits
	.text
