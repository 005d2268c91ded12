/* SPDX-License-Identifier: MIT */
/*
 * export_proto.h - writes protocol buffer messages: fields go to the end of a buffer, and a
 * message becomes a field of another as a whole.
 */
#ifndef TRACE_EXPORT_PROTO_H
#define TRACE_EXPORT_PROTO_H

#include <stdint.h>
#include <stdio.h>

#include "base/vec.h"

struct proto {
	VEC(uint8_t) bytes;
};

void proto_uint(struct proto *p, unsigned field, uint64_t value);
void proto_double(struct proto *p, unsigned field, double value);
void proto_text(struct proto *p, unsigned field, const char *s); /* as text.h shows it */
/* The message m, which is empty afterwards. */
void proto_message(struct proto *p, unsigned field, struct proto *m);
/* A number of a packed field: m is what proto_message makes that field of. */
void proto_packed(struct proto *m, uint64_t value);
/* As a field of the outermost message, which is the file; empty afterwards. */
void proto_write(struct proto *m, unsigned field, FILE *out);
void proto_free(struct proto *p);

#endif
