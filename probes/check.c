/* SPDX-License-Identifier: MIT */
/*
 * check.c - what is well-formed and still makes no sense: values that are not where the probe
 * stands, places that have no "after".
 */
#include <string.h>

#include "base/regex.h"
#include "probes/parse.h"

#define ARGUMENT_REGISTERS 6u
#define MARKER_ARGUMENTS 12u

static const char *kind_in_words(const struct probe_spec *s)
{
	return s->kind == SPEC_COUNT   ? "count:J"
	       : s->kind == SPEC_PAGES ? "pages"
				       : "store:WORD=VALUE";
}

static int check_after(const struct lex *lx, const struct probe_spec *s, const char *at)
{
	if (!s->after)
		return 0;
	switch (s->place) {
	case SPEC_RETURN:
		return lex_error(lx, at,
				 "after a return comes the caller: FUNC%%after is the place "
				 "after the calls of FUNC");
	case SPEC_BLOCKS:
	case SPEC_USDT:
		return lex_error(lx, at,
				 "%%after follows an instruction: a call, load, store, "
				 "branch, FUNC+OFF or an address");
	}
	return 0;
}

/* Argument registers hold the arguments where a function begins and where it is called. */
static bool has_arguments(const struct probe_spec *s)
{
	switch (s->place) {
	case SPEC_ENTRY:
		return true;
	case SPEC_OFFSET:
	case SPEC_LINE:
		return s->offset == 0 && !s->after;
	case SPEC_CALLS:
	case SPEC_CALLERS:
		return !s->after;
	}
	return false;
}

static int check_argument(const struct lex *lx, const struct probe_spec *s, const char *at)
{
	if (s->place == SPEC_USDT)
		return s->value <= MARKER_ARGUMENTS
			       ? 0
			       : lex_error(lx, at, "a USDT probe has %u arguments at most",
					   MARKER_ARGUMENTS);
	if (s->value > ARGUMENT_REGISTERS)
		return lex_error(lx, at, "$arg1 to $arg6 are in registers, further ones are not");
	if (!has_arguments(s))
		return lex_error(lx, at,
				 "the arguments are in their registers at a function's entry "
				 "and at a call only; name the register (%%rdi) if it is "
				 "meant");
	return 0;
}

/* A USDT argument is where its note says, also a double. */
static int check_floating(const struct lex *lx, const struct probe_spec *s, const char *at)
{
	if (!s->is_double || s->nplaces || s->variable ||
	    (s->place == SPEC_USDT && s->payload == SPEC_PAYLOAD_ARGUMENT))
		return 0;
	if (s->payload == SPEC_PAYLOAD_IMMEDIATE)
		return lex_error(lx, at, "a number is an integer here: u, s or x is its type");
	return lex_error(lx, at,
			 "a float or double is in %%xmm0 and up there: a probe takes general "
			 "registers and memory along; name the variable, or where it is in memory: "
			 "*(double*)$arg1");
}

static int check_payload(const struct lex *lx, const struct probe_spec *s, const char *at)
{
	if (s->payload != SPEC_PAYLOAD_NONE && s->kind >= SPEC_COUNT)
		return lex_error(lx, at, "%s takes no payload", kind_in_words(s));
	if (s->is_wide && s->kind == SPEC_RESOURCE)
		return lex_error(lx, at,
				 "a Resource sample has 32 bits for a value: give it a type of 32, "
				 "or make it a trace");
	if ((s->nplaces || s->variable) && s->kind == SPEC_RESOURCE)
		return lex_error(lx, at,
				 "a Resource sample takes no value from memory: make it a trace");
	if (s->variable && s->place == SPEC_USDT)
		return lex_error(lx, at,
				 "a USDT probe takes its own arguments along, no variables: $arg1");
	switch (s->payload) {
	case SPEC_PAYLOAD_ARGUMENT:
		return check_argument(lx, s, at);
	case SPEC_PAYLOAD_RETVAL:
		if (s->place == SPEC_RETURN ||
		    (s->after && (s->place == SPEC_CALLS || s->place == SPEC_CALLERS)))
			return 0;
		return lex_error(lx, at,
				 "there is a return value at %%return, after calls "
				 "(%%after) and nowhere else");
	case SPEC_PAYLOAD_ADDRESS:
		if (s->place == SPEC_RETURN || s->place == SPEC_BLOCKS || s->place == SPEC_USDT ||
		    s->place == SPEC_ENTRY)
			return lex_error(lx, at,
					 "$addr is that of an instruction's memory operand: "
					 "%%loads, %%stores, FUNC+OFF, an address");
		return 0;
	}
	return 0;
}

/* What is compared is where the probe stands, wherever that is. */
static int check_conditions(const struct lex *lx, const struct probe_spec *s, const char *at)
{
	for (unsigned i = 0; i < s->nconditions; i++) {
		const struct spec_condition *c = &s->conditions[i];
		struct probe_spec operand = *s;
		int code;

		if (c->what != SPEC_IF_VALUE || c->payload == SPEC_PAYLOAD_REGISTER)
			continue;
		if (c->payload != SPEC_PAYLOAD_ARGUMENT || s->place == SPEC_USDT)
			return lex_error(lx, at,
					 "have the probe take this value along, and compare data: "
					 "$retval if data < 10");
		operand.payload = c->payload;
		operand.value = c->value;
		code = check_argument(lx, &operand, at);
		if (code)
			return code;
	}
	return 0;
}

/* What the instruction touches is known in front of it, where there is one. */
static int check_pages(const struct lex *lx, const struct probe_spec *s,
		       const struct spec_marks *marks)
{
	if (s->kind != SPEC_PAGES)
		return 0;
	if (s->gated)
		return lex_error(lx, marks->kind, "pages are counted always: it takes no group");
	if (s->after)
		return lex_error(lx, marks->place, "pages are counted before the instruction");
	switch (s->place) {
	case SPEC_ACCESSES:
	case SPEC_LOADS:
	case SPEC_STORES:
	case SPEC_OFFSET:
	case SPEC_ADDRESS:
		return 0;
	}
	return lex_error(
		lx, marks->place,
		"pages are counted at instructions that touch memory: %%accesses, %%loads, "
		"%%stores, FUNC+OFF, an address");
}

static int check_event(const struct lex *lx, const struct probe_spec *s,
		       const struct spec_marks *marks)
{
	if (marks->event && s->kind >= SPEC_COUNT)
		return lex_error(lx, marks->event, "%s makes no sample, so it has no event",
				 kind_in_words(s));
	return 0;
}

static int compile_regex(const struct lex *lx, const char *at, struct spec_name *name)
{
	struct err err;

	if (!name->text || name->match != MATCH_REGEX ||
	    !regex_make(&name->regex, name->text, &err))
		return 0;
	return lex_error(lx, at, "this is not a regular expression that kron takes: %.150s",
			 err.msg);
}

int check_spec(const struct lex *lx, struct probe_spec *s, const struct spec_marks *marks)
{
	int code = check_after(lx, s, marks->place);

	if (!code)
		code = compile_regex(lx, marks->place, &s->function);
	if (!code)
		code = compile_regex(lx, marks->place, &s->object);
	if (!code)
		code = check_payload(lx, s, marks->payload);
	if (!code)
		code = check_floating(lx, s, marks->payload);
	if (!code)
		code = check_conditions(lx, s, marks->condition);
	if (!code)
		code = check_pages(lx, s, marks);
	return code ? code : check_event(lx, s, marks);
}
