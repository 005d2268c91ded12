/* SPDX-License-Identifier: MIT */
/* deep_blocks.S - a program whose debug information says: blocks in blocks in blocks.  libdw calls
 * itself for each and runs out of stack. */
	.text
	.globl main
	.type main, @function
main:	.file 1 "deep.c"
	.loc 1 7
	xor %eax, %eax
	ret
.Lend:	.size main, .-main
	.section .debug_abbrev
	.uleb128 1
	.uleb128 0x11
	.byte 1
	.uleb128 3, 8, 0x10, 0x17, 0x11, 1, 0x12, 7
	.byte 0, 0
	.uleb128 2
	.uleb128 0x2e
	.byte 1
	.uleb128 3, 8, 0x11, 1, 0x12, 7
	.byte 0, 0
	.uleb128 3
	.uleb128 0xb
	.byte 1
	.uleb128 0x11, 1, 0x12, 0xb
	.byte 0, 0, 0
	.section .debug_info
	.long .Le - .Ls
.Ls:	.short 4
	.long .debug_abbrev
	.byte 8
	.uleb128 1
	.string "deep.c"
	.long .debug_line
	.quad main, .Lend-main
	.uleb128 2
	.string "main"
	.quad main, .Lend-main
	.rept 200000
	.uleb128 3
	.quad main
	.byte .Lend-main
	.endr
	.rept 200000
	.byte 0
	.endr
	.byte 0, 0
.Le:	.section .debug_line
	.section .note.GNU-stack, "", @progbits
