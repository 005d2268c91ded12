/* SPDX-License-Identifier: MIT */
/* value.c - see value.h */
#include "trace/value.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct trace_value_type types[] = {
	{'u', 8},  {'u', 16}, {'u', 32}, {'u', 64}, {'s', 8},  {'s', 16}, {'s', 32},
	{'s', 64}, {'x', 8},  {'x', 16}, {'x', 32}, {'x', 64}, {'d', 64},
};

const char *value_type_text(const struct trace_value_type *type, char buf[16])
{
	if (type->form == 'd')
		snprintf(buf, 16, "double");
	else if (type->form)
		snprintf(buf, 16, "%c%u", type->form, type->bits);
	else
		*buf = '\0';
	return buf;
}

struct trace_value_type value_type_take(char *name)
{
	char *colon = strrchr(name, ':'), buf[16];

	for (size_t i = 0; colon && i < sizeof(types) / sizeof(types[0]); i++) {
		if (strcmp(colon + 1, value_type_text(&types[i], buf)))
			continue;
		*colon = '\0';
		return types[i];
	}
	return (struct trace_value_type){0, 0};
}

struct value value_of(const struct trace_user_event *u, const struct trace_event *e)
{
	unsigned shift = u->type.bits ? 64u - u->type.bits : 32;
	uint64_t bits = value_bits(e);

	if (u->type.bits == 64 && !e->is_wide)
		return (struct value){{VALUE_HALF, 32}, bits};
	if (u->type.form == 's')
		return (struct value){u->type, (uint64_t)((int64_t)(bits << shift) >> shift)};
	return (struct value){u->type, bits << shift >> shift};
}

static double as_double(uint64_t bits)
{
	double d;

	memcpy(&d, &bits, sizeof(d));
	return d;
}

double value_double(struct value v)
{
	return v.type.form == 's'   ? (double)(int64_t)v.number
	       : v.type.form == 'd' ? as_double(v.number)
				    : (double)v.number;
}

bool value_is_less(struct value a, struct value b)
{
	return a.type.form == 's'   ? (int64_t)a.number < (int64_t)b.number
	       : a.type.form == 'd' ? as_double(a.number) < as_double(b.number)
				    : a.number < b.number;
}

const char *value_text(struct value v, char buf[VALUE_TEXT])
{
	switch (v.type.form) {
	case 'u':
		snprintf(buf, VALUE_TEXT, "%" PRIu64, v.number);
		break;
	case 's':
		snprintf(buf, VALUE_TEXT, "%" PRId64, (int64_t)v.number);
		break;
	case 'd':
		snprintf(buf, VALUE_TEXT, "%.17g", as_double(v.number));
		break;
	default:
		snprintf(buf, VALUE_TEXT, "0x%" PRIx64 "%s", v.number,
			 v.type.form == VALUE_HALF ? " (low half)" : "");
	}
	return buf;
}

void value_json(struct json *j, struct value v)
{
	char buf[VALUE_TEXT];

	if (v.type.form == 's')
		json_i64(j, (int64_t)v.number);
	else if (v.type.form == 'd' && isfinite(as_double(v.number)))
		json_f64_exact(j, as_double(v.number));
	else if (v.type.form == 'd')
		json_str(j, value_text(v, buf));
	else
		json_u64(j, v.number);
}
