/* SPDX-License-Identifier: MIT */
/*
 * row_sort.h - puts more rows in order than memory holds.
 *
 * A row is so many numbers, and a text or NULL.  Rows are sorted by one of the numbers; of equal
 * ones the first to come is first.  Up to ROW_SORT_RUN rows stay in memory.  Beyond that they lie in
 * a file without a name, in sorted runs, which are merged.  Memory: a run, and 16 MiB for all those in
 * the file, or 8 KiB for each where there are more than 2,048.
 *
 *   row_sort_open
 *   row_sort_add    ... many times
 *   row_sort_each   all of them in order; it is empty then, and may be filled again
 *   row_sort_close
 */
#ifndef TRACE_ROW_SORT_H
#define TRACE_ROW_SORT_H

#include <stddef.h>
#include <stdint.h>

#define ROW_SORT_RUN 131072u
#define ROW_SORT_WIDTH 32u /* numbers in a row, at most */

typedef void (*row_sort_fn)(void *ctx, const int64_t *row, const char *text);

struct row_sort;
/* `folder` ends in a slash, and must stay where it is: the file is made there when it is needed.
 * *error gets the errno of the first failure; after it rows are lost. */
struct row_sort *row_sort_open(const char *folder, size_t width, size_t key, int *error);
void row_sort_add(struct row_sort *s, const int64_t *row, const char *text);
void row_sort_each(struct row_sort *s, row_sort_fn fn, void *ctx);
void row_sort_close(struct row_sort *s);

#endif
