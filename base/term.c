/* SPDX-License-Identifier: MIT */
#include "base/term.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
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

int term_width(int fd)
{
	struct winsize ws;

	if (!ioctl(fd, TIOCGWINSZ, &ws) && ws.ws_col)
		return ws.ws_col;
	return 80;
}
