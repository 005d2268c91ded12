/* SPDX-License-Identifier: MIT */
/* change_line.h - how `kron ctl probe list` shows a probe. */
#ifndef COLLECT_CHANGE_LINE_H
#define COLLECT_CHANGE_LINE_H

#include <stdint.h>
#include <stdio.h>

#include "base/json.h"

struct change_line {
	const char *name, *spec, *module, *waits; /* NULL: it is there, or not expected to come */
	uint64_t places, since_ns;
	unsigned level;
};

void change_line_head(FILE *out);
/* j NULL: a line of text. */
void change_line_show(const struct change_line *s, FILE *out, struct json *j);

#endif
