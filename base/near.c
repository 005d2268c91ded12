/* SPDX-License-Identifier: MIT */
/* near.c - see near.h */
#include "base/near.h"

#include <stdint.h>
#include <string.h>

#define LENGTH_MAX 63u

/* Edits that make one word the other; words as long as a line have no neighbours. */
static unsigned distance(const char *a, const char *b)
{
	unsigned row[LENGTH_MAX + 1], n = (unsigned)strlen(a), m = (unsigned)strlen(b);

	if (n > LENGTH_MAX || m > LENGTH_MAX)
		return UINT32_MAX;
	for (unsigned j = 0; j <= m; j++)
		row[j] = j;
	for (unsigned i = 1; i <= n; i++) {
		unsigned corner = row[0];

		row[0] = i;
		for (unsigned j = 1; j <= m; j++) {
			unsigned best = corner + (a[i - 1] != b[j - 1]);

			corner = row[j];
			best = row[j] + 1 < best ? row[j] + 1 : best;
			row[j] = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
		}
	}
	return row[m];
}

static void keep(struct near *near, const char *word, unsigned far)
{
	unsigned i = near->n;

	for (unsigned k = 0; k < near->n; k++)
		if (!strcmp(near->v[k], word))
			return;
	while (i > 0 && near->far[i - 1] > far)
		i--;
	if (i >= NEAR_WORDS)
		return;
	for (unsigned k = near->n < NEAR_WORDS ? near->n++ : NEAR_WORDS - 1; k > i; k--) {
		near->v[k] = near->v[k - 1];
		near->far[k] = near->far[k - 1];
	}
	near->v[i] = word;
	near->far[i] = far;
}

void near_consider(struct near *near, const char *wanted, const char *word)
{
	unsigned len = (unsigned)strlen(wanted), far = distance(wanted, word);

	if (far <= (len < 4 ? 1 : len < 7 ? 2 : 3) && far < len)
		keep(near, word, far);
}
