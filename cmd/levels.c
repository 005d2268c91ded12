/* SPDX-License-Identifier: MIT */
/* levels.c - see levels.h */
#include "cmd/levels.h"

#include <errno.h>
#include <stdlib.h>

#include <kron/segment.h>

#include "base/vec.h"

static bool take_level(const char *text, const char **glob, uint8_t *level)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (text[0] < '0' || text[0] > '9' || n >= KRON_LEVELS || (*end && *end != '='))
		return false;
	*level = (uint8_t)n;
	*glob = *end ? end + 1 : NULL;
	return !*glob || **glob;
}

int levels_take(struct level_globs *out, const struct opt_list *given, struct err *err)
{
	const char **globs = xcalloc(given->n + 1, sizeof(*globs));
	uint8_t *numbers = xcalloc(given->n + 1, 1), number;
	const char *glob;

	for (size_t i = 0; i < given->n; i++) {
		if (!take_level(given->v[i], &glob, &number))
			return err_set(err, EINVAL,
				       "-g %s: LEVEL or LEVEL=GLOB is needed, LEVEL from 0 to 15",
				       given->v[i]);
		out->given = true;
		if (!glob) {
			out->others = number;
			continue;
		}
		globs[out->globs.n] = glob;
		numbers[out->globs.n++] = number;
	}
	out->globs.v = globs;
	out->globs.found = xcalloc(out->globs.n + 1, sizeof(bool));
	out->level = numbers;
	return 0;
}
