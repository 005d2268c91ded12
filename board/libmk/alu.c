/* SPDX-License-Identifier: MIT */
/*
 * alu.c - see alu.h.  Compiled without a red zone: the assembly pushes.
 */
#include "board/libmk/alu.h"

#include "board/libmk/insn.h"

/* Only the arithmetic flags go into the real register: not TF, DF or AC of the program. */
static uint64_t flags_in(uint64_t flags)
{
	return (flags & ALU_FLAGS) | 0x202;
}

static void flags_out(uint64_t *flags, uint64_t got)
{
	*flags = (*flags & ~ALU_FLAGS) | (got & ALU_FLAGS);
}

#define WITH_FLAGS(insn) "pushq %[f]\n\tpopfq\n\t" insn "\n\tpushfq\n\tpopq %[f]"

#define TWO(type, name)                                        \
	do {                                                   \
		type d_ = (type)to, s_ = (type)from;           \
		__asm__ volatile(WITH_FLAGS(name " %[s],%[d]") \
				 : [d] "+&q"(d_), [f] "+&r"(f) \
				 : [s] "q"(s_)                 \
				 : "cc", "memory");            \
		to = d_;                                       \
	} while (0)

#define TWO_SIZES(name)                      \
	do {                                 \
		if (size == 1)               \
			TWO(uint8_t, name);  \
		else if (size == 2)          \
			TWO(uint16_t, name); \
		else if (size == 4)          \
			TWO(uint32_t, name); \
		else                         \
			TWO(uint64_t, name); \
	} while (0)

#define TWO_WIDE(name)                       \
	do {                                 \
		if (size == 2)               \
			TWO(uint16_t, name); \
		else if (size == 4)          \
			TWO(uint32_t, name); \
		else                         \
			TWO(uint64_t, name); \
	} while (0)

uint64_t alu_two(unsigned sub, unsigned size, uint64_t to, uint64_t from, uint64_t *flags)
{
	uint64_t f = flags_in(*flags);

	switch (sub) {
	case ALU_ADD:
		TWO_SIZES("add");
		break;
	case ALU_OR:
		TWO_SIZES("or");
		break;
	case ALU_ADC:
		TWO_SIZES("adc");
		break;
	case ALU_SBB:
		TWO_SIZES("sbb");
		break;
	case ALU_AND:
		TWO_SIZES("and");
		break;
	case ALU_SUB:
		TWO_SIZES("sub");
		break;
	case ALU_XOR:
		TWO_SIZES("xor");
		break;
	case ALU_CMP:
		TWO_SIZES("cmp");
		break;
	case ALU_TEST:
		TWO_SIZES("test");
		break;
	default:
		TWO_WIDE("imul");
		break;
	}
	flags_out(flags, f);
	return to;
}

#define ONE(type, name)                                        \
	do {                                                   \
		type d_ = (type)to;                            \
		__asm__ volatile(WITH_FLAGS(name " %[d]")      \
				 : [d] "+&q"(d_), [f] "+&r"(f) \
				 :                             \
				 : "cc", "memory");            \
		to = d_;                                       \
	} while (0)

#define ONE_SIZES(name)                      \
	do {                                 \
		if (size == 1)               \
			ONE(uint8_t, name);  \
		else if (size == 2)          \
			ONE(uint16_t, name); \
		else if (size == 4)          \
			ONE(uint32_t, name); \
		else                         \
			ONE(uint64_t, name); \
	} while (0)

uint64_t alu_unary(unsigned sub, unsigned size, uint64_t to, uint64_t *flags)
{
	uint64_t f = flags_in(*flags);

	switch (sub) {
	case INSN_NOT:
		ONE_SIZES("not");
		break;
	case INSN_NEG:
		ONE_SIZES("neg");
		break;
	case INSN_INC:
		ONE_SIZES("inc");
		break;
	default:
		ONE_SIZES("dec");
		break;
	}
	flags_out(flags, f);
	return to;
}

#define SHIFT(type, name)                                      \
	do {                                                   \
		type d_ = (type)to;                            \
		__asm__ volatile(WITH_FLAGS(name " %%cl,%[d]") \
				 : [d] "+&q"(d_), [f] "+&r"(f) \
				 : "c"(count)                  \
				 : "cc", "memory");            \
		to = d_;                                       \
	} while (0)

#define SHIFT_SIZES(name)                      \
	do {                                   \
		if (size == 1)                 \
			SHIFT(uint8_t, name);  \
		else if (size == 2)            \
			SHIFT(uint16_t, name); \
		else if (size == 4)            \
			SHIFT(uint32_t, name); \
		else                           \
			SHIFT(uint64_t, name); \
	} while (0)

uint64_t alu_shift(unsigned sub, unsigned size, uint64_t to, uint8_t count, uint64_t *flags)
{
	uint64_t f = flags_in(*flags);

	switch (sub) {
	case 0:
		SHIFT_SIZES("rol");
		break;
	case 1:
		SHIFT_SIZES("ror");
		break;
	case 2:
		SHIFT_SIZES("rcl");
		break;
	case 3:
		SHIFT_SIZES("rcr");
		break;
	case 5:
		SHIFT_SIZES("shr");
		break;
	case 7:
		SHIFT_SIZES("sar");
		break;
	default: /* 4, and 6 which is the same */
		SHIFT_SIZES("shl");
		break;
	}
	flags_out(flags, f);
	return to;
}

uint64_t alu_bt(unsigned sub, unsigned size, uint64_t to, unsigned bit, uint64_t *flags)
{
	uint64_t f = flags_in(*flags);
	uint64_t from = bit;

	switch (sub) {
	case 0:
		TWO_WIDE("bt");
		break;
	case 1:
		TWO_WIDE("bts");
		break;
	case 2:
		TWO_WIDE("btr");
		break;
	default:
		TWO_WIDE("btc");
		break;
	}
	flags_out(flags, f);
	return to;
}

#define THREE(type, name)                                           \
	do {                                                        \
		type m_ = (type)mem, w_ = (type)with, d_;           \
		__asm__ volatile(WITH_FLAGS(name " %[w],%[m],%[d]") \
				 : [d] "=&r"(d_), [f] "+&r"(f)      \
				 : [m] "r"(m_), [w] "r"(w_)         \
				 : "cc", "memory");                 \
		mem = d_;                                           \
	} while (0)

#define THREE_SIZES(name)                      \
	do {                                   \
		if (size == 4)                 \
			THREE(uint32_t, name); \
		else                           \
			THREE(uint64_t, name); \
	} while (0)

uint64_t alu_bits(unsigned sub, unsigned size, uint64_t mem, uint64_t with, uint64_t *flags)
{
	uint64_t f = flags_in(*flags), swap = mem;

	switch (sub) {
	case INSN_ANDN: /* its memory operand is the one that the others have in a register */
		mem = with;
		with = swap;
		THREE_SIZES("andn");
		break;
	case INSN_BEXTR:
		THREE_SIZES("bextr");
		break;
	case INSN_BZHI:
		THREE_SIZES("bzhi");
		break;
	case INSN_SHLX:
		THREE_SIZES("shlx");
		break;
	case INSN_SARX:
		THREE_SIZES("sarx");
		break;
	default:
		THREE_SIZES("shrx");
		break;
	}
	flags_out(flags, f);
	return mem;
}

uint64_t alu_scan(unsigned sub, unsigned size, uint64_t to, uint64_t from, uint64_t *flags)
{
	uint64_t f = flags_in(*flags);

	switch (sub) {
	case INSN_BSF:
		TWO_WIDE("bsf");
		break;
	case INSN_BSR:
		TWO_WIDE("bsr");
		break;
	case INSN_TZCNT:
		TWO_WIDE("rep; bsf");
		break;
	case INSN_LZCNT:
		TWO_WIDE("rep; bsr");
		break;
	default:
		TWO_WIDE("popcnt");
		break;
	}
	flags_out(flags, f);
	return to;
}

#define MULTIPLY(type, name)                                          \
	do {                                                          \
		type a_ = (type)a, b_ = (type)b, h_ = 0;              \
		__asm__ volatile(WITH_FLAGS(name " %[b]")             \
				 : "+&a"(a_), "=&d"(h_), [f] "+&r"(f) \
				 : [b] "r"(b_)                        \
				 : "cc", "memory");                   \
		*low = a_;                                            \
		*high = h_;                                           \
	} while (0)

/* Bytes: ax = al x b. */
static void multiply_bytes(bool is_signed, uint8_t a, uint8_t b, uint64_t *low, uint64_t *f)
{
	uint16_t ax = a;

	if (is_signed)
		__asm__ volatile("pushq %[f]\n\tpopfq\n\timulb %[b]\n\tpushfq\n\tpopq %[f]"
				 : "+&a"(ax), [f] "+&r"(*f)
				 : [b] "q"(b)
				 : "cc", "memory");
	else
		__asm__ volatile("pushq %[f]\n\tpopfq\n\tmulb %[b]\n\tpushfq\n\tpopq %[f]"
				 : "+&a"(ax), [f] "+&r"(*f)
				 : [b] "q"(b)
				 : "cc", "memory");
	*low = ax;
}

void alu_multiply(bool is_signed, unsigned size, uint64_t a, uint64_t b, uint64_t *low,
		  uint64_t *high, uint64_t *flags)
{
	uint64_t f = flags_in(*flags);

	if (size == 1)
		multiply_bytes(is_signed, (uint8_t)a, (uint8_t)b, low, &f);
	else if (size == 2 && is_signed)
		MULTIPLY(uint16_t, "imulw");
	else if (size == 2)
		MULTIPLY(uint16_t, "mulw");
	else if (size == 4 && is_signed)
		MULTIPLY(uint32_t, "imull");
	else if (size == 4)
		MULTIPLY(uint32_t, "mull");
	else if (is_signed)
		MULTIPLY(uint64_t, "imulq");
	else
		MULTIPLY(uint64_t, "mulq");
	flags_out(flags, f);
}

bool alu_condition(unsigned cc, uint64_t flags)
{
	bool cf = flags & 0x1, pf = flags & 0x4, zf = flags & 0x40;
	bool sf = flags & 0x80, of = flags & 0x800;
	const bool is[8] = {of, cf, zf, cf || zf, sf, pf, sf != of, zf || sf != of};

	return is[cc >> 1 & 7] != (cc & 1);
}
