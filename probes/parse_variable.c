/* SPDX-License-Identifier: MIT */
/*
 * parse_variable.c - values that have a name in the source:
 *
 *   counter   @counter   counter@queue.c   queue.len   req->headers.count   p->next->value   table[3].id
 *   $arg1->st_size
 *
 * Only the spelling is looked at here: what there is says the module's debug information
 * (inject/resolve/resolve_variables.c).
 */
#include <ctype.h>
#include <string.h>

#include "probes/parse.h"

struct name {
	const struct lex *lx;
	const char *at, *end;
};

static bool begins_name(char c)
{
	return isalpha((unsigned char)c) || c == '_';
}

static bool has_way(struct span sp)
{
	for (size_t i = 0; i < sp.n; i++)
		if (memchr(".[>", sp.s[i], 3))
			return true;
	return false;
}

bool parse_is_variable(struct span sp)
{
	if (!sp.n)
		return false;
	if (sp.s[0] == '$')
		return has_way(sp);
	return sp.s[0] == '@' || begins_name(sp.s[0]);
}

static bool takes(struct name *p, const char *sign)
{
	size_t n = strlen(sign);

	if ((size_t)(p->end - p->at) < n || memcmp(p->at, sign, n) != 0)
		return false;
	p->at += n;
	return true;
}

/* A word, or several with :: between them. */
static int take_name(struct name *p, bool is_qualified)
{
	do {
		if (p->at == p->end || !begins_name(*p->at))
			return lex_error(p->lx, p->at, "a name is needed here");
		while (p->at < p->end && lex_is_word(*p->at))
			p->at++;
	} while (is_qualified && takes(p, "::"));
	return 0;
}

static int take_index(struct name *p)
{
	struct span sp = {.s = p->at};
	uint64_t n;

	while (p->at < p->end && lex_is_word(*p->at))
		p->at++;
	sp.n = (size_t)(p->at - sp.s);
	if (!span_number(sp, &n) || n > INT32_MAX)
		return lex_error(p->lx, sp.s, "a number of 31 bits is needed here: [3]");
	return takes(p, "]") ? 0 : lex_error(p->lx, p->at, "] is needed here");
}

/* NAME@SRC: up to the way, but a source has a dot of its own. */
static int take_source(struct name *p)
{
	const char *start = p->at;

	while (p->at < p->end && !memchr("[>", *p->at, 2) &&
	       !(p->at[0] == '-' && p->end - p->at > 1 && p->at[1] == '>'))
		p->at++;
	return p->at > start ? 0 : lex_error(p->lx, start, "a source is needed here: NAME@queue.c");
}

static int take_way(struct name *p)
{
	while (p->at < p->end) {
		int code;

		if (takes(p, "["))
			code = take_index(p);
		else if (takes(p, "->") || takes(p, "."))
			code = take_name(p, false);
		else
			return lex_error(p->lx, p->at,
					 "after a name comes ->MEMBER, .MEMBER or [INDEX]");
		if (code)
			return code;
	}
	return 0;
}

int parse_variable(const struct lex *lx, struct probe_spec *s, struct span sp)
{
	struct name p = {.lx = lx, .at = sp.s, .end = sp.s + sp.n};
	const char *start = sp.s;
	int code;

	if (sp.s[0] == '$') {
		while (p.at < p.end && !memchr(".[-", *p.at, 3))
			p.at++;
		start = p.at;
		code = parse_value(lx, s, (struct span){.s = sp.s, .n = (size_t)(p.at - sp.s)});
		if (!code && s->payload != SPEC_PAYLOAD_ARGUMENT &&
		    s->payload != SPEC_PAYLOAD_RETVAL)
			code = lex_error(
				lx, sp.s,
				"nobody knows what this points to: $argN, $retval and variables have "
				"members");
	} else {
		s->payload = SPEC_PAYLOAD_VARIABLE;
		takes(&p, "@");
		code = take_name(&p, true);
		if (!code && takes(&p, "@"))
			code = take_source(&p);
	}
	if (!code)
		code = take_way(&p);
	if (!code)
		s->variable = xstrndup(start, (size_t)(p.end - start));
	return code;
}
