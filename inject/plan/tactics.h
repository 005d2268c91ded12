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

/* Identifier, key, words for people.  KIND: counted; SWITCH: may be switched off; BOTH. */
#define TACTICS(KIND, SWITCH, BOTH)                                                              \
	KIND(NONE, "none", "no tactic")                                                          \
	BOTH(JUMP, "jump", "a 5-byte jump; counted as this: over one instruction")               \
	KIND(JUMP_MULTI, "jump-multi", "a 5-byte jump over several instructions")                \
	KIND(JUMP_PADDING, "jump-padding", "a 5-byte jump that also covers padding")             \
	KIND(JUMP_SHARED, "jump-shared", "taken together with another probe of the same window") \
	KIND(JUMP_SHORT, "jump-short", "a 2-byte jump to a landing nearby, which jumps on")      \
	SWITCH(SHORT, "short", "what counts as jump-short")                                      \
	SWITCH(EVICT, "evict", "code nearby moves out to make a landing")                        \
	BOTH(ARRIVALS, "arrivals", "an exit is probed on every way that leads to it")            \
	BOTH(DETOUR, "detour", "every way to a place goes round by the trampolines")             \
	BOTH(PUN, "pun", "a jump of one byte, whose distance is the next jump's first byte")     \
	BOTH(RELAY, "relay", "a 2-byte jump to a landing far away, by way of others")            \
	BOTH(INT3, "int3", "a trap: slow, and only when asked for")                              \
	BOTH(IMPORT, "import", "in the callers: in the stubs by which other modules call it")
#define TACTICS_NOT(id, key, words)

enum tactic {
#define X(id, key, words) TACTIC_##id,
	TACTICS(X, TACTICS_NOT, X)
#undef X
		TACTIC_COUNT
};

enum tactic_number {
#define X(id, key, words) TACTIC_NUMBER_##id,
	TACTICS(TACTICS_NOT, X, X)
#undef X
		TACTIC_NUMBERS
};
enum tactic_switch {
#define X(id, key, words) USE_##id = 1u << TACTIC_NUMBER_##id,
	TACTICS(TACTICS_NOT, X, X)
#undef X
		USE_DEFAULT = (1u << TACTIC_NUMBERS) - 1u - USE_INT3
};

const char *tactic_key(enum tactic t);

/*
 * "jump,short": only these.  "+int3", "-short": the default, and that one too, or without it.
 * -EINVAL with a sentence that names the tactics there are.
 */
int tactics_parse(uint32_t *out, const char *list, struct err *err);

#endif
