/* SPDX-License-Identifier: MIT */
/*
 * row_sort.c - see row_sort.h.
 *
 * A row in the file:
 *
 *   u32   a bit for each number that is not that of the row before (in the run; before the first: 0)
 *   ...   these numbers, lowest bit first: their difference from it, zigzag, seven bits a byte
 *   u16   length of the text + 1; 0: there is none
 *   ...   the text
 *
 * Rows that follow one another differ in few numbers and by little, so a row is some 20 bytes.
 */
#define _GNU_SOURCE
#include "trace/export/row_sort.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/temp.h"
#include "base/varint.h"
#include "base/vec.h"

#define TEXTS_MAX (16u << 20) /* bytes of texts in a run */
#define READ_MAX (256u << 10) /* bytes that are read at once from a run ... */
#define READ_MIN (4u << 10)
#define READ_ALL (16u << 20) /* ... and from all, while there are few of them */
#define TEXT_MAX (READ_MIN - 4 - VARINT_MAX * ROW_SORT_WIDTH - 2) /* a row fits into READ_MIN */
#define NO_TEXT UINT32_MAX

struct order { /* of the rows in memory */
	int64_t key;
	uint32_t at;
};
struct run {
	uint64_t from, to; /* in the file */
};
struct reader {            /* of a run */
	uint64_t from, to; /* what was not read yet */
	uint8_t *buf;
	size_t at, n;
	int64_t row[ROW_SORT_WIDTH];
	char *text; /* in buf until the next row; NULL: there is none */
	char after; /* what stood behind the text, where its zero is now */
};

struct row_sort {
	const char *folder;
	size_t width, key;
	int *error;
	VEC(int64_t) values; /* row by row */
	VEC(uint32_t) texts; /* by row: where in text_bytes, or NO_TEXT */
	VEC(char) text_bytes;
	VEC(struct order) order;
	VEC(struct run) runs;
	VEC(uint8_t) packed;
	struct temp file;
	bool has_file;
	uint64_t size; /* of the file */
};

struct row_sort *row_sort_open(const char *folder, size_t width, size_t key, int *error)
{
	struct row_sort *s = xcalloc(1, sizeof(*s));

	if (width > ROW_SORT_WIDTH)
		abort(); /* a mistake of ours */
	s->folder = folder;
	s->width = width;
	s->key = key;
	s->error = error;
	return s;
}

static uint64_t unzigzag(uint64_t v)
{
	return v >> 1 ^ (0 - (v & 1));
}

static void fail(struct row_sort *s, int code)
{
	if (!*s->error)
		*s->error = code;
}

/* ---- the rows in memory ---- */

static int by_key(const void *a, const void *b)
{
	const struct order *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return x->at < y->at ? -1 : 1;
}

static void sort_rows(struct row_sort *s)
{
	s->order.n = 0;
	for (uint32_t i = 0; i < s->texts.n; i++)
		*vec_push(&s->order) = (struct order){s->values.v[i * s->width + s->key], i};
	if (s->order.n)
		qsort(s->order.v, s->order.n, sizeof(*s->order.v), by_key);
}

static const int64_t *row_at(const struct row_sort *s, uint32_t at)
{
	return &s->values.v[at * s->width];
}

static const char *text_at(const struct row_sort *s, uint32_t at)
{
	return s->texts.v[at] == NO_TEXT ? NULL : &s->text_bytes.v[s->texts.v[at]];
}

static void forget_rows(struct row_sort *s)
{
	s->values.n = s->texts.n = s->text_bytes.n = 0;
}

/* ---- a run goes to the file ---- */

static bool write_all(struct row_sort *s, const uint8_t *p, size_t n)
{
	while (n) {
		ssize_t done = pwrite(s->file.fd, p, n, (off_t)s->size);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0) {
			fail(s, done ? errno : ENOSPC);
			return false;
		}
		p += done;
		n -= (size_t)done;
		s->size += (uint64_t)done;
	}
	return true;
}

static void put_varint(struct row_sort *s, uint64_t v)
{
	uint8_t bytes[VARINT_MAX];

	vec_add(&s->packed, bytes, varint_put(bytes, v));
}

static void pack_numbers(struct row_sort *s, const int64_t *row, const int64_t *before)
{
	uint32_t changed = 0;

	for (size_t i = 0; i < s->width; i++)
		changed |= (uint32_t)(row[i] != before[i]) << i;
	vec_add(&s->packed, (const uint8_t *)&changed, sizeof(changed));
	for (size_t i = 0; i < s->width; i++) {
		uint64_t step = (uint64_t)row[i] - (uint64_t)before[i];

		if (step)
			put_varint(s, varint_zigzag((int64_t)step));
	}
}

static void pack_text(struct row_sort *s, const char *text)
{
	uint16_t n = (uint16_t)(text ? strlen(text) + 1 : 0);

	vec_add(&s->packed, (const uint8_t *)&n, sizeof(n));
	if (n)
		vec_add(&s->packed, (const uint8_t *)text, n - 1u);
}

static bool have_file(struct row_sort *s)
{
	int code;

	if (s->has_file)
		return true;
	code = temp_make(&s->file, s->folder, "rows", TEMP_FILE, 0600);
	if (code)
		fail(s, -code);
	s->has_file = !code;
	return !code;
}

static void write_run(struct row_sort *s)
{
	static const int64_t none[ROW_SORT_WIDTH];
	struct run run = {.from = s->size};
	const int64_t *before = none;

	if (*s->error || !have_file(s))
		return;
	sort_rows(s);
	s->packed.n = 0;
	vec_for(&s->order, o) {
		pack_numbers(s, row_at(s, o->at), before);
		pack_text(s, text_at(s, o->at));
		before = row_at(s, o->at);
	}
	if (!write_all(s, s->packed.v, s->packed.n))
		return;
	run.to = s->size;
	*vec_push(&s->runs) = run;
}

void row_sort_add(struct row_sort *s, const int64_t *row, const char *text)
{
	if (*s->error)
		return;
	vec_add(&s->values, row, s->width);
	*vec_push(&s->texts) = text ? (uint32_t)s->text_bytes.n : NO_TEXT;
	if (text) {
		size_t n = strnlen(text, TEXT_MAX);

		vec_add(&s->text_bytes, text, n);
		*vec_push(&s->text_bytes) = 0;
	}
	if (s->texts.n < ROW_SORT_RUN && s->text_bytes.n < TEXTS_MAX)
		return;
	write_run(s);
	forget_rows(s);
}

/* ---- the runs are merged ---- */

static void fill(struct row_sort *s, struct reader *r, size_t cap)
{
	memmove(r->buf, r->buf + r->at, r->n - r->at);
	r->n -= r->at;
	r->at = 0;
	while (r->from < r->to && r->n < cap) {
		uint64_t left = r->to - r->from;
		size_t room = cap - r->n;
		ssize_t n =
			pread(s->file.fd, r->buf + r->n, left < room ? left : room, (off_t)r->from);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			fail(s, n ? errno : EIO);
			r->from = r->to;
			return;
		}
		r->n += (size_t)n;
		r->from += (uint64_t)n;
	}
}

/* The file is ours alone, and what fill() left is whole rows: of READ_MIN bytes at least, or all. */
static const void *take(struct reader *r, size_t n)
{
	const void *p = r->buf + r->at;

	r->at += n;
	return p;
}

static uint64_t take_varint(struct reader *r)
{
	uint64_t v = 0;
	unsigned shift = 0;
	uint8_t byte;

	do {
		byte = r->buf[r->at++];
		v |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80);
	return v;
}

static void take_numbers(const struct row_sort *s, struct reader *r)
{
	uint32_t changed;

	memcpy(&changed, take(r, sizeof(changed)), sizeof(changed));
	for (size_t i = 0; i < s->width; i++) {
		uint64_t step;

		if (!(changed >> i & 1))
			continue;
		step = take_varint(r);
		r->row[i] = (int64_t)((uint64_t)r->row[i] + unzigzag(step));
	}
}

/* The byte after it, which waits, makes room for its zero. */
static void take_text(struct reader *r)
{
	uint16_t n;

	memcpy(&n, take(r, sizeof(n)), sizeof(n));
	r->text = n ? (char *)r->buf + r->at : NULL;
	if (!n)
		return;
	r->at += n - 1u;
	r->after = (char)r->buf[r->at];
	r->buf[r->at] = 0;
}

/* The next row; false: there is none. */
static bool advance(struct row_sort *s, struct reader *r, size_t cap)
{
	if (r->text)
		r->buf[r->at] = (uint8_t)r->after;
	r->text = NULL;
	if (r->n - r->at < READ_MIN)
		fill(s, r, cap);
	if (r->at == r->n || *s->error)
		return false;
	take_numbers(s, r);
	take_text(r);
	return true;
}

/* A heap of readers: the one with the lowest key, of the earliest run, is the first. */
static bool is_before(const struct row_sort *s, const struct reader *a, const struct reader *b)
{
	if (a->row[s->key] != b->row[s->key])
		return a->row[s->key] < b->row[s->key];
	return a < b;
}

static void sink(const struct row_sort *s, struct reader **heap, size_t n, size_t at)
{
	for (;;) {
		size_t least = at;
		struct reader *moved = heap[at];

		for (size_t child = 2 * at + 1; child < n && child <= 2 * at + 2; child++)
			if (is_before(s, heap[child], heap[least]))
				least = child;
		if (least == at)
			return;
		heap[at] = heap[least];
		heap[least] = moved;
		at = least;
	}
}

static void merge(struct row_sort *s, struct reader **heap, size_t n, size_t cap, row_sort_fn fn,
		  void *ctx)
{
	for (size_t i = n / 2; i-- > 0;)
		sink(s, heap, n, i);
	while (n && !*s->error) {
		struct reader *r = heap[0];

		fn(ctx, r->row, r->text);
		if (!advance(s, r, cap))
			heap[0] = heap[--n];
		sink(s, heap, n, 0);
	}
}

static size_t read_size(size_t runs)
{
	size_t n = READ_ALL / runs;

	return n > READ_MAX ? READ_MAX : n < 2 * READ_MIN ? 2 * READ_MIN : n;
}

static void merge_runs(struct row_sort *s, row_sort_fn fn, void *ctx)
{
	size_t runs = s->runs.n, n = 0, cap = read_size(runs);
	struct reader *readers = xcalloc(runs, sizeof(*readers));
	struct reader **heap = xcalloc(runs, sizeof(*heap));

	for (size_t i = 0; i < runs; i++) {
		struct reader *r = &readers[i];

		r->from = s->runs.v[i].from;
		r->to = s->runs.v[i].to;
		r->buf = xmalloc(cap + 1); /* and the zero of the last text */
		if (advance(s, r, cap))
			heap[n++] = r;
	}
	merge(s, heap, n, cap, fn, ctx);
	for (size_t i = 0; i < runs; i++)
		xfree(readers[i].buf);
	xfree(readers);
	xfree(heap);
}

static void drop_file(struct row_sort *s)
{
	if (s->has_file)
		temp_close(&s->file);
	s->has_file = false;
	s->runs.n = 0;
	s->size = 0;
}

void row_sort_each(struct row_sort *s, row_sort_fn fn, void *ctx)
{
	if (s->runs.n && s->texts.n) {
		write_run(s);
		forget_rows(s);
	}
	if (s->runs.n) {
		merge_runs(s, fn, ctx);
	} else {
		sort_rows(s);
		vec_for(&s->order, o)
			fn(ctx, row_at(s, o->at), text_at(s, o->at));
	}
	forget_rows(s);
	drop_file(s);
}

void row_sort_close(struct row_sort *s)
{
	drop_file(s);
	vec_free(&s->values);
	vec_free(&s->texts);
	vec_free(&s->text_bytes);
	vec_free(&s->order);
	vec_free(&s->runs);
	vec_free(&s->packed);
	xfree(s);
}
