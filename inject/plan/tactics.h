/* SPDX-License-Identifier: MIT */
/*
 * tactics.h - which tactics the planner may use: --tactics.
 */
#ifndef INJECT_TACTICS_H
#define INJECT_TACTICS_H

#include <stdint.h>

#include "base/err.h"

/* In the order of the ladder.  X(identifier, name, words for people) */
#define TACTIC_SWITCHES(X)                                                                \
	X(JUMP, "jump", "a 5-byte jump over one or more instructions")                    \
	X(SHORT, "short", "a 2-byte jump to a landing nearby")                            \
	X(EVICT, "evict", "code nearby moves out to make a landing")                      \
	X(ARRIVALS, "arrivals", "an exit is probed on every way that leads to it")        \
	X(DETOUR, "detour", "every way to a place goes round by the trampolines")         \
	X(PUN, "pun", "a jump of one byte, whose distance is the next jump's first byte") \
	X(RELAY, "relay", "a 2-byte jump to a landing far away, by way of others")        \
	X(INT3, "int3", "a trap: slow, and only when asked for")                          \
	X(IMPORT, "import", "in the callers: in the stubs by which other modules call it")

enum tactic_number {
#define X(id, name, text) TACTIC_NUMBER_##id,
	TACTIC_SWITCHES(X)
#undef X
		TACTIC_NUMBERS
};
enum tactic_switch {
#define X(id, name, text) USE_##id = 1u << TACTIC_NUMBER_##id,
	TACTIC_SWITCHES(X)
#undef X
		USE_DEFAULT = (1u << TACTIC_NUMBERS) - 1u - USE_INT3
};

/*
 * "jump,short": only these.  "+int3", "-short": the default, and that one too, or without it.
 * -EINVAL with a sentence that names the tactics there are.
 */
int tactics_parse(uint32_t *out, const char *list, struct err *err);

#endif
