/* SPDX-License-Identifier: MIT */
/*
 * code_map_impl.h - what the passes of the code map share; private to them.
 *
 *   code_map.c     the passes in their order; pass 2: other ways to arrive
 *   code_sweep.c   pass 1: instructions, direct branches, evidence about function starts
 *   code_doubt.c   symbols that the code contradicts
 *   code_walk.c    pass 3: padding, exits
 *   jump_table.c   where indirect jumps go
 *   jump_stride.c  those into a row of pieces of one size
 *   code_rseq.c    restartable sequences
 *
 * All of them ask code_map_query.c, which knows none of them.
 */
#ifndef INJECT_CODE_MAP_IMPL_H
#define INJECT_CODE_MAP_IMPL_H

#include "base/vec.h"
#include "inject/code/code_map.h"

enum {
	/* A pointer in data or code (not a symbol, table or landing pad) names the byte.  The bit
	 * is CODE_DATA's when the passes are done. */
	CODE_TAKEN = 128
};

struct map_branch { /* a direct jump out of its function, or to its function's start */
	uint64_t from, to;
	uint32_t function;
	bool conditional;
};

struct map_bytes {
	uint64_t at, len;
};

struct map_lea { /* an address in the image that code makes: lea, or an immediate (non-PIE) */
	uint64_t target;
	uint32_t function;
};

enum jump_form {
	JUMP_UNRESOLVED, /* computed in a way that no table explains */
	JUMP_SWITCH,     /* through a table whose entries lie in the function: all marked */
	JUMP_MIXED,      /* through such a table, or to a whole pointer */
	JUMP_LOADED,     /* a whole pointer, so an address constant if it points into code */
	JUMP_SLOT,       /* the same, from one fixed place in memory: the GOT */
	JUMP_OUTWARD     /* through a constant table of other functions' starts */
};

struct map_jump { /* an indirect jump */
	uint64_t addr;
	uint32_t function;
	uint8_t form; /* enum jump_form, set by jump_tables_resolve() */
};

/*
 * Functions that lie one after the other, and the gaps after them: what one thread looks at.  A
 * thread writes to the bytes of its own piece alone.  What it finds goes into lists of its own, in
 * order of address, and all of them one after the other are what one thread would have found.
 */
struct map_piece {
	uint32_t first, end; /* functions */
	uint64_t lo, hi;
};

struct map_builder {
	struct code_map *m;
	const struct elf_image *img;
	struct functions *f;
	bool position_dependent; /* ET_EXEC: immediates and plain words may be addresses */
	uint8_t *shape;          /* at an instruction's start: kind << 4 | length */
	uint8_t *called;         /* bitmap: targets of direct calls */
	struct function_evidence *evidence;
	uint32_t *first_lea;             /* per function, and one more: its leas */
	uint32_t *next_part;             /* per function: the next part of the same root, or NONE */
	VEC(struct map_branch) branches; /* all three in order of address */
	VEC(struct map_lea) leas;
	VEC(struct map_jump) jumps;
	VEC(struct map_bytes) data; /* what will be CODE_DATA */
	VEC(uint64_t) strays;       /* targets of branches that no function's jump makes */
	VEC(struct map_piece) pieces;
};

static inline bool map_has(const struct map_builder *b, uint64_t vaddr)
{
	return vaddr >= b->m->lo && vaddr < b->m->hi;
}
static inline uint8_t *map_flag(const struct map_builder *b, uint64_t vaddr)
{
	return &b->m->flags[vaddr - b->m->lo];
}
static inline void map_mark(const struct map_builder *b, uint64_t vaddr, uint8_t flags)
{
	if (map_has(b, vaddr))
		*map_flag(b, vaddr) |= flags;
}
static inline uint8_t map_shape(const struct map_builder *b, uint64_t vaddr)
{
	return b->shape[vaddr - b->m->lo];
}
static inline uint32_t map_root(const struct map_builder *b, uint32_t function)
{
	return b->f->v[function].is_part ? b->f->v[function].parent : function;
}
/* Index of the function that holds vaddr, or FUNCTION_NONE. */
static inline uint32_t map_function(const struct map_builder *b, uint64_t vaddr)
{
	const struct function *fn = functions_at(b->f, vaddr);

	return fn ? (uint32_t)(fn - b->f->v) : FUNCTION_NONE;
}
/* The function (root) and its parts, one after the other: for (i = root; i != NONE; ...) */
static inline uint32_t map_next_part(const struct map_builder *b, uint32_t function)
{
	return b->next_part[function];
}
/* Does control fall through to the next instruction? */
static inline bool map_falls_through(const struct map_builder *b, uint64_t vaddr)
{
	switch (map_shape(b, vaddr) >> 4) {
	case INSN_JMP:
	case INSN_JMP_INDIRECT:
	case INSN_RET:
		return false;
	case INSN_TRAP:
		/* a handler or a debugger resumes after an int3 */
		return *elf_image_at(b->img, vaddr, 1) == 0xcc;
	}
	return true; /* of the other transfers, xbegin and far calls do; the rest are too rare */
}

void walk_functions(struct map_builder *b, struct frame_info *fi);
void sweep_functions(struct map_builder *b);
void sweep_gaps(struct map_builder *b);
void doubt_symbols(struct map_builder *b);
/* The function with the jump at vaddr, which may lead anywhere in it, may reach as far as from one
 * function that is called to the next one: symbols without a frame prove nothing. */
void spread_jump(struct map_builder *b, uint64_t vaddr);
void join_functions(struct map_builder *b);
void jump_tables_resolve(struct map_builder *b);
void jump_stride_resolve(struct map_builder *b, struct map_jump *j);
void rseq_mark(struct map_builder *b);

#endif
