/* SPDX-License-Identifier: MIT */
/* term.h - what the terminal can show. */
#ifndef BASE_TERM_H
#define BASE_TERM_H

#include <stdbool.h>

/* The words of --color, in this order: an OPT_CHOICE with TERM_COLOR_WORDS stores one. */
enum term_color { TERM_COLOR_AUTO, TERM_COLOR_YES, TERM_COLOR_NO };
#define TERM_COLOR_WORDS "auto|yes|no"

/*
 * Whether to write colours to fd.  auto: fd is a terminal, TERM is not "dumb", and NO_COLOR
 * (no-color.org) is not set to anything.  Ask before the pager takes stdout over.
 */
bool term_wants_color(enum term_color mode, int fd);

#endif
