/* SPDX-License-Identifier: MIT */
/* parse_what.c - what a probe does, and the value that it takes along. */
#include <ctype.h>
#include <string.h>

#include "probes/parse.h"

static const char *const registers[] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
					"r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"};

const char *spec_register_name(unsigned reg)
{
	return reg < 16 ? registers[reg] : NULL;
}

static const char *const kinds[] = {"trace", "resource", "count", "store", "pages"};

const char *spec_kind_key(enum spec_kind kind)
{
	return kind <= SPEC_PAGES ? kinds[kind] : "?";
}

/* %rdi, as perf writes it %di; the name ends with the span. */
static bool register_number(struct span sp, uint64_t *out)
{
	for (unsigned i = 0; i < 16; i++) {
		if (span_is(sp, registers[i]) || (i < 8 && span_is(sp, registers[i] + 1))) {
			*out = i;
			return true;
		}
	}
	return false;
}

static struct span span_skip(struct span sp, size_t n)
{
	return (struct span){.s = sp.s + n, .n = sp.n - n};
}

static bool starts_with(struct span sp, const char *word)
{
	size_t n = strlen(word);

	return sp.n >= n && !memcmp(sp.s, word, n);
}

/* ---- kinds ---- */

static int take_counter(const struct lex *lx, struct probe_spec *s, struct span sp)
{
	uint64_t n;

	if (!span_number(sp, &n) || n >= PROBE_VIRTUAL_COUNTERS)
		return lex_error(lx, sp.s, "the number of a counter is needed, 0 to %u",
				 PROBE_VIRTUAL_COUNTERS - 1);
	s->kind = SPEC_COUNT;
	s->word = (uint16_t)n;
	return 0;
}

static int take_store(const struct lex *lx, struct probe_spec *s, struct span sp)
{
	const char *equals = memchr(sp.s, '=', sp.n);
	struct span word = {.s = sp.s, .n = equals ? (size_t)(equals - sp.s) : sp.n};
	uint64_t n;

	if (!span_number(word, &n) || n >= PROBE_WORDS)
		return lex_error(lx, sp.s,
				 "the number of a chip word is needed, 0 to %u: "
				 "store:WORD=VALUE",
				 PROBE_WORDS - 1);
	if (!equals)
		return lex_error(lx, sp.s + sp.n, "=VALUE is missing: store:WORD=VALUE");
	if (!span_number(span_skip(sp, word.n + 1), &s->data) ||
	    s->data != (uint64_t)(int32_t)s->data)
		return lex_error(lx, equals + 1, "a number of 32 bits with sign is needed here");
	s->kind = SPEC_STORE;
	s->word = (uint8_t)n;
	return 0;
}

/* 1: it is not a kind. */
static int take_kind(const struct lex *lx, struct probe_spec *s, struct span sp)
{
	if (span_is(sp, "trace") || span_is(sp, "resource")) {
		s->kind = sp.s[0] == 't' ? SPEC_TRACE : SPEC_RESOURCE;
		return 0;
	}
	if (span_is(sp, "pages") || span_is(sp, "lines") || span_is(sp, "pages:function") ||
	    span_is(sp, "lines:function")) {
		s->kind = SPEC_PAGES;
		s->word = (sp.s[0] == 'l' ? SPEC_PAGES_LINES : 0) |
			  (sp.n > 5 ? SPEC_PAGES_BY_FUNCTION : 0);
		return 0;
	}
	if (starts_with(sp, "count:"))
		return take_counter(lx, s, span_skip(sp, 6));
	if (starts_with(sp, "store:"))
		return take_store(lx, s, span_skip(sp, 6));
	if (span_is(sp, "count") || span_is(sp, "store"))
		return lex_error(lx, sp.s, "say which: %s",
				 sp.s[0] == 'c' ? "count:J" : "store:WORD=VALUE");
	return 1;
}

/* ---- payloads ---- */

static bool argument_number(struct span sp, uint64_t *out)
{
	return starts_with(sp, "arg") && sp.n > 3 && sp.s[3] != '-' &&
	       span_number(span_skip(sp, 3), out) && *out >= 1;
}

static int take_variable(const struct lex *lx, struct probe_spec *s, struct span sp)
{
	struct span word = span_skip(sp, 1);

	if (argument_number(word, &s->value))
		s->payload = SPEC_PAYLOAD_ARGUMENT;
	else if (span_is(word, "retval"))
		s->payload = SPEC_PAYLOAD_RETVAL;
	else if (span_is(word, "addr"))
		s->payload = SPEC_PAYLOAD_ADDRESS;
	else if (span_is(word, "sp") || span_is(word, "stack"))
		s->payload = SPEC_PAYLOAD_STACK;
	else
		return lex_error(lx, sp.s, "there is no %.*s: $arg1 and up, $retval, $addr, $sp",
				 (int)(sp.n < 40 ? sp.n : 40), sp.s);
	return 0;
}

int parse_value(const struct lex *lx, struct probe_spec *s, struct span sp)
{
	if (!sp.n)
		return lex_error(lx, sp.s, "a value is missing here");
	if (sp.s[0] == '$')
		return take_variable(lx, s, sp);
	if (sp.s[0] == '%') {
		s->payload = SPEC_PAYLOAD_REGISTER;
		return register_number(span_skip(sp, 1), &s->value)
			       ? 0
			       : lex_error(lx, sp.s,
					   "there is no register of this name: %%rax to %%r15");
	}
	if (argument_number(sp, &s->value)) {
		s->payload = SPEC_PAYLOAD_ARGUMENT;
		return 0;
	}
	if (span_is(sp, "retval")) {
		s->payload = SPEC_PAYLOAD_RETVAL;
		return 0;
	}
	s->payload = SPEC_PAYLOAD_IMMEDIATE;
	if (span_number(sp, &s->value))
		return 0;
	return lex_error(lx, sp.s,
			 "neither a kind (trace, resource, count:J, store:WORD=VALUE, pages) nor "
			 "a payload ($arg1, $retval, $addr, %%rdi, a number)");
}

/* u8[16]: takes the brackets off.  False: something else stands in them. */
static bool take_count(struct span *type, uint64_t *count)
{
	const char *open = memchr(type->s, '[', type->n);
	struct span number;

	*count = 0;
	if (!open)
		return true;
	number = (struct span){.s = open + 1, .n = (size_t)(type->s + type->n - open - 1)};
	if (!number.n || number.s[--number.n] != ']' || !isdigit((unsigned char)*number.s) ||
	    !span_number(number, count) || !*count)
		return false;
	type->n = (size_t)(open - type->s);
	return true;
}

static bool take_scalar(struct probe_spec *s, struct span type);

bool probe_spec_type(struct probe_spec *s, const char *text, size_t n, bool *is_long)
{
	struct span type = {.s = text, .n = n};
	uint64_t count;

	*is_long = false;
	s->count = 0;
	if (!take_count(&type, &count) || !take_scalar(s, type) || (count && s->is_text))
		return false;
	if (!count)
		return true;
	*is_long = count > PROBE_ARRAY_BYTES * 8 / s->bits;
	s->count = *is_long ? 0 : (uint8_t)count;
	s->is_wide = false;
	return !*is_long;
}

bool parse_type_name(struct probe_spec *s, struct span type)
{
	bool is_long;

	return probe_spec_type(s, type.s, type.n, &is_long);
}

static bool take_scalar(struct probe_spec *s, struct span type)
{
	uint64_t bits;

	s->is_text = span_is(type, "string");
	s->is_double = span_is(type, "double") || span_is(type, "float");
	s->is_signed = false;
	if (s->is_text || s->is_double) {
		s->bits = type.s[0] == 'f' ? 32 : 64;
		s->is_wide = s->is_double && s->bits == 64;
		return true;
	}
	if (type.n < 2 || type.n > 3 || !memchr("usx", type.s[0], 3) || type.s[1] == '-' ||
	    type.s[1] == '0' || !span_number(span_skip(type, 1), &bits) ||
	    (bits != 8 && bits != 16 && bits != 32 && bits != 64))
		return false;
	s->bits = (uint8_t)bits;
	s->is_signed = type.s[0] == 's';
	s->is_wide = bits == 64;
	return true;
}

/* The one before the type, not those of ns::name. */
static const char *find_colon(struct span sp)
{
	for (size_t i = 0; i < sp.n; i++) {
		if (sp.s[i] != ':')
			continue;
		if (i + 1 == sp.n || sp.s[i + 1] != ':')
			return sp.s + i;
		i++;
	}
	return NULL;
}

int parse_type(const struct lex *lx, struct probe_spec *s, struct span *sp, struct span *type)
{
	const char *colon = find_colon(*sp);
	bool is_long;

	*type = (struct span){.s = ""};
	if (!colon)
		return 0;
	*type = span_skip(*sp, (size_t)(colon + 1 - sp->s));
	sp->n = (size_t)(colon - sp->s);
	if (probe_spec_type(s, type->s, type->n, &is_long)) {
		s->is_typed = true;
		return 0;
	}
	if (is_long)
		return lex_error(lx, colon + 1, "an array has %u bytes at most", PROBE_ARRAY_BYTES);
	return lex_error(lx, colon + 1,
			 "there is no such type: u, s or x and 8, 16, 32 or 64, float, double, an "
			 "array of them (u8[16]), or string");
}

/* "NAME" or "NAME:TYPE" */
static char *typed_name(struct span name, struct span type)
{
	return xasprintf("%.*s%s%.*s", (int)name.n, name.s, type.n ? ":" : "", (int)type.n, type.s);
}

/* arg1 and retval may do without their sign; who has such a variable writes @retval. */
static bool is_word_of_ours(struct span sp)
{
	uint64_t n;

	return span_is(sp, "retval") || argument_number(sp, &n);
}

/* Without a type it is whatever 32 bits can be. */
static int check_constant(const struct lex *lx, const struct probe_spec *s, struct span sp)
{
	const bool is_negative = sp.s[0] == '-' && s->value;

	if (s->payload != SPEC_PAYLOAD_IMMEDIATE || s->is_double ||
	    number_fits(s->value, is_negative, s->bits, s->is_signed))
		return 0;
	if (s->is_typed)
		return lex_error(lx, sp.s, "the number does not fit its type: it has %u bits%s",
				 s->bits, s->is_signed ? " with a sign" : " and no sign");
	if (number_fits(s->value, is_negative, s->bits, true))
		return 0;
	return lex_error(lx, sp.s,
			 "a payload has 32 bits without a type of 64: NAME=NUMBER:u64 has them");
}

/* A variable, a register or number, or what is in memory.  *type: of a cast, if there was none. */
static int any_value(const struct lex *lx, struct probe_spec *s, struct span sp, struct span *type)
{
	int code;

	if (parse_is_variable(sp) && !is_word_of_ours(sp) && !parse_is_question(sp))
		return parse_variable(lx, s, sp);
	if (parse_is_question(sp) || parse_is_memory(sp) || s->is_text || s->count)
		return parse_memory(lx, s, sp, type);
	code = parse_value(lx, s, sp);
	return code ? code : check_constant(lx, s, sp);
}

/* NAME=EXPR or EXPR; the name is kept as the trace shows it. */
static int named_payload(const struct lex *lx, struct probe_spec *s, struct span sp)
{
	const char *equals = memchr(sp.s, '=', sp.n);
	struct span name = {.s = sp.s, .n = equals ? (size_t)(equals - sp.s) : 0};
	struct span type;
	int code = parse_type(lx, s, &sp, &type);

	if (code)
		return code;
	if (!equals) {
		code = any_value(lx, s, sp, &type);
		if (!code)
			s->payload_name = typed_name(
				sp.s[0] == '$' || sp.s[0] == '%' ? span_skip(sp, 1) : sp, type);
		return code;
	}
	for (size_t i = 0; i < name.n; i++)
		if (!lex_is_word(name.s[i]))
			return lex_error(lx, name.s + i, "a name has letters, digits and _ only");
	if (!name.n)
		return lex_error(lx, sp.s, "a name is missing before the =");
	code = any_value(lx, s, span_skip(sp, name.n + 1), &type);
	if (!code)
		s->payload_name = typed_name(name, type);
	return code;
}

/* Addresses have 64 bits unless the user says otherwise; nothing else pays for a second place. */
static void settle_type(struct probe_spec *s)
{
	char *name = s->payload_name;

	if (s->payload != SPEC_PAYLOAD_ADDRESS || s->kind != SPEC_TRACE || s->nplaces ||
	    strchr(name, ':') || s->variable)
		return;
	s->payload_name = xasprintf("%s:x64", name);
	s->is_wide = true;
	s->bits = 64;
	xfree(name);
}

int parse_what(struct lex *lx, struct probe_spec *s, struct spec_marks *marks)
{
	s->bits = 32;
	for (lex_blanks(lx); !lex_at_end(lx); lex_blanks(lx)) {
		struct span sp = lex_token(lx);
		int code;

		if (span_is(sp, "if")) {
			marks->condition = lx->at;
			settle_type(s);
			code = parse_if(lx, s);
			if (code)
				return code;
			lex_blanks(lx);
			return lex_at_end(lx)
				       ? 0
				       : lex_error(lx, lx->at, "&& or the end is needed here");
		}
		code = take_kind(lx, s, sp);
		if (code < 0)
			return code;
		if (!code && marks->kind)
			return lex_error(lx, sp.s, "a probe has one kind only");
		if (!code) {
			marks->kind = sp.s;
			continue;
		}
		if (marks->payload)
			return lex_error(lx, sp.s, "a sample has room for one value only");
		marks->payload = sp.s;
		code = named_payload(lx, s, sp);
		if (code)
			return code;
	}
	settle_type(s);
	return 0;
}
