/* SPDX-License-Identifier: MIT */
/*
 * parse_if.c - the conditions of a probe: if $arg1 > 4096 && data & 0xff == 3
 *
 *   OPERAND[:TYPE] [& MASK] COMPARISON NUMBER      joined by &&; blanks may be left out
 */
#include <string.h>

#include "probes/parse.h"

/* The characters of an operand: $arg1:s32, %rdi, data */
static struct span take_operand(struct lex *lx)
{
	struct span sp = {.s = lx->at};

	while (lx->at < lx->end && (lex_is_word(*lx->at) || strchr("$%:", *lx->at)))
		lx->at++;
	sp.n = (size_t)(lx->at - sp.s);
	return sp;
}

static int take_number(struct lex *lx, uint64_t *out)
{
	struct span sp;

	lex_blanks(lx);
	sp.s = lx->at;
	if (lx->at < lx->end && *lx->at == '-')
		lx->at++;
	lex_word(lx);
	sp.n = (size_t)(lx->at - sp.s);
	sp.quoted = sp.regex = false;
	if (sp.n && span_number(sp, out))
		return 0;
	return lex_error(lx, sp.s, "a number is needed here");
}

static bool takes(struct lex *lx, const char *sign)
{
	size_t n = strlen(sign);

	lex_blanks(lx);
	if ((size_t)(lx->end - lx->at) < n || memcmp(lx->at, sign, n) != 0)
		return false;
	lx->at += n;
	return true;
}

static int take_compare(struct lex *lx, uint8_t *out)
{
	static const char *const signs[] = {
		[SPEC_IF_EQ] = "==", [SPEC_IF_NE] = "!=", [SPEC_IF_LE] = "<=",
		[SPEC_IF_GE] = ">=", [SPEC_IF_LT] = "<",  [SPEC_IF_GT] = ">"};

	for (uint8_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++) {
		if (!takes(lx, signs[i]))
			continue;
		*out = i;
		return 0;
	}
	if (takes(lx, "=")) {
		*out = SPEC_IF_EQ;
		return 0;
	}
	return lex_error(lx, lx->at, "a comparison is needed here: == != < <= > >=");
}

/* What type the value has says the debug information. */
static bool is_open(const struct probe_spec *s)
{
	return s->variable && !s->is_typed;
}

static int take_what(const struct lex *lx, const struct probe_spec *s, struct spec_condition *c,
		     struct span sp)
{
	struct probe_spec operand = {0};
	struct span type;
	int code;

	operand.bits = 64;
	code = parse_type(lx, &operand, &sp, &type);
	if (code)
		return code;
	if (span_is(sp, "data")) {
		if (!s->payload)
			return lex_error(lx, sp.s, "data is the probe's value, and it has none");
		if (s->is_text || s->count)
			return lex_error(lx, sp.s, "a string or array is not compared");
		if (s->is_double && !type.n)
			return lex_error(lx, sp.s, "doubles are not compared");
		c->what = SPEC_IF_DATA;
		operand.bits = type.n ? operand.bits : s->bits;
		operand.is_signed = type.n ? operand.is_signed : s->is_signed;
		if (is_open(s)) /* settled by its type, once that is known */
			operand.bits = type.n ? operand.bits : 0;
		else if (operand.bits > s->bits)
			return lex_error(lx, sp.s, "the probe's value has %u bits", s->bits);
	} else if (span_is(sp, "$cpu")) {
		c->what = SPEC_IF_CPU;
		operand.bits = 32;
	} else if (sp.n && (sp.s[0] == '$' || sp.s[0] == '%')) {
		code = parse_value(lx, &operand, sp);
		if (!code && operand.payload == SPEC_PAYLOAD_ADDRESS)
			code = lex_error(lx, sp.s,
					 "the value has to be $addr, and then it is: data");
		if (!code && (operand.payload == SPEC_PAYLOAD_STACK ||
			      (operand.payload == SPEC_PAYLOAD_REGISTER && operand.value == 4)))
			code = lex_error(lx, sp.s, "the stack pointer is not compared");
		c->what = SPEC_IF_VALUE;
		c->payload = operand.payload;
		c->value = operand.value;
	} else if (!sp.n && lx->at < lx->end && memchr("*+-", *lx->at, 3)) {
		return lex_error(lx, sp.s,
				 "have the probe take this value along, and compare data: "
				 "*(u32*)$arg1 if data < 10");
	} else if (parse_is_variable(sp)) {
		return lex_error(lx, sp.s,
				 "have the probe take this value along, and compare data: "
				 "queue.len if data < 10");
	} else {
		return lex_error(
			lx, sp.s,
			"after if comes what is compared: $arg1, $retval, %%rdi, $cpu, data");
	}
	if (!code && (operand.is_double || operand.is_text || operand.count))
		code = lex_error(lx, sp.s, "doubles and strings are not compared");
	c->bits = operand.bits;
	c->is_signed = operand.is_signed;
	return code;
}

static bool is_short(uint64_t v)
{
	return v == (uint64_t)(int32_t)v;
}

/*
 * Does it hold for all values that there are, or for none?  A number that is none of theirs is below or
 * above them all.
 */
static bool is_decided(const struct spec_condition *c, bool *holds)
{
	const uint64_t top = c->has_mask ? c->mask : UINT64_MAX >> (64 - c->bits) >> c->is_signed;
	const bool is_least = c->is_signed ? c->is_negative && ~c->number == top : !c->number;
	const bool is_most = !c->is_negative && c->number == top;
	const bool fits = number_fits(c->number, c->is_negative, c->bits, c->is_signed) &&
			  (!c->has_mask || c->number <= c->mask);
	const bool is_below = !fits && c->is_negative, is_above = !fits && !c->is_negative;

	switch ((enum spec_compare)c->compare) {
	case SPEC_IF_EQ:
	case SPEC_IF_NE:
		*holds = c->compare == SPEC_IF_NE;
		return !fits || (c->has_mask && c->number & ~c->mask);
	case SPEC_IF_LT:
	case SPEC_IF_GE:
		*holds = is_above == (c->compare == SPEC_IF_LT);
		return !fits || is_least;
	case SPEC_IF_LE:
	case SPEC_IF_GT:
		*holds = is_below == (c->compare == SPEC_IF_GT);
		return !fits || is_most;
	}
	return false;
}

const char *spec_condition_doubt(const struct spec_condition *c)
{
	bool holds;

	if (c->has_mask && !number_fits(c->mask, false, c->bits, false))
		return "the mask has more bits than the value";
	if (is_decided(c, &holds) && c->has_mask)
		return holds ? "with this mask the comparison always holds"
			     : "with this mask the comparison never holds";
	if (is_decided(c, &holds))
		return holds ? "the comparison always holds" : "the comparison never holds";
	if (c->bits == 64 && c->has_mask && !is_short(c->number))
		return "after & a number of 31 bits is needed";
	return NULL;
}

static int check_numbers(const struct lex *lx, const struct spec_condition *c, const char *at)
{
	const char *doubt;

	if (!c->bits)
		return 0;
	if (c->is_negative && c->has_mask)
		return lex_error(lx, at, "what is left after & has no sign");
	if (c->is_negative && !c->is_signed)
		return lex_error(lx, at, "what is compared has no sign: give it a type, like :s%u",
				 c->bits);
	doubt = spec_condition_doubt(c);
	return doubt ? lex_error(lx, at, "what is compared has %u bits%s: %s", c->bits,
				 c->is_signed  ? " with a sign"
				 : c->has_mask ? ""
					       : " and no sign",
				 doubt)
		     : 0;
}

static int take_condition(struct lex *lx, struct probe_spec *s)
{
	struct spec_condition *c = &s->conditions[s->nconditions];
	const char *at;
	int code;

	lex_blanks(lx);
	*c = (struct spec_condition){.mask = UINT64_MAX};
	code = take_what(lx, s, c, take_operand(lx));
	lex_blanks(lx);
	if (!code && lx->end - lx->at > 1 && lx->at[0] == '&' && lx->at[1] != '&') {
		lx->at++;
		c->has_mask = true;
		c->is_signed = false; /* what is left is bits */
		code = take_number(lx, &c->mask);
		if (!code && c->bits && c->bits < 64 && c->mask >> c->bits)
			code = lex_error(lx, lx->at - 1, "what is masked has %u bits", c->bits);
	}
	if (!code)
		code = take_compare(lx, &c->compare);
	if (code)
		return code;
	lex_blanks(lx);
	at = lx->at;
	code = take_number(lx, &c->number);
	c->is_negative = *at == '-' && c->number;
	return code ? code : check_numbers(lx, c, at);
}

int parse_if(struct lex *lx, struct probe_spec *s)
{
	const char *start = lx->at;

	if (s->kind > SPEC_RESOURCE)
		return lex_error(lx, start, "a condition is for samples: trace and resource");
	do {
		int code;

		if (s->nconditions == PROBE_CONDITIONS)
			return lex_error(lx, lx->at, "a probe has %u conditions at most",
					 PROBE_CONDITIONS);
		code = take_condition(lx, s);
		if (code)
			return code;
		s->nconditions++;
	} while (takes(lx, "&&"));
	if (takes(lx, "||"))
		return lex_error(lx, lx->at - 2,
				 "conditions are joined by && only; of two probes of one "
				 "event either may hold");
	return 0;
}
