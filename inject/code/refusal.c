/* SPDX-License-Identifier: MIT */
/* refusal.c - the words for refusals and tactics; the tables stand in refusal.h. */
#include "inject/code/refusal.h"

const char *refusal_key(enum refusal r)
{
	static const char *const keys[] = {
#define X(id, key, text) key,
		REFUSALS(X)
#undef X
	};

	return (unsigned)r < REFUSAL_COUNT ? keys[r] : "unknown";
}

const char *refusal_text(enum refusal r)
{
	static const char *const texts[] = {
#define X(id, key, text) text,
		REFUSALS(X)
#undef X
	};

	return (unsigned)r < REFUSAL_COUNT ? texts[r] : "unknown";
}

const char *tactic_key(enum tactic t)
{
	static const char *const keys[] = {
#define X(id, key, text) key,
		TACTICS(X)
#undef X
	};

	return (unsigned)t < TACTIC_COUNT ? keys[t] : "unknown";
}
