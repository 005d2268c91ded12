/* SPDX-License-Identifier: MIT */
/* action_pages.c - see action_pages.h for the sequences. */
#include "inject/plan/action_pages.h"

#include <assert.h>
#include <string.h>

#include <kron/segment.h>
#include <kron/wire.h>

#include "inject/plan/action.h"

enum { RAX = 0, RCX = 1, RDX = 2, RSP = 4, RBP = 5, RSI = 6, R12 = 12, R13 = 13 };
#define RUN_REGISTERS 6 /* whose addresses are held, so that there are others to work with */

/* ---- what an instruction touches ---- */

static bool fits32(int64_t v)
{
	return v == (int32_t)v && v + 256 == (int32_t)(v + 256);
}

/* What no instruction of ours can say: as far as a stack pointer that has been moved. */
static bool can_say(const struct insn_access *a)
{
	if (!a->rip_relative && !fits32(a->disp))
		return false;
	return !a->is_narrow || a->base != RSP;
}

enum refusal action_pages_refusal(enum place_where where, const struct insn *in,
				  const uint8_t *code)
{
	struct insn_accesses a;

	if (where != PLACE_BEFORE || !insn_accesses(&a, code, in->len, in->addr) || a.is_unknown)
		return REFUSAL_NO_OPERAND;
	for (unsigned i = 0; i < a.n; i++)
		if (!can_say(&a.v[i]))
			return REFUSAL_NO_OPERAND;
	return REFUSAL_NONE;
}

unsigned action_pages_take(struct pages_group out[INSN_ACCESSES], const struct insn *in,
			   const uint8_t *code)
{
	struct insn_accesses a;

	insn_accesses(&a, code, in->len, in->addr);
	if (a.is_repeated) { /* one slow part for both */
		out[0] = (struct pages_group){.n = a.n, .places = 1, .is_repeated = true};
		memcpy(out[0].v, a.v, a.n * sizeof(a.v[0]));
		return 1;
	}
	for (unsigned i = 0; i < a.n; i++)
		out[i] = (struct pages_group){.v = {a.v[i]}, .n = 1, .places = !i};
	return a.n;
}

bool action_pages_goes_on(const struct insn *in)
{
	return (in->kind == INSN_PLAIN && in->op != INSN_OP_PORT) || in->kind == INSN_PADDING;
}

int action_pages_step(const uint8_t *code, unsigned len)
{
	bool rex = (code[0] & 0xf0) == 0x40;
	unsigned op = code[rex];

	if (len < 2u + rex)
		return (op & 0xf8) == 0x50   ? -8
		       : op == 0x5c && !rex  ? 0
		       : (op & 0xf8) == 0x58 ? 8
					     : 0;
	switch (op) {
	case 0x68:
	case 0x6a:
		return -8;
	case 0x8f:
		return 8;
	case 0xff:
		return (code[rex + 1] >> 3 & 7) == 6 ? -8 : 0;
	}
	if (code[0] == 0x48 && op == 0x83 && code[2] == 0xec) /* sub $imm8,%rsp */
		return -(int8_t)code[3];
	if (code[0] == 0x48 && op == 0x83 && code[2] == 0xc4) /* add $imm8,%rsp */
		return (int8_t)code[3];
	return 0;
}

bool action_pages_moves_stack(const struct insn *in, const uint8_t *code)
{
	struct insn_accesses a;

	if (in->regs_written & 1u << RSP)
		return true;
	insn_accesses(&a, code, in->len, in->addr); /* a push */
	for (unsigned i = 0; i < a.n; i++)
		if (a.v[i].base == RSP && a.v[i].writes && !a.v[i].reads &&
		    (!in->has_mem || in->mem_base != RSP || a.n > 1))
			return true;
	return false;
}

bool action_pages_call_before(const struct code_map *map, uint64_t call, uint64_t *before)
{
	const struct function *f = functions_at(map->functions, call);
	uint64_t at = call - 1;
	const uint8_t *code;
	struct insn in;

	if (!f || f->start == call || !(code_map_flags(map, call) & CODE_INSN) ||
	    code_map_flags(map, call) & (CODE_TARGET | CODE_CONSTANT) ||
	    !code_map_insn(map, call, &in) ||
	    (in.kind != INSN_CALL && (in.kind != INSN_CALL_INDIRECT || in.has_mem)))
		return false;
	while (call - at < 15 && !(code_map_flags(map, at) & CODE_INSN))
		at--;
	if (!(code_map_flags(map, at) & CODE_INSN) || !code_map_insn(map, at, &in) ||
	    at + in.len != call || !action_pages_goes_on(&in))
		return false;
	code = elf_image_at(map->img, at, in.len);
	*before = at;
	return code && (action_pages_step(code, in.len) || !action_pages_moves_stack(&in, code));
}

/* ---- instructions ---- */

static void put(struct stub *s, const char *bytes, unsigned n)
{
	stub_bytes(s, bytes, n);
}
#define PUT(s, literal) put(s, literal, sizeof(literal) - 1)

static struct plan_fixup *add_fixup(struct stub *s, enum fixup_kind kind)
{
	assert(s->nfixups < STUB_FIXUPS_MAX);
	s->fixups[s->nfixups] = (struct plan_fixup){.off = s->len, .kind = kind};
	return &s->fixups[s->nfixups++];
}

static void push_pop(struct stub *s, uint8_t opcode, unsigned reg)
{
	if (reg >= 8)
		PUT(s, "\x41");
	stub_bytes(s, (uint8_t[]){opcode | (reg & 7)}, 1);
}

/* op with a register and memory at a register: REX, opcode, ModRM */
static void put_op(struct stub *s, uint8_t opcode, unsigned mod, unsigned reg, unsigned rm)
{
	stub_bytes(s,
		   (uint8_t[]){(uint8_t)(0x48 | (reg >= 8 ? 4 : 0) | (rm >= 8 ? 1 : 0)), opcode,
			       (uint8_t)(mod << 6 | (reg & 7) << 3 | (rm & 7))},
		   3);
}

/* Of the lower halves of two registers. */
static void put_op32(struct stub *s, uint8_t opcode, unsigned reg, unsigned rm)
{
	if (reg >= 8 || rm >= 8)
		stub_bytes(s, (uint8_t[]){(uint8_t)(0x40 | (reg >= 8 ? 4 : 0) | (rm >= 8 ? 1 : 0))},
			   1);
	stub_bytes(s, (uint8_t[]){opcode, (uint8_t)(0xc0 | (reg & 7) << 3 | (rm & 7))}, 2);
}

/* ModRM and what follows it, as short as it can be said. */
static void put_operand(struct stub *s, unsigned reg, const struct insn_access *a, int32_t disp)
{
	static const uint8_t log2[] = {0, 0, 1, 0, 2, 0, 0, 0, 3};
	unsigned scale = a->index < 0 ? 0 : log2[a->scale], index = a->index < 0 ? 4 : a->index & 7;
	unsigned base = a->base < 0 ? RBP : a->base & 7;
	bool sib = a->base < 0 || a->index >= 0 || base == RSP;
	unsigned mod = a->base < 0 || (!disp && base != RBP) ? 0 : disp == (int8_t)disp ? 1 : 2;

	stub_bytes(s, (uint8_t[]){(uint8_t)(mod << 6 | (reg & 7) << 3 | (sib ? RSP : base))}, 1);
	if (sib)
		stub_bytes(s, (uint8_t[]){(uint8_t)(scale << 6 | index << 3 | base)}, 1);
	stub_bytes(s, &disp, a->base < 0 || mod == 2 ? 4 : mod);
}

/* lea operand,%to, without its segment; the stack pointer lies `below` under the program's. */
static void put_lea(struct stub *s, unsigned to, const struct insn_access *a, unsigned below)
{
	uint8_t rex = (uint8_t)(0x48 | (to >= 8 ? 4 : 0) | (a->index >= 8 ? 2 : 0) |
				(a->base >= 8 ? 1 : 0));

	if (a->rip_relative) {
		stub_bytes(s, (uint8_t[]){rex, 0x8d, (uint8_t)((to & 7) << 3 | 5)}, 3);
		stub_fixup32(s, FIXUP_MODULE_REL32, 4, (uint64_t)a->disp);
		return;
	}
	if (a->is_narrow)
		PUT(s, "\x67"); /* lea 4(%eax): wraps at 4 GiB */
	stub_bytes(s, (uint8_t[]){rex, 0x8d}, 2);
	put_operand(s, to, a, (int32_t)(a->disp + (a->base == RSP ? below : 0)));
}

/* The red zone is the program's again. */
static void put_back(struct stub *s, bool flags_are_dead)
{
	if (flags_are_dead)
		PUT(s, "\x48\x83\xec\x80"); /* sub $-128,%rsp */
	else
		PUT(s, "\x48\x8d\xa4\x24\x80\0\0\0"); /* lea 128(%rsp),%rsp */
}

/* ---- the fast part ---- */

struct work {
	unsigned a, b; /* registers */
	uint8_t saved[3];
	unsigned nsaved;
};

/* In this order what is saved is pushed: whoever undoes half a sequence (own_faults.c) reckons with it. */
static unsigned rank_of(unsigned reg)
{
	return reg == RCX ? 0 : reg == RAX ? 1 : 2;
}

static void save_register(struct work *w, unsigned reg)
{
	unsigned k = w->nsaved++;

	for (; k && rank_of(w->saved[k - 1]) > rank_of(reg); k--)
		w->saved[k] = w->saved[k - 1];
	w->saved[k] = (uint8_t)reg;
}

static unsigned take_register(struct work *w, uint16_t dead, uint16_t *taken, uint16_t allowed)
{
	uint16_t left = allowed & (uint16_t) ~*taken, found = left & dead;
	unsigned reg;

	if (found)
		reg = (unsigned)__builtin_ctz(found);
	else
		reg = left & 1u << RCX ? RCX : (unsigned)__builtin_ctz(left);
	if (!found)
		save_register(w, reg);
	*taken |= (uint16_t)(1u << reg);
	return reg;
}

/* Registers that fit: not those whose encoding has another length.  `used`: nor those. */
static void choose(struct work *w, struct dead dead, uint16_t used)
{
	const uint16_t any = (uint16_t) ~(1u << RSP | used);
	const uint16_t plain = any & (uint16_t) ~(1u << RBP | 1u << R12 | 1u << R13);
	uint16_t taken = 0;

	w->nsaved = 0;
	if (!dead.flags)
		take_register(w, dead.regs, &taken, 1u << RAX);
	w->b = take_register(w, dead.regs, &taken, plain);
	w->a = take_register(w, dead.regs, &taken, any);
}

unsigned action_pages_cost(struct dead dead)
{
	struct work w;

	choose(&w, dead, 0);
	return w.nsaved ? 3 + 2 * w.nsaved + (dead.flags ? 0 : 3) : 0;
}

static void save(struct stub *s, const struct work *w)
{
	stub_shape(s, KRON_SHAPE_START);
	if (!w->nsaved)
		return;
	PUT(s, "\x48\x8d\x64\x24\x80"); /* lea -128(%rsp),%rsp */
	for (unsigned i = 0; i < w->nsaved; i++) {
		stub_shape(s, KRON_SHAPE_128 + i);
		push_pop(s, 0x50, w->saved[i]);
	}
	stub_shape(s, KRON_SHAPE_128 + w->nsaved);
}

static void restore(struct stub *s, const uint8_t *saved, unsigned n, bool flags)
{
	if (flags)
		PUT(s, "\x04\x7f\x9e"); /* add $127,%al: overflows as it did; sahf */
	if (!n)
		return;
	while (n) {
		push_pop(s, 0x58, saved[--n]);
		stub_shape(s, KRON_SHAPE_128 + n);
	}
	put_back(s, !flags);
}

static unsigned shift_of(const struct pages_group *g)
{
	return g->lines ? KRON_LINE_SHIFT : KRON_PAGE_SHIFT;
}

/* What the slow part is told of all references of the group. */
struct told {
	uint32_t unit, function;
};

static struct told told_of(const struct pages_group *g)
{
	return (struct told){g->lines ? KRON_ACTION_LINES : 0, g->function};
}

/* From the first to the end of the last. */
static unsigned span_of(const struct pages_group *g, const struct insn_access **lowest)
{
	const struct insn_access *low = &g->v[0];
	int64_t end = INT64_MIN;

	for (unsigned i = 0; i < g->n; i++) {
		if (g->v[i].disp < low->disp)
			low = &g->v[i];
		if (g->v[i].disp + g->v[i].size > end)
			end = g->v[i].disp + g->v[i].size;
	}
	*lowest = low;
	return (unsigned)(end - low->disp);
}

/* addq $times,field(record at %b) */
static void put_add(struct stub *s, unsigned b, unsigned field, unsigned times)
{
	if (!times)
		return;
	put_op(s, times == 1 ? 0xff : 0x83, 2, 0, b);
	stub_u32(s, KRON_NO_PAGE_ADDR + field);
	if (times > 1)
		stub_bytes(s, (uint8_t[]){(uint8_t)times}, 1);
}

static void put_adds(struct stub *s, unsigned b, const struct pages_group *g)
{
	unsigned reads = 0, writes = 0;

	for (unsigned i = 0; i < g->n; i++) {
		reads += g->v[i].reads;
		writes += g->v[i].writes;
	}
	put_add(s, b, offsetof(struct kron_page, reads), reads);
	put_add(s, b, offsetof(struct kron_page, writes), writes);
}

/* The record at %b is this function's; to the slow part if it is not. */
static void put_function_check(struct stub *s, unsigned b)
{
	/* cmpl $function,KRON_NO_PAGE_ADDR + function(%b), with a REX always */
	stub_bytes(s, (uint8_t[]){(uint8_t)(0x40 | (b >= 8)), 0x81, (uint8_t)(0xb8 | (b & 7))}, 3);
	stub_u32(s, KRON_NO_PAGE_ADDR + offsetof(struct kron_page, function));
	stub_u32(s, 0);
	PUT(s, "\x0f\x85\0\0\0\0"); /* jne slow */
}

/* The record of the page of what %a points to, to %b; to the slow part if it is not there. */
static void put_lookup(struct stub *s, const struct work *w, unsigned shift, unsigned span,
		       uint32_t function)
{
	put_op32(s, 0x8b, w->b, w->a); /* mov %a,%b */
	put_op32(s, 0xc1, 5, w->b);    /* shr $(shift - 3),%b */
	stub_bytes(s, (uint8_t[]){(uint8_t)(shift - 3)}, 1);
	put_op32(s, 0x81, 4, w->b); /* and $0x7ff8,%b */
	stub_u32(s, (function ? KRON_FUNCTION_TABLE_SIZE : KRON_PAGE_TABLE_SIZE) - 8);
	if (function) {
		put_op32(s, 0x81, 6, w->b); /* xor $salt,%b */
		stub_u32(s, 0);
	}
	add_fixup(s, FIXUP_PAGES)->value = function;
	PUT(s, "\x64");
	put_op(s, 0x03, 0, w->b, RSP); /* add %fs:table,%b */
	PUT(s, "\x25\0\0\0\0");
	put_op(s, 0x8b, 0, w->b, w->b); /* mov (%b),%b */
	put_op(s, 0x33, 2, w->a, w->b); /* xor KRON_NO_PAGE_ADDR(%b),%a */
	stub_u32(s, KRON_NO_PAGE_ADDR);
	put_op(s, 0x81, 3, 7, w->a); /* cmp $(1 << shift) - span,%a */
	stub_u32(s, (1u << shift) - span);
	PUT(s, "\x0f\x87\0\0\0\0"); /* ja slow */
}

void action_pages_fill(uint8_t *at, int64_t counts, uint32_t function)
{
	uint32_t disp = counts ? (uint32_t)(counts + 8) : 0, salt = KRON_PAGE_SALT(function) << 3;

	memcpy(at + 5, &disp, sizeof(disp));
	if (function) {
		memcpy(at - ACTION_PAGES_SALT_LEN, &salt, sizeof(salt));
		memcpy(at + ACTION_PAGES_FUNCTION_LEN - 4, &function, sizeof(function));
	}
	if (counts)
		return;
	at[2] = at[10] = at[13] = 0x8d; /* lea: nothing is read */
	at[27] = 0x81;                  /* jno: always */
}

/* ---- the slow part ---- */

static void put_references(struct stub *s, unsigned size, unsigned reads, unsigned writes,
			   struct told told)
{
	if (told.function)
		PUT(s, "\x48"); /* movabs $references,%rax */
	PUT(s, "\xb8");         /* mov $references,%eax */
	stub_u32(s, KRON_ACTION_REFERENCES(size, reads, writes) | told.unit |
			    (told.function ? KRON_ACTION_BY_FUNCTION : 0));
	if (told.function)
		stub_fixup32(s, FIXUP_FUNCTION, 0, told.function);
	PUT(s, "\xe8"); /* call block + KRON_BLOCK_ACTION */
	stub_fixup32(s, FIXUP_BLOCK_REL32, 4, KRON_BLOCK_ACTION);
	PUT(s, "\x58"); /* pop %rax */
	stub_shape(s, KRON_SHAPE_144);
}

/* The address of the operand's segment added to %rax; %rcx is used. */
static void put_segment(struct stub *s, uint8_t segment)
{
	if (!segment)
		return;
	if (segment == 0x64) /* the ABI keeps the thread pointer at its own address */
		PUT(s, "\x64\x48\x8b\x0c\x25\0\0\0\0"); /* mov %fs:0,%rcx */
	else
		PUT(s, "\xf3\x48\x0f\xae\xc9"); /* rdgsbase %rcx */
	PUT(s, "\x48\x8d\x04\x08");             /* lea (%rax,%rcx),%rax */
}

/* In the order of rank_of(). */
static void put_saves(struct stub *s)
{
	stub_shape(s, KRON_SHAPE_START);
	PUT(s, "\x48\x8d\x64\x24\x80"); /* lea -128(%rsp),%rsp */
	stub_shape(s, KRON_SHAPE_128);
	PUT(s, "\x51"); /* push %rcx */
	stub_shape(s, KRON_SHAPE_136);
	PUT(s, "\x50"); /* push %rax */
	stub_shape(s, KRON_SHAPE_144);
}

static void put_restores(struct stub *s, bool flags_are_dead)
{
	PUT(s, "\x58"); /* pop %rax */
	stub_shape(s, KRON_SHAPE_136);
	PUT(s, "\x59"); /* pop %rcx */
	stub_shape(s, KRON_SHAPE_128);
	put_back(s, flags_are_dead);
}

static void put_call(struct stub *s, const struct insn_access *a, struct told told,
		     bool flags_are_dead)
{
	put_saves(s);
	put_lea(s, RAX, a, 144);
	put_segment(s, a->segment);
	PUT(s, "\x50"); /* push %rax */
	stub_shape(s, KRON_SHAPE_152);
	put_references(s, a->size, a->reads, a->writes, told);
	put_restores(s, flags_are_dead);
}

/* One by %rsi, one by %rdi: what they say of themselves is which of the two is read and written. */
static void put_repeated(struct stub *s, const struct pages_group *g, bool flags_are_dead)
{
	unsigned reads = 0, writes = 0;
	struct told told = told_of(g);

	told.unit |= KRON_ACTION_REPEATED;
	for (unsigned i = 0; i < g->n; i++) {
		unsigned bit = g->v[i].base == RSI ? 1 : 2;

		reads |= g->v[i].reads ? bit : 0;
		writes |= g->v[i].writes ? bit : 0;
	}
	put_saves(s);
	PUT(s, "\x54"); /* push %rsp */
	stub_shape(s, KRON_SHAPE_152);
	put_references(s, g->v[0].size, reads, writes, told);
	put_restores(s, flags_are_dead);
}

/* ---- both ---- */

static void finish_place(struct stub *s, unsigned fixup, unsigned start, uint32_t probe,
			 unsigned places)
{
	assert(s->len - start <= UINT8_MAX);
	action_room_put(&s->fixups[fixup], &(struct action_room){
						   .probe = probe,
						   .times = (uint16_t)places,
						   .hot = (uint8_t)(s->len - start),
					   });
}

static bool is_fast(const struct pages_group *g)
{
	return !g->is_repeated && g->v[0].segment != 0x65 && g->v[0].size <= 1u << shift_of(g);
}

/* One group: its part between saving and restoring, and where it leaves for the slow part. */
static void emit_group(struct stub *s, const struct pages_group *g, const struct work *w,
		       bool saves_flags, struct pages_slow *slow)
{
	const struct insn_access *low;
	unsigned span = span_of(g, &low);

	put_lea(s, w->a, low, w->nsaved ? 128 + 8 * w->nsaved : 0);
	if (saves_flags)
		PUT(s, "\x9f\x0f\x90\xc0"); /* lahf; seto %al */
	if (low->segment) {                 /* add %fs:0,%a */
		PUT(s, "\x64");
		put_op(s, 0x03, 0, w->a, RSP);
		PUT(s, "\x25\0\0\0\0");
	}
	put_lookup(s, w, shift_of(g), span, g->function);
	slow->g = *g;
	slow->jump = s->len - 4;
	slow->other_jump = 0;
	if (g->function) {
		put_function_check(s, w->b);
		slow->other_jump = s->len - 4;
	}
	put_adds(s, w->b, g);
}

/* They save once, in front of the first one, and restore after the last. */
static void emit_run(struct stub *s, const struct made_pages *made, unsigned n, struct dead dead,
		     const struct work *w, struct pages_slow *slow)
{
	for (unsigned i = 0; i < n; i++) {
		unsigned start = s->len, fixup = s->nfixups;

		add_fixup(s, FIXUP_PLACE);
		if (!i)
			save(s, w);
		emit_group(s, &made[i].g, w, !i && !dead.flags, &slow[i]);
		slow[i].nsaved = (uint8_t)w->nsaved;
		slow[i].saves_flags = !dead.flags;
		slow[i].goes_on = i + 1 < n;
		memcpy(slow[i].saved, w->saved, sizeof(slow[i].saved));
		if (i + 1 == n)
			restore(s, w->saved, w->nsaved, !dead.flags);
		slow[i].back = s->len;
		finish_place(s, fixup, start, made[i].probe, made[i].g.places);
	}
}

static uint16_t registers_of(const struct pages_group *g)
{
	const struct insn_access *a = &g->v[0];

	return (uint16_t)((a->base >= 0 ? 1u << a->base : 0) |
			  (a->index >= 0 ? 1u << a->index : 0));
}

/* own_faults.c takes what was pushed first for %rcx, then %rax. */
static bool can_be_undone(const struct work *w, struct dead dead)
{
	uint16_t kept = (uint16_t)~dead.regs;

	return (w->nsaved < 2 || w->saved[0] == RCX || !(kept & 1u << RCX)) &&
	       (w->nsaved < 3 || w->saved[1] == RAX || !(kept & 1u << RAX));
}

/* How many groups can do with one saving, and how. */
static unsigned length_of_run(const struct made_pages *made, unsigned n, struct dead dead,
			      struct work *w)
{
	uint16_t used = 0;
	unsigned i = 1;

	choose(w, dead, 0);
	for (; i < n && is_fast(&made[i].g); i++) {
		struct work more;

		used |= registers_of(&made[i].g);
		if (__builtin_popcount(used) > RUN_REGISTERS || (!dead.flags && used & 1u << RAX))
			break;
		choose(&more, dead, used);
		if (!can_be_undone(&more, dead))
			break;
		*w = more;
	}
	return i;
}

static void emit_slow_only(struct stub *s, const struct made_pages *made, struct dead dead)
{
	unsigned start = s->len, fixup = s->nfixups;

	add_fixup(s, FIXUP_PLACE);
	if (made->g.is_repeated)
		put_repeated(s, &made->g, dead.flags);
	else
		put_call(s, &made->g.v[0], told_of(&made->g), dead.flags);
	finish_place(s, fixup, start, made->probe, made->g.places);
}

unsigned action_pages_emit(struct stub *s, const struct made_pages *made, unsigned n,
			   struct dead dead, struct pages_slow *slow, unsigned *nslow,
			   uint16_t window_off)
{
	struct work w;

	if (!is_fast(&made->g)) {
		emit_slow_only(s, made, dead);
		return 1;
	}
	n = length_of_run(made, n, dead, &w);
	emit_run(s, made, n, dead, &w, slow + *nslow);
	for (unsigned i = 0; i < n; i++)
		slow[(*nslow)++].window_off = window_off;
	return n;
}

/* The jump whose rel32 stands there leads to what comes next. */
static void land(struct stub *s, uint32_t jump)
{
	uint32_t distance = s->len - (jump + 4);

	memcpy(s->code + jump, &distance, sizeof(distance));
}

void action_pages_emit_slow(struct stub *s, const struct pages_slow *slow)
{
	struct work w = {.nsaved = slow->nsaved};

	land(s, slow->jump);
	if (slow->other_jump)
		land(s, slow->other_jump);
	memcpy(w.saved, slow->saved, sizeof(w.saved));
	stub_shape(s, slow->nsaved ? KRON_SHAPE_128 + slow->nsaved : KRON_SHAPE_START);
	restore(s, slow->saved, slow->nsaved, slow->saves_flags);
	for (unsigned i = 0; i < slow->g.n; i++)
		put_call(s, &slow->g.v[i], told_of(&slow->g), !slow->saves_flags);
	if (slow->goes_on) {
		save(s, &w);
		if (slow->saves_flags)
			PUT(s, "\x9f\x0f\x90\xc0"); /* lahf; seto %al */
	} else {
		stub_shape(s, KRON_SHAPE_START);
	}
	stub_settle(s, slow->window_off);
	PUT(s, "\xe9");
	stub_u32(s, slow->back - (s->len + 4));
}
