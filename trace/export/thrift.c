/* SPDX-License-Identifier: MIT */
/* thrift.c - see thrift.h. */
#include "trace/export/thrift.h"

#include <stdlib.h>
#include <string.h>

#include "base/varint.h"

static void put_varint(struct thrift *t, uint64_t v)
{
	uint8_t bytes[VARINT_MAX];

	vec_add(&t->bytes, bytes, varint_put(bytes, v));
}

static void put_field(struct thrift *t, unsigned field, enum thrift_type type)
{
	*vec_push(&t->bytes) = (uint8_t)((field - t->last[t->depth]) << 4 | type);
	t->last[t->depth] = (uint8_t)field;
}

static void put_bytes(struct thrift *t, const void *p, size_t n)
{
	put_varint(t, n);
	vec_reserve(&t->bytes, t->bytes.n + n + 1);
	memcpy(t->bytes.v + t->bytes.n, p, n);
	t->bytes.n += n;
}

static void descend(struct thrift *t)
{
	if (++t->depth == THRIFT_DEPTH)
		abort(); /* deeper than any struct of the format */
	t->last[t->depth] = 0;
}

void thrift_element_int(struct thrift *t, int64_t value)
{
	put_varint(t, varint_zigzag(value));
}

void thrift_int(struct thrift *t, unsigned field, enum thrift_type type, int64_t value)
{
	put_field(t, field, type);
	thrift_element_int(t, value);
}

void thrift_byte(struct thrift *t, unsigned field, uint8_t value)
{
	put_field(t, field, THRIFT_BYTE);
	*vec_push(&t->bytes) = value;
}

void thrift_bool(struct thrift *t, unsigned field, bool value)
{
	put_field(t, field, value ? THRIFT_TRUE : THRIFT_FALSE);
}

void thrift_bytes(struct thrift *t, unsigned field, const void *p, size_t n)
{
	put_field(t, field, THRIFT_TEXT);
	put_bytes(t, p, n);
}

void thrift_text(struct thrift *t, unsigned field, const char *s)
{
	thrift_bytes(t, field, s, strlen(s));
}

void thrift_element_text(struct thrift *t, const char *s)
{
	put_bytes(t, s, strlen(s));
}

void thrift_struct(struct thrift *t, unsigned field)
{
	put_field(t, field, THRIFT_STRUCT);
	descend(t);
}

void thrift_element_struct(struct thrift *t)
{
	descend(t);
}

void thrift_list(struct thrift *t, unsigned field, enum thrift_type type, size_t n)
{
	put_field(t, field, THRIFT_LIST);
	*vec_push(&t->bytes) = (uint8_t)((n < 15 ? n : 15) << 4 | type);
	if (n >= 15)
		put_varint(t, n);
}

void thrift_end(struct thrift *t)
{
	*vec_push(&t->bytes) = 0;
	if (t->depth)
		t->depth--;
}

void thrift_free(struct thrift *t)
{
	vec_free(&t->bytes);
}
