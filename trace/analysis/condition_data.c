/* SPDX-License-Identifier: MIT */
/* condition_data.c - see condition_data.h. */
#include "trace/analysis/condition_data.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <strings.h>

#include "base/vec.h"

static bool parse_natural(const char *s, struct data_number *out)
{
	char *end;

	if (!isdigit((unsigned char)s[0]))
		return false;
	out->is_hex = !strncasecmp(s, "0x", 2);
	errno = 0;
	out->bits = strtoull(s, &end, out->is_hex ? 16 : 10);
	out->real = (long double)out->bits;
	out->is_natural = true;
	return !*end && !errno;
}

bool data_number_parse(const char *s, struct data_number *out)
{
	char *end;

	*out = (struct data_number){0};
	if (parse_natural(s, out))
		return true;
	*out = (struct data_number){0};
	if (!*s || isspace((unsigned char)s[0]))
		return false;
	out->real = strtold(s, &end);
	return !*end && isfinite(out->real);
}

static bool is_special(const struct trace_value_type *type)
{
	return !type->count && (type->form == 's' || type->form == 'd' || type->form == 'f');
}

void data_types_bind(struct data_types *t, const struct trace_names *names)
{
	data_types_free(t);
	for (size_t i = 0; i < names->n; i++) {
		const struct trace_name *x = &names->v[i];

		if (!x->is_event || x->n >= names->limit || !is_special(&x->type))
			continue;
		if (!t->v)
			t->v = xcalloc(names->limit, sizeof(*t->v));
		t->n = names->limit;
		t->v[x->n] = x->type;
	}
}

void data_types_free(struct data_types *t)
{
	xfree(t->v);
	*t = (struct data_types){0};
}

static enum data_order order_of(long double a, long double b)
{
	return a < b ? DATA_LESS : a > b ? DATA_MORE : a == b ? DATA_SAME : DATA_UNORDERED;
}

static enum data_order order_of_bits(uint64_t a, uint64_t b)
{
	return a < b ? DATA_LESS : a > b ? DATA_MORE : DATA_SAME;
}

enum data_order data_order(const struct data_types *t, const struct data_number *number,
			   const struct trace_event *e)
{
	const uint32_t n = e->s.event / 2;
	const struct trace_user_event u = {.type = n < t->n ? t->v[n]
							    : (struct trace_value_type){0}};
	const struct value v = value_of(&u, e);

	if (u.type.form == 0 || v.type.form == VALUE_HALF || number->is_hex)
		return number->is_natural ? order_of_bits(value_bits(e), number->bits)
					  : order_of((long double)value_bits(e), number->real);
	return order_of(v.type.form == 's' ? (long double)(int64_t)v.number
					   : (long double)value_double(v),
			number->real);
}
