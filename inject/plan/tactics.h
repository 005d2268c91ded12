/* SPDX-License-Identifier: MIT */
/*
 * tactics.h - the tactics: as what a probe counts that one has taken, and which the planner may
 * use (--tactics).
 *
 * Most are both.  The jump counts by what it covers, and to evict helps others.  Plans of the
 * cache hold the numbers: a new one goes to the end, or PLAN_VERSION goes up.
 */
#ifndef INJECT_TACTICS_H
#define INJECT_TACTICS_H

#include <stdint.h>

#include "base/err.h"

/*
 * Identifier, key, and who takes a place: by this order the planner climbs (ladder.c); NULL is no
 * rung.  KIND: counted; SWITCH: may be switched off; BOTH; ASKED: both, and off until asked for.
 */
#define TACTICS(KIND, SWITCH, BOTH, ASKED)       \
	TACTICS_FIRST(KIND, SWITCH, BOTH, ASKED) \
	TACTICS_REST(KIND, SWITCH, BOTH, ASKED)
#define TACTICS_FIRST(KIND, SWITCH, BOTH, ASKED) \
	KIND(NONE, "none", NULL)                 \
	BOTH(JUMP, "jump", tactic_jump) /* a 5-byte jump; counted as this: over one instruction */
#define TACTICS_REST(KIND, SWITCH, BOTH, ASKED)                                                    \
	KIND(JUMP_MULTI, "jump-multi", NULL)     /* a 5-byte jump over several instructions */     \
	KIND(JUMP_PADDING, "jump-padding", NULL) /* one that also covers padding */                \
	KIND(JUMP_SHARED, "jump-shared", NULL)   /* taken with another probe of the same window */ \
	KIND(JUMP_SHORT, "jump-short", NULL)     /* a 2-byte jump to a landing, which jumps on */  \
	SWITCH(SHORT, "short", tactic_short)     /* what counts as jump-short */                   \
	SWITCH(EVICT, "evict", NULL)             /* code nearby moves out to make a landing */     \
	BOTH(ARRIVALS, "arrivals", tactic_arrivals) /* an exit, on every way that leads to it */   \
	BOTH(DETOUR, "detour", tactic_detour) /* every way there goes round by the trampolines */  \
	BOTH(PUN, "pun", tactic_pun) /* one byte, whose distance is the next jump's first byte */  \
	BOTH(RELAY, "relay", tactic_relay) /* a 2-byte jump to a landing far away, by others */    \
	ASKED(INT3, "int3", NULL)          /* a trap: slow; the planner tries it last of all */    \
	BOTH(CALLSITE, "import", NULL)     /* in the stubs by which other modules call it */
#define TACTICS_NOT(id, key, take)

/* What --tactics takes, for its help. */
#define TACTICS_WORD(id, key, take) key
#define TACTICS_COMMA(id, key, take) ", " key
#define TACTICS_WORDS(ASKED)                                                 \
	TACTICS_FIRST(TACTICS_NOT, TACTICS_WORD, TACTICS_WORD, TACTICS_WORD) \
	TACTICS_REST(TACTICS_NOT, TACTICS_COMMA, TACTICS_COMMA, ASKED)
#define TACTICS_HELP TACTICS_WORDS(TACTICS_COMMA)
#define TACTICS_HELP_NO_TRAP TACTICS_WORDS(TACTICS_NOT)

enum tactic {
#define X(id, key, take) TACTIC_##id,
	TACTICS(X, TACTICS_NOT, X, X)
#undef X
		TACTIC_COUNT
};

enum tactic_number {
#define X(id, key, take) TACTIC_NUMBER_##id,
	TACTICS(TACTICS_NOT, X, X, X)
#undef X
		TACTIC_NUMBERS
};
enum tactic_switch {
#define X(id, key, take) USE_##id = 1u << TACTIC_NUMBER_##id,
	TACTICS(TACTICS_NOT, X, X, X)
#undef X
#define X(id, key, take) -USE_##id
		USE_DEFAULT = (1u << TACTIC_NUMBERS) -
			      1u TACTICS(TACTICS_NOT, TACTICS_NOT, TACTICS_NOT, X)
#undef X
};

const char *tactic_key(enum tactic t);

/*
 * "jump,short": only these.  "+int3", "-short": the default, and that one too, or without it.
 * -EINVAL with a sentence that names the tactics there are.
 */
int tactics_parse(uint32_t *out, const char *list, struct err *err);

#endif
