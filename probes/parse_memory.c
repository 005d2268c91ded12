/* SPDX-License-Identifier: MIT */
/*
 * parse_memory.c - values that are in memory.
 *
 *   *(u32*)($rdi+8)     in C's manner: *(TYPE*)ADDRESS, of which ADDRESS is a register or argument, another
 *                       such value, or (ADDRESS+NUMBER)
 *   +8($arg1)           in perf's manner: +NUMBER(ADDRESS) or -NUMBER(ADDRESS), of which ADDRESS is a
 *                       register, an argument, or another such value
 *   $arg1:string, :u8[16]        what a value with this type points to
 *   socket($arg1), endpoints($arg1)   what the kernel says of a descriptor
 *
 * What comes of it is a way: from the register by places[0] to where the value stands, or another address,
 * from that by places[1] ...
 */
#include <string.h>

#include "probes/parse.h"

/* The rest of an expression, and what it has said so far. */
struct way {
	const struct lex *lx;
	struct probe_spec *s;
	const char *at, *end;
	struct span type; /* of the outermost cast */
	unsigned depth;
};

static int take_address(struct way *w);

bool parse_is_memory(struct span sp)
{
	return sp.n && (sp.s[0] == '*' || (memchr("+-", sp.s[0], 2) && memchr(sp.s, '(', sp.n)));
}

static const struct question {
	const char *word, *type;
} questions[] = {{"socket(", "x64"}, {"endpoints(", "x32[14]"}};

static const struct question *question_of(struct span sp)
{
	for (size_t i = 0; i < sizeof(questions) / sizeof(*questions); i++) {
		const size_t n = strlen(questions[i].word);

		if (sp.n > n && !memcmp(sp.s, questions[i].word, n))
			return &questions[i];
	}
	return NULL;
}

bool parse_is_question(struct span sp)
{
	return question_of(sp);
}

const char *probe_question(bool is_array)
{
	return questions[is_array].word;
}

static bool takes(struct way *w, char c)
{
	if (w->at == w->end || *w->at != c)
		return false;
	w->at++;
	return true;
}

static int wants(struct way *w, char c)
{
	return takes(w, c) ? 0 : lex_error(w->lx, w->at, "%c is needed here", c);
}

static struct span take_word(struct way *w)
{
	struct span sp = {.s = w->at};

	while (w->at < w->end && (lex_is_word(*w->at) || memchr("$%", *w->at, 2)))
		w->at++;
	sp.n = (size_t)(w->at - sp.s);
	return sp;
}

/* +8, -0x10; nothing is 0 */
static int take_distance(struct way *w, int32_t *out)
{
	const char *start = w->at;
	bool is_negative = takes(w, '-');
	uint64_t n;

	*out = 0;
	if (!is_negative && !takes(w, '+'))
		return 0;
	if (!span_number(take_word(w), &n) || n > INT32_MAX)
		return lex_error(w->lx, start + 1, "a number of 31 bits is needed here");
	*out = is_negative ? -(int32_t)n : (int32_t)n;
	return 0;
}

/* One step more: there stands a value. */
static int add_place(struct way *w, const char *at, int32_t distance)
{
	if (w->s->nplaces == PROBE_PLACES)
		return lex_error(w->lx, at, "a way to a value has %u steps at most", PROBE_PLACES);
	w->s->places[w->s->nplaces++] = distance;
	return 0;
}

static int take_register(struct way *w)
{
	struct span sp = take_word(w), name;
	uint64_t n;

	if (!sp.n)
		return lex_error(w->lx, sp.s,
				 "an address is needed here: $arg1, %%rdi, *(u64*)..., +8(...)");
	name = (struct span){.s = sp.s + 1, .n = sp.n - 1};
	for (unsigned i = 0; sp.s[0] == '$' && i < 16; i++) { /* $rdi, as debuggers have it */
		if (!span_is(name, spec_register_name(i)))
			continue;
		w->s->payload = SPEC_PAYLOAD_REGISTER;
		w->s->value = i;
		return 0;
	}
	if (span_number(sp, &n))
		return lex_error(
			w->lx, sp.s,
			"a number is not an address here: a program lies elsewhere each time");
	return parse_value(w->lx, w->s, sp);
}

/* +8(ADDRESS) */
static int take_perf(struct way *w)
{
	const char *start = w->at;
	int32_t distance;
	int code = take_distance(w, &distance);

	if (!code)
		code = wants(w, '(');
	if (!code)
		code = take_address(w);
	if (!code)
		code = wants(w, ')');
	return code ? code : add_place(w, start, distance);
}

/* (ADDRESS+8) */
static int take_sum(struct way *w, int32_t *distance)
{
	int code = take_address(w);

	if (!code)
		code = take_distance(w, distance);
	return code ? code : wants(w, ')');
}

/* *(TYPE*)ADDRESS; what another one is read from has to be an address. */
static int take_cast(struct way *w)
{
	const char *start = w->at;
	struct probe_spec cast = {0};
	int32_t distance = 0;
	struct span type;
	bool is_inner = w->depth > 1;
	int code;

	w->at++;
	code = wants(w, '(');
	if (code)
		return code;
	type = take_word(w);
	if (!parse_type_name(&cast, type) || cast.is_text || cast.count)
		return lex_error(
			w->lx, type.s,
			"a type is needed here: u, s or x and 8, 16, 32 or 64, float or double");
	if ((is_inner || w->s->is_text || w->s->count) && cast.bits != 64)
		return lex_error(w->lx, type.s, "an address has 64 bits: *(u64*)");
	if (!is_inner)
		w->type = type;
	code = wants(w, '*');
	if (!code)
		code = wants(w, ')');
	if (!code)
		code = takes(w, '(') ? take_sum(w, &distance) : take_address(w);
	return code ? code : add_place(w, start, distance);
}

static int take_address(struct way *w)
{
	int code;

	if (w->depth++ > 2 * PROBE_PLACES)
		return lex_error(w->lx, w->at, "a way to a value has %u steps at most",
				 PROBE_PLACES);
	if (w->at < w->end && *w->at == '*')
		code = take_cast(w);
	else if (w->at < w->end && memchr("+-", *w->at, 2))
		code = take_perf(w);
	else
		code = take_register(w);
	w->depth--;
	return code;
}

/* socket(FD) */
static int take_question(struct way *w, const struct question *q, struct span *given)
{
	const char *start = w->at;
	int code;

	if (given->n)
		return lex_error(w->lx, given->s, "%s...) has its type: %s", q->word, q->type);
	*given = (struct span){.s = q->type, .n = strlen(q->type)};
	w->at += strlen(q->word);
	code = take_address(w);
	if (!code)
		code = wants(w, ')');
	if (!code)
		code = add_place(w, start, PROBE_PLACE_SOCKET);
	if (!code && w->at < w->end)
		code = lex_error(w->lx, w->at, "the value ends here");
	if (!code)
		parse_type_name(w->s, *given);
	return code;
}

/* `given`: NAME:TYPE has one.  A string or array is where perf's manner says, and what C's or a register points to. */
static int settle(struct way *w, struct span sp, struct span *given)
{
	static const struct span x64 = {.s = "x64", .n = 3};
	struct probe_spec *s = w->s;

	if (s->is_text || s->count)
		return sp.s[0] == '+' || sp.s[0] == '-' ? 0 : add_place(w, sp.s, 0);
	if (w->type.n && given->n)
		return lex_error(w->lx, given->s, "the type is in front already: *(%.*s*)",
				 (int)w->type.n, w->type.s);
	if (!given->n)
		*given = w->type.n ? w->type : x64;
	parse_type_name(s, *given);
	return 0;
}

int parse_memory(const struct lex *lx, struct probe_spec *s, struct span sp, struct span *type)
{
	struct way w = {.lx = lx, .s = s, .at = sp.s, .end = sp.s + sp.n};
	int code;

	if (!sp.n)
		return lex_error(lx, sp.s, "a value is missing here");
	if (question_of(sp))
		return take_question(&w, question_of(sp), type);
	code = take_address(&w);
	if (code)
		return code;
	if (w.at < w.end)
		return lex_error(lx, w.at, "the value ends here");
	return settle(&w, sp, type);
}
