/* SPDX-License-Identifier: MIT */
/*
 * diff_generate.c - random functions that mostly run to their end.  What moves data is drawn
 * (diff_draw.c); what moves control or the stack is put together here, so that it ends.
 */
#include <string.h>

#include "tests/fuzz/diff_generate.h"

struct item *add_item(struct code *c, const void *bytes, unsigned len)
{
	struct item *it = vec_push(&c->items);

	memcpy(it->bytes, bytes, len);
	it->len = len;
	return it;
}

#define ADD(g, ...) add_item((g)->c, (uint8_t[]){__VA_ARGS__}, sizeof((uint8_t[]){__VA_ARGS__}))

/* An instruction that ends with an open rel32 or rel8. */
static void open_end(struct item *it, enum item_kind kind, unsigned size, uint32_t to)
{
	it->kind = kind;
	it->size = size;
	it->field = it->len;
	it->len += size;
	it->to = to;
}

static unsigned here(const struct gen *g)
{
	return g->c->items.n;
}

/* ---- the stack ---- */

static void add_with_register(struct gen *g, uint8_t opcode, unsigned reg)
{
	if (reg > 7 || chance(g->r, 10))
		ADD(g, 0x40 | reg >> 3, opcode | (reg & 7));
	else
		ADD(g, opcode | (reg & 7));
}

static void push_something(struct gen *g)
{
	struct operand o = memory(g, false, false);
	uint8_t bytes[12] = {0x40 | o.x << 1 | o.b, 0xff};
	struct item *it;

	g->depth += 8;
	switch (below(g->r, 6)) {
	case 0:
		ADD(g, 0x6a, (uint8_t)rnd(g->r));
		break;
	case 1:
		ADD(g, 0x68, (uint8_t)rnd(g->r), (uint8_t)rnd(g->r), 0, (uint8_t)rnd(g->r));
		break;
	case 2:
		ADD(g, 0x9c);
		break;
	case 3:
		if (o.addr32 || o.segment)
			goto plain;
		memcpy(bytes + 2, o.bytes, o.len);
		bytes[2] |= 6 << 3;
		it = add_item(g->c, bytes, 2 + o.len);
		if (o.rip) {
			it->kind = ITEM_DATA;
			it->field = 3;
			it->size = 4;
			it->to = below(g->r, DATA_RANDOM - 8);
		}
		break;
	default:
plain:
		add_with_register(g, 0x50, any_register(g));
	}
}

static void pop_something(struct gen *g)
{
	if (g->depth < 8)
		return;
	g->depth -= 8;
	switch (below(g->r, 8)) {
	case 0: /* popf, but for the trace flag, alignment checks and such */
		ADD(g, 0x48, 0x81, 0x24, 0x24, 0xd5, 0x0c, 0x00, 0x00);
		ADD(g, 0x9d);
		break;
	case 1: /* popq disp8(pointer) */
	{
		unsigned base = pointer_register(g);

		if ((base & 7) == 4)
			ADD(g, 0x40 | base >> 3, 0x8f, 0x44, 0x24, 0x10);
		else
			ADD(g, 0x40 | base >> 3, 0x8f, 0x40 | (base & 7), (uint8_t)rnd(g->r));
		break;
	}
	case 2: /* popq disp8(%rsp) */
		ADD(g, 0x8f, 0x44, 0x24, 0xf0);
		break;
	default:
		add_with_register(g, 0x58, free_register(g));
	}
}

static void move_stack(struct gen *g)
{
	uint8_t by = 8 * (1 + below(g->r, 6));

	if (g->depth >= by && chance(g->r, 2)) {
		g->depth -= by;
		if (chance(g->r, 2))
			ADD(g, 0x48, 0x83, 0xc4, by); /* add */
		else
			ADD(g, 0x48, 0x8d, 0x64, 0x24, by); /* lea */
		return;
	}
	if (g->depth > 200)
		return;
	g->depth += by;
	if (chance(g->r, 2))
		ADD(g, 0x48, 0x83, 0xec, by); /* sub */
	else
		ADD(g, 0x48, 0x8d, 0x64, 0x24, (uint8_t)-by);
}

/* frames: enter and leave, or push, mov, mov, pop, around something */
static void some(struct gen *g, unsigned n);
static void call(struct gen *g);
static void frame(struct gen *g)
{
	uint16_t reserved = g->reserved;
	int depth = g->depth;
	bool is_enter = chance(g->r, 2);

	if (g->reserved >> RBP & 1 || g->nesting > 2)
		return;
	g->nesting++;
	g->reserved |= 1u << RBP;
	if (is_enter) {
		uint8_t room = 8 * below(g->r, 4);

		ADD(g, 0xc8, room, 0, chance(g->r, 4));
		g->depth += 8 + room; /* one level more pushes once more: leave knows */
	} else {
		ADD(g, 0x55);
		ADD(g, 0x48, 0x89, 0xe5);
		if (chance(g->r, 2))
			ADD(g, 0x48, 0x83, 0xe4, 0xf0); /* and $-16,%rsp */
		g->depth += 8;
	}
	some(g, below(g->r, 6));
	if (is_enter || chance(g->r, 2)) {
		ADD(g, 0xc9);
	} else {
		ADD(g, 0x48, 0x89, 0xec);
		ADD(g, 0x5d);
	}
	g->depth = depth;
	g->reserved = reserved;
	g->nesting--;
}

/* The stack pointer moves by this many bytes, and no flag changes. */
static void level_stack(struct code *c, int32_t by)
{
	uint8_t lea[] = {0x48, 0x8d, 0xa4, 0x24, 0, 0, 0, 0};

	memcpy(lea + 4, &by, 4);
	if (by)
		add_item(c, lea, sizeof(lea));
}

void add_return(struct code *c, struct rng *r, int depth)
{
	level_stack(c, depth);
	if (c->pops)
		add_item(c, (uint8_t[]){0xc2, c->pops, 0}, 3);
	else if (chance(r, 8))
		add_item(c, chance(r, 2) ? "\xf3\xc3" : "\xf2\xc3", 2);
	else
		add_item(c, "\xc3", 1);
}

/* ---- strings, xlat, flags, moffs ---- */

static void load_address(struct gen *g, unsigned reg)
{
	unsigned base = pointer_register(g);
	uint8_t modrm = 0x80 | (reg & 7) << 3 | (base & 7);
	int32_t disp = (int)below(g->r, 512) - 256;
	uint8_t bytes[8] = {0x48 | reg >> 3 << 2 | base >> 3, 0x8d, modrm};

	if ((base & 7) == 4) {
		bytes[3] = 0x24;
		memcpy(bytes + 4, &disp, 4);
		add_item(g->c, bytes, 8);
	} else {
		memcpy(bytes + 3, &disp, 4);
		add_item(g->c, bytes, 7);
	}
}

static void string(struct gen *g)
{
	static const uint8_t ops[] = {0xa4, 0xa6, 0xaa, 0xac, 0xae};
	uint16_t clobbered = 1u << RCX | 1u << RSI | 1u << RDI;
	uint8_t bytes[5];
	unsigned n = 0;

	if (g->reserved & clobbered)
		return;
	load_address(g, RSI);
	load_address(g, RDI);
	ADD(g, 0xb9, below(g->r, 20), 0, 0, 0); /* mov $n,%ecx */
	if (chance(g->r, 2))
		ADD(g, chance(g->r, 2) ? 0xfc : 0xfd);
	if (!chance(g->r, 4))
		bytes[n++] = chance(g->r, 2) ? 0xf3 : 0xf2;
	if (chance(g->r, 4))
		bytes[n++] = 0x66;
	if (chance(g->r, 8))
		bytes[n++] = 0x65;
	if (chance(g->r, 2))
		bytes[n++] = 0x48;
	bytes[n++] = ops[below(g->r, 5)] | chance(g->r, 2);
	if (memchr(bytes, 0x65, n)) /* gs: has a base of its own */
		ADD(g, 0xbe, (uint8_t)rnd(g->r), 0, 0, 0);
	add_item(g->c, bytes, n);
}

static void odd_one(struct gen *g)
{
	uint64_t at = SCRATCH_ADDR + 1024 + below(g->r, 1024);

	switch (below(g->r, 8)) {
	case 0: /* xlat */
		if (g->reserved >> RBX & 1)
			break;
		load_address(g, RBX);
		ADD(g, 0xd7);
		break;
	case 1: /* moffs */
	{
		uint8_t bytes[10] = {0x48, 0xa0 | below(g->r, 4)};

		memcpy(bytes + 2, &at, 8);
		if (chance(g->r, 2))
			add_item(g->c, bytes, 10);
		else
			add_item(g->c, bytes + 1, 9);
		break;
	}
	case 2:
		ADD(g, 0xf3, 0x0f, 0x1e, 0xfa);
		break;
	case 3: /* no-ops */
		ADD(g, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, (uint8_t)rnd(g->r), 0, 0, 0);
		break;
	case 4:
		ADD(g, 0x66, 0x90);
		break;
	case 5:
		ADD(g, 0xf3, 0x90); /* pause */
		break;
	case 6: /* getpid: the kernel overwrites rcx with the address after it */
		if (chance(g->r, 4) && !(g->counters >> RCX & 1)) {
			ADD(g, 0xb8, 39, 0, 0, 0);
			ADD(g, 0x0f, 0x05);
		}
		break;
	case 7: /* an address, as code makes it */
		open_end(ADD(g, 0x48, 0x8d, 0x05), ITEM_DATA, 4, below(g->r, 512));
		break;
	}
}

/* ---- control ---- */

/* A jump over something: the label is the item that comes next afterwards. */
static void skip(struct gen *g)
{
	unsigned at = here(g), form = below(g->r, 10);
	int depth = g->depth;

	if (g->nesting > 3)
		return;
	g->nesting++;
	if (form == 0)
		open_end(ADD(g, 0xe3), ITEM_JUMP, 1, 0); /* jrcxz */
	else if (form == 1)
		open_end(ADD(g, 0x67, 0xe3), ITEM_JUMP, 1, 0);
	else if (form == 2)
		open_end(ADD(g, 0xeb), ITEM_JUMP, 1, 0);
	else if (form == 3)
		open_end(ADD(g, 0xe9), ITEM_JUMP, 4, 0);
	else if (form < 7)
		open_end(ADD(g, 0x70 | below(g->r, 16)), ITEM_JUMP, 1, 0);
	else
		open_end(ADD(g, 0x0f, 0x80 | below(g->r, 16)), ITEM_JUMP, 4, 0);
	if (chance(g->r, 5)) {
		add_return(g->c, g->r, g->depth);
	} else if (chance(g->r, 30)) {
		ADD(g, chance(g->r, 2) ? 0xcc : 0xf1);
	} else if (chance(g->r, 30)) {
		ADD(g, 0x0f, 0x0b);
	} else {
		some(g, below(g->r, 5));
		level_stack(g->c, g->depth - depth);
		g->depth = depth;
		if (chance(g->r, 3)) /* and it leads to where a call returns */
			call(g);
	}
	g->depth = depth;
	g->nesting--;
	g->c->items.v[at].to = here(g);
}

static void loop(struct gen *g)
{
	uint16_t reserved = g->reserved;
	unsigned reg = chance(g->r, 2) ? RCX : free_register(g), at, form = below(g->r, 5);
	uint16_t counters = g->counters;
	int depth = g->depth;

	/* many things write rax and r11 */
	if (g->nesting > 1 || g->reserved >> reg & 1 || reg == RAX || reg == 11)
		return;
	g->nesting += 2;
	if (reg > 7)
		ADD(g, 0x41, 0xb8 | (reg & 7), 1 + below(g->r, 4), 0, 0, 0);
	else
		ADD(g, 0xb8 | reg, 1 + below(g->r, 4), 0, 0, 0);
	g->reserved |= 1u << reg;
	g->counters |= 1u << reg;
	at = here(g);
	some(g, 1 + below(g->r, 4));
	level_stack(g->c, g->depth - depth);
	g->depth = depth;
	if (reg == RCX && form < 3) {
		open_end(ADD(g, 0xe0 + form), ITEM_JUMP, 1, at); /* loopne, loope, loop */
	} else {
		ADD(g, 0x48 | reg >> 3, 0xff, 0xc8 | (reg & 7)); /* dec */
		if (chance(g->r, 2))
			open_end(ADD(g, 0x75), ITEM_JUMP, 1, at);
		else
			open_end(ADD(g, 0x0f, 0x85), ITEM_JUMP, 4, at);
	}
	g->reserved = reserved;
	g->counters = counters;
	g->nesting -= 2;
}

/* cmp, ja, and a jump through a table of offsets */
static void switch_table(struct gen *g)
{
	uint32_t number = g->im->tables.n;
	unsigned index = free_register(g), base = free_register(g), out;
	struct table *t;

	if (g->nesting > 2 || index == base || index == RBP || base == RBP || number > 200)
		return;
	t = vec_push(&g->im->tables);
	t->function = g->self;
	ADD(g, 0x40 | index >> 3, 0x83, 0xe0 | (index & 7), below(g->r, 2) * 4 + 3); /* and */
	ADD(g, 0x40 | index >> 3, 0x83, 0xf8 | (index & 7), TABLE_CASES - 1);        /* cmp */
	out = here(g);
	open_end(ADD(g, 0x0f, 0x87), ITEM_JUMP, 4, 0);
	open_end(ADD(g, 0x48 | base >> 3 << 2, 0x8d, 0x05 | (base & 7) << 3), ITEM_TABLE, 4,
		 number);
	if ((base & 7) == 5)
		ADD(g, 0x48 | index >> 3 << 2 | index >> 3 << 1 | base >> 3, 0x63,
		    0x44 | (index & 7) << 3, 0x80 | (index & 7) << 3 | (base & 7), 0);
	else
		ADD(g, 0x48 | index >> 3 << 2 | index >> 3 << 1 | base >> 3, 0x63,
		    0x04 | (index & 7) << 3, 0x80 | (index & 7) << 3 | (base & 7));
	ADD(g, 0x48 | base >> 3 << 2 | index >> 3, 0x01, 0xc0 | (base & 7) << 3 | (index & 7));
	if (chance(g->r, 2))
		ADD(g, 0x3e, 0x40 | index >> 3, 0xff, 0xe0 | (index & 7));
	else
		ADD(g, 0x40 | index >> 3, 0xff, 0xe0 | (index & 7));
	g->nesting++;
	for (unsigned k = 0; k < TABLE_CASES; k++) {
		int depth = g->depth;

		g->im->tables.v[number].to[k] = here(g);
		for (unsigned i = below(g->r, 3); i--;)
			any_instruction(g);
		g->depth = depth;
	}
	g->nesting--;
	g->c->items.v[out].to = here(g);
}

/* Another function, made before this one, so that calls never go in circles. */
static int callee(struct gen *g)
{
	for (int i = 0; i < 4 && g->self; i++) {
		unsigned fn = below(g->r, g->self);

		if (g->im->fn[fn].calls < 2)
			return fn;
	}
	return -1;
}

static void load_pointer(struct gen *g, unsigned reg, unsigned fn)
{
	uint8_t rex = 0x48 | reg >> 3 << 2, modrm = 5 | (reg & 7) << 3;

	if (chance(g->r, 2))
		open_end(ADD(g, rex, 0x8d, modrm), ITEM_FN, 4, fn);
	else
		open_end(ADD(g, rex, 0x8b, modrm), ITEM_POINTER, 4, fn);
}

static void call(struct gen *g)
{
	int fn = callee(g);
	unsigned reg = free_register(g), pops;

	if (fn < 0 || g->counters || reg == RBP)
		return;
	g->c->calls = g->c->calls > g->im->fn[fn].calls ? g->c->calls : g->im->fn[fn].calls + 1;
	pops = g->im->fn[fn].pops;
	if (pops)
		ADD(g, 0x48, 0x83, 0xec, pops);
	switch (below(g->r, 7)) {
	default:
		open_end(ADD(g, 0xe8), ITEM_FN, 4, fn);
		break;
	case 2:
		open_end(ADD(g, 0x66, 0x48, 0xe8), ITEM_FN, 4, fn); /* as for __tls_get_addr */
		break;
	case 3:
		open_end(ADD(g, 0xff, 0x15), ITEM_POINTER, 4, fn);
		break;
	case 4:
		load_pointer(g, reg, fn);
		if (chance(g->r, 3))
			ADD(g, 0x3e, 0x40 | reg >> 3, 0xff, 0xd0 | (reg & 7));
		else if (reg > 7)
			ADD(g, 0x41, 0xff, 0xd0 | (reg & 7));
		else
			ADD(g, 0xff, 0xd0 | (reg & 7));
		break;
	case 5: /* through memory at a register */
		if ((reg & 7) == 4)
			reg = RAX;
		if (g->reserved >> reg & 1)
			reg = RAX;
		open_end(ADD(g, 0x48 | reg >> 3 << 2, 0x8d, 5 | (reg & 7) << 3), ITEM_POINTER, 4,
			 fn);
		ADD(g, 0x40 | reg >> 3, 0xff, 0x50 | (reg & 7), 0);
		break;
	case 6: /* from the stack */
		load_pointer(g, RAX, fn);
		ADD(g, 0x50);
		ADD(g, 0xff, 0x14, 0x24);
		ADD(g, 0x48, 0x8d, 0x64, 0x24, 8);
		break;
	}
}

static void call_next(struct gen *g)
{
	unsigned at = here(g);

	open_end(ADD(g, 0xe8), ITEM_JUMP, 4, at + 1);
	add_with_register(g, 0x58, free_register(g));
}

static void some(struct gen *g, unsigned n)
{
	while (n--) {
		switch (below(g->r, 26)) {
		case 0:
		case 1:
			push_something(g);
			break;
		case 2:
		case 3:
			pop_something(g);
			break;
		case 4:
			move_stack(g);
			break;
		case 5:
			frame(g);
			break;
		case 6:
			string(g);
			break;
		case 7:
			odd_one(g);
			break;
		case 8:
		case 9:
			skip(g);
			break;
		case 10:
			loop(g);
			break;
		case 11:
			if (chance(g->r, 3))
				switch_table(g);
			break;
		case 12:
			call(g);
			break;
		case 13:
			if (chance(g->r, 4))
				call_next(g);
			break;
		default:
			any_instruction(g);
		}
	}
}

/* ---- a function ---- */

static void end_function(struct gen *g)
{
	int fn = callee(g);

	if (fn < 0 || !chance(g->r, 5) || g->im->fn[fn].pops != g->c->pops) {
		add_return(g->c, g->r, g->depth);
		return;
	}
	level_stack(g->c, g->depth);
	g->c->calls = g->im->fn[fn].calls;
	switch (below(g->r, 4)) {
	case 0:
		open_end(ADD(g, 0xff, 0x25), ITEM_POINTER, 4, fn);
		break;
	case 1:
		open_end(ADD(g, 0x0f, 0x80 | below(g->r, 16)), ITEM_FN, 4, fn);
		add_return(g->c, g->r, 0);
		break;
	default:
		open_end(ADD(g, 0xe9), ITEM_FN, 4, fn);
	}
}

void generate_function(struct image *im, struct rng *r)
{
	struct gen g = {.im = im, .c = &im->fn[im->nfn], .r = r, .self = im->nfn};

	g.reserved = im->pointers | 1u << im->index | 1u << RSP;
	g.c->pops = chance(r, 12) ? 8 * (1 + below(r, 3)) : 0;
	if (chance(r, 3))
		ADD(&g, 0xf3, 0x0f, 0x1e, 0xfa);
	some(&g, chance(r, 3) ? below(r, 5) : below(r, 24));
	end_function(&g);
	im->nfn++;
}
