/* SPDX-License-Identifier: MIT */
/* insn_implied.h - a memory operand that no ModRM byte names: the stack's, or a string's. */
#ifndef INJECT_INSN_IMPLIED_H
#define INJECT_INSN_IMPLIED_H

#include "inject/code/insn.h"

struct insn_implied {
	int reg; /* -1: there is none */
	int disp;
};

/* Of two it is the one that is written. */
struct insn_implied insn_implied(const struct insn *in, const uint8_t *code);

#endif
