/* SPDX-License-Identifier: MIT */
/* ladder.c - which tactic comes after which.  It knows the tactics; they know the planner. */
#include "inject/plan/planner.h"

static tactic_take *const ladder[TACTIC_NUMBERS] = {
#define X(id, key, take) take,
	TACTICS(TACTICS_NOT, X, X, X)
#undef X
};

enum refusal planner_climb(struct planner *pl, const struct place *place, enum planner_rungs rungs)
{
	enum refusal first = ladder[0](pl, place); /* a jump that is there already may be shared;
						    * tactic_jump minds the switch */

	for (int i = 1; first && rungs == PLANNER_ALL && i < TACTIC_NUMBERS; i++)
		if (ladder[i] && pl->use & 1u << i && ladder[i](pl, place) == REFUSAL_NONE)
			return REFUSAL_NONE;
	return first;
}
