/* SPDX-License-Identifier: MIT */
/* action.c - see action.h for the sequences. */
#include "inject/plan/action.h"

#include <assert.h>
#include <string.h>

#include <kron/board.h>
#include <kron/segment.h>

#include "inject/code/insn_implied.h"
#include "inject/plan/action_if.h"
#include "inject/plan/action_pages.h"

enum { RAX = 0, RCX = 1, RSP = 4, RBP = 5, RSI = 6, RDI = 7, R12 = 12, R13 = 13 };

/* ---- which instructions have an address to show ---- */

static bool has_operand(const struct insn *in, const uint8_t *code)
{
	if (!in->has_mem)
		return insn_implied(in, code).reg >= 0;
	return !in->is_vsib;
}

/* The frame of the probe lies between the program's stack pointer and ours. */
#define FRAME_AT_ADDRESS (128 + 8 + 8)

static bool fits32(int64_t v)
{
	return v == (int32_t)v;
}

enum refusal action_refusal(const struct place_action *a, enum place_where where,
			    const struct insn *in, const uint8_t *code)
{
	uint16_t registers = 0;

	if (a->kind == ACTION_PAGES)
		return action_pages_refusal(where, in, code);
	if (a->payload != PAYLOAD_ADDRESS ||
	    (a->kind != ACTION_TRACE && a->kind != ACTION_RESOURCE))
		return REFUSAL_NONE;
	if (!has_operand(in, code) || !fits32(in->mem_disp + FRAME_AT_ADDRESS + 8))
		return REFUSAL_NO_OPERAND;
	if (where != PLACE_AFTER)
		return REFUSAL_NONE;
	/* taken when the instruction has been executed: only if that changes nothing */
	if (!in->has_mem || in->kind == INSN_CALL_INDIRECT)
		return REFUSAL_OPERAND_GONE;
	if (in->mem_base >= 0 && in->mem_base < 16)
		registers |= (uint16_t)(1u << in->mem_base);
	if (in->mem_index >= 0)
		registers |= (uint16_t)(1u << in->mem_index);
	return registers & (in->regs_written | in->regs_killed) ? REFUSAL_OPERAND_GONE
								: REFUSAL_NONE;
}

/* ---- samples ---- */

#define EMIT(s, literal) stub_bytes(s, literal, sizeof(literal) - 1)

/*
 * lea operand,%rax.  %rcx holds the program's value again; the stack pointer lies
 * FRAME_AT_ADDRESS + below under the program's.
 */
static void emit_lea(struct stub *s, int base, int index, unsigned scale, int64_t disp, bool narrow,
		     unsigned below)
{
	static const uint8_t log2[] = {0, 0, 1, 0, 2, 0, 0, 0, 3};
	uint8_t rex = 0x48;

	if (base == RSP)
		disp += FRAME_AT_ADDRESS + below;
	if (narrow)
		stub_bytes(s, "\x67", 1); /* lea 4(%eax): wraps at 4 GiB */
	rex |= base >= 8 ? 1 : 0;
	rex |= index >= 8 ? 2 : 0;
	stub_bytes(s, (uint8_t[]){rex, 0x8d}, 2);
	if (base < 0) { /* absolute, or index only: SIB without base */
		stub_bytes(s,
			   (uint8_t[]){0x04, (uint8_t)(log2[index < 0 ? 1 : scale] << 6 |
						       (index < 0 ? 4 : index & 7) << 3 | 5)},
			   2);
	} else { /* with a SIB byte and a disp32 every base is regular */
		stub_bytes(s,
			   (uint8_t[]){0x84,
				       (uint8_t)(log2[index < 0 ? 1 : scale] << 6 |
						 (index < 0 ? 4 : index & 7) << 3 | (base & 7))},
			   2);
	}
	stub_u32(s, (uint32_t)disp);
}

/* %rax += the base of the operand's segment; %rcx is used. */
static void emit_segment(struct stub *s, uint8_t segment)
{
	if (segment == 0x64) /* the ABI keeps the thread pointer at its own address */
		EMIT(s, "\x64\x48\x8b\x0c\x25\0\0\0\0"); /* mov %fs:0,%rcx */
	else
		EMIT(s, "\xf3\x48\x0f\xae\xc9"); /* rdgsbase %rcx */
	EMIT(s, "\x48\x8d\x04\x08");             /* lea (%rax,%rcx),%rax */
}

/* The address of the operand, pushed.  %rcx holds the gate before and after. */
static void emit_address(struct stub *s, const struct insn *in, const uint8_t *code)
{
	EMIT(s, "\x51"); /* push %rcx */
	stub_shape(s, KRON_SHAPE_152);
	EMIT(s, "\x48\x8b\x4c\x24\x10"); /* mov  16(%rsp),%rcx */
	if (in->has_mem && in->rip_relative) {
		EMIT(s, "\x48\x8d\x05"); /* lea target(%rip),%rax */
		stub_fixup32(s, FIXUP_MODULE_REL32, 4, in->target);
	} else if (in->has_mem) {
		emit_lea(s, in->mem_base, in->mem_index, in->mem_scale, in->mem_disp, in->is_narrow,
			 8);
	} else {
		struct insn_implied o = insn_implied(in, code);

		emit_lea(s, o.reg, -1, 1, o.disp, in->is_narrow && o.reg != RSP, 8);
	}
	if (in->has_mem && in->mem_seg)
		emit_segment(s, in->mem_seg);
	EMIT(s, "\x59"); /* pop %rcx */
	stub_shape(s, KRON_SHAPE_144);
	EMIT(s, "\x50"); /* push %rax */
}

static void emit_stack(struct stub *s, int32_t offset)
{
	EMIT(s, "\x48\x8d\x84\x24"); /* lea 144+offset(%rsp),%rax */
	stub_u32(s, (uint32_t)(144 + offset));
	EMIT(s, "\x50"); /* push %rax */
}

static void emit_register(struct stub *s, unsigned reg)
{
	switch (reg) {
	case RCX:
		EMIT(s, "\xff\x74\x24\x08"); /* pushq 8(%rsp) */
		break;
	case RSP:
		emit_stack(s, 0);
		break;
	default:
		if (reg >= 8)
			EMIT(s, "\x41");
		stub_bytes(s, (uint8_t[]){0x50 | (reg & 7)}, 1);
	}
}

/* What a push cannot extend to 64 bits. */
static bool is_long_immediate(const struct place_action *a)
{
	return a->payload == PAYLOAD_IMM && a->is_wide && a->value != (uint64_t)(int32_t)a->value;
}

static void emit_immediate(struct stub *s, const struct place_action *a)
{
	const bool is_long = is_long_immediate(a);

	stub_bytes(s, is_long ? "\x48\xb8" : "\x68", is_long ? 2 : 1); /* movabs $,%rax; pushq $ */
	stub_bytes(s, &a->value, is_long ? 8 : 4);
	if (is_long)
		EMIT(s, "\x50"); /* push %rax */
}

static void emit_vaddr(struct stub *s, uint64_t vaddr)
{
	EMIT(s, "\x48\x8d\x05"); /* lea vaddr(%rip),%rax */
	stub_fixup32(s, FIXUP_MODULE_REL32, 4, vaddr);
	EMIT(s, "\x50"); /* push %rax */
}

static void emit_payload(struct stub *s, const struct place_action *a, const struct insn *in,
			 const uint8_t *code)
{
	switch ((enum payload_kind)a->payload) {
	case PAYLOAD_SP:
		emit_stack(s, (int32_t)a->value);
		return;
	case PAYLOAD_REG:
		emit_register(s, a->reg);
		return;
	case PAYLOAD_ADDRESS:
		emit_address(s, in, code);
		return;
	case PAYLOAD_IMM:
		emit_immediate(s, a);
		return;
	case PAYLOAD_VADDR:
		emit_vaddr(s, a->value);
		return;
	case PAYLOAD_ZERO:
	case PAYLOAD_KINDS:
		break;
	}
	EMIT(s, "\x6a\0"); /* pushq $0 */
}

/* The last fixup added belongs here; its offset is ours to set. */
static struct plan_fixup *add_fixup(struct stub *s, enum fixup_kind kind, uint64_t value)
{
	struct plan_fixup *f = &s->fixups[s->nfixups++];

	assert(s->nfixups <= STUB_FIXUPS_MAX);
	*f = (struct plan_fixup){.off = s->len, .kind = kind, .value = value};
	return f;
}

/* jrcxz 1f; its distance is put in by end_gate().  A short jump does not reach over long conditions. */
static unsigned begin_gate(struct stub *s, const struct place_action *a)
{
	if (a->nconditions + (a->payload == PAYLOAD_ADDRESS || is_long_immediate(a)) <= 2 &&
	    !a->nplaces)
		EMIT(s, "\xe3\0");
	else
		EMIT(s, "\xe3\x02\xeb\x05\xe9\0\0\0\0"); /* jrcxz 2f; jmp 3f; 2: jmp 1f; 3: */
	return s->len;
}

static void end_gate(struct stub *s, unsigned jump)
{
	uint32_t distance = s->len - jump;

	if (s->code[jump - 2] == 0xe3 && !s->code[jump - 1]) {
		assert(distance < 128);
		s->code[jump - 1] = (uint8_t)distance;
		return;
	}
	memcpy(&s->code[jump - 4], &distance, sizeof(distance));
}

void action_emit_sample(struct stub *s, const struct place_action *a, uint32_t probe,
			const struct insn *in, const uint8_t *code, bool flags_are_dead)
{
	const struct place_action tested = action_if_testable(a);
	unsigned start = s->len, jump, place = s->nfixups;
	struct action_if conditions;

	add_fixup(s, FIXUP_PLACE, 0);
	stub_shape(s, KRON_SHAPE_START);
	EMIT(s, "\x48\x8d\x64\x24\x80"); /* lea -128(%rsp),%rsp */
	stub_shape(s, KRON_SHAPE_128);
	EMIT(s, "\x51"); /* push %rcx */
	stub_shape(s, KRON_SHAPE_136);
	EMIT(s, "\x0f\xb6\x0c\x25"); /* movzbl gate,%ecx */
	stub_u32(s, KRON_GATE_ADDR(a->level));
	jump = begin_gate(s, a);
	EMIT(s, "\x50"); /* push %rax */
	stub_shape(s, KRON_SHAPE_144);
	emit_payload(s, a, in, code);
	stub_shape(s, KRON_SHAPE_152);
	action_if_begin(&conditions, s, &tested, flags_are_dead);
	if (a->kind == ACTION_RESOURCE) {
		EMIT(s, "\x8d\x89"); /* lea KRON_GATE_RESOURCE(%rcx),%ecx */
		stub_u32(s, KRON_GATE_RESOURCE);
	}
	EMIT(s, "\xb8"); /* mov $event,%eax */
	stub_fixup32(s, FIXUP_EVENT, 0, probe);
	EMIT(s, "\xe8"); /* call block + KRON_BLOCK_PAYLOAD */
	stub_fixup32(s, FIXUP_BLOCK_REL32, 4,
		     a->nplaces   ? KRON_BLOCK_MEMORY
		     : a->is_wide ? KRON_BLOCK_WIDE
				  : KRON_BLOCK_PAYLOAD);
	if (a->nplaces)
		action_if_memory(s, a);
	action_if_end(&conditions, s);
	EMIT(s, "\x48\x8d\x64\x24\x08"); /* lea 8(%rsp),%rsp */
	stub_shape(s, KRON_SHAPE_144);
	EMIT(s, "\x58"); /* pop %rax */
	stub_shape(s, KRON_SHAPE_136);
	end_gate(s, jump);
	EMIT(s, "\x59"); /* 1: pop %rcx */
	stub_shape(s, KRON_SHAPE_128);
	EMIT(s, "\x48\x8d\xa4\x24\x80\0\0\0"); /* lea 128(%rsp),%rsp */
	action_room_put(&s->fixups[place], &(struct action_room){
						   .probe = probe,
						   .hot = (uint8_t)(s->len - start),
					   });
	assert(s->len - start <= UINT8_MAX);
}

/* ---- counts and stores ---- */

void action_room_put(struct plan_fixup *f, const struct action_room *room)
{
	f->addend = room->hot;
	f->aux = room->dead.regs | (uint32_t)room->dead.flags << 16 | (uint32_t)room->bank << 17;
	f->value = room->probe | (uint64_t)room->cold << 32 | (uint64_t)room->times << 48;
}

void action_room_get(struct action_room *room, const struct plan_fixup *f)
{
	*room = (struct action_room){
		.probe = (uint32_t)f->value,
		.cold = (uint16_t)(f->value >> 32),
		.times = (uint16_t)(f->value >> 48),
		.hot = f->addend,
		.bank = f->aux >> 17 & 3,
		.dead = {(uint16_t)f->aux, f->aux >> 16 & 1},
	};
}

/* A hot part being written. */
struct hot {
	uint8_t code[ACTION_HOT_MAX];
	unsigned len;
	const struct place_action *a;
	const struct action_room *room;
	uint32_t number;  /* CALLS: which counter */
	uint16_t saved;   /* registers on the stack: %rax, then %rcx */
	bool saves_flags; /* they are in %ax */
	bool is_short;    /* flags are dead: it may do arithmetic on the stack pointer */
	unsigned skip;    /* where the gate's je has its distance; 0: no gate */
	unsigned slow;    /* where the jump to the cold part has its own; 0: there is none */
	unsigned back;    /* where the cold part leads back to */
	unsigned rest;    /* where what was saved is taken back */
};

static void put(struct hot *h, const void *bytes, unsigned n)
{
	assert(h->len + n <= sizeof(h->code));
	memcpy(h->code + h->len, bytes, n);
	h->len += n;
}
#define PUT(h, literal) put(h, literal, sizeof(literal) - 1)

static void put32(struct hot *h, uint32_t v)
{
	put(h, &v, 4);
}

static bool is_count(const struct hot *h)
{
	return h->a->kind == ACTION_COUNT || h->a->kind == ACTION_CALLS;
}

static bool needs_flags(const struct hot *h)
{
	return is_count(h) || !h->a->ungated;
}

/* For a counter's address; the flags want %rax. */
static unsigned pointer_register(const struct hot *h)
{
	uint16_t dead = h->room->dead.regs;

	if (h->saves_flags)
		dead &= (uint16_t) ~(1u << RAX);
	for (unsigned r = 0; r < 16; r++)
		if (dead >> r & 1 && r != RSP && r != R12)
			return r;
	return h->saves_flags ? RCX : RAX;
}

static void save(struct hot *h)
{
	uint16_t wanted = h->saves_flags ? 1u << RAX : 0;

	if (is_count(h))
		wanted |= (uint16_t)(1u << pointer_register(h));
	h->saved = wanted & (uint16_t)~h->room->dead.regs;
	h->is_short = h->saved && h->room->dead.flags;
	if (h->is_short)
		PUT(h, "\x48\x83\xc4\x80"); /* add $-128,%rsp */
	else if (h->saved)
		PUT(h, "\x48\x8d\x64\x24\x80"); /* lea -128(%rsp),%rsp */
	if (h->saved & 1 << RAX)
		PUT(h, "\x50"); /* push %rax */
	if (h->saved & 1 << RCX)
		PUT(h, "\x51"); /* push %rcx */
	if (h->saves_flags)
		PUT(h, "\x9f\x0f\x90\xc0"); /* lahf; seto %al */
}

static void restore(struct hot *h)
{
	if (h->skip)
		h->code[h->skip] = (uint8_t)(h->len - (h->skip + 1));
	if (h->saves_flags)
		PUT(h, "\x04\x7f\x9e"); /* add $127,%al; sahf */
	h->rest = h->len;
	if (h->saved & 1 << RCX)
		PUT(h, "\x59"); /* pop %rcx */
	if (h->saved & 1 << RAX)
		PUT(h, "\x58"); /* pop %rax */
	if (h->is_short)
		PUT(h, "\x48\x83\xec\x80"); /* sub $-128,%rsp */
	else if (h->saved)
		PUT(h, "\x48\x8d\xa4\x24\x80\0\0\0"); /* lea 128(%rsp),%rsp */
}

static void put_gate(struct hot *h)
{
	if (h->a->ungated)
		return;
	PUT(h, "\xf6\x04\x25"); /* testb $KRON_GATE_TAKE,gate */
	put32(h, KRON_GATE_ADDR(h->a->level));
	PUT(h, "\x01\x74\0"); /* je: to restore() */
	h->skip = h->len - 1;
}

static void put_rex(struct hot *h, unsigned reg, unsigned base)
{
	put(h, (uint8_t[]){(uint8_t)(0x48 | (reg >= 8) << 2 | (base >= 8))}, 1);
}

/* Where the counter is, from the pointer. */
static int32_t counter_at(const struct hot *h)
{
	int bank = (int)h->room->bank - (int)KRON_COUNT_BANK;

	return 8 * (bank * (int)KRON_COUNTERS + h->a->word);
}

static bool is_near(const struct hot *h)
{
	return counter_at(h) == (int8_t)counter_at(h);
}

/* opcode /0 counter(%p) */
static void put_operand(struct hot *h, unsigned p, uint8_t opcode)
{
	put_rex(h, 0, p);
	put(h, (uint8_t[]){opcode, (uint8_t)((is_near(h) ? 0x40 : 0x80) | (p & 7))}, 2);
	if (is_near(h))
		put(h, (uint8_t[]){(uint8_t)counter_at(h)}, 1);
	else
		put32(h, (uint32_t)counter_at(h));
}

/* incq or addq */
static void put_increment(struct hot *h, unsigned p)
{
	unsigned times = h->room->times;

	put_operand(h, p, times == 1 ? 0xff : 0x83);
	if (times != 1)
		put(h, (uint8_t[]){(uint8_t)times}, 1);
}

/* As a base, %rbp and %r13 have a displacement at least. */
static bool wants_disp(unsigned reg)
{
	return (reg & 7) == RBP;
}

/* Which word after %fs:counts leads to it, in bytes. */
static uint8_t calls_at(const struct hot *h)
{
	return (uint8_t)(8 * (KRON_CALLS_WORD + h->number / KRON_CALLS_IN_CHUNK));
}

/* incq number(%p): the displacement is always as long, for the plan does not know the number */
static void put_call_increment(struct hot *h, unsigned p)
{
	put_rex(h, 0, p);
	put(h, (uint8_t[]){0xff, (uint8_t)(0x80 | (p & 7))}, 2);
	put32(h, KRON_CHUNK_HEADER + 8 * (h->number % KRON_CALLS_IN_CHUNK));
}

static void count_on_lane(struct hot *h, int32_t counts)
{
	bool calls = h->a->kind == ACTION_CALLS;
	unsigned p = pointer_register(h);

	PUT(h, "\x64"); /* mov %fs:counts,%p */
	put_rex(h, p, 0);
	put(h, (uint8_t[]){0x8b, (uint8_t)(0x04 | (p & 7) << 3), 0x25}, 3);
	put32(h, (uint32_t)counts);
	put_rex(h, p, p); /* mov (%p),%p */
	if (calls || wants_disp(p))
		put(h,
		    (uint8_t[]){0x8b, (uint8_t)(0x40 | (p & 7) << 3 | (p & 7)),
				calls ? calls_at(h) : 0},
		    3);
	else
		put(h, (uint8_t[]){0x8b, (uint8_t)((p & 7) << 3 | (p & 7))}, 2);
	put_rex(h, p, p); /* test %p,%p */
	put(h, (uint8_t[]){0x85, (uint8_t)(0xc0 | (p & 7) << 3 | (p & 7))}, 2);
	PUT(h, "\x0f\x84"); /* jz cold */
	h->slow = h->len;
	put32(h, 0);
	if (calls)
		put_call_increment(h, p);
	else
		put_increment(h, p);
}

/*
 * Registers of 64 bits.  Any other store has 32: on a bus of 32 bits a wider one would be two,
 * of which the second goes to the next register.
 */
static bool is_wide(unsigned word)
{
	return word == KRON_WORD_TIMESTAMP || word == KRON_WORD_ENABLE || word == KRON_WORD_MODE ||
	       word == KRON_WORD_CLOCK;
}

static void store_on_hardware(struct hot *h)
{
	bool counts = h->a->kind == ACTION_COUNT;
	unsigned word = h->a->word + (counts ? (unsigned)KRON_WORD_INCREMENT : 0);

	if (!counts && is_wide(word))
		PUT(h, "\x48"); /* movq */
	PUT(h, "\xc7\x04\x25"); /* movl $value,word */
	put32(h, KRON_WINDOW_ADDR + KRON_CHIP_BYTE(word));
	put32(h, counts ? 1u : (uint32_t)h->a->value);
}

static void go_cold(struct hot *h)
{
	PUT(h, "\xe9"); /* jmp cold */
	h->slow = h->len;
	put32(h, 0);
}

/* No-ops of 1 to 9 bytes, as the manuals recommend them. */
static void put_nops(struct hot *h, unsigned n)
{
	static const uint8_t nops[9][9] = {
		{0x90},
		{0x66, 0x90},
		{0x0f, 0x1f, 0x00},
		{0x0f, 0x1f, 0x40, 0x00},
		{0x0f, 0x1f, 0x44, 0x00, 0x00},
		{0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00},
		{0x0f, 0x1f, 0x80, 0x00, 0x00, 0x00, 0x00},
		{0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00},
		{0x66, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00},
	};

	for (; n > 9; n -= 9)
		put(h, nops[8], 9);
	if (n)
		put(h, nops[n - 1], n);
}

/* Bytes between the gate and restore(): what the longest bus needs. */
static unsigned middle_len(const struct hot *h)
{
	if (h->a->kind == ACTION_STORE)
		return 12;
	if (h->a->kind == ACTION_CALLS)
		return 29;
	return 25 + wants_disp(pointer_register(h)) + (h->room->times != 1) + (is_near(h) ? 0 : 3);
}

static void make_hot(struct hot *h, const struct place_action *a, const struct action_room *room,
		     const struct action_ground *ground)
{
	unsigned start;

	*h = (struct hot){.a = a, .room = room, .number = ground->number};
	h->saves_flags = needs_flags(h) && !room->dead.flags;
	save(h);
	put_gate(h);
	start = h->len;
	if (ground->way == KRON_THUNK_HARDWARE && room->times <= 1 && a->kind != ACTION_CALLS)
		store_on_hardware(h);
	else if (is_count(h) && kron_thunk_is_lane(ground->way) && ground->counts)
		count_on_lane(h, ground->counts);
	else
		go_cold(h);
	put_nops(h, middle_len(h) - (h->len - start));
	h->back = h->len;
	restore(h);
}

unsigned action_hot_len(const struct place_action *a, const struct action_room *room)
{
	struct hot h;

	make_hot(&h, a, room, &(struct action_ground){.way = KRON_THUNK_LANE});
	return h.len;
}

/* Depth of the stack in the hot part's middle, in bytes. */
static unsigned depth_of(const struct hot *h)
{
	return !h->saved ? 0 : 128 + 8 * (unsigned)__builtin_popcount(h->saved);
}

/* The code is bind.c's. */
static const uint8_t blank[ACTION_HOT_MAX];

/* After the code. */
static unsigned number_len(const struct hot *h)
{
	return h->a->kind == ACTION_CALLS ? sizeof(h->number) : 0;
}

static unsigned cold_len(const struct hot *h)
{
	return (h->saved ? ACTION_COLD_CODE - 5 : ACTION_COLD_CODE) + number_len(h);
}

/* The pieces that the hot part consists of, as unwinders see them. */
static void emit_blank(struct stub *s, const struct hot *h)
{
	if (!h->saved) {
		stub_shape(s, KRON_SHAPE_START);
		stub_bytes(s, blank, h->len);
		return;
	}
	stub_shape(s, depth_of(h) == 144 ? KRON_SHAPE_SAVE_2
		      : h->is_short      ? KRON_SHAPE_SAVE_1_SHORT
					 : KRON_SHAPE_SAVE_1);
	stub_bytes(s, blank, h->rest);
	stub_shape(s, depth_of(h) == 144 ? KRON_SHAPE_REST_2 : KRON_SHAPE_REST_1);
	stub_bytes(s, blank, h->len - h->rest);
}

unsigned action_emit_hot(struct stub *s, const struct place_action *a, uint32_t probe,
			 unsigned times, unsigned bank, struct dead dead)
{
	struct action_room room = {.probe = probe,
				   .times = (uint16_t)times,
				   .bank = (uint8_t)(bank % KRON_COUNT_BANKS),
				   .dead = dead};
	unsigned fixup = s->nfixups;
	struct hot h;

	make_hot(&h, a, &room, &(struct action_ground){.way = KRON_THUNK_LANE});
	room.hot = (uint8_t)h.len;
	add_fixup(s, FIXUP_PLACE, 0);
	action_room_put(&s->fixups[fixup], &room);
	emit_blank(s, &h);
	return fixup;
}

void action_emit_cold(struct stub *s, const struct place_action *a, unsigned fixup,
		      unsigned window_off)
{
	struct action_room room;
	struct hot h;

	action_room_get(&room, &s->fixups[fixup]);
	make_hot(&h, a, &room, &(struct action_ground){.way = KRON_THUNK_LANE});
	room.cold = (uint16_t)s->len;
	action_room_put(&s->fixups[fixup], &room);
	stub_shape(s, depth_of(&h) == 144   ? KRON_SHAPE_COLD_144
		      : depth_of(&h) == 136 ? KRON_SHAPE_COLD_136
					    : KRON_SHAPE_COLD);
	stub_settle(s, window_off);
	stub_bytes(s, blank, cold_len(&h));
}

unsigned action_cold_len(const struct place_action *a, const struct action_room *room)
{
	struct hot h;

	make_hot(&h, a, room, &(struct action_ground){.way = KRON_THUNK_LANE});
	return cold_len(&h);
}

unsigned action_shape_depth(enum kron_shape shape, unsigned pos)
{
	switch ((int)shape) {
	case KRON_SHAPE_128 ... KRON_SHAPE_152:
		return 16 + (shape - KRON_SHAPE_128);
	case KRON_SHAPE_COLD_136:
	case KRON_SHAPE_COLD_144: /* push; call, which takes it back; jmp */
		return 17 + (shape - KRON_SHAPE_COLD_136) + (pos >= 2 && pos < 7);
	case KRON_SHAPE_COLD: /* lea; push; call, which takes both back; jmp */
		return pos < 5 || pos >= 12 ? 0 : 16 + (pos >= 7);
	case KRON_SHAPE_SAVE_1: /* lea; push */
		return pos < 5 ? 0 : 16 + (pos >= 6);
	case KRON_SHAPE_SAVE_1_SHORT: /* add; push */
		return pos < 4 ? 0 : 16 + (pos >= 5);
	case KRON_SHAPE_SAVE_2: /* lea; push; push */
		return pos < 5 ? 0 : 16 + (pos >= 6) + (pos >= 7);
	case KRON_SHAPE_REST_1: /* pop; lea or sub */
		return 16 + (pos < 1);
	case KRON_SHAPE_REST_2: /* pop; pop; lea */
		return 16 + (pos < 1) + (pos < 2);
	}
	return 0;
}

static void store32(uint8_t *at, uint32_t v)
{
	memcpy(at, &v, sizeof(v));
}

static uint32_t action_code(const struct place_action *a)
{
	bool counts = a->kind == ACTION_COUNT;
	unsigned word = a->word + (counts ? (unsigned)KRON_WORD_INCREMENT : 0);

	return KRON_ACTION(word, a->level) | (a->ungated ? 0 : KRON_ACTION_GATED) |
	       (counts ? KRON_ACTION_COUNT : 0) | (a->kind == ACTION_CALLS ? KRON_ACTION_CALLS : 0);
}

/* The cold part, but for its rel32 to the common.  Returns where that is, 0 when it is not used. */
static unsigned fill_cold(uint8_t *stub, const struct plan_fixup *f, const struct hot *h)
{
	static const uint8_t code[ACTION_COLD_CODE] = {
		0x48, 0x8d, 0x64, 0x24, 0x80, /* lea   -128(%rsp),%rsp */
		0x6a, 0,                      /* pushq $times */
		0xe8, 0,    0,    0,    0,    /* call  common */
		0xe9, 0,    0,    0,    0,    /* jmp   back */
	};
	unsigned len = cold_len(h) - number_len(h), end = h->room->cold + len;

	memcpy(stub + h->room->cold, code + sizeof(code) - len, len);
	if (!h->slow) /* nothing leads there */
		return 0;
	store32(stub + f->off + h->slow, h->room->cold - (f->off + h->slow + 4));
	stub[end - 11] = (uint8_t)h->room->times;
	store32(stub + end - 4, f->off + h->back - end);
	memcpy(stub + end, &h->number, number_len(h));
	return end - 9;
}

unsigned action_fill(uint8_t *stub, const struct plan_fixup *f, const struct place_action *a,
		     const struct action_ground *ground, unsigned *common)
{
	struct action_room room;
	struct hot h;

	action_room_get(&room, f);
	make_hot(&h, a, &room, ground);
	memcpy(stub + f->off, h.code, h.len);
	*common = h.saved ? ACTION_COMMON_LEN : 0;
	return fill_cold(stub, f, &h);
}

void action_fill_common(uint8_t out[2 * ACTION_COMMON_LEN], const struct place_action *a)
{
	static const uint8_t code[] = {
		0x50,                         /* push  %rax */
		0x68, 0,    0,    0,    0,    /* pushq $value; a count's are times: */
		0xb8, 0,    0,    0,    0,    /* mov   $code,%eax */
		0xe8, 0,    0,    0,    0,    /* call  block + KRON_BLOCK_ACTION */
		0x48, 0x8d, 0x64, 0x24, 0x08, /* lea   8(%rsp),%rsp */
		0x58,                         /* pop   %rax */
		0xc2, 0x88, 0,                /* ret   $136 */
	};
	static const uint8_t push_times[] = {0xff, 0x74, 0x24, 0x10, 0x90}; /* pushq 16(%rsp) */
	static const uint8_t push_from[] = {0xff, 0x74, 0x24, 0x08, 0x90};  /* pushq 8(%rsp) */

	memset(out, 0xcc, 2 * ACTION_COMMON_LEN);
	for (unsigned i = 0; i < 2; i++, out += ACTION_COMMON_LEN) {
		memcpy(out, code, sizeof(code));
		if (a->kind == ACTION_COUNT)
			memcpy(out + 1, push_times, sizeof(push_times));
		else if (a->kind == ACTION_CALLS)
			memcpy(out + 1, push_from, sizeof(push_from));
		else
			store32(out + 2, (uint32_t)a->value);
		store32(out + 7, action_code(a));
		if (i)
			out[sizeof(code) - 2] = 8;
	}
}
