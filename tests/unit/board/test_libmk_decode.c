/* SPDX-License-Identifier: MIT */
/*
 * test_libmk_decode.c - libmk's decoder against Zydis: what it takes, it takes for the same.
 *
 * Random bytes, and random changes of encodings that exist.  Prints TAP.
 */
#include <Zydis/Zydis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "board/libmk/insn.h"

#define ROUNDS 3000000u

static uint64_t seed = 0x5993557119941997ull;

static uint64_t next(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static bool fetch(void *from, unsigned i, uint8_t *byte)
{
	*byte = ((const uint8_t *)from)[i];
	return true;
}

/* Beginnings that lead into the tables; the rest is random. */
static void make(uint8_t *b)
{
	static const uint8_t prefixes[] = {0x66, 0x67, 0xf0, 0xf2, 0xf3, 0x2e, 0x64};
	unsigned i, at = 0, way = next() % 8;

	for (i = 0; i < 16; i++)
		b[i] = (uint8_t)next();
	while (next() % 3 == 0 && at < 3)
		b[at++] = prefixes[next() % sizeof(prefixes)];
	if (way < 5 && next() % 2)
		b[at++] = (uint8_t)(0x40 | next() % 16);
	if (way == 3 || way == 4)
		b[at++] = 0x0f;
	if (way == 4 && next() % 4 == 0)
		b[at++] = 0x38;
	if (way == 5)
		b[at++] = 0xc5;
	if (way == 6) {
		b[at++] = 0xc4;
		b[at] = (uint8_t)((b[at] & 0xe0) | (1 + next() % 2));
	}
	if (way == 7) {
		b[at] = 0x62;
		b[at + 1] = (uint8_t)((b[at + 1] & 0xf0) | (1 + next() % 2));
		b[at + 2] |= 4;
		b[at + 3] &= next() % 4 ? 0x68 : 0xff;
	}
}

static const ZydisDecodedOperand *memory_operand(const ZydisDecodedInstruction *z,
						 const ZydisDecodedOperand *ops)
{
	unsigned i;

	for (i = 0; i < z->operand_count; i++) {
		if (ops[i].type == ZYDIS_OPERAND_TYPE_MEMORY)
			return &ops[i];
	}
	return NULL;
}

static unsigned base_of(const ZydisDecodedOperand *m)
{
	if (m->mem.base == ZYDIS_REGISTER_NONE)
		return INSN_NO_REG;
	if (m->mem.base == ZYDIS_REGISTER_RIP || m->mem.base == ZYDIS_REGISTER_EIP)
		return INSN_RIP;
	return (unsigned)ZydisRegisterGetId(m->mem.base);
}

static unsigned index_of(const ZydisDecodedOperand *m)
{
	return m->mem.index == ZYDIS_REGISTER_NONE ? INSN_NO_REG
						   : (unsigned)ZydisRegisterGetId(m->mem.index);
}

static bool writes_memory(const ZydisDecodedOperand *m)
{
	return m->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE;
}

static const char *compare_memory(const struct insn *i, const ZydisDecodedOperand *m)
{
	if (m->size / 8 != i->size)
		return "size";
	if (i->op == INSN_MOVS || i->op == INSN_STOS || i->op == INSN_LODS)
		return NULL;
	if (base_of(m) != i->base)
		return "base";
	if (index_of(m) != i->index || (i->index != INSN_NO_REG && m->mem.scale != i->scale))
		return "index";
	if ((m->mem.disp.has_displacement ? m->mem.disp.value : 0) != i->disp)
		return "displacement";
	/* cmpxchg and the like write always, to Zydis conditionally */
	if (writes_memory(m) != i->to_mem)
		return "direction";
	return NULL;
}

static const char *compare(const struct insn *i, const ZydisDecodedInstruction *z,
			   const ZydisDecodedOperand *ops)
{
	const ZydisDecodedOperand *m = memory_operand(z, ops);

	if (z->length != i->len)
		return "length";
	if (!m)
		return "no memory operand";
	return compare_memory(i, m);
}

static void show(const uint8_t *b, unsigned n, const char *what)
{
	unsigned i;

	printf("# %s:", what);
	for (i = 0; i < n; i++)
		printf(" %02x", b[i]);
	printf("\n");
}

int main(int argc, char **argv)
{
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
	unsigned taken = 0, bad = 0, invalid = 0, i;
	ZydisDecodedInstruction z;
	ZydisDecoder decoder;
	struct insn insn;
	uint8_t b[16];
	const char *what;

	if (argc > 1)
		seed = strtoull(argv[1], NULL, 0) | 1;
	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	for (i = 0; i < ROUNDS; i++) {
		make(b);
		if (!insn_decode(&insn, fetch, b))
			continue;
		/* What the processor does not execute never faults on memory. */
		if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, b, 15, &z, ops))) {
			invalid++;
			continue;
		}
		taken++;
		what = compare(&insn, &z, ops);
		if (what && bad++ < 20)
			show(b, z.length, what);
	}
	printf("# %u taken, %u of them differ; %u that do not exist\n", taken, bad, invalid);
	printf("%sok 1 - what the decoder takes, Zydis takes for the same\n1..1\n",
	       bad || taken < ROUNDS / 50 ? "not " : "");
	return bad != 0 || taken < ROUNDS / 50;
}
