/* SPDX-License-Identifier: MIT */
/* insn_implied.c - see insn_implied.h */
#include "inject/code/insn_implied.h"

#include <string.h>

enum { RSP = 4, RBP = 5, RSI = 6, RDI = 7 };

/* The opcode after the prefixes, 0 when it has more than one byte. */
static uint8_t opcode_of(const uint8_t *code)
{
	static const uint8_t prefixes[] = {0x66, 0x67, 0xf2, 0xf3, 0x2e, 0x36,
					   0x3e, 0x26, 0x64, 0x65, 0xf0};
	int i = 0;

	while (i < 14 && (memchr(prefixes, code[i], sizeof(prefixes)) || (code[i] & 0xf0) == 0x40))
		i++;
	return code[i] == 0x0f ? 0 : code[i];
}

struct insn_implied insn_implied(const struct insn *in, const uint8_t *code)
{
	static const struct insn_implied none = {-1, 0};

	switch ((enum insn_kind)in->kind) {
	case INSN_CALL:
		return (struct insn_implied){RSP, -8};
	case INSN_CALL_INDIRECT:
		return in->has_mem ? none : (struct insn_implied){RSP, -8};
	case INSN_RET:
		return (struct insn_implied){RSP, 0};
	case INSN_PLAIN:
		break;
	default:
		return none;
	}
	switch (opcode_of(code)) {
	case 0x50 ... 0x57:
	case 0x68:
	case 0x6a:
		return (struct insn_implied){RSP, -8};
	case 0x58 ... 0x5f:
	case 0xc9:
		return (struct insn_implied){opcode_of(code) == 0xc9 ? RBP : RSP, 0};
	case 0xa4: /* movs: what it writes */
	case 0xa5:
	case 0xaa: /* stos, scas */
	case 0xab:
	case 0xae:
	case 0xaf:
		return (struct insn_implied){RDI, 0};
	case 0xa6: /* cmps, lods */
	case 0xa7:
	case 0xac:
	case 0xad:
		return (struct insn_implied){RSI, 0};
	}
	return none;
}
