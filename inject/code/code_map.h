/* SPDX-License-Identifier: MIT */
/*
 * code_map.h - what is known about every byte of an image's code before anything is planned.
 *
 * Pass 1 decodes each function once, anchored at its start and never across its bounds, and
 * marks instruction starts and the targets of direct branches (also those into other
 * functions).  Pass 2 adds every place that may be reached otherwise: address constants
 * (relocations, lea, immediates of non-PIE code), jump tables, landing pads, symbols.
 * Pass 3 classifies the exits: rets, direct and indirect tail jumps.
 *
 * Memory is a few bits a byte of code; instructions are decoded again where they are needed.
 */
#ifndef INJECT_CODE_MAP_H
#define INJECT_CODE_MAP_H

#include "inject/code/functions.h"
#include "inject/code/insn.h"
#include "inject/code/refusal.h"

enum code_flag {
	CODE_INSN = 1,       /* an instruction starts here */
	CODE_TARGET = 2,     /* a direct branch from anywhere in the image lands here */
	CODE_CONSTANT = 4,   /* an address constant, jump table, landing pad or symbol names it */
	CODE_AFTER_CALL = 8, /* return address of a call */
	CODE_RSEQ = 16,    /* inside a restartable sequence (__rseq_cs descriptors) or its abort */
	CODE_PADDING = 32, /* no function's byte, or unreachable: nop forms and int3 only, between
				 an instruction that does not fall through and the next code */
	CODE_IN_FUNCTION = 64,
	/* Bytes that code reads as data, or that nothing leads to and that are not filler: tables
	 * and constants among code look like that.  Never displaced, never written. */
	CODE_DATA = 128
};

struct code_function {
	bool undecodable;         /* holds bytes that Zydis does not know, or overlapping code */
	bool unresolved_indirect; /* an indirect jump whose targets are not all known */
	bool loops_to_start;      /* a jump of its own goes back to its first instruction in the
				      same frame: a patched entry would be passed once an
				      iteration.  (Where the frame was torn down just before,
				      it is a tail call of itself: an exit.) */
	bool switches_to_start;   /* a case of a switch does so */
	bool contradicted; /* other code has its start inside of an instruction: undecodable */
	bool joined;       /* control also falls into it from what stands before, or out of
				      it: no function of a compiler's, and a register may
				      hold what was made elsewhere */
};

enum code_exit_kind { CODE_EXIT_RET, CODE_EXIT_TAIL, CODE_EXIT_TAIL_INDIRECT };

struct code_exit {
	uint64_t vaddr;    /* of the ret or jump */
	uint32_t function; /* index into functions; for a .cold part its parent */
	uint8_t kind;      /* enum code_exit_kind */
	uint8_t refusal;   /* AMBIGUOUS_JUMP when it cannot be told from a switch, JCC_TAIL
				  for a conditional jump out of the function */
};

struct code_map {
	const struct elf_image *img;
	const struct functions *functions;
	struct code_function *per_function; /* functions->n */
	struct code_exit *exits;            /* sorted by vaddr */
	size_t nexits;
	uint64_t lo, hi; /* vaddr span of executable segments */
	uint8_t *flags;  /* hi - lo bytes of enum code_flag, or-ed */
	uint64_t id;     /* no other map of this process has it */
};

/*
 * Also tells f's functions from parts (functions_mark_parts).  img and f must outlive the map.
 * -EFBIG when the executable segments span more than 1 GiB.
 */
int code_map_build(struct code_map **out, const struct elf_image *img, struct functions *f,
		   struct err *err);
void code_map_free(struct code_map *m);

static inline uint8_t code_map_flags(const struct code_map *m, uint64_t vaddr)
{
	return vaddr >= m->lo && vaddr < m->hi ? m->flags[vaddr - m->lo] : 0;
}
/* May control arrive at vaddr other than from the instruction before it? */
static inline bool code_map_is_target(const struct code_map *m, uint64_t vaddr)
{
	return code_map_flags(m, vaddr) & (CODE_TARGET | CODE_CONSTANT | CODE_AFTER_CALL);
}
/*
 * Decode the instruction at vaddr, with its operands.  Planners ask for the same few again and
 * again: each thread keeps what it decoded last.
 */
bool code_map_insn(const struct code_map *m, uint64_t vaddr, struct insn *out);
/* The same, but operands may be left out: as insn_scan() has it, or better. */
bool code_map_scan(const struct code_map *m, uint64_t vaddr, struct insn *out);
/* Start of the instruction before vaddr in the same function, 0 when there is none. */
uint64_t code_map_previous(const struct code_map *m, uint64_t vaddr);

#endif
