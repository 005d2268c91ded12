/* SPDX-License-Identifier: MIT */
/*
 * parquet.h - writes one Parquet file, row by row, to a stream.
 *
 *   "PAR1"
 *   row group: for each column [dictionary page] data page    PARQUET_GROUP rows
 *   ...
 *   metadata: schema, where the pages are, their smallest and greatest values
 *   u32 length of the metadata, "PAR1"
 *
 * Texts are numbered once, in a pool that files may share, and stored by dictionary; numbers are
 * stored plainly.  Texts that come once or twice, such as values, are kept for the row group only.
 * Pages are compressed with zstd where kron was built with it.  Memory: a row group, the pool,
 * and 2 KiB for each row group that was written.
 */
#ifndef TRACE_PARQUET_H
#define TRACE_PARQUET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "trace/export/text_pool.h"

#define PARQUET_GROUP 122880u

/* As the format numbers them; of an INT64 that has no sign it says so besides. */
enum parquet_type {
	PARQUET_BOOL = 0,
	PARQUET_INT32 = 1,
	PARQUET_INT64 = 2,
	PARQUET_DOUBLE = 5, /* its bits; no limits are told */
	PARQUET_TEXT = 6,
	PARQUET_UINT64 = 64,
};

struct parquet_column {
	const char *name;
	enum parquet_type type;
	bool optional;
};

struct parquet;
/* Columns and texts must stay where they are. */
struct parquet *parquet_open(FILE *out, const struct parquet_column *columns, size_t ncolumns,
			     struct text_pool *texts);
/* A row's value of type PARQUET_TEXT is the number of a text in the pool, or this one of a text
 * for the next row.  It must be valid UTF-8. */
int64_t parquet_passing_text(struct parquet *p, const char *s);
void parquet_sorted_by(struct parquet *p, unsigned column); /* rows come so: readers are told */
/* One a column; in one that is optional, null is what is not known. */
void parquet_row(struct parquet *p, const int64_t *values, const bool *known);
void parquet_note(struct parquet *p, const char *key, const char *value); /* in the metadata */
void parquet_close(struct parquet *p); /* writes what is left; the caller asks ferror() */

#endif
