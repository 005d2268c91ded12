/* SPDX-License-Identifier: MIT */
/*
 * lex.h - the signs of one line of the probe language, and errors with a caret.  Private to
 * probes/.
 *
 * A place has no fixed tokens (a C++ name may hold nearly every sign), so the parser moves a
 * cursor over the line and asks for what it expects next.
 */
#ifndef PROBES_LEX_H
#define PROBES_LEX_H

#include "probes/probe.h"

struct lex {
	const char *file; /* for messages */
	unsigned line;
	const char *text, *end; /* the line, without its newline */
	const char *at;
	struct err *err;
};

/* What stands between two signs. */
struct span {
	const char *s;
	size_t n;
	bool quoted; /* the quotes are not in the span */
	bool regex;  /* the slashes are not in the span */
};

/* "FILE:LINE:COLUMN: sentence", the line, the caret.  Returns -EINVAL. */
int lex_error(const struct lex *lx, const char *at, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

bool lex_is_blank(char c);
bool lex_is_word(char c); /* letter, digit, _ */
void lex_blanks(struct lex *lx);
/* Nothing but a comment is left. */
bool lex_at_end(const struct lex *lx);
/* Takes c if it is next. */
bool lex_sign(struct lex *lx, char c);
/* Letters, digits and _, perhaps none. */
struct span lex_word(struct lex *lx);
/* Up to the next blank. */
struct span lex_token(struct lex *lx);
/*
 * A name of an object, function or source, or of a provider or marker: up to a blank, a single
 * colon, or what begins a suffix (%letter, +digit, @name), none of them inside brackets or quotes.
 */
int lex_name(struct lex *lx, struct span *out);
/* Is the rest of the line up to a blank (or a suffix) digits only? */
bool lex_is_line_number(const struct lex *lx);
/* The whole span is a number: decimal, or hexadecimal with 0x; a minus gives two's complement, down to -2^63. */
bool span_number(struct span sp, uint64_t *out);
/* A number of span_number(), and whether it is below 0: one of so many bits, with or without a sign? */
bool number_fits(uint64_t n, bool is_negative, unsigned bits, bool is_signed);
bool span_is(struct span sp, const char *word);
char *span_dup(struct span sp);

#endif
