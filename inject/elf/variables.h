/* SPDX-License-Identifier: MIT */
/*
 * variables.h - where the value of a variable is, and of what it leads to, as the debug information says.
 *
 *   "req->headers.count" at an instruction  --variables_find-->  a register, an address of the file, or the
 *   frame; the steps from there to where the value stands; and its type
 *
 * Read by the process that reads lines, too (lines.h): damaged debug information harms nobody else.
 */
#ifndef INJECT_VARIABLES_H
#define INJECT_VARIABLES_H

#include "inject/elf/lines.h"

#define VARIABLE_STEPS 6u
#define VARIABLE_SYMBOL 256u

enum variable_base {
	VARIABLE_REGISTER, /* reg, as DWARF numbers them */
	VARIABLE_FRAME,    /* the CFA: the stack pointer before the call */
	VARIABLE_ADDRESS,  /* value: of the file */
	VARIABLE_NUMBER    /* value: it has this one, and is nowhere */
};

enum variable_kind { VARIABLE_SCALAR, VARIABLE_POINTER, VARIABLE_ARRAY, VARIABLE_STRUCT };

struct variable {
	uint32_t base; /* enum variable_base */
	uint32_t reg;
	uint64_t value;
	/*
	 * In all of its scope, debug information says, but it is there only once the function has begun and before
	 * it ends: not 0: from this address on.  A place is counted from this frame's register as it is there
	 * (is_in_body): from reg, as the row of `body` has it.
	 */
	uint64_t body;
	uint32_t is_in_body;
	/* 0: the base is the value.  Else at base + place[0] stands it, or an address, to which place[1] is added */
	uint32_t nplaces;
	int32_t place[VARIABLE_STEPS];
	uint32_t kind; /* enum variable_kind */
	uint32_t size; /* bytes of all of it; 0: not known */
	uint32_t bits; /* of a scalar or an array's elements; 0: they are not numbers */
	char form;     /* u, s, x, d or f (double, float) */
	uint8_t is_char, is_exported;
	uint8_t is_passed; /* at an entry: it is there if that is in the caller's frame, and else it is not */
	uint32_t count; /* elements of an array; 0: not known */
	char symbol
		[VARIABLE_SYMBOL]; /* of a variable that other modules see: as its symbol is called */
};

enum {
	VARIABLE_AT_ENTRY = 1, /* at the function's first instruction, before it */
	VARIABLE_IN_SOURCE =
		2, /* the probe names a line of a source, which may be in an inlined copy */
	VARIABLE_IS_CLONE = 4, /* the compiler has changed the parameters that the function gets */
	VARIABLE_AT_LINE = 16, /* the probe names a line, of a source or a function */
	VARIABLE_IS_TYPED = 8 /* `argument` is where the value is: the name begins with -> . or [ */
};

struct variable_question {
	const char *name; /* as parse_variable.c takes it */
	uint64_t vaddr;
	unsigned flags;
	unsigned argument; /* VARIABLE_IS_TYPED: 1 to 6; 0: what the function returns */
			   /* else the line of a source that the probe names, or 0 */
};

/* False: `why` has a sentence, without the variable's name in front. */
bool variables_find(struct lines *l, const struct variable_question *q, struct variable *out,
		    struct err *why);

#endif
