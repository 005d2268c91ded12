/* SPDX-License-Identifier: MIT */
/*
 * insn_access.c - what an instruction reads and writes in memory, by Zydis: see insn.h.
 *
 * Every operand counts, those too that are not written out: the stack of push, call and ret.
 */
#include "inject/code/insn.h"

#include <pthread.h>
#include <string.h>

#include <Zydis/Zydis.h>

static ZydisDecoder decoder; /* read-only after init_decoder */
static pthread_once_t decoder_once = PTHREAD_ONCE_INIT;

static void init_decoder(void)
{
	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
}

static bool is_general(ZydisRegister reg)
{
	return reg == ZYDIS_REGISTER_NONE ||
	       (reg >= ZYDIS_REGISTER_EAX && reg <= ZYDIS_REGISTER_R15D) ||
	       (reg >= ZYDIS_REGISTER_RAX && reg <= ZYDIS_REGISTER_R15);
}

static int8_t number_of(ZydisRegister reg)
{
	if (reg >= ZYDIS_REGISTER_EAX && reg <= ZYDIS_REGISTER_R15D)
		return (int8_t)(reg - ZYDIS_REGISTER_EAX);
	if (reg >= ZYDIS_REGISTER_RAX && reg <= ZYDIS_REGISTER_R15)
		return (int8_t)(reg - ZYDIS_REGISTER_RAX);
	return -1;
}

/* They touch nothing that a program could tell: hints, and no-ops with an operand. */
static bool is_hint(const ZydisDecodedInstruction *zi)
{
	switch (zi->meta.category) {
	case ZYDIS_CATEGORY_PREFETCH:
	case ZYDIS_CATEGORY_NOP:
	case ZYDIS_CATEGORY_WIDENOP:
		return true;
	default:
		return zi->mnemonic == ZYDIS_MNEMONIC_LEA ||
		       zi->mnemonic == ZYDIS_MNEMONIC_CLFLUSH ||
		       zi->mnemonic == ZYDIS_MNEMONIC_CLFLUSHOPT ||
		       zi->mnemonic == ZYDIS_MNEMONIC_CLWB;
	}
}

static bool is_repeated(const ZydisDecodedInstruction *zi)
{
	return zi->meta.category == ZYDIS_CATEGORY_STRINGOP &&
	       zi->attributes &
		       (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE);
}

/* Where they touch memory is more than an operand's address and size says. */
static bool is_involved(const ZydisDecodedInstruction *zi, const ZydisDecodedOperand *ops)
{
	switch (zi->mnemonic) {
	case ZYDIS_MNEMONIC_BT: /* by a register: as far from the operand as it says */
	case ZYDIS_MNEMONIC_BTS:
	case ZYDIS_MNEMONIC_BTR:
	case ZYDIS_MNEMONIC_BTC:
		return ops[1].type == ZYDIS_OPERAND_TYPE_REGISTER;
	case ZYDIS_MNEMONIC_XLAT: /* by %al alone */
	case ZYDIS_MNEMONIC_ENTER:
	case ZYDIS_MNEMONIC_IRETQ:
		return true;
	case ZYDIS_MNEMONIC_CMPSB: /* how far they come is known afterwards */
	case ZYDIS_MNEMONIC_CMPSW:
	case ZYDIS_MNEMONIC_CMPSD:
	case ZYDIS_MNEMONIC_CMPSQ:
	case ZYDIS_MNEMONIC_SCASB:
	case ZYDIS_MNEMONIC_SCASW:
	case ZYDIS_MNEMONIC_SCASD:
	case ZYDIS_MNEMONIC_SCASQ:
		return is_repeated(zi);
	case ZYDIS_MNEMONIC_INSB:
	case ZYDIS_MNEMONIC_INSW:
	case ZYDIS_MNEMONIC_INSD:
	case ZYDIS_MNEMONIC_OUTSB:
	case ZYDIS_MNEMONIC_OUTSW:
	case ZYDIS_MNEMONIC_OUTSD:
		return true;
	default:
		return false;
	}
}

/* False: there is no saying where, or how much. */
static bool put_access(struct insn_access *a, const ZydisDecodedInstruction *zi,
		       const ZydisDecodedOperand *o, bool is_visible, uint64_t addr)
{
	*a = (struct insn_access){
		.base = number_of(o->mem.base),
		.index = number_of(o->mem.index),
		.scale = o->mem.scale ? o->mem.scale : 1,
		.reads = o->actions & ZYDIS_OPERAND_ACTION_MASK_READ,
		.writes = o->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE,
		.size = (uint16_t)(o->size / 8),
		.disp = o->mem.disp.has_displacement ? o->mem.disp.value : 0,
		.is_narrow = zi->address_width == 32,
	};
	if (o->mem.segment == ZYDIS_REGISTER_FS)
		a->segment = 0x64;
	if (o->mem.segment == ZYDIS_REGISTER_GS)
		a->segment = 0x65;
	if (o->mem.base == ZYDIS_REGISTER_RIP && o->mem.index == ZYDIS_REGISTER_NONE) {
		a->rip_relative = true;
		a->disp += (int64_t)(addr + zi->length);
	} else if (!is_general(o->mem.base) || !is_general(o->mem.index)) {
		return false;
	}
	if (!is_visible && o->mem.base == ZYDIS_REGISTER_RSP) {
		a->is_narrow = false;
		if (a->writes && !a->reads)
			a->disp -= a->size; /* below it */
	}
	/* pop reckons with the stack pointer that it leaves */
	if (is_visible && zi->mnemonic == ZYDIS_MNEMONIC_POP && o->mem.base == ZYDIS_REGISTER_RSP)
		a->disp += a->size;
	return a->size && o->size / 8 < 4096 && (a->reads || a->writes);
}

bool insn_accesses(struct insn_accesses *out, const uint8_t *code, size_t avail, uint64_t addr)
{
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction zi;
	ZydisDecoderContext ctx;

	memset(out, 0, sizeof(*out));
	pthread_once(&decoder_once, init_decoder);
	if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder, &ctx, code, avail, &zi)) ||
	    !ZYAN_SUCCESS(ZydisDecoderDecodeOperands(&decoder, &ctx, &zi, ops, zi.operand_count)))
		return false;
	if (is_hint(&zi))
		return true;
	for (unsigned i = 0; i < zi.operand_count; i++) {
		const ZydisDecodedOperand *o = &ops[i];

		if (o->type != ZYDIS_OPERAND_TYPE_MEMORY || o->mem.type == ZYDIS_MEMOP_TYPE_AGEN)
			continue;
		if (out->n == INSN_ACCESSES ||
		    !put_access(&out->v[out->n++], &zi, o, i < zi.operand_count_visible, addr)) {
			out->is_unknown = true;
			break;
		}
	}
	out->is_unknown |= out->n && is_involved(&zi, ops);
	out->is_repeated = out->n && is_repeated(&zi);
	if (out->is_unknown)
		out->n = 0;
	return true;
}
