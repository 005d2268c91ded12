/* SPDX-License-Identifier: MIT */
/*
 * emulate.c - see emulate.h.
 *
 *   decode ─► address ─► is it the one that faulted? ─► may it store? ─► load ─► compute ─► store
 *
 * Nothing of *uc changes before every load has succeeded, and a store to the board comes last:
 * a fault of the program's own memory leaves an instruction that has not happened.  An access is
 * as many cycles as cycle.h says and not one step to others, not even with a lock prefix: nor is
 * it on the PCI bus.
 */
#define _GNU_SOURCE
#include "board/libmk/emulate.h"

#include <string.h>

#include "board/libmk/alu.h"
#include "board/libmk/cycle.h"
#include "board/libmk/guard.h"
#include "board/libmk/insn.h"
#include "board/libmk/vector.h"

/* Cycles of one string instruction before signals get a chance; it goes on where it was. */
#define STRING_CYCLES 4096u
#define FLAG_DF 0x400u

struct step {
	struct insn insn;
	ucontext_t *uc;
	siginfo_t *info;
	uint64_t addr; /* of the memory operand */
	uint8_t bytes[INSN_MAX];
	unsigned fetched;
};

/* ---- registers ---- */

static greg_t *greg(ucontext_t *uc, unsigned reg)
{
	static const uint8_t at[16] = {
		REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
		REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15,
	};

	return &uc->uc_mcontext.gregs[at[reg & 15]];
}

#define RAX 0u
#define RCX 1u
#define RDX 2u
#define RSP 4u
#define RSI 6u
#define RDI 7u

static uint64_t low_bytes(uint64_t v, unsigned bytes)
{
	return bytes >= 8 ? v : v & ((1ull << 8 * bytes) - 1);
}

static uint64_t get(const struct step *s, unsigned reg, unsigned bytes)
{
	return low_bytes((uint64_t)*greg(s->uc, reg), bytes);
}

static void put(struct step *s, unsigned reg, unsigned bytes, uint64_t value)
{
	greg_t *g = greg(s->uc, reg);

	if (bytes == 8)
		*g = (greg_t)value;
	else if (bytes == 4)
		*g = (greg_t)(uint32_t)value;
	else
		*g = (greg_t)(((uint64_t)*g & ~low_bytes(~0ull, bytes)) | low_bytes(value, bytes));
}

static bool is_high_byte(const struct insn *i)
{
	return i->rsize == 1 && !i->rex && i->reg >= 4 && i->reg < 8;
}

/* The register operand. */
static uint64_t get_reg(const struct step *s)
{
	const struct insn *i = &s->insn;

	if (is_high_byte(i))
		return get(s, i->reg - 4u, 2) >> 8;
	return get(s, i->reg, i->rsize);
}

static void put_reg(struct step *s, uint64_t value)
{
	const struct insn *i = &s->insn;

	if (is_high_byte(i))
		put(s, i->reg - 4u, 2, get(s, i->reg - 4u, 1) | (value & 0xff) << 8);
	else
		put(s, i->reg, i->rsize, value);
}

static uint64_t get_flags(const struct step *s)
{
	return (uint64_t)s->uc->uc_mcontext.gregs[REG_EFL];
}

static void put_flags(struct step *s, uint64_t flags)
{
	s->uc->uc_mcontext.gregs[REG_EFL] = (greg_t)flags;
}

/* ---- memory ---- */

static uint64_t load(const struct step *s)
{
	uint64_t v = 0;

	cycle_load(s->addr, &v, s->insn.size);
	return v;
}

static void store(const struct step *s, uint64_t value)
{
	cycle_store(s->addr, &value, s->insn.size);
}

static uint64_t sign_extend(uint64_t v, unsigned bytes)
{
	unsigned shift = 64 - 8 * bytes;

	return (uint64_t)((int64_t)(v << shift) >> shift);
}

/* The operand that is not in memory. */
static uint64_t other(const struct step *s)
{
	switch (s->insn.with) {
	case INSN_REG:
		return get_reg(s);
	case INSN_CL:
		return get(s, RCX, 1);
	case INSN_ONE:
		return 1;
	default:
		return low_bytes((uint64_t)s->insn.imm, s->insn.size);
	}
}

/* ---- one instruction each ---- */

static void do_mov(struct step *s)
{
	if (s->insn.to_mem)
		store(s, other(s));
	else
		put_reg(s, load(s));
}

static uint64_t swap_bytes(uint64_t v, unsigned bytes)
{
	return __builtin_bswap64(v) >> (64 - 8 * bytes);
}

static void do_movbe(struct step *s)
{
	if (s->insn.to_mem)
		store(s, swap_bytes(get_reg(s), s->insn.size));
	else
		put_reg(s, swap_bytes(load(s), s->insn.size));
}

static void do_alu(struct step *s)
{
	const struct insn *i = &s->insn;
	uint64_t flags = get_flags(s);
	uint64_t mem = load(s), value;

	if (i->reg_first)
		value = alu_two(i->sub, i->size, other(s), mem, &flags);
	else
		value = alu_two(i->sub, i->size, mem, other(s), &flags);
	if (i->to_mem)
		store(s, value);
	else if (i->sub != ALU_CMP)
		put_reg(s, value);
	put_flags(s, flags);
}

static void do_test(struct step *s)
{
	uint64_t flags = get_flags(s);

	alu_two(ALU_TEST, s->insn.size, load(s), other(s), &flags);
	put_flags(s, flags);
}

static void do_unary(struct step *s)
{
	uint64_t flags = get_flags(s);

	store(s, alu_unary(s->insn.sub, s->insn.size, load(s), &flags));
	put_flags(s, flags);
}

static void do_multiply(struct step *s)
{
	unsigned size = s->insn.size;
	uint64_t flags = get_flags(s);
	uint64_t low = 0, high = 0;

	alu_multiply(s->insn.sub, size, get(s, RAX, size), load(s), &low, &high, &flags);
	if (size == 1) {
		put(s, RAX, 2, low);
	} else {
		put(s, RAX, size, low);
		put(s, RDX, size, high);
	}
	put_flags(s, flags);
}

static void do_imul(struct step *s)
{
	const struct insn *i = &s->insn;
	uint64_t flags = get_flags(s);
	uint64_t from = i->with == INSN_REG_IMM ? low_bytes((uint64_t)i->imm, i->size) : get_reg(s);

	put_reg(s, alu_two(ALU_IMUL, i->size, load(s), from, &flags));
	put_flags(s, flags);
}

static void do_shift(struct step *s)
{
	uint64_t flags = get_flags(s);
	uint8_t count = (uint8_t)other(s);

	store(s, alu_shift(s->insn.sub, s->insn.size, load(s), count, &flags));
	put_flags(s, flags);
}

static void do_bt(struct step *s)
{
	const struct insn *i = &s->insn;
	uint64_t flags = get_flags(s);
	unsigned bit = (unsigned)other(s) & (8u * i->size - 1);
	uint64_t value = alu_bt(i->sub, i->size, load(s), bit, &flags);

	if (i->to_mem)
		store(s, value);
	put_flags(s, flags);
}

static void do_bits(struct step *s)
{
	const struct insn *i = &s->insn;
	uint64_t flags = get_flags(s);

	put_reg(s, alu_bits(i->sub, i->size, load(s), get(s, i->merge, i->size), &flags));
	put_flags(s, flags);
}

static void do_scan(struct step *s)
{
	const struct insn *i = &s->insn;
	uint64_t flags = get_flags(s);
	uint64_t from = load(s);
	uint64_t value = alu_scan(i->sub, i->size, get_reg(s), from, &flags);

	/* bsf and bsr leave the register alone when there is no bit */
	if (from || i->sub > INSN_BSR)
		put_reg(s, value);
	put_flags(s, flags);
}

static void do_cmov(struct step *s)
{
	uint64_t value = load(s);

	/* a 32-bit one clears the upper half either way */
	put_reg(s, alu_condition(s->insn.sub, get_flags(s)) ? value : get_reg(s));
}

static void do_xadd(struct step *s)
{
	uint64_t flags = get_flags(s);
	uint64_t old = load(s);

	store(s, alu_two(ALU_ADD, s->insn.size, old, get_reg(s), &flags));
	put_reg(s, old);
	put_flags(s, flags);
}

static void do_cmpxchg(struct step *s)
{
	unsigned size = s->insn.size;
	uint64_t flags = get_flags(s);
	uint64_t old = load(s);
	uint64_t want = get(s, RAX, size);

	alu_two(ALU_CMP, size, want, old, &flags);
	if (old == want)
		store(s, get_reg(s));
	else
		put(s, RAX, size, old);
	put_flags(s, flags);
}

static void do_xchg(struct step *s)
{
	uint64_t old = load(s);

	store(s, get_reg(s));
	put_reg(s, old);
}

/* ---- vectors ---- */

static void do_vector_store(struct step *s)
{
	const struct insn *i = &s->insn;
	uint8_t value[VECTOR_BYTES];

	if (i->sub == INSN_HIGH) {
		vector_read(s->uc, i->reg, value, 16);
		cycle_store(s->addr, value + 8, 8);
		return;
	}
	vector_read(s->uc, i->reg, value, i->size);
	cycle_store(s->addr, value, i->size);
}

static void do_vector_load(struct step *s)
{
	const struct insn *i = &s->insn;
	uint8_t value[VECTOR_BYTES] = {0};

	if (i->sub == INSN_WHOLE) {
		cycle_load(s->addr, value, i->size);
	} else {
		vector_read(s->uc, i->vex ? i->merge : i->reg, value, 16);
		cycle_load(s->addr, value + (i->sub == INSN_HIGH ? 8 : 0), 8);
	}
	vector_write(s->uc, i->reg, value, i->size < 16 ? 16 : i->size, i->vex);
}

/* ---- the stack: the other operand is ordinary memory ---- */

static enum emulate_result do_push(struct step *s)
{
	uint64_t sp = get(s, RSP, 8) - s->insn.size;
	uint64_t value = load(s);

	if (!guard_copy((void *)sp, &value, s->insn.size, s->info))
		return EMULATE_FAULT;
	put(s, RSP, 8, sp);
	return EMULATE_DONE;
}

static enum emulate_result do_pop(struct step *s)
{
	uint64_t sp = get(s, RSP, 8);
	uint64_t value = 0;

	if (!guard_copy(&value, (const void *)sp, s->insn.size, s->info))
		return EMULATE_FAULT;
	put(s, RSP, 8, sp + s->insn.size);
	store(s, value);
	return EMULATE_DONE;
}

/* ---- strings ---- */

struct string {
	bool reads, writes; /* [rsi], [rdi] */
	uint64_t from, to, count;
	unsigned width; /* of rsi, rdi, rcx: 8 or 4 */
	bool down;
};

/* Bytes of the next step: several elements where that is the same. */
static unsigned string_unit(const struct step *s, const struct string *t)
{
	unsigned size = s->insn.size;
	uint64_t left = t->count * size;
	uint64_t window = t->writes && cycle_is_window(t->to, 8) ? t->to : t->from;
	bool both =
		t->reads && t->writes && cycle_is_window(t->to, 1) && cycle_is_window(t->from, 1);

	if (t->down || both || size == 8 || !t->writes || !cycle_is_window(window, 8) ||
	    !cycle_is_memory(window) || window & 3)
		return size;
	return left >= 8 ? 8 : left >= 4 && size < 4 ? 4 : size;
}

static enum emulate_result string_load(struct step *s, const struct string *t, void *out,
				       unsigned unit)
{
	uint64_t pattern, i;

	if (!t->reads) { /* stos: rax again and again */
		pattern = get(s, RAX, s->insn.size);
		for (i = 0; i < unit; i += s->insn.size)
			memcpy((uint8_t *)out + i, &pattern, s->insn.size);
	} else if (cycle_is_window(t->from, unit)) {
		cycle_load(t->from, out, unit);
	} else if (!guard_copy(out, (const void *)t->from, unit, s->info)) {
		return EMULATE_FAULT;
	}
	return EMULATE_DONE;
}

static enum emulate_result string_store(struct step *s, const struct string *t, const void *in,
					unsigned unit)
{
	if (!t->writes) { /* lods */
		uint64_t v = 0;

		memcpy(&v, in, unit);
		put(s, RAX, unit, v);
	} else if (cycle_is_window(t->to, unit)) {
		cycle_store(t->to, in, unit);
	} else if (!guard_copy((void *)t->to, in, unit, s->info)) {
		return EMULATE_FAULT;
	}
	return EMULATE_DONE;
}

static bool touches_window(const struct string *t, unsigned unit)
{
	return (t->reads && cycle_is_window(t->from, unit)) ||
	       (t->writes && cycle_is_window(t->to, unit));
}

static enum emulate_result string_move(struct step *s, const struct string *t, unsigned unit)
{
	enum emulate_result r;
	uint64_t value = 0;

	if (t->writes && cycle_is_window(t->to, unit) && !cycle_can_store(t->to, unit))
		return EMULATE_REFUSED;
	r = string_load(s, t, &value, unit);
	return r == EMULATE_DONE ? string_store(s, t, &value, unit) : r;
}

static enum emulate_result string_step(struct step *s, struct string *t)
{
	unsigned size = s->insn.size;
	unsigned unit = string_unit(s, t);
	enum emulate_result r;
	uint64_t move;

	if (!touches_window(t, unit))
		return EMULATE_NOT_OURS;
	r = string_move(s, t, unit);
	if (r == EMULATE_FAULT && unit > size) { /* which of the elements was it? */
		unit = size;
		r = string_move(s, t, unit);
	}
	if (r != EMULATE_DONE)
		return r;
	move = t->down ? -(uint64_t)unit : unit;
	t->from = low_bytes(t->from + move, t->width);
	t->to = low_bytes(t->to + move, t->width);
	t->count -= unit / size;
	return EMULATE_DONE;
}

static enum emulate_result do_string(struct step *s)
{
	const struct insn *i = &s->insn;
	unsigned width = i->addr32 ? 4 : 8;
	struct string t = {
		.reads = i->op != INSN_STOS,
		.writes = i->op != INSN_LODS,
		.from = get(s, RSI, width),
		.to = get(s, RDI, width),
		.count = i->rep ? get(s, RCX, width) : 1,
		.width = width,
		.down = get_flags(s) & FLAG_DF,
	};
	enum emulate_result r = EMULATE_DONE;
	bool begun = false;
	unsigned n;

	for (n = 0; n < STRING_CYCLES && t.count; n++) {
		r = string_step(s, &t);
		if (r != EMULATE_DONE)
			break;
		begun = true;
	}
	if (t.reads)
		put(s, RSI, width, t.from);
	if (t.writes)
		put(s, RDI, width, t.to);
	if (i->rep)
		put(s, RCX, width, t.count);
	/* It left the window, or comes to a place that is refused: the next fault says so. */
	if (begun && (r == EMULATE_NOT_OURS || r == EMULATE_REFUSED))
		r = EMULATE_DONE;
	if (r == EMULATE_DONE && t.count == 0)
		s->uc->uc_mcontext.gregs[REG_RIP] += i->len;
	return r;
}

/* ---- which, and where ---- */

#define PAGE 4096u

/* The bytes on the instruction's first page are there: it was executed.  So is the rest if it
 * has one, which only the decoder knows. */
static bool fetch_byte(void *from, unsigned i, uint8_t *byte)
{
	struct step *s = from;
	uint64_t at = (uint64_t)s->uc->uc_mcontext.gregs[REG_RIP] + s->fetched;
	unsigned n = INSN_MAX - s->fetched;
	siginfo_t ignored;

	if (i >= s->fetched) {
		if (n > PAGE - (at & (PAGE - 1)))
			n = PAGE - (unsigned)(at & (PAGE - 1));
		if (!guard_copy(s->bytes + s->fetched, (const void *)at, n, &ignored))
			return false;
		s->fetched += n;
	}
	*byte = s->bytes[i];
	return true;
}

static uint64_t address(const struct step *s)
{
	const struct insn *i = &s->insn;
	uint64_t a = (uint64_t)i->disp;

	if (i->base == INSN_RIP)
		a += (uint64_t)s->uc->uc_mcontext.gregs[REG_RIP] + i->len;
	else if (i->base != INSN_NO_REG)
		a += get(s, i->base, 8);
	if (i->index != INSN_NO_REG)
		a += get(s, i->index, 8) * i->scale;
	/* pop counts from where the stack pointer is afterwards */
	if (i->op == INSN_POP && i->base == RSP)
		a += i->size;
	/* a bit number in a register reaches beyond the operand, in steps of its size */
	if (i->op == INSN_BT && i->with == INSN_REG)
		a += (uint64_t)((int64_t)sign_extend(get_reg(s), i->size) >> (i->size == 8   ? 6
									      : i->size == 4 ? 5
											     : 4)) *
		     i->size;
	return i->addr32 ? (uint32_t)a : a;
}

static bool is_string(const struct insn *i)
{
	return i->op == INSN_MOVS || i->op == INSN_STOS || i->op == INSN_LODS;
}

static enum emulate_result execute(struct step *s)
{
	switch (s->insn.op) {
	case INSN_MOV:
		do_mov(s);
		break;
	case INSN_MOVZX:
		put_reg(s, load(s));
		break;
	case INSN_MOVSX:
		put_reg(s, sign_extend(load(s), s->insn.size));
		break;
	case INSN_MOVBE:
		do_movbe(s);
		break;
	case INSN_ALU:
		do_alu(s);
		break;
	case INSN_TEST:
		do_test(s);
		break;
	case INSN_UNARY:
		do_unary(s);
		break;
	case INSN_MUL:
		do_multiply(s);
		break;
	case INSN_IMUL:
		do_imul(s);
		break;
	case INSN_SHIFT:
		do_shift(s);
		break;
	case INSN_BT:
		do_bt(s);
		break;
	case INSN_BITS:
		do_bits(s);
		break;
	case INSN_SCAN:
		do_scan(s);
		break;
	case INSN_CMOV:
		do_cmov(s);
		break;
	case INSN_SETCC:
		store(s, alu_condition(s->insn.sub, get_flags(s)));
		break;
	case INSN_XCHG:
		do_xchg(s);
		break;
	case INSN_XADD:
		do_xadd(s);
		break;
	case INSN_CMPXCHG:
		do_cmpxchg(s);
		break;
	case INSN_PUSH:
		return do_push(s);
	case INSN_POP:
		return do_pop(s);
	case INSN_VECTOR:
		if (s->insn.to_mem)
			do_vector_store(s);
		else
			do_vector_load(s);
		break;
	default:
		return EMULATE_NOT_OURS;
	}
	return EMULATE_DONE;
}

enum emulate_result emulate(ucontext_t *uc, siginfo_t *info)
{
	struct step s = {.uc = uc, .info = info};
	uint64_t fault = (uint64_t)(uintptr_t)info->si_addr;
	enum emulate_result r;

	if (!insn_decode(&s.insn, fetch_byte, &s) || s.insn.segment != INSN_SEG_FLAT)
		return EMULATE_NOT_OURS;
	if (is_string(&s.insn))
		return do_string(&s);
	s.addr = address(&s);
	if (!cycle_is_window(s.addr, s.insn.size) || fault - s.addr >= s.insn.size)
		return EMULATE_NOT_OURS;
	if (s.insn.to_mem && !cycle_can_store(s.addr, s.insn.size))
		return EMULATE_REFUSED;
	r = execute(&s);
	if (r == EMULATE_DONE)
		uc->uc_mcontext.gregs[REG_RIP] += s.insn.len;
	return r;
}
