/* SPDX-License-Identifier: MIT */
/*
 * insn.c - from bytes to struct insn, by Zydis.
 *
 *   bytes --insn_quick.c--> kind, target                         insn_scan(), what is common
 *   bytes --Zydis--> raw fields --classify()--> kind, target     insn_scan(), all others
 *                \--> operands -----------------> registers      insn_decode()
 *   bytes --both decoders--> length, class, target: equal?       insn_confirm.c
 *
 * The kind comes from opcode bytes, not from mnemonics or categories: the table of branches
 * of a 64-bit x86 is short and does not grow, while decoder libraries rename and regroup.
 *
 * The only file of the tree that may include Zydis.  It knows nothing of images, functions or
 * plans, keeps no state, and never fails other than by saying "no".
 */
#include "inject/code/insn.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <Zydis/Zydis.h>

#include "inject/code/insn_impl.h"

/* ---- Zydis ---- */

static ZydisDecoder decoder; /* read-only after init_decoder */
static pthread_once_t decoder_once = PTHREAD_ONCE_INIT;

static void init_decoder(void)
{
	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
}

static bool has_prefix(const ZydisDecodedInstruction *zi, uint8_t value)
{
	for (unsigned i = 0; i < zi->raw.prefix_count; i++)
		if (zi->raw.prefixes[i].value == value)
			return true;
	return false;
}

/* One-byte opcodes that are anything but plain. */
static uint8_t classify_one_byte(const ZydisDecodedInstruction *zi)
{
	switch (zi->opcode) {
	case 0x70 ... 0x7f:
	case 0xe0 ... 0xe3:
		return INSN_JCC;
	case 0x90:
		/* 41 90 is xchg %r8,%rax; f3 90 is pause, which means something */
		return zi->mnemonic == ZYDIS_MNEMONIC_NOP ||
				       (zi->mnemonic == ZYDIS_MNEMONIC_XCHG && !zi->raw.rex.B)
			       ? INSN_PADDING
			       : INSN_PLAIN;
	case 0xc2:
	case 0xc3:
		return INSN_RET;
	case 0xc7:
		return zi->raw.modrm.mod == 3 && zi->raw.modrm.reg == 7 ? INSN_OTHER_TRANSFER
									: INSN_PLAIN;
	case 0xca:
	case 0xcb:
	case 0xcf:
		return INSN_OTHER_TRANSFER;
	case 0xcc:
	case 0xf1:
	case 0xf4:
		return INSN_TRAP;
	case 0xcd:
		return INSN_SYSCALL;
	case 0xe8:
		return INSN_CALL;
	case 0xe9:
	case 0xeb:
		return INSN_JMP;
	case 0xff:
		switch (zi->raw.modrm.reg) {
		case 2:
			return INSN_CALL_INDIRECT;
		case 4:
			return INSN_JMP_INDIRECT;
		case 3:
		case 5:
			return INSN_OTHER_TRANSFER;
		}
		return INSN_PLAIN;
	}
	return INSN_PLAIN;
}

static uint8_t classify_two_byte(const ZydisDecodedInstruction *zi)
{
	switch (zi->opcode) {
	case 0x01:
		return zi->mnemonic == ZYDIS_MNEMONIC_UIRET ? INSN_OTHER_TRANSFER : INSN_PLAIN;
	case 0x05:
	case 0x34:
		return INSN_SYSCALL;
	case 0x07:
	case 0x35:
	case 0xaa:
		return INSN_OTHER_TRANSFER;
	case 0x0b:
	case 0xb9:
	case 0xff:
		return INSN_TRAP;
	case 0x1f:
		return INSN_PADDING;
	case 0x80 ... 0x8f:
		return INSN_JCC;
	}
	return INSN_PLAIN;
}

static uint8_t classify(const ZydisDecodedInstruction *zi)
{
	if (zi->encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY)
		return INSN_PLAIN;
	if (zi->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT)
		return classify_one_byte(zi);
	if (zi->opcode_map == ZYDIS_OPCODE_MAP_0F)
		return classify_two_byte(zi);
	return INSN_PLAIN;
}

static bool is_near_branch(uint8_t kind)
{
	return kind == INSN_CALL || kind == INSN_JMP || kind == INSN_JCC || kind == INSN_RET ||
	       kind == INSN_CALL_INDIRECT || kind == INSN_JMP_INDIRECT;
}

/* The few operations that analyses follow; others stay INSN_OP_OTHER. */
static uint8_t operation(const ZydisDecodedInstruction *zi)
{
	if (zi->encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY ||
	    zi->opcode_map != ZYDIS_OPCODE_MAP_DEFAULT)
		return INSN_OP_OTHER;
	switch (zi->opcode) {
	case 0x00 ... 0x05:
		return INSN_OP_ADD;
	case 0x28 ... 0x2d:
		return INSN_OP_SUB;
	case 0x38 ... 0x3d:
		return INSN_OP_CMP;
	case 0x63:
		return INSN_OP_MOVSXD;
	case 0x6c ... 0x6f:
		return INSN_OP_PORT;
	case 0x80:
	case 0x81:
	case 0x83:
		return zi->raw.modrm.reg == 0   ? INSN_OP_ADD
		       : zi->raw.modrm.reg == 5 ? INSN_OP_SUB
		       : zi->raw.modrm.reg == 7 ? INSN_OP_CMP
						: INSN_OP_OTHER;
	case 0x88 ... 0x8b:
	case 0xa0 ... 0xa3:
	case 0xb0 ... 0xbf:
	case 0xc6:
		return INSN_OP_MOV;
	case 0xc7:
		return zi->raw.modrm.mod == 3 && zi->raw.modrm.reg == 7 ? INSN_OP_XBEGIN
									: INSN_OP_MOV;
	case 0x8d:
		return INSN_OP_LEA;
	case 0x98: /* cltq is movslq %eax,%rax */
		return zi->raw.rex.W ? INSN_OP_MOVSXD : INSN_OP_OTHER;
	case 0xcc:
		return INSN_OP_INT3;
	}
	return INSN_OP_OTHER;
}

/* Does an instruction with a memory operand only write it, or not touch it at all? */
static bool is_store_only(const ZydisDecodedInstruction *zi, const struct insn *in)
{
	if (in->op == INSN_OP_LEA || in->kind == INSN_PADDING)
		return true;
	return in->op == INSN_OP_MOV && zi->opcode != 0x8a && zi->opcode != 0x8b &&
	       zi->opcode != 0xa0 && zi->opcode != 0xa1;
}

static void fill_memory(struct insn *in, const ZydisDecodedInstruction *zi)
{
	bool legacy = zi->encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY;
	unsigned b = legacy ? zi->raw.rex.B : 0, x = legacy ? zi->raw.rex.X : 0;

	in->has_mem = true;
	in->mem_disp = zi->raw.disp.size ? zi->raw.disp.value : 0;
	if (zi->raw.modrm.rm == 4) {
		unsigned index = zi->raw.sib.index | x << 3;

		if (index != 4) {
			in->mem_index = (int8_t)index;
			in->mem_scale = (uint8_t)(1u << zi->raw.sib.scale);
		}
		if (zi->raw.sib.base != 5 || zi->raw.modrm.mod != 0)
			in->mem_base = (int8_t)(zi->raw.sib.base | b << 3);
	} else if (zi->raw.modrm.mod == 0 && zi->raw.modrm.rm == 5) {
		in->mem_base = 16;
		in->rip_relative = true;
		in->disp_off = zi->raw.disp.offset;
		in->disp_size = 4;
		in->target = in->addr + zi->length + (uint64_t)zi->raw.disp.value;
		if (zi->address_width == 32)
			in->target = (uint32_t)in->target;
	} else {
		in->mem_base = (int8_t)(zi->raw.modrm.rm | b << 3);
	}
	in->reads_memory = !is_store_only(zi, in);
}

static void fill_immediate(struct insn *in, const ZydisDecodedInstruction *zi)
{
	if (!zi->raw.imm[0].size)
		return;
	if (zi->raw.imm[0].is_relative) {
		in->disp_off = zi->raw.imm[0].offset;
		in->disp_size = zi->raw.imm[0].size / 8;
		in->target = in->addr + zi->length + (uint64_t)zi->raw.imm[0].value.s;
		return;
	}
	in->imm = zi->raw.imm[0].value.u;
	in->imm_size = zi->raw.imm[0].size / 8;
	if (in->imm_size < 8) {
		unsigned shift = 64 - 8 * in->imm_size;

		in->imm = (uint64_t)((int64_t)(in->imm << shift) >> shift);
	}
	in->has_imm = in->imm_size >= 4;
}

/* The destination register of the operations that sweeps ask about. */
static int8_t simple_dest(const ZydisDecodedInstruction *zi, const struct insn *in)
{
	unsigned reg = zi->raw.modrm.reg | zi->raw.rex.R << 3;
	unsigned rm = zi->raw.modrm.rm | zi->raw.rex.B << 3;

	switch (zi->opcode) {
	case 0x8d:
	case 0x8b:
	case 0x63:
		return (int8_t)reg;
	case 0x89:
	case 0xc7:
		return in->has_mem || in->op == INSN_OP_XBEGIN ? -1 : (int8_t)rm;
	case 0x98:
		return 0;
	case 0xb8 ... 0xbf:
		return (int8_t)((zi->opcode & 7) | zi->raw.rex.B << 3);
	}
	return -1;
}

static bool scan(struct insn *in, ZydisDecodedInstruction *zi, ZydisDecoderContext *ctx,
		 const uint8_t *code, size_t avail, uint64_t addr)
{
	pthread_once(&decoder_once, init_decoder);
	if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder, ctx, code, avail, zi)))
		return false;
	*in = (struct insn){
		.addr = addr,
		.len = zi->length,
		.reg = -1,
		.mem_base = -1,
		.mem_index = -1,
		.dest_reg = -1,
		.first_reg = -1,
		.src_reg = -1,
		.op_size = zi->operand_width / 8,
	};
	in->kind = classify(zi);
	in->op = operation(zi);
	/* Intel ignores the prefix, AMD shortens the branch to 16 bits: nobody's code. */
	if (is_near_branch(in->kind) && has_prefix(zi, 0x66) &&
	    !(zi->raw.rex.W && zi->encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY))
		return false;
	for (unsigned i = 0; i < zi->raw.prefix_count; i++)
		if (zi->raw.prefixes[i].value == 0x64 || zi->raw.prefixes[i].value == 0x65)
			in->mem_seg = zi->raw.prefixes[i].value;
	if (zi->raw.modrm.offset && zi->raw.modrm.mod != 3)
		fill_memory(in, zi);
	fill_immediate(in, zi);
	switch (in->kind) {
	case INSN_JMP_INDIRECT:
	case INSN_CALL_INDIRECT:
		if (!in->has_mem)
			in->reg = (int8_t)(zi->raw.modrm.rm | zi->raw.rex.B << 3);
		in->notrack = has_prefix(zi, 0x3e);
		break;
	case INSN_JCC:
		in->is_loop = zi->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT && zi->opcode >= 0xe0;
		break;
	}
	if (in->op == INSN_OP_LEA || in->op == INSN_OP_MOV || in->op == INSN_OP_MOVSXD)
		in->dest_reg = simple_dest(zi, in);
	return true;
}

bool insn_scan_all(struct insn *out, const uint8_t *code, size_t avail, uint64_t addr)
{
	ZydisDecodedInstruction zi;
	ZydisDecoderContext ctx;

	return scan(out, &zi, &ctx, code, avail, addr);
}

bool insn_scan(struct insn *out, const uint8_t *code, size_t avail, uint64_t addr)
{
	return insn_scan_quick(out, code, avail, addr) || insn_scan_all(out, code, avail, addr);
}

/* Number of the general register that reg is or is a part of, -1 for others. */
static int8_t gpr_number(ZydisRegister reg)
{
	ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);

	if (whole < ZYDIS_REGISTER_RAX || whole > ZYDIS_REGISTER_R15)
		return -1;
	return (int8_t)(whole - ZYDIS_REGISTER_RAX);
}

static void fill_operands(struct insn *in, const ZydisDecodedInstruction *zi,
			  const ZydisDecodedOperand *ops)
{
	for (unsigned i = 0; i < zi->operand_count; i++) {
		const ZydisDecodedOperand *o = &ops[i];
		int8_t reg;

		if (o->type == ZYDIS_OPERAND_TYPE_MEMORY && i < zi->operand_count_visible &&
		    in->has_mem && !in->rip_relative) {
			in->mem_base = gpr_number(o->mem.base);
			in->mem_index = gpr_number(o->mem.index);
			in->is_vsib = o->mem.index != ZYDIS_REGISTER_NONE && in->mem_index < 0;
			in->mem_scale = o->mem.scale;
			in->mem_disp = o->mem.disp.has_displacement ? o->mem.disp.value : 0;
		}
		if (o->type == ZYDIS_OPERAND_TYPE_MEMORY &&
		    (i < zi->operand_count_visible ||
		     zi->meta.category == ZYDIS_CATEGORY_STRINGOP) &&
		    o->mem.type == ZYDIS_MEMOP_TYPE_MEM && in->kind != INSN_PADDING &&
		    zi->meta.category != ZYDIS_CATEGORY_PREFETCH) {
			in->loads |= (o->actions & ZYDIS_OPERAND_ACTION_MASK_READ) != 0;
			in->stores |= (o->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0;
		}
		if (o->type != ZYDIS_OPERAND_TYPE_REGISTER)
			continue;
		reg = gpr_number(o->reg.value);
		if (reg < 0)
			continue;
		if (o->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) {
			in->regs_written |= (uint16_t)(1u << reg);
			if (i == 0)
				in->dest_reg = reg;
		}
		if (i == 0)
			in->first_reg = reg;
		if (i == 1 && i < zi->operand_count_visible)
			in->src_reg = reg;
	}
	if (in->op == INSN_OP_MOVSXD && zi->opcode == 0x98)
		in->first_reg = in->dest_reg = in->src_reg = 0;
	/* push, call and ret move rsp in a way that everybody knows */
	if (in->kind == INSN_CALL || in->kind == INSN_CALL_INDIRECT || in->kind == INSN_RET ||
	    zi->meta.category == ZYDIS_CATEGORY_PUSH)
		in->regs_written &= (uint16_t) ~(1u << 4);
}

/* ---- data flow ---- */

static uint8_t status_flags(ZydisAccessedFlagsMask mask)
{
	return (mask & ZYDIS_CPUFLAG_CF ? INSN_CF : 0) | (mask & ZYDIS_CPUFLAG_PF ? INSN_PF : 0) |
	       (mask & ZYDIS_CPUFLAG_AF ? INSN_AF : 0) | (mask & ZYDIS_CPUFLAG_ZF ? INSN_ZF : 0) |
	       (mask & ZYDIS_CPUFLAG_SF ? INSN_SF : 0) | (mask & ZYDIS_CPUFLAG_OF ? INSN_OF : 0);
}

/* With a count of zero they change no flag; a count in %cl may be that. */
static bool may_shift_nothing(const ZydisDecodedInstruction *zi, const struct insn *in)
{
	bool shifts = zi->meta.category == ZYDIS_CATEGORY_SHIFT ||
		      zi->meta.category == ZYDIS_CATEGORY_ROTATE;

	if (!shifts || zi->encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY)
		return false;
	if (zi->opcode == 0xd0 || zi->opcode == 0xd1)
		return false;
	return !in->imm_size || !(in->imm & 31);
}

static bool is_repeated(const ZydisDecodedInstruction *zi)
{
	return zi->attributes &
	       (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE);
}

/* Instructions that leave AF undefined in the manuals, and clear it in every processor. */
static bool is_logical(const ZydisDecodedInstruction *zi)
{
	return zi->meta.category == ZYDIS_CATEGORY_LOGICAL &&
	       zi->encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY;
}

static void fill_flags(struct insn *in, const ZydisDecodedInstruction *zi)
{
	const ZydisAccessedFlags *f = zi->cpu_flags;

	/* a system call returns with the flags that it found, and a copy of them in %r11; to Zydis
	 * it overwrites them */
	if (!f || in->kind == INSN_SYSCALL) {
		in->flags_read = INSN_FLAGS;
		return;
	}
	in->flags_read = status_flags(f->tested);
	if (is_repeated(zi) || may_shift_nothing(zi, in))
		return;
	in->flags_killed = status_flags(f->modified | f->set_0 | f->set_1) &
			   (uint8_t)~status_flags(f->undefined);
	if (is_logical(zi) && f->undefined & ZYDIS_CPUFLAG_AF)
		in->flags_killed |= INSN_AF;
}

/* Sets the register to a constant, whatever it was: xor %eax,%eax. */
static bool is_zeroing(const ZydisDecodedInstruction *zi, const ZydisDecodedOperand *ops)
{
	return (zi->mnemonic == ZYDIS_MNEMONIC_XOR || zi->mnemonic == ZYDIS_MNEMONIC_SUB) &&
	       ops[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
	       ops[1].type == ZYDIS_OPERAND_TYPE_REGISTER && ops[0].reg.value == ops[1].reg.value &&
	       ops[0].size >= 32;
}

/*
 * Leave their destination as it was: bsf and bsr of zero, as which older processors take tzcnt and
 * lzcnt; lar and lsl of a selector that means nothing; rdssp where there is no shadow stack.
 */
static bool may_be_left_alone(const ZydisDecodedInstruction *zi)
{
	switch (zi->mnemonic) {
	case ZYDIS_MNEMONIC_BSF:
	case ZYDIS_MNEMONIC_BSR:
	case ZYDIS_MNEMONIC_TZCNT:
	case ZYDIS_MNEMONIC_LZCNT:
	case ZYDIS_MNEMONIC_LAR:
	case ZYDIS_MNEMONIC_LSL:
	case ZYDIS_MNEMONIC_RDSSPD:
	case ZYDIS_MNEMONIC_RDSSPQ:
		return true;
	default:
		return false;
	}
}

/* In every case, with all 64 bits: the upper half goes to zero with the lower one. */
static bool kills(const ZydisDecodedInstruction *zi, const ZydisDecodedOperand *o)
{
	return o->actions & ZYDIS_OPERAND_ACTION_WRITE && o->size >= 32 && !is_repeated(zi) &&
	       !may_be_left_alone(zi);
}

static bool is_gpr_operand(const ZydisDecodedOperand *o)
{
	return (o->type == ZYDIS_OPERAND_TYPE_REGISTER && gpr_number(o->reg.value) >= 0) ||
	       o->type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
}

static bool is_flags_operand(const ZydisDecodedOperand *o)
{
	return o->type == ZYDIS_OPERAND_TYPE_REGISTER && o->reg.value >= ZYDIS_REGISTER_FLAGS &&
	       o->reg.value <= ZYDIS_REGISTER_RFLAGS;
}

/* Arithmetic of the integer unit that has no way to fail. */
static bool is_harmless(const ZydisDecodedInstruction *zi)
{
	switch (zi->meta.category) {
	case ZYDIS_CATEGORY_BINARY:
		return zi->mnemonic != ZYDIS_MNEMONIC_DIV && zi->mnemonic != ZYDIS_MNEMONIC_IDIV;
	case ZYDIS_CATEGORY_LOGICAL:
	case ZYDIS_CATEGORY_SHIFT:
	case ZYDIS_CATEGORY_ROTATE:
	case ZYDIS_CATEGORY_BITBYTE:
	case ZYDIS_CATEGORY_CMOV:
	case ZYDIS_CATEGORY_SETCC:
	case ZYDIS_CATEGORY_CONVERT:
	case ZYDIS_CATEGORY_DATAXFER:
	case ZYDIS_CATEGORY_NOP:
	case ZYDIS_CATEGORY_WIDENOP:
		return zi->encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY;
	case ZYDIS_CATEGORY_MISC:
		return zi->mnemonic == ZYDIS_MNEMONIC_LEA;
	default:
		return false;
	}
}

static bool is_pure(const struct insn *in, const ZydisDecodedInstruction *zi,
		    const ZydisDecodedOperand *ops)
{
	if (in->kind == INSN_PADDING)
		return true;
	if (in->kind != INSN_PLAIN || !is_harmless(zi) || zi->attributes & ZYDIS_ATTRIB_HAS_LOCK)
		return false;
	for (unsigned i = 0; i < zi->operand_count; i++)
		if (!is_gpr_operand(&ops[i]) && !is_flags_operand(&ops[i]) &&
		    !(zi->mnemonic == ZYDIS_MNEMONIC_LEA && i == 1))
			return false;
	return true;
}

/* bt and its like, whose number of a bit in a register reaches far from the operand. */
static bool counts_bits(const ZydisDecodedInstruction *zi, const ZydisDecodedOperand *ops)
{
	return zi->meta.category == ZYDIS_CATEGORY_BITBYTE && zi->operand_count_visible > 1 &&
	       ops[1].type == ZYDIS_OPERAND_TYPE_REGISTER;
}

/* What it reads is there as long as the program runs: the module itself, or the stack, which does
 * not end within this many bytes of its top. */
#define STACK_NEAR 256
static bool is_own_memory(const ZydisDecodedOperand *o)
{
	return o->type == ZYDIS_OPERAND_TYPE_MEMORY && o->mem.type == ZYDIS_MEMOP_TYPE_MEM &&
	       o->actions == ZYDIS_OPERAND_ACTION_READ && o->mem.index == ZYDIS_REGISTER_NONE &&
	       o->mem.segment != ZYDIS_REGISTER_FS && o->mem.segment != ZYDIS_REGISTER_GS &&
	       (o->mem.base == ZYDIS_REGISTER_RIP ||
		(o->mem.base == ZYDIS_REGISTER_RSP && o->mem.disp.value >= 0 &&
		 o->mem.disp.value < STACK_NEAR));
}

static bool is_quiet(const struct insn *in, const ZydisDecodedInstruction *zi,
		     const ZydisDecodedOperand *ops)
{
	if (in->kind != INSN_PLAIN || zi->attributes & ZYDIS_ATTRIB_HAS_LOCK)
		return false;
	if (zi->meta.category == ZYDIS_CATEGORY_PUSH || zi->meta.category == ZYDIS_CATEGORY_POP)
		return zi->operand_count_visible == 1 &&
		       ops[0].type == ZYDIS_OPERAND_TYPE_REGISTER && is_gpr_operand(&ops[0]);
	if (!is_harmless(zi) || counts_bits(zi, ops))
		return false;
	for (unsigned i = 0; i < zi->operand_count; i++)
		if (!is_gpr_operand(&ops[i]) && !is_flags_operand(&ops[i]) &&
		    !is_own_memory(&ops[i]))
			return false;
	return true;
}

/* What reads them knows more registers than the manual: VMware's door is an `in`, and hypervisors
 * take what they like. */
static bool talks_to_host(const ZydisDecodedInstruction *zi)
{
	return zi->meta.category == ZYDIS_CATEGORY_IO ||
	       zi->meta.category == ZYDIS_CATEGORY_IOSTRINGOP ||
	       zi->mnemonic == ZYDIS_MNEMONIC_VMCALL || zi->mnemonic == ZYDIS_MNEMONIC_VMMCALL;
}

static void fill_data_flow(struct insn *in, const ZydisDecodedInstruction *zi,
			   const ZydisDecodedOperand *ops)
{
	for (unsigned i = 0; i < zi->operand_count; i++) {
		const ZydisDecodedOperand *o = &ops[i];
		int8_t reg;

		if (o->type == ZYDIS_OPERAND_TYPE_MEMORY) {
			reg = gpr_number(o->mem.base);
			in->regs_read |= reg >= 0 ? 1u << reg : 0;
			reg = gpr_number(o->mem.index);
			in->regs_read |= reg >= 0 ? 1u << reg : 0;
		}
		if (o->type != ZYDIS_OPERAND_TYPE_REGISTER)
			continue;
		reg = gpr_number(o->reg.value);
		if (reg < 0)
			continue;
		if (kills(zi, o))
			in->regs_killed |= (uint16_t)(1u << reg);
		if (!kills(zi, o) ||
		    (o->actions & ZYDIS_OPERAND_ACTION_MASK_READ && !is_zeroing(zi, ops)))
			in->regs_read |= (uint16_t)(1u << reg);
	}
	if (talks_to_host(zi))
		in->regs_read = UINT16_MAX;
	in->is_narrow = zi->address_width == 32;
	fill_flags(in, zi);
	in->is_pure = is_pure(in, zi, ops);
	in->is_quiet = in->is_pure || is_quiet(in, zi, ops);
}

bool insn_decode(struct insn *out, const uint8_t *code, size_t avail, uint64_t addr)
{
	ZydisDecodedInstruction zi;
	ZydisDecoderContext ctx;
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];

	if (!scan(out, &zi, &ctx, code, avail, addr))
		return false;
	if (!ZYAN_SUCCESS(ZydisDecoderDecodeOperands(&decoder, &ctx, &zi, ops, zi.operand_count)))
		return false;
	out->dest_reg = -1;
	fill_operands(out, &zi, ops);
	fill_data_flow(out, &zi, ops);
	return true;
}
