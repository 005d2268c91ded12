/* SPDX-License-Identifier: MIT */
/* duration.c - see duration.h */
#include "base/duration.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NS_MAX 9e18

static const struct {
	const char *name;
	double ns;
} units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"m", 6e10}, {"h", 3.6e12}};

/* The unit that the word at s is; its length, 0 if it is none. */
static size_t take_unit(const char *s, double *ns)
{
	size_t n = 0;

	while (isalnum((unsigned char)s[n]))
		n++;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strlen(units[i].name) != n || strncmp(units[i].name, s, n))
			continue;
		*ns = units[i].ns;
		return n;
	}
	return 0;
}

size_t duration_take(const char *s, uint64_t *ns, bool *has_unit)
{
	size_t n = strspn(s, "0123456789."), blanks = strspn(s + n, " "), letters;
	double unit = 1e9, v;
	char *end;

	if (!n || !isdigit((unsigned char)s[s[0] == '.']))
		return 0;
	v = strtod(s, &end);
	if ((size_t)(end - s) < n) /* 1.2.3 */
		return 0;
	letters = take_unit(s + n + blanks, &unit);
	*has_unit = letters;
	if (!letters && isalnum((unsigned char)s[n]))
		return 0; /* 5x, 1e9 */
	v *= unit;
	if (!(v < NS_MAX))
		return 0;
	*ns = (uint64_t)llround(v);
	return letters ? n + blanks + letters : n;
}

bool duration_parse(const char *text, uint64_t *ns)
{
	bool has_unit;
	size_t n = duration_take(text, ns, &has_unit);

	return n && !text[n];
}
