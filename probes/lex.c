/* SPDX-License-Identifier: MIT */
/* lex.c - see lex.h */
#include "probes/lex.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- errors ---- */

#define SHOWN 96u /* signs of the line in a message */

/*
 * The line as a terminal may show it: control characters and what is not ASCII become one sign
 * each, so that the caret stands where it belongs.  A long line is shown around the column.
 */
static void show_line(const struct lex *lx, size_t column, char *out, size_t *caret)
{
	size_t n = (size_t)(lx->end - lx->text), from = 0, count;

	if (column > SHOWN * 3 / 4)
		from = column - SHOWN / 2;
	count = n - from < SHOWN ? n - from : SHOWN;
	for (size_t i = 0; i < count; i++) {
		unsigned char c = (unsigned char)lx->text[from + i];

		out[i] = c == '\t' ? ' ' : c < 0x20 || c > 0x7e ? '?' : (char)c;
	}
	out[count] = 0;
	*caret = column - from;
}

int lex_error(const struct lex *lx, const char *at, const char *fmt, ...)
{
	size_t column = (size_t)(at - lx->text), caret;
	char line[SHOWN + 1], sentence[256], place[160];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(sentence, sizeof(sentence), fmt, ap);
	va_end(ap);
	for (char *c = sentence; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			*c = '?';
	show_line(lx, column, line, &caret);
	snprintf(place, sizeof(place), "%.120s:%u:%zu", lx->file, lx->line, column + 1);
	return err_set(lx->err, EINVAL, "%s: %s\n  %s\n  %*s^", place, sentence, line, (int)caret,
		       "");
}

/* ---- signs ---- */

bool lex_is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v';
}

bool lex_is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

void lex_blanks(struct lex *lx)
{
	while (lx->at < lx->end && lex_is_blank(*lx->at))
		lx->at++;
}

/* A comment begins at the start of the line or after a blank: "a#b" is a name. */
bool lex_at_end(const struct lex *lx)
{
	return lx->at == lx->end ||
	       (*lx->at == '#' && (lx->at == lx->text || lex_is_blank(lx->at[-1])));
}

bool lex_sign(struct lex *lx, char c)
{
	if (lx->at == lx->end || *lx->at != c)
		return false;
	lx->at++;
	return true;
}

struct span lex_word(struct lex *lx)
{
	struct span sp = {.s = lx->at};

	while (lx->at < lx->end && lex_is_word(*lx->at))
		lx->at++;
	sp.n = (size_t)(lx->at - sp.s);
	return sp;
}

struct span lex_token(struct lex *lx)
{
	struct span sp = {.s = lx->at};

	while (lx->at < lx->end && !lex_is_blank(*lx->at))
		lx->at++;
	sp.n = (size_t)(lx->at - sp.s);
	return sp;
}

/* ---- names ---- */

static char sign_at(const struct lex *lx, size_t i)
{
	return i < (size_t)(lx->end - lx->at) ? lx->at[i] : 0;
}

/* Here a name ends, outside of brackets. */
static bool ends_name(const struct lex *lx, const char *start)
{
	char next = sign_at(lx, 1);

	switch (*lx->at) {
	case ':':
		return next != ':';
	case '%': /* at the start it is that of %PROVIDER:NAME */
		return lx->at > start && isalpha((unsigned char)next);
	case '+': /* libstdc++.so.6 has no digit after it */
		return lx->at > start && isdigit((unsigned char)next);
	case '@': /* name@@VERSION is not a source */
		return lx->at > start && lx->at[-1] != '@' && next != '@' && next &&
		       !lex_is_blank(next);
	}
	return lex_is_blank(*lx->at);
}

/* "operator" and its sign, which may be any of those that end names or open brackets. */
static bool skip_operator(struct lex *lx, const char *start)
{
	static const char word[] = "operator", signs[] = "+-*/%^&|~!=<>,";
	size_t n = sizeof(word) - 1;

	if ((size_t)(lx->end - lx->at) <= n || memcmp(lx->at, word, n) ||
	    (lx->at > start && lex_is_word(lx->at[-1])))
		return false;
	if ((lx->at[n] == '(' && sign_at(lx, n + 1) == ')') ||
	    (lx->at[n] == '[' && sign_at(lx, n + 1) == ']')) {
		lx->at += n + 2;
		return true;
	}
	if (!strchr(signs, lx->at[n]))
		return false;
	/* two signs at most, or <=>, <<=, >>=, ->*: what follows may be %return */
	for (lx->at += n; lx->at < lx->end && strchr(signs, *lx->at); lx->at++)
		if (*lx->at == '%' && isalpha((unsigned char)sign_at(lx, 1)))
			break;
	return true;
}

static int quoted_name(struct lex *lx, struct span *out)
{
	const char *open = lx->at++;

	out->s = lx->at;
	while (lx->at < lx->end && *lx->at != '"')
		lx->at++;
	if (lx->at == lx->end)
		return lex_error(lx, open, "this quote is never closed");
	out->n = (size_t)(lx->at++ - out->s);
	out->quoted = true;
	return out->n ? 0 : lex_error(lx, open, "a name is missing between the quotes");
}

/* /regex/: the second slash ends the name.  A path continues after it. */
static bool regex_name(struct lex *lx, struct span *out)
{
	const char *close = lx->at + 1;

	while (close < lx->end && *close != '/')
		close += *close == '\\' && close + 1 < lx->end ? 2 : 1;
	if (close >= lx->end)
		return false;
	if (close + 1 < lx->end && !lex_is_blank(close[1]) && !strchr(":%+@", close[1]))
		return false;
	out->s = lx->at + 1;
	out->n = (size_t)(close - out->s);
	out->regex = true;
	lx->at = close + 1;
	return true;
}

int lex_name(struct lex *lx, struct span *out)
{
	const char *start = lx->at, *open = NULL;
	int depth = 0;

	*out = (struct span){.s = start};
	if (sign_at(lx, 0) == '"')
		return quoted_name(lx, out);
	if (sign_at(lx, 0) == '/' && regex_name(lx, out))
		return out->n ? 0 : lex_error(lx, start, "this expression is empty");
	while (lx->at < lx->end) {
		if (skip_operator(lx, start))
			continue;
		if (depth == 0 && ends_name(lx, start))
			break;
		if (*lx->at == ':' && sign_at(lx, 1) == ':')
			lx->at++; /* both colons */
		if (*lx->at == '(' || *lx->at == '<') {
			open = depth++ ? open : lx->at;
		} else if (*lx->at == ')' || *lx->at == '>') {
			if (!depth--)
				return lex_error(lx, lx->at, "this bracket was never opened");
		}
		lx->at++;
	}
	if (depth)
		return lex_error(lx, open, "this bracket is never closed");
	out->n = (size_t)(lx->at - start);
	return 0;
}

bool lex_is_line_number(const struct lex *lx)
{
	const char *p = lx->at;

	while (p < lx->end && isdigit((unsigned char)*p))
		p++;
	return p > lx->at && (p == lx->end || lex_is_blank(*p) || *p == '%' || *p == '+');
}

/* ---- spans ---- */

static int digit_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)tolower((unsigned char)c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : 99;
}

bool span_number(struct span sp, uint64_t *out)
{
	bool minus = sp.n && sp.s[0] == '-';
	size_t i = minus;
	unsigned base = 10;
	uint64_t v = 0;

	if (sp.n - i > 2 && sp.s[i] == '0' && (sp.s[i + 1] == 'x' || sp.s[i + 1] == 'X')) {
		base = 16;
		i += 2;
	}
	if (i >= sp.n)
		return false;
	for (; i < sp.n; i++) {
		unsigned d = (unsigned)digit_value(sp.s[i]);

		if (d >= base || v > (UINT64_MAX - d) / base)
			return false;
		v = v * base + d;
	}
	if (minus && v > 1ull << 63)
		return false;
	*out = minus ? -v : v;
	return true;
}

bool number_fits(uint64_t n, bool is_negative, unsigned bits, bool is_signed)
{
	const uint64_t top = UINT64_MAX >> (64 - bits) >> is_signed;

	return is_negative ? is_signed && ~n <= top : n <= top;
}

bool span_is(struct span sp, const char *word)
{
	return strlen(word) == sp.n && !memcmp(sp.s, word, sp.n);
}

char *span_dup(struct span sp)
{
	return xstrndup(sp.s, sp.n);
}
