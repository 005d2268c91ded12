/* SPDX-License-Identifier: MIT */
/*
 * jump_flow.h - what the target of an indirect jump is made of; for jump_table.c.
 */
#ifndef INJECT_JUMP_FLOW_H
#define INJECT_JUMP_FLOW_H

#include "inject/code/code_map_impl.h"

#define TABLE_ENTRIES_MAX 65536
#define ORIGIN_MAX 12 /* tables, bases of one jump */

enum origin_whole {                    /* where a whole pointer came from, or-ed */
		    WHOLE_SLOT = 1,    /* one place in memory: mem(%rip) */
		    WHOLE_INDEXED = 2, /* an array of pointers: tables of struct origin, if known */
		    WHOLE_OTHER = 4    /* anything else, also "from where the flow was lost" */
};

struct origin {
	uint8_t whole; /* enum origin_whole */
	bool sum;      /* base + 32-bit entry of a table */
	bool absolute; /* such an entry itself: non-PIE */
	bool other;    /* arithmetic that no table explains */
	uint64_t table[ORIGIN_MAX], base[ORIGIN_MAX];
	unsigned ntables, nbases;
	uint64_t load; /* of the entry, 0 if not seen: the bound check stands in front of it */
};

struct flow_edge {
	uint64_t to, from;
};

struct flow {
	struct map_builder *b;
	uint32_t root;               /* the function that is looked at, with its parts */
	VEC(struct flow_edge) edges; /* its direct branches, sorted by to */
	VEC(uint64_t) indirect;      /* its indirect jumps */
	bool has_edges;
	bool joined; /* the function or a part of it: code_function.joined */
	bool lost;   /* it is, and not all that a register may hold could be found */
	VEC(uint64_t) work, seen;
	unsigned steps;
};

/* Go to the function of b->jumps[jump]. */
void flow_enter(struct flow *f, size_t jump);
void flow_origin(struct flow *f, struct origin *o, const struct insn *jump);
void flow_close(struct flow *f);

/*
 * How many entries the check in front of the load at `at` lets through: cmp $n,x; ja default,
 * x being the index or what it was made of.  0 when no such check is found.
 */
uint64_t flow_bound(const struct flow *f, uint64_t at);

/* Is it an instruction of the function or of its parts, or just after one of them (where an
 * impossible default goes)? */
bool flow_is_own(const struct map_builder *b, uint32_t root, uint64_t vaddr);
/* The i-th 32-bit entry of a table, added to base; false when it cannot be read. */
bool flow_entry(const struct map_builder *b, uint64_t table, uint64_t i, uint64_t base,
		uint64_t *to);

#endif
