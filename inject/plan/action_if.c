/* SPDX-License-Identifier: MIT */
/* action_if.c - see action_if.h */
#include "inject/plan/action_if.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include <kron/segment.h>
#include <kron/wire.h>

enum { RAX = 0, RCX = 1 };

#define EMIT(s, literal) stub_bytes(s, literal, sizeof(literal) - 1)

/* A register, or a word of the stack: disp(%rsp). */
struct operand {
	int reg; /* -1: memory */
	uint8_t disp;
};

/* As action_emit_sample() has pushed them. */
static struct operand operand_of(const struct place_condition *c)
{
	if (c->what == CONDITION_PAYLOAD)
		return (struct operand){-1, 0};
	if (c->reg == RAX)
		return (struct operand){-1, 8};
	if (c->reg == RCX)
		return (struct operand){-1, 16};
	return (struct operand){c->reg, 0};
}

/* opcode with `field` and the operand; the REX byte also makes %sil and %dil of bytes. */
static void emit_op(struct stub *s, bool is_64, const char *opcode, unsigned field,
		    struct operand o)
{
	uint8_t rex = 0x40 | (is_64 ? 8 : 0), modrm;

	if (o.reg >= 8)
		rex |= 1;
	modrm = (uint8_t)(o.reg < 0 ? 0x44 | field << 3
				    : 0xc0 | field << 3 | ((unsigned)o.reg & 7));
	stub_bytes(s, &rex, 1);
	stub_bytes(s, opcode, (unsigned)strlen(opcode));
	stub_bytes(s, &modrm, 1);
	if (o.reg < 0)
		stub_bytes(s, (uint8_t[]){0x24, o.disp}, 2);
}

static bool is_short(uint64_t v)
{
	return v == (uint64_t)(int32_t)v;
}

static bool needs_scratch(const struct place_condition *c)
{
	return c->what == CONDITION_CPU || c->has_mask || c->bits < 32 ||
	       (c->bits == 64 && !is_short(c->number));
}

static void emit_movabs(struct stub *s, uint64_t v)
{
	EMIT(s, "\x48\xb9"); /* movabs $v,%rcx */
	stub_bytes(s, &v, 8);
}

/* What is to be compared, to %rcx. */
static void emit_load(struct stub *s, const struct place_condition *c)
{
	struct operand o = operand_of(c);

	if (c->what == CONDITION_CPU) {
		EMIT(s, "\xb9\x7b\0\0\0\x0f\x03\xc9\x81\xe1\xff\x0f\0\0"); /* mov $0x7b,%ecx; lsl
									       %ecx,%ecx; and
									       $0xfff,%ecx */
	} else if (c->bits == 64 && c->has_mask) {
		emit_movabs(s, c->mask);
		emit_op(s, true, "\x23", RCX, o); /* and o,%rcx */
		return;
	} else if (c->bits >= 32) {
		emit_op(s, c->bits == 64, "\x8b", RCX, o); /* mov o,%rcx */
	} else if (c->bits == 16) {
		emit_op(s, false, c->is_signed ? "\x0f\xbf" : "\x0f\xb7", RCX, o);
	} else {
		emit_op(s, false, c->is_signed ? "\x0f\xbe" : "\x0f\xb6", RCX, o);
	}
	if (!c->has_mask)
		return;
	EMIT(s, "\x81\xe1"); /* and $mask,%ecx */
	stub_u32(s, (uint32_t)c->mask);
}

static void emit_compare(struct stub *s, const struct place_condition *c)
{
	struct operand o = operand_of(c);

	if (c->bits == 64 && !is_short(c->number)) {
		emit_movabs(s, c->number);
		emit_op(s, true, "\x39", RCX, o); /* cmp %rcx,o */
		return;
	}
	if (needs_scratch(c)) {
		emit_load(s, c);
		o = (struct operand){RCX, 0};
	}
	emit_op(s, c->bits == 64, "\x81", 7, o); /* cmp $number,o */
	stub_u32(s, (uint32_t)c->number);
}

/* The second opcode byte of the jump that is taken when it does not hold. */
static uint8_t opposite(const struct place_condition *c)
{
	static const uint8_t jumps[2][CONDITION_COMPARES] = {
		{[CONDITION_EQ] = 0x85,  /* jne */
		 [CONDITION_NE] = 0x84,  /* je */
		 [CONDITION_LE] = 0x87,  /* ja */
		 [CONDITION_GE] = 0x82,  /* jb */
		 [CONDITION_LT] = 0x83,  /* jae */
		 [CONDITION_GT] = 0x86}, /* jbe */
		{[CONDITION_EQ] = 0x85,
		 [CONDITION_NE] = 0x84,
		 [CONDITION_LE] = 0x8f,  /* jg */
		 [CONDITION_GE] = 0x8c,  /* jl */
		 [CONDITION_LT] = 0x8d,  /* jge */
		 [CONDITION_GT] = 0x8e}, /* jle */
	};

	return jumps[c->is_signed][c->compare];
}

static void emit_flags_back(struct stub *s)
{
	EMIT(s, "\x04\x7f\x9e"); /* add $0x7f,%al; sahf */
}

void action_if_begin(struct action_if *f, struct stub *s, const struct place_action *a,
		     bool flags_are_dead)
{
	bool used = false;

	*f = (struct action_if){.n = a->nconditions, .flags_are_dead = flags_are_dead};
	if (!f->n)
		return;
	if (!flags_are_dead)
		EMIT(s, "\x9f\x0f\x90\xc0"); /* lahf; seto %al */
	for (unsigned i = 0; i < f->n; i++) {
		emit_compare(s, &a->conditions[i]);
		used |= needs_scratch(&a->conditions[i]);
		stub_bytes(s, (uint8_t[]){0x0f, opposite(&a->conditions[i])}, 2);
		stub_u32(s, 0);
		f->fail[i] = s->len;
	}
	if (!flags_are_dead)
		emit_flags_back(s);
	if (!used)
		return;
	EMIT(s, "\x0f\xb6\x0c\x25"); /* movzbl gate,%ecx */
	stub_u32(s, KRON_GATE_ADDR(a->level));
	EMIT(s, "\xe3\0"); /* jrcxz 3f */
	f->gone = s->len;
}

void action_if_end(const struct action_if *f, struct stub *s)
{
	uint32_t skip = s->len;

	if (f->n && !f->flags_are_dead) {
		EMIT(s, "\xeb\x03"); /* jmp 3f */
		skip = s->len;
		emit_flags_back(s);
	}
	for (unsigned i = 0; i < f->n; i++) {
		uint32_t distance = skip - f->fail[i];

		memcpy(&s->code[f->fail[i] - 4], &distance, sizeof(distance));
	}
	if (f->gone) {
		assert(s->len - f->gone < 128);
		s->code[f->gone - 1] = (uint8_t)(s->len - f->gone);
	}
}

/* ---- what the runtime tests ---- */

_Static_assert((int)KRON_COMPARE_EQ == CONDITION_EQ && (int)KRON_COMPARE_NE == CONDITION_NE &&
		       (int)KRON_COMPARE_LE == CONDITION_LE &&
		       (int)KRON_COMPARE_GE == CONDITION_GE &&
		       (int)KRON_COMPARE_LT == CONDITION_LT && (int)KRON_COMPARE_GT == CONDITION_GT,
	       "wire.h");
_Static_assert(KRON_MEMORY_PLACES == PLACE_DEPTH && KRON_MEMORY_CONDITIONS == PLACE_CONDITIONS &&
		       sizeof(struct kron_memory) < 128,
	       "what the runtime is told, over which a short jump leads");

struct place_action action_if_testable(const struct place_action *a)
{
	struct place_action b = *a;

	b.nconditions = 0;
	for (unsigned i = 0; i < a->nconditions; i++)
		if (!a->nplaces || a->conditions[i].what != CONDITION_PAYLOAD)
			b.conditions[b.nconditions++] = a->conditions[i];
	return b;
}

/* jmp over it; struct kron_memory */
void action_if_memory(struct stub *s, const struct place_action *a)
{
	struct kron_memory m = {.bits = a->bits, .nplaces = a->nplaces, .count = a->count};
	unsigned len;

	memcpy(m.place, a->place, sizeof(m.place));
	for (unsigned i = 0; i < a->nconditions; i++) {
		const struct place_condition *c = &a->conditions[i];

		if (c->what == CONDITION_PAYLOAD)
			m.condition[m.nconditions++] = (struct kron_memory_condition){
				.compare = c->compare,
				.bits = c->bits,
				.is_signed = c->is_signed,
				.mask = c->has_mask ? c->mask : UINT64_MAX,
				.number = c->number};
	}
	len = (unsigned)offsetof(struct kron_memory, condition[m.nconditions]);
	stub_bytes(s, (uint8_t[]){0xeb, (uint8_t)len}, KRON_MEMORY_AT);
	stub_bytes(s, &m, len);
}
