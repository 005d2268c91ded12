/* SPDX-License-Identifier: MIT */
/* refusal.c - the words for refusals; the table stands in refusal.h. */
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
