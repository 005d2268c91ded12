/* SPDX-License-Identifier: MIT */
/*
 * insn.h - one decoded instruction.  Only insn*.c includes Zydis and capstone.  Zydis says lengths and semantics, and what most code consists of is decoded
 * by tables that say the same (insn_quick.c); whatever is displaced is decoded by Zydis and by
 * capstone, and a disagreement refuses the site (insn_confirm).
 */
#ifndef INJECT_INSN_H
#define INJECT_INSN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum insn_kind {
	INSN_PLAIN, /* falls through to the next, no branch */
	INSN_CALL,  /* direct call, target */
	INSN_CALL_INDIRECT,
	INSN_JMP, /* direct jump, target */
	INSN_JMP_INDIRECT,
	INSN_JCC,  /* conditional, target; loop and jrcxz too */
	INSN_RET,  /* near ret, ret imm16, rep ret, bnd ret */
	INSN_TRAP, /* ud0-2, int3, hlt: does not fall through, unless a handler steps over it */
	INSN_SYSCALL,
	INSN_PADDING,       /* a no-op of any length, int3 not included */
	INSN_OTHER_TRANSFER /* far transfers, iret, sysret, xbegin ...: never displaced */
};

struct insn {
	uint64_t addr;
	uint64_t target; /* CALL, JMP, JCC: where to; rip-relative operand: what it names */
	uint8_t len;
	uint8_t kind;      /* enum insn_kind */
	bool rip_relative; /* has a rip-relative memory operand; target is its address */
	uint8_t disp_off;  /* offset of that disp32 or of the branch's displacement */
	uint8_t disp_size; /* 1 or 4 */
	bool notrack;      /* JMP_INDIRECT with a notrack prefix: a switch */
	bool is_loop;      /* JCC: loop, loope, loopne, jrcxz, jecxz: only rel8 forms exist */
	/* JMP_INDIRECT, CALL_INDIRECT, loads: the memory operand or the register */
	int8_t reg;                 /* register jumped through (0-15), -1 if memory */
	int8_t mem_base, mem_index; /* 0-15, 16 = rip, -1 none */
	uint8_t mem_scale;
	int64_t mem_disp;
	bool reads_memory;
	/* constants that may be code addresses */
	bool has_imm;          /* an immediate operand of 32 or 64 bits */
	uint64_t imm;          /* sign-extended */
	uint8_t imm_size;      /* bytes of a (not pc-relative) immediate of any size, 0 = none */
	int8_t dest_reg;       /* first operand if it is a written GPR, 0-15, else -1 */
	int8_t first_reg;      /* first operand if it is a GPR, written or not, 0-15, else -1 */
	int8_t src_reg;        /* second operand if it is a GPR, 0-15, else -1 */
	uint8_t op;            /* enum insn_op: the few that analyses ask for */
	uint8_t op_size;       /* operand size in bytes */
	bool has_mem;          /* a memory operand with a ModRM byte: mem_* describe it */
	bool loads, stores;    /* memory through an operand that is written out (no push, no ret),
				* or by a string instruction */
	uint8_t mem_seg;       /* segment prefix byte (0x64 fs, 0x65 gs), 0 = none */
	uint16_t regs_written; /* GPRs, bit n = register n; implicit ones too, rsp of push not */
	/* Data flow, from insn_decode() only; whatever is in doubt is read and not killed. */
	uint16_t regs_read;   /* GPRs whose old value matters, that of parts and addresses too */
	uint16_t regs_killed; /* GPRs of which nothing old remains, whatever happens */
	uint8_t flags_read;   /* enum insn_flag */
	uint8_t flags_killed; /* likewise */
	bool is_vsib;         /* the index is a vector: many addresses */
	bool is_narrow;       /* addresses have 32 bits (67 prefix) */
	bool is_pure;         /* nothing but GPRs and flags: no memory, no fault, no branch */
	bool is_quiet;        /* the same, but it may read the stack or a place of the module's,
			       * or push or pop a GPR: nobody else can tell when */
};

/* The status flags. */
enum insn_flag {
	INSN_CF = 1,
	INSN_PF = 2,
	INSN_AF = 4,
	INSN_ZF = 8,
	INSN_SF = 16,
	INSN_OF = 32,
	INSN_FLAGS = 63
};

enum insn_op {
	INSN_OP_OTHER,
	INSN_OP_LEA,
	INSN_OP_MOV,
	INSN_OP_MOVSXD,
	INSN_OP_ADD,
	INSN_OP_CMP,
	INSN_OP_XBEGIN,
	INSN_OP_INT3,
	INSN_OP_SUB,
	INSN_OP_PORT /* ins, outs */
};

/*
 * Decode at code[0..avail).  Returns false when the bytes are not a known instruction, or one on
 * whose length the vendors differ (a near branch with a 66 prefix and no REX.W).
 * Thread-safe.
 */
bool insn_decode(struct insn *out, const uint8_t *code, size_t avail, uint64_t addr);
/*
 * The same without looking at operands, for sweeps: many times as fast.  dest_reg is right for
 * LEA, MOV and MOVSXD only, first_reg and src_reg are -1, regs_written 0, loads and
 * stores false throughout, mem_* are right for
 * instructions without VEX or EVEX prefix.
 */
bool insn_scan(struct insn *out, const uint8_t *code, size_t avail, uint64_t addr);
/*
 * For sweeps over code that is position independent: the length of an instruction of which they want
 * no more, because it is INSN_PLAIN, no lea, and has no rip-relative operand.  0: ask insn_scan().
 */
unsigned insn_skim(const uint8_t *code, size_t avail);
/* Do Zydis and capstone agree on length and kind?  True also when capstone does not know it at all. */
bool insn_confirm(const struct insn *in, const uint8_t *code);
/*
 * What an instruction reads and writes in memory, the stack by push, call and ret too.  A register's
 * number is that of the hardware, -1 none.
 */
struct insn_access {
	int8_t base, index;
	uint8_t scale;
	uint8_t segment;   /* 0x64 fs, 0x65 gs, 0: none */
	bool rip_relative; /* disp is the address */
	bool is_narrow;    /* the address has 32 bits */
	bool reads, writes;
	uint16_t size;
	int64_t disp;
};
#define INSN_ACCESSES 2u
struct insn_accesses {
	struct insn_access v[INSN_ACCESSES];
	unsigned n;
	bool is_repeated; /* movs, stos or lods with a rep prefix: v[] is one element */
	bool is_unknown;  /* many addresses, or their number is known afterwards only */
};
/* False: it cannot be decoded. */
bool insn_accesses(struct insn_accesses *out, const uint8_t *code, size_t avail, uint64_t addr);
/* For people: "mov %rsp, %rbp".  Returns out. */
char *insn_text(char *out, size_t size, const uint8_t *code, size_t avail, uint64_t addr);

#endif
