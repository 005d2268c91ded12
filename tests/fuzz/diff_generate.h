/* SPDX-License-Identifier: MIT */
/* diff_generate.h - what the two halves of the generator share: diff_draw.c, diff_generate.c. */
#ifndef TESTS_FUZZ_DIFF_GENERATE_H
#define TESTS_FUZZ_DIFF_GENERATE_H

#include "tests/fuzz/diff.h"

struct gen {
	struct image *im;
	struct code *c;
	struct rng *r;
	int depth;         /* bytes on the stack above the entry's */
	unsigned self;     /* number of the function */
	unsigned nesting;  /* loops and skips that we are in */
	uint16_t reserved; /* registers that should not be written: bits */
	uint16_t counters; /* those that count loops, which must not */
};

struct operand {
	uint8_t bytes[6]; /* ModRM without its reg field, SIB, displacement */
	uint8_t len;
	uint8_t b, x;    /* REX bits */
	bool rip;        /* displacement to be fixed up */
	uint8_t segment; /* prefix, or 0 */
	bool addr32;
};

unsigned any_register(struct gen *g);
/* One that may be written. */
unsigned free_register(struct gen *g);
unsigned pointer_register(struct gen *g);
/* Mostly memory of ours.  aligned: whole vectors; wide: no disp8, which EVEX scales. */
struct operand memory(struct gen *g, bool aligned, bool wide);
void any_instruction(struct gen *g);

#endif
