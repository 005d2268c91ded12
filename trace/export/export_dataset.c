/* SPDX-License-Identifier: MIT */
/*
 * export_dataset.c - a trace as a data set of Parquet files, in folders as Hive names them:
 *
 *   node=0/pid=4711/part-000000-0000.parquet      the table of export_table.h, without the columns
 *   node=0/pid=4711/part-000000-0001.parquet      node and pid, which readers take from the path
 *   node=0/pid=4712/part-000000-0000.parquet
 *
 * The first number of a file is that of its slice of time, counted from the start of the trace; the
 * second one counts the files of a slice.  Rows of a folder are in order of time_ns, from file to
 * file, so row groups do not overlap in it, and their limits tell a reader which ones he needs.
 *
 * Folder by folder: its rows are sorted (row_sort.h), then its files are written one after another.
 * So there is one writer at a time, however many processes there are.
 *
 * A trace without rows is one file without rows, for readers want to see the columns.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "trace/export/export.h"
#include "trace/export/export_dir.h"
#include "trace/export/export_table.h"
#include "trace/export/row_sort.h"

#define FILE_ROWS (8 * PARQUET_GROUP)
#define PATH_MOST 128 /* of names that we make */

struct place { /* a lane, and the folder that its rows go to */
	struct export_table_place at;
	uint32_t lane;
};

struct dataset {
	const struct trace *t;
	struct export_dir dir;
	uint64_t slice_ns; /* 0: no slices */
	struct text_pool pool;
	struct export_table *table;
	struct row_sort *sort;
	struct parquet_column columns[EXPORT_TABLE_WIDTH];
	unsigned from[EXPORT_TABLE_WIDTH]; /* each one's column of the table */
	unsigned ncolumns, text_column, time_column;

	/* the folder, and the file that is open */
	struct place place;
	char folder[PATH_MOST];
	FILE *out; /* NULL: none */
	struct parquet *p;
	uint64_t slice, rows;
	uint64_t files; /* of this slice, so far */
	bool has_files; /* in any folder */
};

/* ---- columns ---- */

static bool is_in_path(unsigned column)
{
	return column == EXPORT_TABLE_node || column == EXPORT_TABLE_pid;
}

static void choose_columns(struct dataset *d)
{
	for (unsigned i = 0; i < EXPORT_TABLE_WIDTH; i++) {
		if (is_in_path(i))
			continue;
		if (i == EXPORT_TABLE_text)
			d->text_column = d->ncolumns;
		if (i == EXPORT_TABLE_time_ns)
			d->time_column = d->ncolumns;
		d->from[d->ncolumns] = i;
		d->columns[d->ncolumns++] = export_table_columns[i];
	}
}

/* ---- files ---- */

static void note_number(struct parquet *p, const char *key, int64_t n)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRId64, n);
	parquet_note(p, key, text);
}

static const struct trace *trace_of(const struct dataset *d)
{
	const struct trace *t = d->t;

	return t->nlanes ? trace_part(t, t->lanes[d->place.lane].node) : t;
}

static void open_file(struct dataset *d)
{
	char name[2 * PATH_MOST];

	snprintf(name, sizeof(name), "%s/part-%06" PRIu64 "-%04" PRIu64 ".parquet", d->folder,
		 d->slice, d->files++);
	d->out = export_dir_open(&d->dir, name);
	d->p = parquet_open(d->out, d->columns, d->ncolumns, &d->pool);
	parquet_sorted_by(d->p, d->time_column);
	export_table_notes(d->p, trace_of(d));
	note_number(d->p, "partition_node", d->place.at.node);
	note_number(d->p, "partition_pid", d->place.at.pid);
	d->rows = 0;
	d->has_files = true;
}

static void close_file(struct dataset *d)
{
	if (!d->out)
		return;
	parquet_close(d->p);
	export_dir_close(&d->dir, d->out);
	d->out = NULL;
}

static void find_file(struct dataset *d, int64_t time_ns)
{
	uint64_t slice = d->slice_ns ? (uint64_t)time_ns / d->slice_ns : 0;

	if (d->out && slice == d->slice && d->rows < FILE_ROWS)
		return;
	close_file(d);
	if (slice != d->slice)
		d->files = 0;
	d->slice = slice;
	open_file(d);
}

static void make_folder(struct dataset *d)
{
	int n = snprintf(d->folder, sizeof(d->folder), "node=%" PRId32, d->place.at.node);

	export_dir_make(&d->dir, d->folder);
	snprintf(d->folder + n, sizeof(d->folder) - (size_t)n, "/pid=%" PRId32, d->place.at.pid);
	export_dir_make(&d->dir, d->folder);
	d->slice = d->files = 0;
}

/* ---- rows ---- */

/* As the table makes them. */
static void on_row(void *ctx, const int64_t *row, const char *text)
{
	struct dataset *d = ctx;

	row_sort_add(d->sort, row, text);
}

/* In order. */
static void put_row(void *ctx, const int64_t *row, const char *text)
{
	struct dataset *d = ctx;
	int64_t kept[EXPORT_TABLE_WIDTH];
	bool known[EXPORT_TABLE_WIDTH];

	if (d->dir.error)
		return;
	if (!d->folder[0])
		make_folder(d);
	find_file(d, row[EXPORT_TABLE_time_ns]);
	for (unsigned i = 0; i < d->ncolumns; i++) {
		kept[i] = row[d->from[i]];
		known[i] = !export_table_is_null(row, d->from[i]);
	}
	if (text)
		kept[d->text_column] = parquet_passing_text(d->p, text);
	known[d->text_column] = text;
	parquet_row(d->p, kept, known);
	d->rows++;
}

/* ---- folders ---- */

static int by_place(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->at.node != y->at.node)
		return x->at.node < y->at.node ? -1 : 1;
	if (x->at.pid != y->at.pid)
		return x->at.pid < y->at.pid ? -1 : 1;
	return x->lane < y->lane ? -1 : x->lane > y->lane;
}

static bool is_same_place(const struct place *a, const struct place *b)
{
	return a->at.node == b->at.node && a->at.pid == b->at.pid;
}

/* Those lanes that share the folder of the first one; how many they are. */
static size_t put_folder(struct dataset *d, const struct place *v, size_t n)
{
	size_t i;

	d->place = v[0];
	d->folder[0] = 0; /* made with its first row */
	for (i = 0; i < n && is_same_place(&v[i], &v[0]) && !d->dir.error; i++)
		export_table_lane(d->table, v[i].lane);
	row_sort_each(d->sort, put_row, d);
	close_file(d);
	return i;
}

static void put_folders(struct dataset *d)
{
	struct place *v = xcalloc(d->t->nlanes + 1, sizeof(*v));
	size_t n = d->t->nlanes;

	for (uint32_t i = 0; i < n; i++)
		v[i] = (struct place){export_table_place(d->t, i), i};
	qsort(v, n, sizeof(*v), by_place);
	for (size_t i = 0; i < n && !d->dir.error;)
		i += put_folder(d, &v[i], n - i);
	d->place = v[0];
	xfree(v);
}

static void put_no_rows(struct dataset *d)
{
	make_folder(d);
	open_file(d);
	close_file(d);
}

int export_dataset(const struct trace *t, const char *path, uint64_t slice_ns, struct err *err)
{
	struct dataset d = {.t = t, .slice_ns = slice_ns};
	int code = export_dir_begin(&d.dir, path, err);
	char *folder;

	if (code)
		return code;
	folder = xasprintf("%s/", export_dir_path(&d.dir));
	choose_columns(&d);
	d.sort = row_sort_open(folder, EXPORT_TABLE_NUMBERS, EXPORT_TABLE_time_ns, &d.dir.error);
	d.table = export_table_open(t, &d.pool, on_row, &d);
	put_folders(&d);
	if (!d.has_files && !d.dir.error)
		put_no_rows(&d);
	export_table_close(d.table);
	row_sort_close(d.sort);
	text_pool_free(&d.pool);
	xfree(folder);
	return export_dir_end(&d.dir, err);
}
