/* SPDX-License-Identifier: MIT */
/*
 * alu.h - arithmetic of instructions on values, by this very processor: the same instruction is
 * executed on registers, so results and flags are right, the undefined ones included.
 *
 * Values are zero-extended; `flags` is RFLAGS, of which the six arithmetic bits go in and out.
 */
#ifndef LIBMK_ALU_H
#define LIBMK_ALU_H

#include <stdbool.h>
#include <stdint.h>

#define ALU_FLAGS 0x8d5ull /* OF SF ZF AF PF CF */

/* Two operands: sub as in INSN_ALU; ALU_TEST, ALU_IMUL beyond.  Returns the new destination. */
enum { ALU_ADD, ALU_OR, ALU_ADC, ALU_SBB, ALU_AND, ALU_SUB, ALU_XOR, ALU_CMP, ALU_TEST, ALU_IMUL };
uint64_t alu_two(unsigned sub, unsigned size, uint64_t to, uint64_t from, uint64_t *flags);
uint64_t alu_unary(unsigned sub, unsigned size, uint64_t value, uint64_t *flags);
uint64_t alu_shift(unsigned sub, unsigned size, uint64_t value, uint8_t count, uint64_t *flags);
uint64_t alu_bt(unsigned sub, unsigned size, uint64_t value, unsigned bit, uint64_t *flags);
uint64_t alu_scan(unsigned sub, unsigned size, uint64_t to, uint64_t from, uint64_t *flags);
/* sub: enum insn_bits; `with` is the operand that is not in memory. */
uint64_t alu_bits(unsigned sub, unsigned size, uint64_t mem, uint64_t with, uint64_t *flags);
/* rdx:rax, or ax, = a x b */
void alu_multiply(bool is_signed, unsigned size, uint64_t a, uint64_t b, uint64_t *low,
		  uint64_t *high, uint64_t *flags);
bool alu_condition(unsigned cc, uint64_t flags);

#endif
