/* SPDX-License-Identifier: MIT */
/* plan_impl.h - what plan.c and plan_rounds.c share; not for anybody else. */
#ifndef INJECT_PLAN_IMPL_H
#define INJECT_PLAN_IMPL_H

#include "inject/plan/planner.h"

/* What plan_make needs to find quickly, by index in functions. */
struct plan_index {
	uint32_t *next_part;            /* functions_link_parts() */
	uint32_t *first_exit;           /* n + 1 entries into exits */
	const struct code_exit **exits; /* grouped by function, each group by vaddr */
};

/* The request's places that lie in functions, grouped like exits. */
struct plan_places {
	uint32_t *first; /* n + 3 entries into order; the last but one group is in no function */
	uint32_t *order; /* numbers of the request, each group by vaddr, then as asked for */
};

/* Where the stack is unwound: hooks_next_unwind(). */
struct plan_unwind {
	uint64_t vaddr;
	uint32_t function; /* in fns, no part */
	uint8_t hook;
};

/* A plan in the making. */
struct making {
	struct planner pl; /* what all chunks have in common; at last, what they came to */
	const struct code_map *map;
	const struct functions *fns;
	const struct plan_options *opt;
	struct plan_index ix;
	struct plan_places places;
	uint64_t hooks[KRON_HOOK_SYMBOLS];
	VEC(struct plan_unwind) unwinds;
	bool has_hooked_instructions; /* may have: hooks.h */
	bool is_read;                 /* aot_image.h */
	VEC(struct plan_function) functions;
	VEC(uint32_t) numbers; /* by plan function: in fns */
	VEC(char) strings;
	struct planner_shared shared;
};

/* The function itself, then its parts: for (r = i; r != UINT32_MAX; ...) */
static inline uint32_t plan_next_range(const struct making *m, uint32_t r)
{
	return m->ix.next_part[r];
}
/* The function, not a part of one, that vaddr belongs to; fns->n: none. */
uint32_t plan_owner_of(const struct making *m, uint64_t vaddr);
/* Has function i a hook that its site may be patched for alone? */
bool plan_is_hooked(const struct making *m, uint32_t i);
/* A reason that holds for every probe of the function, or REFUSAL_NONE. */
enum refusal plan_refuse_function(const struct making *m, uint32_t i);
/* A reason that no tactic can help, of place number k in order. */
enum refusal plan_refuse_place(const struct making *m, uint32_t i, const struct place_request *r);

/* plan_rounds.c: every probe that is listed gets its site or its refusal. */
void plan_take_all(struct making *m);

#endif
