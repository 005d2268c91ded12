/* SPDX-License-Identifier: MIT */
/*
 * parse_place.c - where a probe stands.
 *
 *   [OBJ:]FUNC[@SRC]  [:LINE | +OFF | %CLASS] [%after]
 *   [OBJ:]SRC:LINE    [OBJ:]0xADDR
 *   [OBJ:]sdt_PROVIDER:NAME     [OBJ:]%PROVIDER:NAME
 *   uprobe:OBJ:FUNC[+OFF]  uretprobe:OBJ:FUNC  usdt:OBJ:[PROVIDER:]NAME
 *
 * Names are read up to single colons, and their number and looks say what they are: digits after
 * the last colon are a line; the name before a line is a source when it has a dot or a slash, else
 * a function.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "probes/parse.h"

#define NAMES_MAX 4u

struct names {
	struct span v[NAMES_MAX];
	unsigned n;
	bool has_line;
	uint64_t line;
	const char *line_at;
};

static const struct {
	const char *word;
	enum spec_place place;
} classes[] = {
	{"return", SPEC_RETURN},   {"exit", SPEC_RETURN},       {"exits", SPEC_RETURN},
	{"blocks", SPEC_BLOCKS},   {"calls", SPEC_CALLS},       {"branches", SPEC_BRANCHES},
	{"loads", SPEC_LOADS},     {"stores", SPEC_STORES},     {"insns", SPEC_INSNS},
	{"callers", SPEC_CALLERS}, {"accesses", SPEC_ACCESSES},
};

static bool has_glob(struct span sp)
{
	for (size_t i = 0; i < sp.n; i++)
		if (strchr("*?[", sp.s[i]))
			return true;
	return false;
}

static void take_name(struct spec_name *out, struct span sp)
{
	out->text = span_dup(sp);
	out->match = sp.regex ? MATCH_REGEX : !sp.quoted && has_glob(sp) ? MATCH_GLOB : MATCH_NAME;
}

/* ---- suffixes ---- */

static int take_number(struct lex *lx, uint64_t *out, const char *what)
{
	struct span sp = lex_word(lx);

	if (!span_number(sp, out))
		return lex_error(lx, sp.s,
				 "%s is needed here: a number, or 0x and hexadecimal digits", what);
	return 0;
}

static int class_suffix(struct lex *lx, struct probe_spec *s, const char *at, struct span word)
{
	for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++) {
		if (!span_is(word, classes[i].word))
			continue;
		if (s->place != SPEC_ENTRY)
			return lex_error(lx, at, "%%%s comes after a function, and once",
					 classes[i].word);
		s->place = (uint8_t)classes[i].place;
		return 0;
	}
	return lex_error(lx, at,
			 "there is no %%%.*s: return, after, callers, blocks, calls, branches, "
			 "loads, stores, insns",
			 (int)word.n, word.s);
}

static int one_suffix(struct lex *lx, struct probe_spec *s)
{
	const char *at = lx->at;
	struct span word;

	if (lex_sign(lx, '+')) {
		if (s->place != SPEC_ENTRY)
			return lex_error(lx, at, "+OFF comes after a function");
		s->place = SPEC_OFFSET;
		return take_number(lx, &s->offset, "an offset");
	}
	lx->at++; /* % */
	word = lex_word(lx);
	if (!span_is(word, "after"))
		return class_suffix(lx, s, at, word);
	if (s->after)
		return lex_error(lx, at, "%%after stands here twice");
	if (s->place == SPEC_ENTRY)
		s->place = SPEC_CALLERS;
	s->after = true;
	return 0;
}

static int take_suffixes(struct lex *lx, struct probe_spec *s)
{
	while (lx->at < lx->end && !lex_is_blank(*lx->at)) {
		int code;

		if (*lx->at != '%' && *lx->at != '+')
			return lex_error(lx, lx->at,
					 "what follows the place needs a blank before it");
		code = one_suffix(lx, s);
		if (code)
			return code;
	}
	return 0;
}

/* ---- names ---- */

static int read_source(struct lex *lx, struct probe_spec *s)
{
	const char *at = lx->at;
	struct span sp;
	int code;

	if (!lex_sign(lx, '@'))
		return 0;
	if (s->source)
		return lex_error(lx, at, "there is a source already");
	code = lex_name(lx, &sp);
	if (code)
		return code;
	if (!sp.n)
		return lex_error(lx, sp.s, "the name of a source file is missing after @");
	s->source = span_dup(sp);
	return 0;
}

/* Names between single colons, and the line after the last one. */
static int read_names(struct lex *lx, struct probe_spec *s, struct names *names)
{
	int code;

	for (;;) {
		const char *at = lx->at;
		struct span *sp = &names->v[names->n];

		if (names->n && lex_is_line_number(lx)) {
			names->has_line = true;
			names->line_at = at;
			return take_number(lx, &names->line, "a line");
		}
		if (names->n == NAMES_MAX)
			return lex_error(lx, at, "there are too many names before this one");
		code = lex_name(lx, sp);
		if (!code && !sp->n)
			code = lex_error(lx, at,
					 names->n ? "a name is missing after the colon"
						  : "a place is missing here");
		if (!code)
			code = read_source(lx, s);
		if (code)
			return code;
		names->n++;
		if (!lex_sign(lx, ':'))
			return 0;
	}
}

static bool looks_like_source(struct span sp)
{
	return !sp.quoted && !sp.regex && (memchr(sp.s, '.', sp.n) || memchr(sp.s, '/', sp.n));
}

static bool is_address(struct span sp, uint64_t *out)
{
	return !sp.quoted && !sp.regex && sp.n > 2 && sp.s[0] == '0' &&
	       (sp.s[1] == 'x' || sp.s[1] == 'X') && span_number(sp, out);
}

/* The length of "sdt_" or "%" in front of a provider, 0 if there is none. */
static size_t provider_prefix(struct span sp)
{
	if (sp.quoted || sp.regex)
		return 0;
	if (sp.n > 4 && !memcmp(sp.s, "sdt_", 4))
		return 4;
	return sp.n > 1 && sp.s[0] == '%';
}

static int take_marker(struct lex *lx, struct probe_spec *s, const struct names *names)
{
	struct span provider = names->v[names->n - 2], marker = names->v[names->n - 1];
	size_t prefix = provider_prefix(provider);

	if (names->has_line || s->source)
		return lex_error(lx, provider.s, "PROVIDER:NAME has neither line nor source");
	if (names->n > 3)
		return lex_error(lx, names->v[0].s,
				 "OBJ:sdt_PROVIDER:NAME has three names at most");
	if (names->n == 3)
		take_name(&s->object, names->v[0]);
	s->place = SPEC_USDT;
	s->provider = xstrndup(provider.s + prefix, provider.n - prefix);
	s->marker = span_dup(marker);
	return 0;
}

static int take_line(struct lex *lx, struct probe_spec *s, const struct names *names)
{
	struct span last = names->v[names->n - 1];

	s->offset = names->line;
	if (!s->source && looks_like_source(last)) {
		if (!names->line)
			return lex_error(lx, names->line_at, "lines of a source count from 1");
		s->place = SPEC_SOURCE;
		s->source = span_dup(last);
		return 0;
	}
	s->place = SPEC_LINE;
	take_name(&s->function, last);
	return 0;
}

static int take_names(struct lex *lx, struct probe_spec *s, const struct names *names)
{
	struct span last = names->v[names->n - 1];

	if (names->n >= 2 && provider_prefix(names->v[names->n - 2]))
		return take_marker(lx, s, names);
	if (names->n > 2)
		return lex_error(lx, last.s,
				 "this name is one too many: [OBJ:]FUNC, [OBJ:]SRC:LINE, "
				 "[OBJ:]sdt_PROVIDER:NAME");
	if (provider_prefix(last) == 1)
		return lex_error(lx, last.s,
				 "%%PROVIDER is followed by a colon and the probe's name");
	if (names->n == 2)
		take_name(&s->object, names->v[0]);
	if (names->has_line)
		return take_line(lx, s, names);
	if (is_address(last, &s->offset)) {
		s->place = SPEC_ADDRESS;
		return s->source ? lex_error(lx, last.s, "an address needs no source") : 0;
	}
	take_name(&s->function, last);
	return 0;
}

/* ---- bpftrace's spellings ---- */

static int marker_alias(struct lex *lx, struct probe_spec *s, const struct names *names)
{
	if (names->n < 2 || names->n > 3 || names->has_line)
		return lex_error(lx, names->v[0].s,
				 "usdt:OBJ:PROVIDER:NAME or usdt:OBJ:NAME is needed");
	take_name(&s->object, names->v[0]);
	s->place = SPEC_USDT;
	s->provider = names->n == 3 ? span_dup(names->v[1]) : xstrdup("*");
	s->marker = span_dup(names->v[names->n - 1]);
	return 0;
}

static int function_alias(struct lex *lx, struct probe_spec *s, const struct names *names, bool ret)
{
	if (names->n != 2 || names->has_line || s->source)
		return lex_error(lx, names->v[0].s, "%s:OBJ:FUNC is needed",
				 ret ? "uretprobe" : "uprobe");
	take_name(&s->object, names->v[0]);
	s->place = ret ? SPEC_RETURN : SPEC_ENTRY;
	if (is_address(names->v[1], &s->offset) && !ret)
		s->place = SPEC_ADDRESS;
	else
		take_name(&s->function, names->v[1]);
	return 0;
}

static bool take_alias(struct lex *lx, const char *word)
{
	size_t n = strlen(word);

	/* two colons are C++'s: a class may be called uprobe */
	if ((size_t)(lx->end - lx->at) <= n + 1 || memcmp(lx->at, word, n) || lx->at[n] != ':' ||
	    lx->at[n + 1] == ':')
		return false;
	lx->at += n + 1;
	return true;
}

int parse_place(struct lex *lx, struct probe_spec *s)
{
	bool probe = take_alias(lx, "uprobe");
	bool ret = !probe && take_alias(lx, "uretprobe");
	bool usdt = !probe && !ret && take_alias(lx, "usdt");
	struct names names = {0};
	int code = read_names(lx, s, &names);

	if (code)
		return code;
	if (usdt)
		code = marker_alias(lx, s, &names);
	else if (probe || ret)
		code = function_alias(lx, s, &names, ret);
	else
		code = take_names(lx, s, &names);
	return code ? code : take_suffixes(lx, s);
}
