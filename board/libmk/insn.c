/* SPDX-License-Identifier: MIT */
/*
 * insn.c - see insn.h.
 *
 *   prefixes ─► REX, VEX, EVEX ─► opcode map ─► row of a table ─► ModRM, SIB, displacement ─► imm
 *
 * A row says what the instruction does with its memory operand; which operand size it has
 * follows from the row's letter and the prefixes.  May not: touch memory but through fetch().
 */
#include "board/libmk/insn.h"

/* ---- rows ---- */

enum size_rule {
	S_NONE,
	S_B, /* 1 */
	S_W, /* 2 */
	S_V, /* 2, 4, 8 by 66 and REX.W */
	S_Y, /* 4, 8 by REX.W */
	S_Q, /* 8, or 2 with 66: push and pop */
	S_4,
	S_8,
	S_X /* 16, 32, 64 by VEX.L and EVEX.L'L */
};
enum imm_rule { I_NONE, I_B, I_Z }; /* I_Z: 2 or 4 bytes, sign-extended */

/* Which mandatory prefixes a vector row is for. */
enum prefix_bit { P_NONE = 1, P_66 = 2, P_F3 = 4, P_F2 = 8 };

struct row {
	uint8_t first, last; /* opcodes */
	uint8_t ext;         /* ModRM.reg + 1, or 0: any */
	uint8_t op, sub, with;
	bool to_mem;
	uint8_t size;   /* enum size_rule of the memory operand */
	uint8_t imm;    /* enum imm_rule */
	uint8_t prefix; /* of vector rows; 0: the legacy meaning */
	bool no_modrm;
};

#define LOADS false
#define STORES true
#define EXT(n) ((n) + 1)

static const struct row one_byte[] = {
	/* sub of the ALU rows: bits 3-5 of the opcode, put in by find() */
	{0x00, 0x00, 0, INSN_ALU, 0, INSN_REG, STORES, S_B, 0, 0, 0},
	{0x01, 0x01, 0, INSN_ALU, 0, INSN_REG, STORES, S_V, 0, 0, 0},
	{0x02, 0x02, 0, INSN_ALU, 0, INSN_REG, LOADS, S_B, 0, 0, 0},
	{0x03, 0x03, 0, INSN_ALU, 0, INSN_REG, LOADS, S_V, 0, 0, 0},
	{0x63, 0x63, 0, INSN_MOVSX, 0, INSN_REG, LOADS, S_4, 0, 0, 0},
	{0x69, 0x69, 0, INSN_IMUL, 0, INSN_REG_IMM, LOADS, S_V, I_Z, 0, 0},
	{0x6b, 0x6b, 0, INSN_IMUL, 0, INSN_REG_IMM, LOADS, S_V, I_B, 0, 0},
	{0x80, 0x80, 0, INSN_ALU, 0, INSN_IMM, STORES, S_B, I_B, 0, 0},
	{0x81, 0x81, 0, INSN_ALU, 0, INSN_IMM, STORES, S_V, I_Z, 0, 0},
	{0x83, 0x83, 0, INSN_ALU, 0, INSN_IMM, STORES, S_V, I_B, 0, 0},
	{0x84, 0x84, 0, INSN_TEST, 0, INSN_REG, LOADS, S_B, 0, 0, 0},
	{0x85, 0x85, 0, INSN_TEST, 0, INSN_REG, LOADS, S_V, 0, 0, 0},
	{0x86, 0x86, 0, INSN_XCHG, 0, INSN_REG, STORES, S_B, 0, 0, 0},
	{0x87, 0x87, 0, INSN_XCHG, 0, INSN_REG, STORES, S_V, 0, 0, 0},
	{0x88, 0x88, 0, INSN_MOV, 0, INSN_REG, STORES, S_B, 0, 0, 0},
	{0x89, 0x89, 0, INSN_MOV, 0, INSN_REG, STORES, S_V, 0, 0, 0},
	{0x8a, 0x8a, 0, INSN_MOV, 0, INSN_REG, LOADS, S_B, 0, 0, 0},
	{0x8b, 0x8b, 0, INSN_MOV, 0, INSN_REG, LOADS, S_V, 0, 0, 0},
	{0x8f, 0x8f, EXT(0), INSN_POP, 0, INSN_ALONE, STORES, S_Q, 0, 0, 0},
	{0xa0, 0xa0, 0, INSN_MOV, 0, INSN_REG, LOADS, S_B, 0, 0, true},
	{0xa1, 0xa1, 0, INSN_MOV, 0, INSN_REG, LOADS, S_V, 0, 0, true},
	{0xa2, 0xa2, 0, INSN_MOV, 0, INSN_REG, STORES, S_B, 0, 0, true},
	{0xa3, 0xa3, 0, INSN_MOV, 0, INSN_REG, STORES, S_V, 0, 0, true},
	{0xa4, 0xa4, 0, INSN_MOVS, 0, INSN_ALONE, STORES, S_B, 0, 0, true},
	{0xa5, 0xa5, 0, INSN_MOVS, 0, INSN_ALONE, STORES, S_V, 0, 0, true},
	{0xaa, 0xaa, 0, INSN_STOS, 0, INSN_ALONE, STORES, S_B, 0, 0, true},
	{0xab, 0xab, 0, INSN_STOS, 0, INSN_ALONE, STORES, S_V, 0, 0, true},
	{0xac, 0xac, 0, INSN_LODS, 0, INSN_ALONE, LOADS, S_B, 0, 0, true},
	{0xad, 0xad, 0, INSN_LODS, 0, INSN_ALONE, LOADS, S_V, 0, 0, true},
	/* sub of the shift rows: ModRM.reg */
	{0xc0, 0xc0, 0, INSN_SHIFT, 0, INSN_IMM, STORES, S_B, I_B, 0, 0},
	{0xc1, 0xc1, 0, INSN_SHIFT, 0, INSN_IMM, STORES, S_V, I_B, 0, 0},
	{0xc6, 0xc6, EXT(0), INSN_MOV, 0, INSN_IMM, STORES, S_B, I_B, 0, 0},
	{0xc7, 0xc7, EXT(0), INSN_MOV, 0, INSN_IMM, STORES, S_V, I_Z, 0, 0},
	{0xd0, 0xd0, 0, INSN_SHIFT, 0, INSN_ONE, STORES, S_B, 0, 0, 0},
	{0xd1, 0xd1, 0, INSN_SHIFT, 0, INSN_ONE, STORES, S_V, 0, 0, 0},
	{0xd2, 0xd2, 0, INSN_SHIFT, 0, INSN_CL, STORES, S_B, 0, 0, 0},
	{0xd3, 0xd3, 0, INSN_SHIFT, 0, INSN_CL, STORES, S_V, 0, 0, 0},
	{0xf6, 0xf6, EXT(0), INSN_TEST, 0, INSN_IMM, LOADS, S_B, I_B, 0, 0},
	{0xf6, 0xf6, EXT(1), INSN_TEST, 0, INSN_IMM, LOADS, S_B, I_B, 0, 0},
	{0xf7, 0xf7, EXT(0), INSN_TEST, 0, INSN_IMM, LOADS, S_V, I_Z, 0, 0},
	{0xf7, 0xf7, EXT(1), INSN_TEST, 0, INSN_IMM, LOADS, S_V, I_Z, 0, 0},
	{0xf6, 0xf6, EXT(2), INSN_UNARY, INSN_NOT, INSN_ALONE, STORES, S_B, 0, 0, 0},
	{0xf7, 0xf7, EXT(2), INSN_UNARY, INSN_NOT, INSN_ALONE, STORES, S_V, 0, 0, 0},
	{0xf6, 0xf6, EXT(3), INSN_UNARY, INSN_NEG, INSN_ALONE, STORES, S_B, 0, 0, 0},
	{0xf7, 0xf7, EXT(3), INSN_UNARY, INSN_NEG, INSN_ALONE, STORES, S_V, 0, 0, 0},
	{0xf6, 0xf6, EXT(4), INSN_MUL, 0, INSN_ALONE, LOADS, S_B, 0, 0, 0},
	{0xf7, 0xf7, EXT(4), INSN_MUL, 0, INSN_ALONE, LOADS, S_V, 0, 0, 0},
	{0xf6, 0xf6, EXT(5), INSN_MUL, 1, INSN_ALONE, LOADS, S_B, 0, 0, 0},
	{0xf7, 0xf7, EXT(5), INSN_MUL, 1, INSN_ALONE, LOADS, S_V, 0, 0, 0},
	{0xfe, 0xfe, EXT(0), INSN_UNARY, INSN_INC, INSN_ALONE, STORES, S_B, 0, 0, 0},
	{0xff, 0xff, EXT(0), INSN_UNARY, INSN_INC, INSN_ALONE, STORES, S_V, 0, 0, 0},
	{0xfe, 0xfe, EXT(1), INSN_UNARY, INSN_DEC, INSN_ALONE, STORES, S_B, 0, 0, 0},
	{0xff, 0xff, EXT(1), INSN_UNARY, INSN_DEC, INSN_ALONE, STORES, S_V, 0, 0, 0},
	{0xff, 0xff, EXT(6), INSN_PUSH, 0, INSN_ALONE, LOADS, S_Q, 0, 0, 0},
	{0, 0, 0, INSN_NONE, 0, 0, 0, 0, 0, 0, 0},
};

/* Map 0F.  Vector rows come first: their prefix must be the one that they name. */
static const struct row two_byte[] = {
	{0x10, 0x10, 0, INSN_VECTOR, INSN_WHOLE, INSN_REG, LOADS, S_X, 0, P_NONE | P_66, 0},
	{0x10, 0x10, 0, INSN_VECTOR, INSN_WHOLE, INSN_REG, LOADS, S_4, 0, P_F3, 0},
	{0x10, 0x10, 0, INSN_VECTOR, INSN_WHOLE, INSN_REG, LOADS, S_8, 0, P_F2, 0},
	{0x11, 0x11, 0, INSN_VECTOR, INSN_WHOLE, INSN_REG, STORES, S_X, 0, P_NONE | P_66, 0},
	{0x11, 0x11, 0, INSN_VECTOR, INSN_WHOLE, INSN_REG, STORES, S_4, 0, P_F3, 0},
	{0x11, 0x11, 0, INSN_VECTOR, INSN_WHOLE, INSN_REG, STORES, S_8, 0, P_F2, 0},
	{0x12, 0x12, 0, INSN_VECTOR, INSN_LOW, INSN_REG, LOADS, S_8, 0, P_NONE | P_66, 0},
	{0x13, 0x13, 0, INSN_VECTOR, INSN_LOW, INSN_REG, STORES, S_8, 0, P_NONE | P_66, 0},
	{0x16, 0x16, 0, INSN_VECTOR, INSN_HIGH, INSN_REG, LOADS, S_8, 0, P_NONE | P_66, 0},
	{0x17, 0x17, 0, INSN_VECTOR, INSN_HIGH, INSN_REG, STORES, S_8, 0, P_NONE | P_66, 0},
	{0x28, 0x28, 0, INSN_VECTOR, INSN_WHOLE, INSN_REG, LOADS, S_X, 0, P_NONE | P_66, 0},
	{0x29, 0x29, 0, INSN_VECTOR, INSN_WHOLE, INSN_REG, STORES, S_X, 0, P_NONE | P_66, 0},
	{0x2b, 0x2b, 0, INSN_VECTOR, INSN_WHOLE, INSN_REG, STORES, S_X, 0, P_NONE | P_66, 0},
	{0x6e, 0x6e, 0, INSN_VECTOR, INSN_WHOLE, INSN_REG, LOADS, S_Y, 0, P_66, 0},
	{0x6f, 0x6f, 0, INSN_VECTOR, INSN_WHOLE, INSN_REG, LOADS, S_X, 0, P_66 | P_F3 | P_F2, 0},
	{0x7e, 0x7e, 0, INSN_VECTOR, INSN_WHOLE, INSN_REG, STORES, S_Y, 0, P_66, 0},
	{0x7e, 0x7e, 0, INSN_VECTOR, INSN_WHOLE, INSN_REG, LOADS, S_8, 0, P_F3, 0},
	{0x7f, 0x7f, 0, INSN_VECTOR, INSN_WHOLE, INSN_REG, STORES, S_X, 0, P_66 | P_F3 | P_F2, 0},
	{0xd6, 0xd6, 0, INSN_VECTOR, INSN_WHOLE, INSN_REG, STORES, S_8, 0, P_66, 0},
	{0xe7, 0xe7, 0, INSN_VECTOR, INSN_WHOLE, INSN_REG, STORES, S_X, 0, P_66, 0},
	{0xf0, 0xf0, 0, INSN_VECTOR, INSN_WHOLE, INSN_REG, LOADS, S_X, 0, P_F2, 0},
	/* sub of the condition rows: the low four bits of the opcode */
	{0x40, 0x4f, 0, INSN_CMOV, 0, INSN_REG, LOADS, S_V, 0, 0, 0},
	{0x90, 0x9f, 0, INSN_SETCC, 0, INSN_ALONE, STORES, S_B, 0, 0, 0},
	{0xa3, 0xa3, 0, INSN_BT, 0, INSN_REG, LOADS, S_V, 0, 0, 0},
	{0xab, 0xab, 0, INSN_BT, 1, INSN_REG, STORES, S_V, 0, 0, 0},
	{0xb3, 0xb3, 0, INSN_BT, 2, INSN_REG, STORES, S_V, 0, 0, 0},
	{0xbb, 0xbb, 0, INSN_BT, 3, INSN_REG, STORES, S_V, 0, 0, 0},
	{0xba, 0xba, EXT(4), INSN_BT, 0, INSN_IMM, LOADS, S_V, I_B, 0, 0},
	{0xba, 0xba, EXT(5), INSN_BT, 1, INSN_IMM, STORES, S_V, I_B, 0, 0},
	{0xba, 0xba, EXT(6), INSN_BT, 2, INSN_IMM, STORES, S_V, I_B, 0, 0},
	{0xba, 0xba, EXT(7), INSN_BT, 3, INSN_IMM, STORES, S_V, I_B, 0, 0},
	{0xaf, 0xaf, 0, INSN_IMUL, 0, INSN_REG, LOADS, S_V, 0, 0, 0},
	{0xb0, 0xb0, 0, INSN_CMPXCHG, 0, INSN_REG, STORES, S_B, 0, 0, 0},
	{0xb1, 0xb1, 0, INSN_CMPXCHG, 0, INSN_REG, STORES, S_V, 0, 0, 0},
	{0xb6, 0xb6, 0, INSN_MOVZX, 0, INSN_REG, LOADS, S_B, 0, 0, 0},
	{0xb7, 0xb7, 0, INSN_MOVZX, 0, INSN_REG, LOADS, S_W, 0, 0, 0},
	{0xbe, 0xbe, 0, INSN_MOVSX, 0, INSN_REG, LOADS, S_B, 0, 0, 0},
	{0xbf, 0xbf, 0, INSN_MOVSX, 0, INSN_REG, LOADS, S_W, 0, 0, 0},
	{0xb8, 0xb8, 0, INSN_SCAN, INSN_POPCNT, INSN_REG, LOADS, S_V, 0, P_F3, 0},
	{0xbc, 0xbc, 0, INSN_SCAN, INSN_TZCNT, INSN_REG, LOADS, S_V, 0, P_F3, 0},
	{0xbd, 0xbd, 0, INSN_SCAN, INSN_LZCNT, INSN_REG, LOADS, S_V, 0, P_F3, 0},
	{0xbc, 0xbc, 0, INSN_SCAN, INSN_BSF, INSN_REG, LOADS, S_V, 0, 0, 0},
	{0xbd, 0xbd, 0, INSN_SCAN, INSN_BSR, INSN_REG, LOADS, S_V, 0, 0, 0},
	{0xc0, 0xc0, 0, INSN_XADD, 0, INSN_REG, STORES, S_B, 0, 0, 0},
	{0xc1, 0xc1, 0, INSN_XADD, 0, INSN_REG, STORES, S_V, 0, 0, 0},
	{0xc3, 0xc3, 0, INSN_MOV, 0, INSN_REG, STORES, S_Y, 0, P_NONE, 0}, /* movnti */
	{0, 0, 0, INSN_NONE, 0, 0, 0, 0, 0, 0, 0},
};

/* Map 0F 38. */
static const struct row three_byte[] = {
	{0x2a, 0x2a, 0, INSN_VECTOR, INSN_WHOLE, INSN_REG, LOADS, S_X, 0, P_66, 0}, /* movntdqa */
	{0xf0, 0xf0, 0, INSN_MOVBE, 0, INSN_REG, LOADS, S_V, 0, P_NONE | P_66, 0},
	{0xf1, 0xf1, 0, INSN_MOVBE, 0, INSN_REG, STORES, S_V, 0, P_NONE | P_66, 0},
	{0xf2, 0xf2, 0, INSN_BITS, INSN_ANDN, INSN_REG, LOADS, S_Y, 0, P_NONE, 0},
	{0xf5, 0xf5, 0, INSN_BITS, INSN_BZHI, INSN_REG, LOADS, S_Y, 0, P_NONE, 0},
	{0xf7, 0xf7, 0, INSN_BITS, INSN_BEXTR, INSN_REG, LOADS, S_Y, 0, P_NONE, 0},
	{0xf7, 0xf7, 0, INSN_BITS, INSN_SHLX, INSN_REG, LOADS, S_Y, 0, P_66, 0},
	{0xf7, 0xf7, 0, INSN_BITS, INSN_SARX, INSN_REG, LOADS, S_Y, 0, P_F3, 0},
	{0xf7, 0xf7, 0, INSN_BITS, INSN_SHRX, INSN_REG, LOADS, S_Y, 0, P_F2, 0},
	{0, 0, 0, INSN_NONE, 0, 0, 0, 0, 0, 0, 0},
};

/* ---- reading ---- */

struct cursor {
	insn_fetch *fetch;
	void *from;
	unsigned at;
	bool bad;
	/* what the prefixes said */
	bool opsize, lock, f2, f3, rex_w, evex;
	uint8_t rex_r, rex_x, rex_b; /* 0 or 8; rex_r up to 24 with EVEX */
	uint8_t vector_bytes;        /* 16, 32, 64 */
	uint8_t vvvv;
	uint8_t prefix; /* enum prefix_bit */
};

static uint8_t next(struct cursor *c)
{
	uint8_t byte = 0;

	if (c->at >= INSN_MAX || !c->fetch(c->from, c->at, &byte))
		c->bad = true;
	c->at++;
	return byte;
}

static int64_t next_signed(struct cursor *c, unsigned bytes)
{
	uint64_t v = 0;
	unsigned i;

	for (i = 0; i < bytes; i++)
		v |= (uint64_t)next(c) << 8 * i;
	if (bytes < 8 && v >> (8 * bytes - 1) & 1)
		v |= ~0ull << 8 * bytes;
	return (int64_t)v;
}

/* Legacy prefixes; returns the first byte that is none. */
static uint8_t read_prefixes(struct cursor *c, struct insn *out)
{
	for (;;) {
		uint8_t b = next(c);

		switch (b) {
		case 0x66:
			c->opsize = true;
			break;
		case 0x67:
			out->addr32 = true;
			break;
		case 0xf0:
			c->lock = true;
			break;
		case 0xf2:
			c->f2 = true;
			c->f3 = false;
			break;
		case 0xf3:
			c->f3 = true;
			c->f2 = false;
			break;
		case 0x64:
			out->segment = INSN_SEG_FS;
			break;
		case 0x65:
			out->segment = INSN_SEG_GS;
			break;
		case 0x26:
		case 0x2e:
		case 0x36:
		case 0x3e: /* no meaning in 64-bit mode */
			break;
		default:
			return b;
		}
		if (c->bad)
			return 0;
	}
}

static void take_rex(struct cursor *c, struct insn *out, uint8_t b)
{
	out->rex = true;
	c->rex_w = b & 8;
	c->rex_r = (uint8_t)(b << 1 & 8);
	c->rex_x = (uint8_t)(b << 2 & 8);
	c->rex_b = (uint8_t)(b << 3 & 8);
}

static void take_vex_tail(struct cursor *c, uint8_t b)
{
	static const uint8_t prefixes[] = {P_NONE, P_66, P_F3, P_F2};

	c->prefix = prefixes[b & 3];
	c->vector_bytes = b & 4 ? 32 : 16;
	c->vvvv = (uint8_t)(~b >> 3 & 15);
}

/* Returns the opcode map: 1 for 0F, 2 for 0F 38; 0: not one of ours. */
static unsigned read_vex(struct cursor *c, uint8_t first)
{
	unsigned map = 1;
	uint8_t b = next(c);

	c->rex_r = (uint8_t)(~b >> 4 & 8);
	if (first == 0xc4) {
		c->rex_x = (uint8_t)(~b >> 3 & 8);
		c->rex_b = (uint8_t)(~b >> 2 & 8);
		map = b & 31u;
		b = next(c);
		c->rex_w = b & 0x80;
	}
	take_vex_tail(c, b);
	return map <= 2 ? map : 0;
}

/* 62 P0 P1 P2.  With a mask, broadcast or rounding it is not ours. */
static unsigned read_evex(struct cursor *c)
{
	uint8_t p0 = next(c);
	uint8_t p1 = next(c);
	uint8_t p2 = next(c);

	c->evex = true;
	c->rex_r = (uint8_t)((~p0 >> 4 & 8) | (~p0 & 16));
	c->rex_x = (uint8_t)(~p0 >> 3 & 8);
	c->rex_b = (uint8_t)(~p0 >> 2 & 8);
	c->rex_w = p1 & 0x80;
	take_vex_tail(c, p1);
	c->vvvv |= (uint8_t)(~p2 << 1 & 16);
	c->vector_bytes = (uint8_t)(16u << (p2 >> 5 & 3));
	if ((p2 & 0x97) || (p0 & 12) || !(p1 & 4) || (p2 >> 5 & 3) == 3)
		return 0;
	return (p0 & 3u) <= 2 ? p0 & 3u : 0;
}

static void take_legacy_prefix(struct cursor *c)
{
	c->vector_bytes = 16;
	if (c->f3)
		c->prefix = P_F3;
	else if (c->f2)
		c->prefix = P_F2;
	else
		c->prefix = c->opsize ? P_66 : P_NONE;
}

/* ---- ModRM ---- */

static void read_sib(struct cursor *c, struct insn *out, unsigned mod)
{
	uint8_t sib = next(c);

	out->scale = (uint8_t)(1u << (sib >> 6));
	out->index = (sib >> 3 & 7u) | c->rex_x;
	if (out->index == 4)
		out->index = INSN_NO_REG;
	out->base = (sib & 7u) | c->rex_b;
	if ((sib & 7) == 5 && mod == 0) {
		out->base = INSN_NO_REG;
		out->disp = next_signed(c, 4);
	}
}

/* The memory operand.  `scale8` is what EVEX multiplies an 8-bit displacement by. */
static void read_memory(struct cursor *c, struct insn *out, uint8_t modrm, unsigned scale8)
{
	unsigned mod = modrm >> 6;

	out->index = INSN_NO_REG;
	out->scale = 1;
	out->base = (modrm & 7u) | c->rex_b;
	if ((modrm & 7) == 4) {
		read_sib(c, out, mod);
	} else if ((modrm & 7) == 5 && mod == 0) {
		out->base = INSN_RIP;
		out->disp = next_signed(c, 4);
	}
	if (mod == 1)
		out->disp = next_signed(c, 1) * (int64_t)scale8;
	else if (mod == 2)
		out->disp = next_signed(c, 4);
}

/* ---- putting it together ---- */

static const struct row *find(const struct cursor *c, const struct row *table, uint8_t opcode,
			      uint8_t modrm)
{
	const struct row *r;

	for (r = table; r->op != INSN_NONE; r++) {
		if (opcode < r->first || opcode > r->last)
			continue;
		if (r->ext && r->ext != EXT(modrm >> 3 & 7u))
			continue;
		if (r->prefix && !(r->prefix & c->prefix))
			continue;
		return r;
	}
	return NULL;
}

static uint8_t size_of(const struct cursor *c, enum size_rule rule)
{
	switch (rule) {
	case S_B:
		return 1;
	case S_W:
		return 2;
	case S_V:
		return c->rex_w ? 8 : c->opsize ? 2 : 4;
	case S_Y:
		return c->rex_w ? 8 : 4;
	case S_Q:
		return c->opsize && !c->rex_w ? 2 : 8;
	case S_4:
		return 4;
	case S_8:
		return 8;
	case S_X:
		return c->vector_bytes;
	default:
		return 0;
	}
}

static uint8_t sub_of(const struct row *r, uint8_t opcode, uint8_t modrm)
{
	switch (r->op) {
	case INSN_ALU:
		return opcode < 0x40 ? opcode >> 3 : modrm >> 3 & 7;
	case INSN_SHIFT:
		return modrm >> 3 & 7;
	case INSN_CMOV:
	case INSN_SETCC:
		return opcode & 15;
	default:
		return r->sub;
	}
}

/* Rows for 00-03 serve the whole ALU block 00-3b. */
static uint8_t fold_alu(uint8_t opcode)
{
	return opcode < 0x40 && (opcode & 7) < 4 ? opcode & 7 : opcode;
}

static void finish(struct cursor *c, const struct row *r, struct insn *out, uint8_t opcode,
		   uint8_t modrm)
{
	out->op = r->op;
	out->sub = sub_of(r, opcode, modrm);
	out->with = r->with;
	out->size = size_of(c, r->size);
	/* cmp and the bit test read only */
	out->to_mem = r->to_mem && !(r->op == INSN_ALU && out->sub == 7);
	out->reg_first = !r->to_mem && r->with == INSN_REG;
	out->rsize = out->size;
	if (r->op == INSN_MOVZX || r->op == INSN_MOVSX)
		out->rsize = size_of(c, S_V);
	out->merge = c->vvvv;
	out->rep = c->f2 || c->f3;
	if (r->imm)
		out->imm = next_signed(c, r->imm == I_B ? 1 : out->size == 2 ? 2 : 4);
	out->len = (uint8_t)c->at;
}

/* Vector instructions have all encodings, those on bits VEX of 128 alone, the others none but the old one. */
static bool is_encoding_of(const struct cursor *c, const struct row *r, bool vex)
{
	if (r->op == INSN_VECTOR)
		return true;
	return r->op == INSN_BITS ? vex && !c->evex && c->vector_bytes == 16 : !vex;
}

static bool decode_rest(struct cursor *c, struct insn *out, const struct row *table, uint8_t opcode)
{
	uint8_t folded = table == one_byte ? fold_alu(opcode) : opcode;
	const struct row *r;
	uint8_t modrm = 0;

	out->base = INSN_NO_REG;
	out->index = INSN_NO_REG;
	if (table == one_byte && opcode >= 0xa0 && opcode <= 0xad) {
		r = find(c, table, folded, 0);
		if (r && r->op == INSN_MOV)
			out->disp = next_signed(c, out->addr32 ? 4 : 8);
	} else {
		modrm = next(c);
		r = modrm >> 6 == 3 ? NULL : find(c, table, folded, modrm);
		if (r) {
			read_memory(c, out, modrm, c->evex ? size_of(c, r->size) : 1);
			out->reg = (modrm >> 3 & 7u) | c->rex_r;
		}
	}
	if (!r || c->bad || !is_encoding_of(c, r, out->vex))
		return false;
	finish(c, r, out, opcode, modrm);
	return !c->bad && out->len <= INSN_MAX;
}

bool insn_decode(struct insn *out, insn_fetch *fetch, void *from)
{
	struct cursor c = {.fetch = fetch, .from = from};
	const struct row *table = one_byte;
	unsigned map;
	uint8_t b;

	*out = (struct insn){0};
	b = read_prefixes(&c, out);
	if (b == 0xc4 || b == 0xc5 || b == 0x62) {
		out->vex = true;
		map = b == 0x62 ? read_evex(&c) : read_vex(&c, b);
		if (!map)
			return false;
		table = map == 1 ? two_byte : three_byte;
		return decode_rest(&c, out, table, next(&c));
	}
	if ((b & 0xf0) == 0x40) {
		take_rex(&c, out, b);
		b = next(&c);
	}
	take_legacy_prefix(&c);
	if (b == 0x0f) {
		table = two_byte;
		b = next(&c);
		if (b == 0x38) {
			table = three_byte;
			b = next(&c);
		}
	}
	return !c.bad && decode_rest(&c, out, table, b);
}
