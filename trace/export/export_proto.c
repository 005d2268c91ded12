/* SPDX-License-Identifier: MIT */
/* export_proto.c - see export_proto.h. */
#define _GNU_SOURCE
#include "trace/export/export_proto.h"

#include <stdlib.h>
#include <string.h>

#include "base/varint.h"
#include "trace/text.h"

enum { VARINT = 0, FIXED64 = 1, LENGTH = 2 };

void proto_packed(struct proto *m, uint64_t value)
{
	uint8_t bytes[VARINT_MAX];

	vec_add(&m->bytes, bytes, varint_put(bytes, value));
}

void proto_uint(struct proto *p, unsigned field, uint64_t value)
{
	proto_packed(p, (uint64_t)field << 3 | VARINT);
	proto_packed(p, value);
}

void proto_double(struct proto *p, unsigned field, double value)
{
	uint8_t bytes[sizeof(value)]; /* the lowest comes first, as here */

	memcpy(bytes, &value, sizeof(bytes));
	proto_packed(p, (uint64_t)field << 3 | FIXED64);
	vec_add(&p->bytes, bytes, sizeof(bytes));
}

static void put_bytes(struct proto *p, unsigned field, const void *s, size_t n)
{
	proto_packed(p, (uint64_t)field << 3 | LENGTH);
	proto_packed(p, n);
	if (!n)
		return;
	vec_reserve(&p->bytes, p->bytes.n + n);
	memcpy(p->bytes.v + p->bytes.n, s, n);
	p->bytes.n += n;
}

void proto_text(struct proto *p, unsigned field, const char *s)
{
	char *shown = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&shown, &size);

	if (f) {
		text_put(f, s);
		fclose(f);
	}
	put_bytes(p, field, shown, size);
	free(shown);
}

void proto_message(struct proto *p, unsigned field, struct proto *m)
{
	put_bytes(p, field, m->bytes.v, m->bytes.n);
	m->bytes.n = 0;
}

void proto_write(struct proto *m, unsigned field, FILE *out)
{
	uint8_t head[1 + VARINT_MAX] = {(uint8_t)(field << 3 | LENGTH)};

	fwrite(head, 1 + varint_put(head + 1, m->bytes.n), 1, out);
	fwrite(m->bytes.v, 1, m->bytes.n, out);
	m->bytes.n = 0;
}

void proto_free(struct proto *p)
{
	vec_free(&p->bytes);
}
