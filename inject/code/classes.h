/* SPDX-License-Identifier: MIT */
/*
 * classes.h - classes of places: every instruction, branch, load, store, call, basic block.
 *
 * Lists the places of a class in the functions of a code map, for requests and for
 * `kron list --places`.  Filler that no control reaches (CODE_PADDING) is not an instruction here, nor is
 * what may be data (CODE_DATA).
 */
#ifndef INJECT_CLASSES_H
#define INJECT_CLASSES_H

#include "base/vec.h"
#include "inject/code/code_map.h"

/* X(identifier, key, words for people) */
#define PLACE_CLASSES(X)                                                         \
	X(INSNS, "insns", "every instruction")                                   \
	X(BRANCHES, "branches", "jumps, conditional and indirect ones too")      \
	X(LOADS, "loads", "instructions that read memory through an operand")    \
	X(STORES, "stores", "instructions that write memory through an operand") \
	X(CALLS, "calls", "calls, direct and indirect")                          \
	X(BLOCKS, "blocks", "the first instruction of every basic block")        \
	X(ACCESSES, "accesses", "instructions that touch memory, the stack too")

enum place_class {
#define X(id, key, text) CLASS_##id,
	PLACE_CLASSES(X)
#undef X
		CLASS_COUNT
};

const char *class_key(enum place_class c);

struct class_places {
	VEC(uint64_t) v; /* ascending */
	uint64_t filler; /* instructions left out: nothing reaches them */
};

/* Those in [lo, hi), or in all functions: 0, UINT64_MAX.  out is added to. */
void class_list(struct class_places *out, const struct code_map *map, enum place_class c,
		uint64_t lo, uint64_t hi);
/* Those of one function, or of one part of a function. */
void class_list_function(struct class_places *out, const struct code_map *map, enum place_class c,
			 const struct function *f);

#endif
