/* SPDX-License-Identifier: MIT */
/* tactics.c - reads a list of tactics. */
#include "inject/plan/tactics.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static const char *const names[TACTIC_NUMBERS] = {
#define X(id, name, text) name,
	TACTIC_SWITCHES(X)
#undef X
};

#define X(id, name, text) " " name
static const char all_names[] = TACTIC_SWITCHES(X);
#undef X

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
				       "'%.*s' is no tactic: there are%s; + or - before each "
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
