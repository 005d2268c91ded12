/* SPDX-License-Identifier: MIT */
/*
 * insn.h - the instructions that may reach the board: what a compiler makes of loads, stores
 * and copies, and everything that reads and writes one memory operand in one go.
 *
 * Table-driven, freestanding, no state.  A decoder of memory operands alone: what has none, or
 * what the tables do not name, is INSN_NONE, and its fault is nobody's of ours.
 */
#ifndef LIBMK_INSN_H
#define LIBMK_INSN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum insn_op {
	INSN_NONE = 0,
	INSN_MOV,
	INSN_MOVZX,
	INSN_MOVSX,
	INSN_MOVBE,
	INSN_ALU, /* sub: add or adc sbb and sub xor cmp */
	INSN_TEST,
	INSN_UNARY, /* sub: enum insn_unary */
	INSN_MUL,   /* sub: 0 mul, 1 imul: rdx:rax */
	INSN_IMUL,  /* two and three operands */
	INSN_SHIFT, /* sub: rol ror rcl rcr shl shr shl sar */
	INSN_BT,    /* sub: bt bts btr btc */
	INSN_SCAN,  /* sub: enum insn_scan */
	INSN_BITS,  /* sub: enum insn_bits; VEX, with a second register in merge */
	INSN_CMOV,  /* sub: condition */
	INSN_SETCC, /* sub: condition */
	INSN_XCHG,
	INSN_XADD,
	INSN_CMPXCHG,
	INSN_PUSH,
	INSN_POP,
	INSN_MOVS,
	INSN_STOS,
	INSN_LODS,
	INSN_VECTOR /* sub: enum insn_vector */
};
enum insn_unary { INSN_NOT, INSN_NEG, INSN_INC, INSN_DEC };
enum insn_scan { INSN_BSF, INSN_BSR, INSN_TZCNT, INSN_LZCNT, INSN_POPCNT };
enum insn_bits { INSN_ANDN, INSN_BEXTR, INSN_BZHI, INSN_SHLX, INSN_SARX, INSN_SHRX };
enum insn_vector {
	INSN_WHOLE, /* size bytes from or to the low end; a load zeroes the rest */
	INSN_LOW,   /* 8 bytes, the low half of 16; a load leaves the other half */
	INSN_HIGH   /* 8 bytes, the high half of 16; likewise */
};

/* Where the operand that is not in memory comes from. */
enum insn_with {
	INSN_ALONE,
	INSN_REG,
	INSN_IMM,
	INSN_ONE, /* the constant 1 */
	INSN_CL,
	INSN_REG_IMM /* imul reg, mem, imm */
};

enum insn_segment { INSN_SEG_FLAT = 0, INSN_SEG_FS = 1, INSN_SEG_GS = 2 };

#define INSN_NO_REG 0xffu
#define INSN_RIP 0xfeu

struct insn {
	uint8_t op;     /* enum insn_op */
	uint8_t sub;    /* by op */
	uint8_t with;   /* enum insn_with */
	bool to_mem;    /* memory is the destination */
	bool reg_first; /* the register is the first operand: cmp reg, mem and cmp mem, reg */
	uint8_t len;    /* bytes of the instruction */
	uint8_t size;   /* bytes in memory */
	uint8_t rsize;  /* bytes of the register operand */
	uint8_t reg;    /* register operand; vector registers up to 31 */
	bool rex;       /* byte registers 4-7 are spl-dil, not ah-bh */
	bool vex;       /* VEX or EVEX: a load zeroes the register up to its very top */
	uint8_t merge; /* vex INSN_LOW, INSN_HIGH: the other half comes from this register; INSN_BITS: an operand */
	bool rep; /* F3 or F2, string instructions */
	bool addr32;
	uint8_t segment;
	uint8_t base, index, scale; /* registers, INSN_NO_REG, base also INSN_RIP */
	int64_t disp;
	int64_t imm;
};

/* Reads byte i of the instruction; false: it cannot be read. */
typedef bool insn_fetch(void *from, unsigned i, uint8_t *byte);

#define INSN_MAX 15u

/* False: not one of ours; *out says nothing then. */
bool insn_decode(struct insn *out, insn_fetch *fetch, void *from);

#endif
