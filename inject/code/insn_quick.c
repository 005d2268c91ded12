/* SPDX-License-Identifier: MIT */
/*
 * insn_quick.c - the instructions that code mostly consists of, decoded by two tables.
 *
 *   [66] [f2|f3] [fs|gs] [REX] opcode | 0f opcode  [ModRM [SIB] [disp]]  [immediate]
 *
 * Planning decodes every instruction of every library once, and Zydis, which knows them all, took
 * half of planning's time.  What is here takes a tenth of Zydis' time for 98 of 100 instructions;
 * whatever the tables do not name for certain is Zydis' (insn.c).  There are no opinions here: for
 * every combination of prefixes, opcode, ModRM and SIB byte that is decoded here, the result is the
 * one that Zydis gives, field by field.  tests/unit/inject/test_insn.c goes through all of them.
 */
#include <string.h>

#include "inject/code/insn_impl.h"

/* What follows the opcode, and what it does. */
enum {
	HAS = 1,        /* it is here */
	MODRM = 2,      /* a ModRM byte */
	IMM8 = 4,       /* an immediate of 8 bits */
	IMMZ = 8,       /* one of 32 bits, or 16 with a 66 prefix */
	BYTE = 16,      /* operands of 8 bits */
	WIDE = 32,      /* of 64 bits without REX.W: stack and branches; not here with a 66 */
	MEMORY = 64,    /* ModRM names memory */
	REGISTER = 128, /* ModRM names no memory */
	REL8 = 256,
	REL32 = 512,
	/* 0f opcodes: with which prefix */
	PLAIN = 1024,
	WITH_66 = 2048,
	WITH_F3 = 4096,
	WITH_F2 = 8192,
	SIZE_66 = 16384, /* a 66 makes its operands 16 bits */
	GROUP = 32768,   /* ModRM's middle says more: look_into_group() */
	WITH_ALL = PLAIN | WITH_66 | WITH_F3 | WITH_F2,
	SIZED = PLAIN | SIZE_66,
	KIND = 16,     /* enum insn_kind << 16 */
	OPERATION = 24 /* enum insn_op << 24 */
};
#define IS(kind) ((uint32_t)(INSN_##kind) << KIND)
#define DOES(op) ((uint32_t)(INSN_OP_##op) << OPERATION)

/* add, or, adc, sbb, and, sub, xor, cmp: to r/m, from r/m, with an immediate */
#define ARITHMETIC(at, op)                                                       \
	[at] = HAS | MODRM | BYTE | (op), [(at) + 1] = HAS | MODRM | (op),       \
	[(at) + 2] = HAS | MODRM | BYTE | (op), [(at) + 3] = HAS | MODRM | (op), \
	[(at) + 4] = HAS | IMM8 | BYTE | (op), [(at) + 5] = HAS | IMMZ | (op)

static const uint32_t one_byte[256] = {
	ARITHMETIC(0x00, DOES(ADD)),
	ARITHMETIC(0x08, 0),
	ARITHMETIC(0x10, 0),
	ARITHMETIC(0x18, 0),
	ARITHMETIC(0x20, 0),
	ARITHMETIC(0x28, DOES(SUB)),
	ARITHMETIC(0x30, 0),
	ARITHMETIC(0x38, DOES(CMP)),
	[0x50 ... 0x5f] = HAS | WIDE, /* push, pop */
	[0x63] = HAS | MODRM | DOES(MOVSXD),
	[0x68] = HAS | IMMZ | WIDE, /* push */
	[0x69] = HAS | MODRM | IMMZ,
	[0x6a] = HAS | IMM8 | WIDE,
	[0x6b] = HAS | MODRM | IMM8,
	[0x70 ... 0x7f] = HAS | REL8 | WIDE | IS(JCC),
	[0x80] = HAS | MODRM | GROUP | IMM8 | BYTE,
	[0x81] = HAS | MODRM | GROUP | IMMZ,
	[0x83] = HAS | MODRM | GROUP | IMM8,
	[0x84] = HAS | MODRM | BYTE, /* test */
	[0x85] = HAS | MODRM,
	[0x88] = HAS | MODRM | BYTE | DOES(MOV),
	[0x89] = HAS | MODRM | DOES(MOV),
	[0x8a] = HAS | MODRM | BYTE | DOES(MOV),
	[0x8b] = HAS | MODRM | DOES(MOV),
	[0x8d] = HAS | MODRM | MEMORY | DOES(LEA),
	[0x90] = HAS | IS(PADDING),
	[0x98] = HAS,
	[0x99] = HAS,
	[0xa8] = HAS | IMM8 | BYTE, /* test */
	[0xa9] = HAS | IMMZ,
	[0xb0 ... 0xb7] = HAS | IMM8 | BYTE | DOES(MOV),
	[0xb8 ... 0xbf] = HAS | IMMZ | DOES(MOV),   /* 64 bits with REX.W */
	[0xc0] = HAS | MODRM | GROUP | IMM8 | BYTE, /* shifts */
	[0xc1] = HAS | MODRM | GROUP | IMM8,
	[0xc3] = HAS | WIDE | IS(RET),
	[0xc6] = HAS | MODRM | GROUP | IMM8 | BYTE | DOES(MOV),
	[0xc7] = HAS | MODRM | GROUP | IMMZ | DOES(MOV),
	[0xc9] = HAS | WIDE,
	[0xcc] = HAS | IS(TRAP) | DOES(INT3),
	[0xd0] = HAS | MODRM | GROUP | BYTE,
	[0xd1] = HAS | MODRM | GROUP,
	[0xd2] = HAS | MODRM | GROUP | BYTE,
	[0xd3] = HAS | MODRM | GROUP,
	[0xe8] = HAS | REL32 | WIDE | IS(CALL),
	[0xe9] = HAS | REL32 | WIDE | IS(JMP),
	[0xeb] = HAS | REL8 | WIDE | IS(JMP),
	[0xf6] = HAS | MODRM | GROUP | BYTE, /* test: IMM8 */
	[0xf7] = HAS | MODRM | GROUP,        /* test: IMMZ */
	[0xfe] = HAS | MODRM | GROUP | BYTE,
	[0xff] = HAS | MODRM | GROUP,
};

static const uint32_t two_bytes[256] = {
	[0x05] = HAS | PLAIN | WIDE | IS(SYSCALL),
	[0x0b] = HAS | PLAIN | IS(TRAP),
	[0x10 ... 0x11] = HAS | MODRM | WITH_ALL,
	[0x14 ... 0x15] = HAS | MODRM | PLAIN | WITH_66,
	[0x1f] = HAS | MODRM | GROUP | SIZED | IS(PADDING),
	[0x28 ... 0x29] = HAS | MODRM | PLAIN | WITH_66,
	[0x2a] = HAS | MODRM | WITH_F3 | WITH_F2,
	[0x2c ... 0x2d] = HAS | MODRM | WITH_F3 | WITH_F2,
	[0x2e ... 0x2f] = HAS | MODRM | PLAIN | WITH_66,
	[0x40 ... 0x4f] = HAS | MODRM | SIZED, /* cmov */
	[0x51] = HAS | MODRM | WITH_ALL,
	[0x54 ... 0x57] = HAS | MODRM | PLAIN | WITH_66,
	[0x58 ... 0x5a] = HAS | MODRM | WITH_ALL,
	[0x5b] = HAS | MODRM | PLAIN | WITH_66 | WITH_F3,
	[0x5c ... 0x5f] = HAS | MODRM | WITH_ALL,
	[0x60 ... 0x6e] = HAS | MODRM | WITH_66,
	[0x6f] = HAS | MODRM | WITH_66 | WITH_F3,
	[0x70] = HAS | MODRM | IMM8 | WITH_66 | WITH_F3 | WITH_F2,
	[0x74 ... 0x76] = HAS | MODRM | WITH_66,
	[0x7e] = HAS | MODRM | WITH_66 | WITH_F3,
	[0x7f] = HAS | MODRM | WITH_66 | WITH_F3,
	[0x80 ... 0x8f] = HAS | PLAIN | REL32 | WIDE | IS(JCC),
	[0x90 ... 0x9f] = HAS | MODRM | PLAIN | BYTE, /* set */
	[0xa2] = HAS | PLAIN,
	[0xa3] = HAS | MODRM | SIZED, /* bt */
	[0xab] = HAS | MODRM | SIZED,
	[0xaf] = HAS | MODRM | SIZED, /* imul */
	[0xb3] = HAS | MODRM | SIZED,
	[0xb6 ... 0xb7] = HAS | MODRM | SIZED, /* movz, movs */
	[0xbb] = HAS | MODRM | SIZED,
	[0xbc ... 0xbd] = HAS | MODRM | SIZED,
	[0xbe ... 0xbf] = HAS | MODRM | SIZED,
	[0xc6] = HAS | MODRM | IMM8 | PLAIN | WITH_66,
	[0xc8 ... 0xcf] = HAS | PLAIN, /* bswap */
	[0xd1 ... 0xd5] = HAS | MODRM | WITH_66,
	[0xd6] = HAS | MODRM | WITH_66,
	[0xd8 ... 0xdf] = HAS | MODRM | WITH_66,
	[0xe0 ... 0xe5] = HAS | MODRM | WITH_66,
	[0xe6] = HAS | MODRM | WITH_F3 | WITH_F2,
	[0xe8 ... 0xef] = HAS | MODRM | WITH_66,
	[0xf1 ... 0xf6] = HAS | MODRM | WITH_66,
	[0xf8 ... 0xfe] = HAS | MODRM | WITH_66,
};

#define ENDBR64 0xfa1e0ff3u

struct quick {
	struct insn *in;
	const uint8_t *code, *at;
	uint8_t opcode, rex, modrm;
	bool data16, is_two, is_stretched;
	uint8_t repeat; /* f2 or f3 */
};

/* Assemblers fill gaps with one no-op, of 15 bytes at most: data16 data16 cs nopw 0(%rax,%rax,1). */
#define PREFIXES_MAX 7

static bool rex_bit(const struct quick *q, uint8_t bit)
{
	return q->rex & bit;
}
#define REX_W 8
#define REX_R 4
#define REX_X 2
#define REX_B 1

static unsigned reg_field(uint8_t modrm)
{
	return modrm >> 3 & 7;
}

/* False: one twice, or another one, and it is not a no-op. */
static bool take_prefixes(struct quick *q)
{
	for (; q->at - q->code <= PREFIXES_MAX; q->at++) {
		switch (*q->at) {
		case 0x66:
			q->is_stretched |= q->data16;
			q->data16 = true;
			continue;
		case 0x2e:
			q->is_stretched = true;
			continue;
		case 0xf2:
		case 0xf3:
			if (q->repeat)
				return false;
			q->repeat = *q->at;
			continue;
		case 0x64:
		case 0x65:
			if (q->in->mem_seg)
				return false;
			q->in->mem_seg = *q->at;
			continue;
		}
		break;
	}
	if (q->is_stretched)
		return q->at - q->code <= PREFIXES_MAX && !q->repeat && !q->in->mem_seg &&
		       q->at[0] == 0x0f && q->at[1] == 0x1f;
	if ((*q->at & 0xf0) == 0x40)
		q->rex = *q->at++;
	return true;
}

/* What the tables say of it, if the prefixes are such as it may have. */
static uint32_t take_opcode(struct quick *q)
{
	uint32_t what;

	q->opcode = *q->at++;
	if (q->opcode != 0x0f) {
		what = one_byte[q->opcode];
		return q->repeat || (q->data16 && what & WIDE) ? 0 : what;
	}
	q->is_two = true;
	q->opcode = *q->at++;
	what = two_bytes[q->opcode];
	if (q->repeat) /* with a 66 besides, it is the stronger one, and not often seen */
		return q->data16 ? 0 : what & (q->repeat == 0xf3 ? WITH_F3 : WITH_F2) ? what : 0;
	return what & (q->data16 ? WITH_66 | SIZE_66 : PLAIN) ? what : 0;
}

static int32_t take32(struct quick *q)
{
	int32_t v;

	memcpy(&v, q->at, 4);
	q->at += 4;
	return v;
}

/* *rip: the displacement of an operand that counts from the next instruction. */
static void take_memory(struct quick *q, bool *is_rip, int32_t *rip)
{
	struct insn *in = q->in;
	unsigned mod = q->modrm >> 6, base = q->modrm & 7;

	in->has_mem = true;
	if (base == 4) {
		uint8_t sib = *q->at++;
		unsigned index = (sib >> 3 & 7) | (rex_bit(q, REX_X) ? 8 : 0);

		base = sib & 7;
		if (index != 4) {
			in->mem_index = (int8_t)index;
			in->mem_scale = (uint8_t)(1u << (sib >> 6));
		}
		if (base != 5 || mod)
			in->mem_base = (int8_t)(base | (rex_bit(q, REX_B) ? 8 : 0));
		else
			in->mem_disp = take32(q);
	} else if (base == 5 && !mod) {
		in->mem_base = 16;
		in->disp_off = (uint8_t)(q->at - q->code);
		in->disp_size = 4;
		in->rip_relative = *is_rip = true;
		in->mem_disp = *rip = take32(q);
		return;
	} else {
		in->mem_base = (int8_t)(base | (rex_bit(q, REX_B) ? 8 : 0));
	}
	if (mod == 1)
		in->mem_disp = (int8_t)*q->at++;
	else if (mod == 2)
		in->mem_disp = take32(q);
}

/* Groups: opcodes of which the ModRM byte's middle says the rest.  0: not here. */
static uint32_t look_into_group(uint32_t what, bool is_two, uint8_t opcode, uint8_t modrm,
				bool data16)
{
	unsigned reg = reg_field(modrm);

	if (is_two)
		return opcode == 0x1f && reg ? 0 : what;
	switch (opcode) {
	case 0x80:
	case 0x81:
	case 0x83:
		return what | (reg == 0   ? DOES(ADD)
			       : reg == 5 ? DOES(SUB)
			       : reg == 7 ? DOES(CMP)
					  : 0);
	case 0xc0:
	case 0xc1:
	case 0xd0 ... 0xd3:
		return reg == 6 ? 0 : what;
	case 0xc6:
	case 0xc7:
		return reg ? 0 : what;
	case 0xf6:
	case 0xf7:
		return reg == 1 ? 0 : what | (reg ? 0 : opcode == 0xf6 ? IMM8 : IMMZ);
	case 0xfe:
		return reg > 1 ? 0 : what;
	case 0xff:
		if (reg == 2 || reg == 4)
			what |= WIDE | (reg == 2 ? IS(CALL_INDIRECT) : IS(JMP_INDIRECT));
		else if (reg == 6)
			what |= WIDE;
		return reg == 3 || reg == 5 || reg == 7 || (what & WIDE && data16) ? 0 : what;
	}
	return what;
}

static void take_immediate(struct quick *q, uint32_t what)
{
	struct insn *in = q->in;

	if (what & IMM8) {
		in->imm_size = 1;
		in->imm = (uint64_t)(int64_t)(int8_t)*q->at;
	} else if (rex_bit(q, REX_W) && !q->is_two && (q->opcode & 0xf8) == 0xb8) {
		in->imm_size = 8;
		memcpy(&in->imm, q->at, 8);
	} else if (q->data16 && !rex_bit(q, REX_W)) {
		int16_t v;

		in->imm_size = 2;
		memcpy(&v, q->at, 2);
		in->imm = (uint64_t)(int64_t)v;
	} else {
		int32_t v;

		in->imm_size = 4;
		memcpy(&v, q->at, 4);
		in->imm = (uint64_t)(int64_t)v;
	}
	q->at += in->imm_size;
	in->has_imm = in->imm_size >= 4;
}

static void take_target(struct quick *q, uint32_t what)
{
	struct insn *in = q->in;
	int32_t distance;

	in->disp_off = (uint8_t)(q->at - q->code);
	in->disp_size = what & REL8 ? 1 : 4;
	if (what & REL8)
		distance = (int8_t)*q->at++;
	else
		distance = take32(q);
	in->target = in->addr + (uint64_t)(q->at - q->code) + (uint64_t)(int64_t)distance;
}

/* Of lea, mov, movsxd, as insn.c's simple_dest(). */
static int8_t dest_of(const struct quick *q)
{
	unsigned b = rex_bit(q, REX_B) ? 8 : 0;

	switch (q->opcode) {
	case 0x8d:
	case 0x8b:
	case 0x63:
		return (int8_t)(reg_field(q->modrm) | (rex_bit(q, REX_R) ? 8 : 0));
	case 0x89:
	case 0xc7:
		return q->in->has_mem ? -1 : (int8_t)((q->modrm & 7) | b);
	case 0x98:
		return 0;
	case 0xb8 ... 0xbf:
		return (int8_t)((q->opcode & 7) | b);
	}
	return -1;
}

static bool reads_memory(const struct quick *q)
{
	if (!q->in->has_mem || q->in->op == INSN_OP_LEA || q->in->kind == INSN_PADDING)
		return false;
	return q->in->op != INSN_OP_MOV || q->opcode == 0x8a || q->opcode == 0x8b;
}

static unsigned kind_of(uint32_t what)
{
	return what >> KIND & 0xff;
}

static void fill_rest(struct quick *q, uint32_t what)
{
	struct insn *in = q->in;

	in->op = (uint8_t)(what >> OPERATION);
	in->kind = (uint8_t)kind_of(what);
	if (!q->is_two && q->opcode == 0x98 && rex_bit(q, REX_W))
		in->op = INSN_OP_MOVSXD;
	in->op_size = what & BYTE                        ? 1
		      : rex_bit(q, REX_W) || what & WIDE ? 8
		      : q->data16 && !(what & WITH_66)   ? 2
							 : 4;
	if (in->op == INSN_OP_LEA || in->op == INSN_OP_MOV || in->op == INSN_OP_MOVSXD)
		in->dest_reg = dest_of(q);
	in->reads_memory = reads_memory(q);
	if ((in->kind == INSN_JMP_INDIRECT || in->kind == INSN_CALL_INDIRECT) && !in->has_mem)
		in->reg = (int8_t)((q->modrm & 7) | (rex_bit(q, REX_B) ? 8 : 0));
}

/* The opcode and what follows.  False: not here. */
static bool take_rest(struct quick *q)
{
	uint32_t what = take_opcode(q);
	bool is_rip = false;
	int32_t rip = 0;

	if (what & MODRM) {
		q->modrm = *q->at++;
		if (what & GROUP)
			what = look_into_group(what, q->is_two, q->opcode, q->modrm, q->data16);
		if (q->modrm < 0xc0)
			take_memory(q, &is_rip, &rip);
		else if (what & MEMORY)
			return false;
	}
	if (!what || (q->opcode == 0x90 && !q->is_two && rex_bit(q, REX_B)))
		return false;
	if (what & (IMM8 | IMMZ))
		take_immediate(q, what);
	if (what & (REL8 | REL32))
		take_target(q, what);
	fill_rest(q, what);
	q->in->len = (uint8_t)(q->at - q->code);
	if (is_rip)
		q->in->target = q->in->addr + q->in->len + (uint64_t)(int64_t)rip;
	return true;
}

/* Direct branches without a prefix, a quarter of what sweeps want to know more of. */
static bool is_branch(const uint8_t *code)
{
	switch (code[0]) {
	case 0x70 ... 0x7f:
	case 0xe8:
	case 0xe9:
	case 0xeb:
		return true;
	}
	return code[0] == 0x0f && (code[1] & 0xf0) == 0x80;
}

static void take_branch(struct quick *q)
{
	uint32_t what;

	q->is_two = *q->at == 0x0f;
	q->at += q->is_two;
	what = q->is_two ? two_bytes[*q->at] : one_byte[*q->at];
	q->at++;
	take_target(q, what);
	q->in->kind = (uint8_t)kind_of(what);
	q->in->op_size = 8;
	q->in->len = (uint8_t)(q->at - q->code);
}

bool insn_scan_quick(struct insn *out, const uint8_t *code, size_t avail, uint64_t addr)
{
	uint8_t copy[32];
	struct quick q = {.in = out, .code = code};
	uint32_t first;

	if (avail < 16) { /* what is read here stays within 16 bytes */
		memset(copy, 0, sizeof(copy));
		memcpy(copy, code, avail);
		q.code = copy;
	}
	q.at = q.code;
	*out = (struct insn){.addr = addr,
			     .reg = -1,
			     .mem_base = -1,
			     .mem_index = -1,
			     .dest_reg = -1,
			     .first_reg = -1,
			     .src_reg = -1};
	memcpy(&first, q.code, 4);
	if (first == ENDBR64) {
		out->len = 4;
		out->op_size = 4;
		return avail >= 4;
	}
	if (is_branch(q.code)) {
		take_branch(&q);
		return out->len <= avail;
	}
	return take_prefixes(&q) && take_rest(&q) && out->len <= avail;
}

/* ---- lengths alone ---- */

/* Bytes of the operand, ModRM included, by mod and rm.  With a SIB byte, its displacement of mod 0 is
 * not among them; 0: it counts from the next instruction. */
static const uint8_t operand_len[4][8] = {
	{1, 1, 1, 1, 2, 0, 1, 1},
	{2, 2, 2, 2, 3, 2, 2, 2},
	{5, 5, 5, 5, 6, 5, 5, 5},
	{1, 1, 1, 1, 1, 1, 1, 1},
};

static unsigned skim_operand(const uint8_t *modrm)
{
	unsigned len = operand_len[*modrm >> 6][*modrm & 7];

	return (*modrm & 0xc7) == 4 && (modrm[1] & 7) == 5 ? len + 4 : len;
}

static unsigned skim_immediate(uint32_t what, uint8_t prefix, uint8_t rex, bool is_mov)
{
	if (what & IMM8)
		return 1;
	if (!(what & IMMZ))
		return 0;
	if (rex & REX_W)
		return is_mov ? 8 : 4;
	return prefix == 0x66 ? 2 : 4;
}

/* Of 0f opcodes: those that may have this prefix. */
static uint32_t with_prefix(uint8_t prefix)
{
	switch (prefix) {
	case 0:
		return PLAIN;
	case 0x66:
		return WITH_66 | SIZE_66;
	case 0xf3:
		return WITH_F3;
	}
	return WITH_F2;
}

unsigned insn_skim(const uint8_t *code, size_t avail)
{
	const uint8_t *at = code;
	uint8_t prefix = 0, rex = 0, opcode;
	unsigned operand = 0;
	uint32_t what;
	bool is_two;

	if (avail < 16)
		return 0;
	if (*at == 0x66 || (*at & 0xfe) == 0xf2)
		prefix = *at++;
	if ((*at & 0xf0) == 0x40)
		rex = *at++;
	is_two = *at == 0x0f;
	at += is_two;
	opcode = *at++;
	what = is_two ? two_bytes[opcode] : one_byte[opcode];
	if (is_two ? !(what & with_prefix(prefix)) : prefix && (prefix != 0x66 || what & WIDE))
		return 0;
	if (what & GROUP)
		what = look_into_group(what, is_two, opcode, *at, prefix == 0x66);
	if (!what || kind_of(what) != INSN_PLAIN || what >> OPERATION == INSN_OP_LEA)
		return 0;
	if (what & MODRM) {
		operand = skim_operand(at);
		if (!operand)
			return 0;
	}
	return (unsigned)(at - code) + operand +
	       skim_immediate(what, prefix, rex, !is_two && (opcode & 0xf8) == 0xb8);
}
