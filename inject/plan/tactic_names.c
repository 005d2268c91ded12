/* SPDX-License-Identifier: MIT */
/* tactic_names.c - the names of tactics, written and read. */
#include "inject/plan/tactics.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static const char *const names[TACTIC_NUMBERS] = {
#define X(id, key, take) key,
	TACTICS(TACTICS_NOT, X, X, X)
#undef X
};

#define X(id, key, take) " " key
static const char all_names[] = TACTICS(TACTICS_NOT, X, X, X);
#undef X

const char *tactic_key(enum tactic t)
{
	static const char *const keys[] = {
#define X(id, key, take) key,
		TACTICS(X, TACTICS_NOT, X, X)
#undef X
	};

	return (unsigned)t < TACTIC_COUNT ? keys[t] : "unknown";
}

static int find(const char *word, size_t len)
{
	for (int i = 0; i < TACTIC_NUMBERS; i++)
		if (strlen(names[i]) == len && !memcmp(names[i], word, len))
			return i;
	return -1;
}

int tactics_parse(uint32_t *out, const char *list, struct err *err)
{
	bool relative = *list == '+' || *list == '-';
	uint32_t set = relative ? USE_DEFAULT : 0;

	for (const char *word = list;; word++) {
		char sign = *word == '+' || *word == '-' ? *word++ : 0;
		size_t len = strcspn(word, ",");
		int i = find(word, len);

		if (i < 0 || (relative && !sign))
			return err_set(err, EINVAL,
				       "'%.*s' is not a tactic: there are%s; + or - before each "
				       "changes the default",
				       (int)len, word, all_names);
		if (sign == '-')
			set &= ~(1u << i);
		else
			set |= 1u << i;
		word += len;
		if (!*word)
			break;
	}
	if (!set)
		return err_set(err, EINVAL, "no tactic is left");
	*out = set;
	return 0;
}
