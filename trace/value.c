/* SPDX-License-Identifier: MIT */
/* value.c - see value.h */
#include "trace/value.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct trace_value_type types[] = {
	{'u', 8, 0},  {'u', 16, 0}, {'u', 32, 0}, {'u', 64, 0}, {'s', 8, 0},
	{'s', 16, 0}, {'s', 32, 0}, {'s', 64, 0}, {'x', 8, 0},  {'x', 16, 0},
	{'x', 32, 0}, {'x', 64, 0}, {'d', 64, 0}, {'f', 32, 0}, {'t', 0, 0},
};

const char *value_type_text(const struct trace_value_type *type, char buf[16])
{
	if (type->form == 'd' || type->form == 'f')
		snprintf(buf, 16, type->form == 'd' ? "double" : "float");
	else if (type->form == VALUE_STRING)
		snprintf(buf, 16, "string");
	else if (type->form)
		snprintf(buf, 16, "%c%u", type->form, type->bits);
	else
		*buf = '\0';
	if (type->count)
		snprintf(buf + strlen(buf), 16 - strlen(buf), "[%u]", type->count);
	return buf;
}

/* [16] at the end; 0: there is none, or no such. */
static uint8_t count_of(const char *type, unsigned bits)
{
	const char *open = strchr(type, '[');
	unsigned n;
	char end;

	if (!open || !bits || sscanf(open, "[%3u%c", &n, &end) != 2 || end != ']')
		return 0;
	return n <= KRON_TEXT_MAX * 8 / bits ? (uint8_t)n : 0;
}

struct trace_value_type value_type_take(char *name)
{
	char *colon = strrchr(name, ':'), buf[16];

	for (size_t i = 0; colon && i < sizeof(types) / sizeof(types[0]); i++) {
		struct trace_value_type type = types[i];

		type.count = count_of(colon + 1, type.bits);
		if (strcmp(colon + 1, value_type_text(&type, buf)))
			continue;
		*colon = '\0';
		return type;
	}
	return (struct trace_value_type){0, 0, 0};
}

/* A text of which the trace says nothing. */
static const struct trace_memory nothing = {.is_unreadable = true};

struct value value_of(const struct trace_user_event *u, const struct trace_event *e)
{
	unsigned shift = u->type.bits ? 64u - u->type.bits : 32;
	uint64_t bits = value_bits(e);

	if (e->memory || value_type_is_text(&u->type))
		return (struct value){u->type, 0, e->memory ? e->memory : &nothing};
	if (u->type.bits == 64 && !e->is_wide)
		return (struct value){{VALUE_HALF, 32, 0}, bits, NULL};
	if (u->type.form == 's')
		return (struct value){u->type, (uint64_t)((int64_t)(bits << shift) >> shift), NULL};
	return (struct value){u->type, bits << shift >> shift, NULL};
}

bool value_is_whole(struct value v)
{
	if (v.type.form == VALUE_HALF)
		return false;
	return !v.memory ||
	       (!v.memory->is_unreadable && v.memory->length >= v.type.count * v.type.bits / 8u);
}

bool value_has_field(const struct trace_user_event *u, struct value v)
{
	return u->payload[0] && value_type_is_text(&u->type) == !value_is_number(v) &&
	       (v.type.form == VALUE_HALF || value_is_whole(v));
}

const char *const value_states[VALUE_STATES] = {[STATE_WHOLE] = "whole",
						[STATE_CUT] = "cut",
						[STATE_HALF] = "half",
						[STATE_UNREADABLE] = "unreadable"};

enum value_state value_state(struct value v)
{
	if (v.type.form == VALUE_HALF)
		return STATE_HALF;
	if (!value_is_whole(v))
		return STATE_UNREADABLE;
	return v.memory && v.memory->is_cut ? STATE_CUT : STATE_WHOLE;
}

bool value_is_floating(struct value v)
{
	return v.type.form == 'd' || v.type.form == 'f';
}

/* Of a double or a float. */
static double as_double(struct value v)
{
	uint32_t low = (uint32_t)v.number;
	double d;
	float f;

	memcpy(&d, &v.number, sizeof(d));
	memcpy(&f, &low, sizeof(f));
	return v.type.form == 'f' ? (double)f : d;
}

double value_double(struct value v)
{
	return v.type.form == 's'     ? (double)(int64_t)v.number
	       : value_is_floating(v) ? as_double(v)
				      : (double)v.number;
}

bool value_is_less(struct value a, struct value b)
{
	return a.type.form == 's'     ? (int64_t)a.number < (int64_t)b.number
	       : value_is_floating(a) ? as_double(a) < as_double(b)
				      : a.number < b.number;
}

/* As C writes it; what a terminal would take for more than a character, and what is not ASCII, in hexadecimal. */
static char *put_quoted(char *to, const struct trace_memory *m)
{
	static const char names[] = "n\nt\tr\r\"\"\\\\";

	*to++ = '"';
	for (unsigned i = 0; i < m->length; i++) {
		unsigned char c = (unsigned char)m->text[i];
		const char *name = names;

		while (*name && (unsigned char)name[1] != c)
			name += 2;
		if (*name)
			to += sprintf(to, "\\%c", *name);
		else if (c < ' ' || c > '~')
			to += sprintf(to, "\\x%02x", c);
		else
			*to++ = (char)c;
	}
	*to++ = '"';
	return to;
}

static const char *memory_text(const struct trace_memory *m, char buf[VALUE_TEXT])
{
	if (m->is_unreadable)
		return "unreadable";
	strcpy(put_quoted(buf, m), m->is_cut ? "..." : "");
	return buf;
}

static unsigned elements(struct value v)
{
	unsigned size = v.type.bits / 8u, n = size ? v.memory->length / size : 0;

	return n < v.type.count ? n : v.type.count;
}

static struct value element(struct value v, unsigned i)
{
	unsigned shift = 64u - v.type.bits;
	struct value e = {.type = {v.type.form, v.type.bits, 0}};

	memcpy(&e.number, v.memory->text + i * (v.type.bits / 8u), v.type.bits / 8u);
	if (e.type.form == 's')
		e.number = (uint64_t)((int64_t)(e.number << shift) >> shift);
	return e;
}

static const char *array_text(struct value v, char buf[VALUE_TEXT])
{
	char *to = buf, one[VALUE_TEXT];

	*to++ = '{';
	for (unsigned i = 0, n = elements(v); i < n; i++)
		to += snprintf(to, (size_t)(buf + VALUE_TEXT - to), "%s%s", i ? "," : "",
			       value_text(element(v, i), one));
	strcpy(to, "}");
	return buf;
}

const char *value_string(struct value v, char buf[VALUE_TEXT])
{
	if (!v.memory || v.memory->is_unreadable)
		return NULL;
	if (v.type.count)
		return array_text(v, buf);
	return v.type.form == VALUE_STRING ? v.memory->text : NULL;
}

const char *value_text(struct value v, char buf[VALUE_TEXT])
{
	if (v.memory && v.type.count && !v.memory->is_unreadable)
		return array_text(v, buf);
	if (v.memory)
		return memory_text(v.memory, buf);
	switch (v.type.form) {
	case 'u':
		snprintf(buf, VALUE_TEXT, "%" PRIu64, v.number);
		break;
	case 's':
		snprintf(buf, VALUE_TEXT, "%" PRId64, (int64_t)v.number);
		break;
	case 'd':
		snprintf(buf, VALUE_TEXT, "%.17g", as_double(v));
		break;
	case 'f':
		snprintf(buf, VALUE_TEXT, "%.9g", as_double(v));
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

	if (v.memory && v.type.count && !v.memory->is_unreadable) {
		json_open(j, '[');
		for (unsigned i = 0, n = elements(v); i < n; i++)
			value_json(j, element(v, i));
		json_close(j, ']');
	} else if (v.memory)
		json_str(j, value_string(v, buf)); /* NULL becomes null */
	else if (v.type.form == 's')
		json_i64(j, (int64_t)v.number);
	else if (value_is_floating(v) && isfinite(as_double(v)))
		json_f64_exact(j, as_double(v));
	else if (value_is_floating(v))
		json_str(j, value_text(v, buf));
	else
		json_u64(j, v.number);
}
