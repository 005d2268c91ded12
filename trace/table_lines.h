/* SPDX-License-Identifier: MIT */
/* table_lines.h - the lines of a table of a trace directory, and numbers in them; the reader's. */
#ifndef TRACE_TABLE_LINES_H
#define TRACE_TABLE_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TABLE_FIELDS_MAX 9

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
bool table_number32(const char *s, uint32_t *out);
bool table_number64(const char *s, uint64_t *out);

#endif
