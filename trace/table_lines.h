/* SPDX-License-Identifier: MIT */
/* table_lines.h - the bytes of a table of a trace directory: lines, fields, and numbers in them. */
#ifndef TRACE_TABLE_LINES_H
#define TRACE_TABLE_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

#define TABLE_FIELDS_MAX 10

struct table_lines {
	char *text; /* mapped, private: unescaped in place */
	size_t size, at;
	char *field[TABLE_FIELDS_MAX];
	size_t nfields;
};

/* -errno; a file that is not there has no lines. */
int table_open(struct table_lines *l, int dirfd, const char *file);
void table_close(struct table_lines *l);
/* The next whole line, NUL-terminated, or NULL; one without newline at the end is a torn write. */
char *table_next(struct table_lines *l);
/* The next one split at its TABs and unescaped.  Fields that it does not have are "". */
bool table_next_fields(struct table_lines *l);
/* Undo \t \n \\ in place. */
void table_unescape(char *s);

/* A number and nothing else. */
bool table_number(const char *s, int base, uint64_t max, uint64_t *out);

/* ---- written ---- */

typedef VEC(char) table_text;
static inline void table_put_char(table_text *t, char c)
{
	vec_reserve(t, t->n + 1);
	t->v[t->n++] = c;
}
/* Escaped: what table_unescape() undoes.  NULL: nothing. */
void table_put_text(table_text *t, const char *s);
void table_put_number(table_text *t, int base, uint64_t value);

#endif
