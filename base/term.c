/* SPDX-License-Identifier: MIT */
#include "base/term.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool term_wants_color(enum term_color mode, int fd)
{
	const char *no_color = getenv("NO_COLOR");
	const char *term = getenv("TERM");

	if (mode != TERM_COLOR_AUTO)
		return mode == TERM_COLOR_YES;
	if (no_color && *no_color)
		return false;
	return isatty(fd) && term && strcmp(term, "dumb");
}
