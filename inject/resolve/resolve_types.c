/* SPDX-License-Identifier: MIT */
/* resolve_types.c - as what a variable is taken along: as the probe says, or else as its own type is. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "inject/resolve/resolve_impl.h"

#define FAIL(why, ...) (err_set(why, EINVAL, __VA_ARGS__), false)

static bool step(struct variable *v, struct err *why)
{
	if (v->base == VARIABLE_NUMBER && !v->nplaces)
		return FAIL(why, "is a constant there: a program lies elsewhere each time");
	if (v->nplaces == VARIABLE_STEPS)
		return FAIL(why, "has too many steps");
	v->place[v->nplaces++] = 0;
	return true;
}

/* ---- the probe gives a type ---- */

/* A string is what a pointer points to, or the characters that the variable is. */
static bool take_string(struct variable *v, struct probe_spec *s, struct err *why)
{
	if (v->kind == VARIABLE_POINTER)
		return step(v, why);
	if (v->kind != VARIABLE_ARRAY || v->bits != 8)
		return FAIL(
			why,
			"is neither a pointer nor an array of characters, so it is not a string");
	s->count = v->size <= PROBE_ARRAY_BYTES ? (uint8_t)v->size : 0;
	return true;
}

static bool take_array(struct variable *v, const struct probe_spec *s, struct err *why)
{
	unsigned bytes = s->count * s->bits / 8u;

	if (v->kind == VARIABLE_POINTER)
		return step(v, why);
	if (!v->nplaces)
		return FAIL(why, "is in a register there, and no array");
	if (v->size && bytes > v->size)
		return FAIL(why, "has %u bytes, and the probe says %u", v->size, bytes);
	return true;
}

/* Its bits are those of a double, or of a float. */
static bool is_real_of(const struct variable *v, unsigned bits)
{
	return v->kind == VARIABLE_SCALAR && v->form == (bits == 64 ? 'd' : 'f');
}

static const char *what_it_is(const struct variable *v)
{
	if (v->kind == VARIABLE_POINTER)
		return "a pointer";
	return v->form == 'd'                                       ? "a double"
	       : v->form == 'f'                                     ? "a float"
	       : v->form == 'u' || v->form == 's' || v->form == 'x' ? "an integer"
								    : "a number";
}

static bool take_as_said(struct variable *v, struct probe_spec *s, struct err *why)
{
	if (s->is_text)
		return take_string(v, s, why);
	if (s->count)
		return take_array(v, s, why);
	if (v->kind == VARIABLE_ARRAY)
		return FAIL(why,
			    "is an array: name one of its elements, or give it a type like u32[4]");
	if (v->kind == VARIABLE_STRUCT)
		return FAIL(why,
			    "is a struct: name one of its members, or give it a type like x8[16]");
	if (s->is_double && !is_real_of(v, s->bits))
		return FAIL(why, "is %s of %u byte%s, and the probe says %s", what_it_is(v),
			    v->size, v->size == 1 ? "" : "s", s->bits == 64 ? "double" : "float");
	if (s->bits / 8u > v->size)
		return FAIL(why, "has %u byte%s, and the probe says %u", v->size,
			    v->size == 1 ? "" : "s", s->bits / 8u);
	return true;
}

/* ---- its own ---- */

static bool name_type(const struct variable *v, unsigned count, char type[16], struct err *why)
{
	char number[16] = "";

	if (count)
		snprintf(number, sizeof(number), "[%u]", count);
	if (v->form == 'd' || v->form == 'f')
		snprintf(type, 16, "%s%.6s", v->form == 'd' ? "double" : "float", number);
	else if (v->form == 'u' || v->form == 's' || v->form == 'x')
		snprintf(type, 16, "%c%u%.6s", v->form, v->bits & 127, number);
	else
		return FAIL(why, "is of a type that a sample does not take");
	return true;
}

static bool name_array(const struct variable *v, char type[16], struct err *why)
{
	char element[16];

	if (v->is_char && v->bits == 8) {
		strcpy(type, "string");
		return true;
	}
	if (!name_type(v, 0, element, why))
		return FAIL(why,
			    "is an array of what is not a number: name one of its elements, [0]");
	if (!v->count)
		return FAIL(why,
			    "is an array of unknown length: say how much is wanted, like :%s[4]",
			    element);
	if (v->count > PROBE_ARRAY_BYTES * 8 / v->bits)
		return FAIL(
			why,
			"is an array of %u bytes, and a sample takes %u: give it a type, like :%s[%u], or "
			"name one of its elements",
			v->size, PROBE_ARRAY_BYTES, element, PROBE_ARRAY_BYTES * 8 / v->bits);
	return name_type(v, v->count, type, why);
}

static bool name_own(const struct variable *v, char type[16], struct err *why)
{
	switch ((enum variable_kind)v->kind) {
	case VARIABLE_STRUCT:
		return FAIL(why,
			    "is a struct: name one of its members, or give it a type like x8[16]");
	case VARIABLE_ARRAY:
		return name_array(v, type, why);
	case VARIABLE_SCALAR:
	case VARIABLE_POINTER:
		break;
	}
	return name_type(v, 0, type, why);
}

/* ---- conditions ---- */

static bool settle_conditions(struct probe_spec *s, struct err *why)
{
	for (unsigned i = 0; i < s->nconditions; i++) {
		struct spec_condition *c = &s->conditions[i];
		const char *doubt;

		if (c->what != SPEC_IF_DATA)
			continue;
		if (s->is_text || s->count || (s->is_double && !c->bits))
			return FAIL(why, "is not a number that is compared");
		if (!c->bits) {
			c->bits = s->bits;
			c->is_signed = s->is_signed && !c->has_mask;
		}
		if (c->bits > s->bits)
			return FAIL(why, "has %u bits, and %u are compared", s->bits, c->bits);
		doubt = spec_condition_doubt(c);
		if (doubt)
			return FAIL(why, "has type %c%u: %s", s->is_signed ? 's' : 'u', s->bits,
				    doubt);
	}
	return true;
}

bool variable_take(struct variable *v, struct probe_spec *s, char type[16], struct err *why)
{
	bool is_long;

	type[0] = '\0';
	if (!s->is_typed) {
		if (!name_own(v, type, why) || !probe_spec_type(s, type, strlen(type), &is_long))
			return why->msg[0] ? false
					   : FAIL(why, "is of a type that a sample does not take");
		if (s->is_text)
			s->count = v->size <= PROBE_ARRAY_BYTES ? (uint8_t)v->size : 0;
	} else if (!take_as_said(v, s, why)) {
		return false;
	}
	if (v->nplaces > PROBE_PLACES)
		return FAIL(why, "has more than %u steps", PROBE_PLACES);
	if (!v->nplaces && (s->is_text || s->count))
		return FAIL(why, "is in no memory there");
	s->nplaces = (uint8_t)v->nplaces;
	memcpy(s->places, v->place, sizeof(s->places));
	return settle_conditions(s, why);
}
