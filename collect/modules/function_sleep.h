/* SPDX-License-Identifier: MIT */
/*
 * function_sleep.h - which functions of a recording sleep, for what is there and for what comes later:
 *
 *   rules   one after the other, as `kron ctl probe rm -F` and `add -F` gave them
 *   hold    what --budget has taken out: it sleeps whatever the rules say
 *
 * These say what is wanted.  Processes that run already learn of it from others.
 */
#ifndef COLLECT_FUNCTION_SLEEP_H
#define COLLECT_FUNCTION_SLEEP_H

#include "collect/modules/modules.h"

struct function_sleep {
	VEC(uint32_t)
	turned; /* numbers of those that sleep now and did not before, or the reverse */
	uint64_t
		ruled; /* the rules say otherwise of them than before; held ones sleep all the same */
	uint64_t met; /* that the glob means, and that are traced */
	uint64_t
		stay; /* of those: they are probed where they are called, or in a file of `kron patch` */
};

/* From now on what the glob means (as -F) sleeps, or wakes. */
void function_sleep_add(struct modules *ms, const char *glob, bool wakes,
			struct function_sleep *out);
/* The last rule has never been. */
void function_sleep_undo(struct modules *ms);
/* The last rule stays: earlier ones with its glob say nothing any more. */
void function_sleep_keep(struct modules *ms);
/* From now on these alone are held: a byte a function, by its number in the trace, n of them. */
void function_sleep_hold(struct modules *ms, const uint8_t *held, uint32_t n,
			 struct function_sleep *out);
/* "3 7-9": what has turned, as the trace says it; allocated. */
char *function_sleep_text(struct function_sleep *s);
/* What a call above has filled in. */
void function_sleep_clear(struct function_sleep *s);
/* Its functions are selected: the rules apply to them.  The module is locked. */
void function_sleep_settle(struct modules *ms, struct module *m);
/*
 * Its functions are in the trace's tables: so are those of them that begin asleep.  None does if a trigger waits for one, as
 * nobody could refuse that.
 */
void function_sleep_numbered(struct modules *ms, struct module *m);
void function_sleep_free(struct modules *ms);

#endif
