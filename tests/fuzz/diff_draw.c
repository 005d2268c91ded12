/* SPDX-License-Identifier: MIT */
/*
 * diff_draw.c - whatever moves data, drawn from all opcodes of all maps: prefixes, REX, VEX or
 * EVEX, opcode and ModRM at random, with a memory operand that mostly leads to memory of ours.
 * The decoder says whether that is an instruction and which registers it writes.
 */
#include <string.h>

#include "inject/code/insn.h"
#include "tests/fuzz/diff_generate.h"

/* ---- what may run ---- */

static bool is_harmless_one_byte(const uint8_t *op)
{
	switch (op[0]) {
	case 0x6c ... 0x6f: /* ins, outs, in, out: refused by the kernel, but who knows */
	case 0xe4 ... 0xe7:
	case 0xec ... 0xef:
	case 0x8e: /* segment registers */
	case 0xcd: /* system calls */
	case 0xca:
	case 0xcb:
	case 0xcf:
	case 0xf4:
	case 0xfa:
	case 0xfb:
		return false;
	case 0x9b: /* x87: fnstenv and fnsave keep the address of the last instruction */
		return true;
	case 0xd9:
		return (op[1] >> 3 & 7) != 6 || op[1] >= 0xc0;
	case 0xdd:
		return (op[1] >> 3 & 7) != 6 || op[1] >= 0xc0;
	case 0xff: /* far */
		return (op[1] >> 3 & 7) != 3 && (op[1] >> 3 & 7) != 5;
	case 0xc6:
	case 0xc7: /* xabort, xbegin */
		return (op[1] >> 3 & 7) == 0;
	}
	return true;
}

static bool is_harmless_two_byte(const uint8_t *op)
{
	switch (op[0]) {
	case 0x00: /* descriptors, machine state, system calls */
	case 0x01:
	case 0x05:
	case 0x06:
	case 0x07:
	case 0x08:
	case 0x09:
	case 0x20 ... 0x27:
	case 0x30 ... 0x37: /* clocks and counters */
	case 0xa2:          /* cpuid: another processor, another answer */
	case 0xa0:
	case 0xa1:
	case 0xa8:
	case 0xa9:
	case 0xaa:
	case 0xb2:
	case 0xb4:
	case 0xb5:
		return false;
	case 0x0d: /* prefetchw: of a register it is a no-op to some and nothing to others */
		return op[1] < 0xc0;
	case 0x1e: /* rdsspq; endbr64 and no-ops */
	case 0x78: /* vmread; sse4a, which Zydis may take for it */
	case 0x79:
		return op[0] == 0x1e;
	case 0xae: /* fences, mxcsr, clflush */
		return op[1] >= 0xe8 ||
		       (op[1] < 0xc0 &&
			((op[1] >> 3 & 7) == 2 || (op[1] >> 3 & 7) == 3 || (op[1] >> 3 & 7) == 7));
	case 0xc7: /* cmpxchg8b; not xsave, vmptrld, rdrand, rdseed, rdpid */
		return op[1] < 0xc0 && (op[1] >> 3 & 7) == 1;
	}
	return true;
}

static bool has_rep(const uint8_t *code, unsigned n)
{
	return memchr(code, 0xf3, n) || memchr(code, 0xf2, n);
}

/* A REX before another prefix means nothing. */
static bool is_prefix(uint8_t byte)
{
	return (byte & 0xf0) == 0x40 ||
	       (byte && strchr("\x66\xf2\xf3\x2e\x36\x3e\x26\x64\x65\x67\xf0", byte));
}

/* The stack guard at %fs:0x28 is not changed by those who read it. */
static bool reads_guard(const struct insn *in)
{
	return in->mem_disp == 0x28 && in->mem_base < 0 && in->mem_index < 0 && !in->stores;
}

/*
 * rd/wrfsbase, ptwrite and others are encoded after f3 0f ae.  Where functions have no thread data of their own
 * (run_has_fs), what %fs leads to is ours.
 */
bool is_harmless(const struct insn *in, const uint8_t *code)
{
	bool has_fs = false;
	unsigned i = 0;

	if (in->kind == INSN_OTHER_TRANSFER || in->kind == INSN_SYSCALL)
		return false;
	for (; i < in->len && is_prefix(code[i]); i++)
		has_fs |= code[i] == 0x64;
	if (has_fs && !run_has_fs && !reads_guard(in))
		return false;
	if (code[i] == 0xc4 || code[i] == 0xc5)
		return true;
	if (code[i] == 0x62)
		return true;
	if (code[i] != 0x0f)
		return is_harmless_one_byte(code + i);
	if (code[i + 1] == 0xae && has_rep(code, i))
		return false;
	if (code[i + 1] == 0x1e && code[i + 2] >= 0xc0 && has_rep(code, i))
		return code[i + 2] == 0xfa || code[i + 2] == 0xfb; /* rdssp is a no-op, or is not */
	if (code[i + 1] == 0x38) /* enqcmd, keylocker, wrss; invept */
		return code[i + 2] < 0x80 ||
		       (code[i + 2] >= 0xc8 && code[i + 2] != 0xf5 && code[i + 2] < 0xf8 &&
			code[i + 2] != 0xd8 && !(code[i + 2] >= 0xdc && has_rep(code, i)) &&
			!(code[i + 2] == 0xf6 && !has_rep(code, i) && !memchr(code, 0x66, i)));
	return is_harmless_two_byte(code + i + 1);
}

/* ---- operands ---- */

unsigned any_register(struct gen *g)
{
	return below(g->r, 16);
}

unsigned free_register(struct gen *g)
{
	unsigned reg;

	do
		reg = any_register(g);
	while (g->reserved >> reg & 1);
	return reg;
}

unsigned pointer_register(struct gen *g)
{
	unsigned reg;

	do
		reg = any_register(g);
	while (!(g->im->pointers >> reg & 1));
	return reg;
}

static void put_disp32(struct operand *o, int32_t disp)
{
	memcpy(o->bytes + o->len, &disp, 4);
	o->len += 4;
}

static void base_disp(struct gen *g, struct operand *o, unsigned base, int32_t disp, bool wide)
{
	unsigned mod =
		wide || disp != (int8_t)disp ? 2 : disp || (base & 7) == 5 || chance(g->r, 4);

	o->b = base >> 3;
	o->bytes[o->len++] = mod << 6 | (base & 7);
	if ((base & 7) == 4)
		o->bytes[o->len++] = 0x24;
	if (mod == 2)
		put_disp32(o, disp);
	else if (mod)
		o->bytes[o->len++] = (uint8_t)disp;
}

static void base_index(struct gen *g, struct operand *o, unsigned index)
{
	unsigned base = pointer_register(g);

	if (index == RSP)
		index = g->im->index;
	o->b = base >> 3;
	o->x = index >> 3;
	o->bytes[o->len++] = 0x84;
	o->bytes[o->len++] = below(g->r, 4) << 6 | (index & 7) << 3 | (base & 7);
	put_disp32(o, (int)below(g->r, 64) * 16 - 512);
}

/* Address from a displacement alone: SIB without base and index. */
static void absolute(struct operand *o, int32_t disp)
{
	o->bytes[o->len++] = 0x04;
	o->bytes[o->len++] = 0x25;
	put_disp32(o, disp);
}

struct operand memory(struct gen *g, bool aligned, bool wide)
{
	struct operand o = {.len = 0};
	int32_t disp = (int)below(g->r, 1024) - 512;

	if (aligned || chance(g->r, 2))
		disp &= -64;
	if (chance(g->r, 3))
		disp = (int8_t)disp;
	o.addr32 = chance(g->r, 24);
	switch (below(g->r, 16)) {
	default:
		base_disp(g, &o, pointer_register(g), disp, wide);
		break;
	case 6:
	case 7:
		base_index(g, &o, chance(g->r, 40) ? any_register(g) : g->im->index);
		break;
	case 8:
	case 9:
	case 10:
		o.bytes[o.len++] = 5;
		o.rip = true;
		put_disp32(&o, 0);
		break;
	case 11:
	case 12:
		o.addr32 = false;
		disp = (int)below(g->r, 220) - 112;
		base_disp(g, &o, RSP, aligned ? disp & -16 : disp, wide);
		break;
	case 13:
		o.segment = chance(g->r, 2) ? 0x64 : 0x65;
		if (o.segment == 0x64 && !run_has_fs)
			o.segment = 0x65;
		absolute(&o, disp);
		break;
	case 14:
		absolute(&o, (int32_t)SCRATCH_ADDR + 2048 + disp);
		break;
	case 15:
		if (chance(g->r, 12))
			base_disp(g, &o, any_register(g), disp, wide);
		else
			base_disp(g, &o, pointer_register(g), disp, wide);
		break;
	}
	return o;
}

static struct operand register_operand(struct gen *g)
{
	unsigned reg = any_register(g);

	return (struct operand){
		.bytes = {0xc0 | (reg & 7)}, .len = 1, .b = reg >> 3, .x = chance(g->r, 8)};
}

/* ---- any instruction ---- */

struct draw {
	uint8_t bytes[24];
	unsigned len;
	bool has_modrm;
	struct operand o;
	unsigned rip_at; /* of its displacement */
};

static void put(struct draw *d, uint8_t byte)
{
	d->bytes[d->len++] = byte;
}

static void put_operand(struct gen *g, struct draw *d, unsigned reg)
{
	unsigned at = d->len;

	memcpy(d->bytes + at, d->o.bytes, d->o.len);
	d->bytes[at] |= (reg & 7) << 3;
	d->len += d->o.len;
	d->rip_at = at + 1;
	for (int i = 0; i < 4; i++) /* an immediate, if it has one */
		d->bytes[d->len + i] = chance(g->r, 3) ? (uint8_t)rnd(g->r) : below(g->r, 4);
}

static void put_prefixes(struct gen *g, struct draw *d)
{
	if (d->o.addr32)
		put(d, 0x67);
	if (d->o.segment)
		put(d, d->o.segment);
	else if (chance(g->r, 40)) /* mean nothing to data */
		put(d, "\x2e\x3e\x26\x36"[below(g->r, 4)]);
}

/* Legacy: prefixes, REX, one of four maps. */
static void draw_legacy(struct gen *g, struct draw *d)
{
	static const uint8_t map_of[] = {0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 3};
	unsigned map = map_of[below(g->r, sizeof(map_of))], reg = any_register(g);

	put_prefixes(g, d);
	if (chance(g->r, 4))
		put(d, 0x66);
	if (map ? chance(g->r, 3) : chance(g->r, 60))
		put(d, chance(g->r, 2) ? 0xf3 : 0xf2);
	if (d->bytes[d->len ? d->len - 1 : 0] != 0xf2 && chance(g->r, 40))
		put(d, 0xf0);
	if (reg > 7 || d->o.b || d->o.x || !chance(g->r, 3))
		put(d,
		    0x40 | (unsigned)chance(g->r, 2) << 3 | reg >> 3 << 2 | d->o.x << 1 | d->o.b);
	if (map)
		put(d, 0x0f);
	if (map >= 2)
		put(d, map == 2 ? 0x38 : 0x3a);
	put(d, (uint8_t)rnd(g->r));
	put_operand(g, d, reg);
}

static void draw_vex(struct gen *g, struct draw *d)
{
	unsigned map = 1 + below(g->r, 3), reg = any_register(g), pp = below(g->r, 4);
	unsigned vvvv = chance(g->r, 2) ? 15 : below(g->r, 16), w = chance(g->r, 3),
		 l = chance(g->r, 2);

	put_prefixes(g, d);
	if (map == 1 && !w && !d->o.x && !d->o.b) {
		put(d, 0xc5);
		put(d, (reg < 8) << 7 | vvvv << 3 | l << 2 | pp);
	} else {
		put(d, 0xc4);
		put(d, (reg < 8) << 7 | !d->o.x << 6 | !d->o.b << 5 | map);
		put(d, w << 7 | vvvv << 3 | l << 2 | pp);
	}
	put(d, (uint8_t)rnd(g->r));
	put_operand(g, d, reg);
}

static void draw_evex(struct gen *g, struct draw *d)
{
	unsigned map = 1 + below(g->r, 3), reg = below(g->r, 32), vvvv = below(g->r, 32);

	if (chance(g->r, 3))
		vvvv = 0;
	vvvv ^= 31;
	put_prefixes(g, d);
	put(d, 0x62);
	put(d, !(reg >> 3 & 1) << 7 | !d->o.x << 6 | !d->o.b << 5 | !(reg >> 4 & 1) << 4 | map);
	put(d, (unsigned)chance(g->r, 2) << 7 | (vvvv & 15) << 3 | 4 | below(g->r, 4));
	put(d, (unsigned)chance(g->r, 6) << 7 | below(g->r, 3) << 5 |
		       (unsigned)chance(g->r, 8) << 4 | vvvv >> 4 << 3 |
		       (chance(g->r, 2) ? 0 : below(g->r, 8)));
	put(d, (uint8_t)rnd(g->r));
	put_operand(g, d, reg);
}

/* One-byte opcodes that others write, because they move control or the stack. */
static bool is_structured(const struct draw *d, const struct insn *in)
{
	unsigned i = 0;

	if (in->kind != INSN_PLAIN && in->kind != INSN_PADDING)
		return true;
	while (strchr("\x66\xf2\xf3\x2e\x36\x3e\x26\x64\x65\x67\xf0", d->bytes[i]) && d->bytes[i])
		i++;
	if ((d->bytes[i] & 0xf0) == 0x40)
		i++;
	switch (d->bytes[i]) {
	case 0x50 ... 0x5f:
	case 0x68:
	case 0x6a:
	case 0x8f:
	case 0x9c:
	case 0x9d:
	case 0xa0 ... 0xa7: /* moffs, strings */
	case 0xaa ... 0xaf:
	case 0xc8:
	case 0xc9:
	case 0xd7:
		return true;
	case 0xff:
		return (d->bytes[i + 1] >> 3 & 7) >= 2;
	case 0xf6: /* division mostly faults */
	case 0xf7:
		return (d->bytes[i + 1] >> 3 & 7) >= 6 && d->bytes[i + 2] % 4;
	}
	return false;
}

static bool keep_drawn(struct gen *g, const struct draw *d)
{
	struct insn in;
	struct item *it;

	if (!insn_decode(&in, d->bytes, d->len + 4, 0x1000) || in.len > 15)
		return false;
	if (in.has_mem != (d->o.bytes[0] < 0xc0) && in.len >= d->len)
		return false;
	if (is_structured(d, &in) || !is_harmless(&in, d->bytes))
		return false;
	if (in.regs_written & (g->counters | 1u << RSP))
		return false;
	if (in.regs_written & g->reserved && !chance(g->r, 400))
		return false;
	it = add_item(g->c, d->bytes, in.len);
	if (in.rip_relative) {
		it->kind = ITEM_DATA;
		it->size = 4;
		it->field = in.disp_off;
		it->to = below(g->r, (DATA_RANDOM - 128) / 16) * 16 +
			 (chance(g->r, 3) ? below(g->r, 16) : 0);
	}
	return true;
}

void any_instruction(struct gen *g)
{
	for (;;) {
		struct draw d = {.len = 0};
		unsigned form = below(g->r, 16);
		bool vectors = form >= 9;

		d.o = chance(g->r, 2) ? register_operand(g) : memory(g, vectors, form >= 13);
		if (form < 10)
			draw_legacy(g, &d);
		else if (form < 13 || !run_has_avx512)
			draw_vex(g, &d);
		else
			draw_evex(g, &d);
		if (keep_drawn(g, &d))
			return;
	}
}
