/* SPDX-License-Identifier: MIT */
/* guess_impl.h - between guess.c, which judges places, and guess_walk.c, which follows code. */
#ifndef INJECT_GUESS_IMPL_H
#define INJECT_GUESS_IMPL_H

#include "base/vec.h"
#include "inject/code/guess.h"
#include "inject/code/insn.h"

enum {
	IS_INSN = 1,     /* an instruction of a function that was walked starts here */
	IN_INSN = 2,     /* a byte of such a one, not its first */
	IS_START = 4,    /* a function starts here, as far as is known */
	IS_CONFLICT = 8, /* two functions have different instructions here */
	IS_HERE = 16,    /* the walk that goes on now: an instruction starts here */
	IN_HERE = 32,
	IS_POINTED = 64, /* a pointer names it */
	IS_KNOWN = 128,  /* of a function that is known for sure */
	IS_READ = 256,   /* an instruction reads it */
	IS_LOST = 512,   /* a function starts here, with a jump that leads nobody knows where */
	IS_BRANCH = 1024 /* a conditional jump leads here */
};

struct guess_insn {
	uint64_t at;
	uint8_t len;
	bool goes_on;
};

struct guess_jump {
	uint64_t to;
	bool conditional;
};

/* One function's code, as far as jumps lead from its start. */
struct guess_walk {
	uint64_t start;
	VEC(struct guess_insn) insns; /* in any order until it has been judged */
	VEC(uint64_t) work, calls, pointers, reads;
	VEC(struct guess_jump) jumps;
	VEC(uint64_t) doubts; /* code after a call and filler, to which no jump may lead */
	VEC(uint64_t) stops;  /* those where the function ends, as that call does not return */
	bool is_wrong;        /* this cannot be code */
	bool is_open;         /* there may be more of it */
	bool is_lost;         /* because a jump leads nobody knows where */
};

struct guesser {
	const struct guess_input *in;
	const struct elf_image *img;
	uint64_t lo, hi; /* of what is executable */
	uint16_t *state; /* hi - lo */
	uint64_t budget; /* instructions that may still be looked at */
	bool position_dependent;
	VEC(struct guess) starts;
	VEC(uint64_t) work; /* starts that are to be walked */
	VEC(uint64_t) pointed;
};

static inline bool guess_has(const struct guesser *g, uint64_t vaddr)
{
	return vaddr >= g->lo && vaddr < g->hi;
}
static inline uint16_t *guess_state(const struct guesser *g, uint64_t vaddr)
{
	return &g->state[vaddr - g->lo];
}

bool guess_decode(const struct guesser *g, uint64_t at, struct insn *in);
/* Follow the function's jumps from its start.  w is used again and again. */
void guess_walk(struct guesser *g, struct guess_walk *w, uint64_t start);
/* Sort w->insns by address. */
void guess_walk_sort(struct guess_walk *w);
void guess_walk_free(struct guess_walk *w);

#endif
