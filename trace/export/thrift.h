/* SPDX-License-Identifier: MIT */
/*
 * thrift.h - Thrift's compact protocol, as Parquet's metadata is written in.
 *
 *   field    u8: step from the last field's number << 4 | type; a struct ends with 0
 *   integer  zigzag, seven bits a byte
 *   text     length, bytes
 *   bool     nothing but its type
 *   byte     as it is
 *   list     u8: count << 4 | type (count 15 and more: 15, then the count)
 *
 * Fields must come in order of their numbers, no more than 15 apart.
 */
#ifndef TRACE_THRIFT_H
#define TRACE_THRIFT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"

enum thrift_type {
	THRIFT_TRUE = 1,
	THRIFT_FALSE,
	THRIFT_BYTE,
	THRIFT_I16 = 4,
	THRIFT_I32,
	THRIFT_I64,
	THRIFT_TEXT = 8,
	THRIFT_LIST,
	THRIFT_STRUCT = 12
};
#define THRIFT_DEPTH 8

struct thrift {
	VEC(uint8_t) bytes;
	uint8_t last[THRIFT_DEPTH]; /* number of the last field, by depth of structs */
	unsigned depth;
};

void thrift_int(struct thrift *t, unsigned field, enum thrift_type type, int64_t value);
void thrift_byte(struct thrift *t, unsigned field, uint8_t value);
void thrift_bool(struct thrift *t, unsigned field, bool value);
void thrift_bytes(struct thrift *t, unsigned field, const void *p, size_t n);
void thrift_text(struct thrift *t, unsigned field, const char *s);
void thrift_struct(struct thrift *t, unsigned field); /* ends with thrift_end */
void thrift_list(struct thrift *t, unsigned field, enum thrift_type type, size_t n);
/* Elements of a list. */
void thrift_element_int(struct thrift *t, int64_t value);
void thrift_element_text(struct thrift *t, const char *s);
void thrift_element_struct(struct thrift *t); /* ends with thrift_end */
void thrift_end(struct thrift *t);
void thrift_free(struct thrift *t);

#endif
