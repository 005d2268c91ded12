/* SPDX-License-Identifier: MIT */
/*
 * parquet.c - see parquet.h.  The only file that knows libzstd.  Field numbers and codes are
 * those of parquet.thrift in apache/parquet-format.
 */
#include "trace/export/parquet.h"

#include <stdlib.h>
#include <string.h>

#include "config.h"
#ifdef HAVE_ZSTD
#include <zstd.h>
#endif

#include "base/varint.h"
#include "trace/export/thrift.h"
#include "trace/index.h"

#define ZSTD_LEVEL 3
enum { CODEC_NONE = 0, CODEC_ZSTD = 6 };
enum { ENCODING_PLAIN = 0, ENCODING_RLE = 3, ENCODING_RLE_DICTIONARY = 8 };
enum { PAGE_DATA = 0, PAGE_DICTIONARY = 2 };
enum { REQUIRED, OPTIONAL };
#define CONVERTED_UTF8 0
#define CONVERTED_UINT_64 14

typedef VEC(uint8_t) bytes;
typedef VEC(int64_t) numbers;

struct chunk {                           /* what the metadata say of a column of one row group */
	uint64_t dictionary_at, data_at; /* in the file; no dictionary: 0 */
	uint64_t plain, stored;          /* bytes, with page headers */
	uint64_t nulls;
	bool has_range;
	int64_t min, max; /* of a text: its number */
};

struct parquet {
	FILE *out;
	const struct parquet_column *columns;
	size_t ncolumns;
	numbers *values; /* by column, of this row group */
	bytes *known;    /* likewise, 1 or 0 */
	size_t rows;
	uint64_t at, total;
	struct text_pool *texts, passing;
	int sorted_by;             /* a column; -1: rows come in no order */
	VEC(struct chunk) chunks;  /* ncolumns for each row group */
	VEC(uint64_t) group_sizes; /* rows */
	VEC(char *) notes;         /* key, value, key, value ... */
	bytes page, packed;
	VEC(uint32_t) indices; /* dictionary indices, or levels, of a page */
	struct thrift head;
#ifdef HAVE_ZSTD
	ZSTD_CCtx *zstd;
#endif
};

/* ---- bytes ---- */

static void put(bytes *b, const void *p, size_t n)
{
	vec_reserve(b, b->n + n);
	if (n)
		memcpy(b->v + b->n, p, n);
	b->n += n;
}

static void put_u32(bytes *b, size_t v)
{
	uint32_t word = (uint32_t)v;

	put(b, &word, sizeof(word));
}

static void put_varint(bytes *b, uint64_t v)
{
	uint8_t out[VARINT_MAX];
	size_t n = varint_put(out, v);

	put(b, out, n);
}

static void write_out(struct parquet *p, const void *v, size_t n)
{
	fwrite(v, 1, n, p->out);
	p->at += n;
}

/* Texts of this row group alone have numbers below zero. */
static const char *text_of(const struct parquet *p, int64_t n)
{
	return n < 0 ? p->passing.texts.v[~n] : p->texts->texts.v[n];
}

/* ---- the hybrid of runs and packed bits, for levels and dictionary indices ---- */

static unsigned width_of(uint32_t greatest)
{
	return greatest ? 32 - (unsigned)__builtin_clz(greatest) : 0;
}

/* Eight values at a time, the last ones filled up with zeros, lowest bit first. */
static void put_packed(bytes *b, const uint32_t *v, size_t n, unsigned width)
{
	uint64_t word = 0;
	unsigned bits = 0;

	if (!n)
		return;
	put_varint(b, (n + 7) / 8 << 1 | 1);
	for (size_t i = 0; i < (n + 7) / 8 * 8; i++) {
		word |= (uint64_t)(i < n ? v[i] : 0) << bits;
		for (bits += width; bits >= 8; bits -= 8, word >>= 8)
			*vec_push(b) = (uint8_t)word;
	}
}

static void put_run(bytes *b, uint32_t value, size_t n, unsigned width)
{
	put_varint(b, n << 1);
	put(b, &value, (width + 7) / 8);
}

static void put_hybrid(bytes *b, const uint32_t *v, size_t n, unsigned width)
{
	size_t from = 0, at = 0; /* [from, at): to be packed, a multiple of eight */

	while (at < n) {
		size_t same = 1;

		while (at + same < n && v[at + same] == v[at])
			same++;
		if (same < 8) {
			at = at + 8 < n ? at + 8 : n;
			continue;
		}
		put_packed(b, v + from, at - from, width);
		put_run(b, v[at], same, width);
		from = at += same;
	}
	put_packed(b, v + from, n - from, width);
}

/* ---- pages ---- */

/* p->page, compressed or not, after its header; how many bytes it has taken in the file. */
static void write_page(struct parquet *p, struct chunk *c, int type, size_t nvalues, int encoding)
{
	const uint8_t *stored = p->page.v;
	size_t size = p->page.n;
	struct thrift *h = &p->head;
	uint64_t start = p->at;

#ifdef HAVE_ZSTD
	vec_reserve(&p->packed, ZSTD_compressBound(size));
	size = ZSTD_compressCCtx(p->zstd, p->packed.v, p->packed.cap, p->page.v, size, ZSTD_LEVEL);
	if (ZSTD_isError(size))
		abort(); /* there is room enough */
	stored = p->packed.v;
#endif
	h->bytes.n = 0;
	h->last[h->depth = 0] = 0;
	thrift_int(h, 1, THRIFT_I32, type);
	thrift_int(h, 2, THRIFT_I32, (int64_t)p->page.n);
	thrift_int(h, 3, THRIFT_I32, (int64_t)size);
	thrift_struct(h, type == PAGE_DATA ? 5 : 7);
	thrift_int(h, 1, THRIFT_I32, (int64_t)nvalues);
	thrift_int(h, 2, THRIFT_I32, encoding);
	if (type == PAGE_DATA) {
		thrift_int(h, 3, THRIFT_I32, ENCODING_RLE); /* of definition levels */
		thrift_int(h, 4, THRIFT_I32, ENCODING_RLE); /* of repetition levels */
	}
	thrift_end(h);
	thrift_end(h);
	write_out(p, h->bytes.v, h->bytes.n);
	write_out(p, stored, size);
	c->stored += p->at - start;
	c->plain += h->bytes.n + p->page.n;
}

static bool is_null(const struct parquet *p, size_t column, size_t row)
{
	return !p->known[column].v[row];
}

static void put_levels(struct parquet *p, struct chunk *c, size_t column)
{
	size_t at = p->page.n;
	uint32_t size;

	p->indices.n = 0;
	for (size_t i = 0; i < p->rows; i++) {
		const bool null = is_null(p, column, i);

		*vec_push(&p->indices) = !null;
		c->nulls += null;
	}
	put_u32(&p->page, 0);
	put_hybrid(&p->page, p->indices.v, p->indices.n, 1);
	size = (uint32_t)(p->page.n - at - sizeof(size));
	memcpy(p->page.v + at, &size, sizeof(size));
}

static bool is_less(const struct parquet *p, const struct parquet_column *column, int64_t a,
		    int64_t b)
{
	if (column->type == PARQUET_TEXT)
		return strcmp(text_of(p, a), text_of(p, b)) < 0;
	return column->type == PARQUET_UINT64 ? (uint64_t)a < (uint64_t)b : a < b;
}

static void count_range(const struct parquet *p, const struct parquet_column *column,
			struct chunk *c, int64_t value)
{
	if (!c->has_range || is_less(p, column, value, c->min))
		c->min = value;
	if (!c->has_range || is_less(p, column, c->max, value))
		c->max = value;
	c->has_range = true;
}

static void put_plain(bytes *b, enum parquet_type type, const int64_t *v, size_t n)
{
	if (type == PARQUET_BOOL) {
		for (size_t i = 0; i < n; i++) {
			if (i % 8 == 0)
				vec_push(b);
			b->v[b->n - 1] |= (uint8_t)((v[i] != 0) << i % 8);
		}
		return;
	}
	for (size_t i = 0; i < n; i++)
		put(b, &v[i], type == PARQUET_INT32 ? 4 : 8);
}

static void write_numbers(struct parquet *p, size_t at, struct chunk *c)
{
	const struct parquet_column *column = &p->columns[at];
	numbers *v = &p->values[at];
	size_t rows = v->n, kept = 0;

	for (size_t i = 0; i < rows; i++) {
		int64_t n = v->v[i];

		if (column->optional && is_null(p, at, i))
			continue;
		if (column->type == PARQUET_INT32)
			n = (int32_t)n;
		if (column->type != PARQUET_DOUBLE)
			count_range(p, column, c, n);
		v->v[kept++] = n;
	}
	put_plain(&p->page, column->type, v->v, kept);
	c->data_at = p->at;
	write_page(p, c, PAGE_DATA, rows, ENCODING_PLAIN);
}

static void write_dictionary(struct parquet *p, const struct parquet_column *column,
			     struct chunk *c, const struct index *words)
{
	p->page.n = 0;
	for (size_t i = 0; i < words->n; i++) {
		int64_t n = (int64_t)words->keys[i];
		const char *s = text_of(p, n);

		count_range(p, column, c, n);
		put_u32(&p->page, strlen(s));
		put(&p->page, s, strlen(s));
	}
	c->dictionary_at = p->at;
	write_page(p, c, PAGE_DICTIONARY, words->n, ENCODING_PLAIN);
}

/* The limits are told at the file's end, when the row group's own texts are gone. */
static void keep_limits(struct parquet *p, struct chunk *c)
{
	if (!c->has_range)
		return;
	c->min = text_pool_add(p->texts, text_of(p, c->min));
	c->max = text_pool_add(p->texts, text_of(p, c->max));
}

/* The dictionary's page comes first, so the levels that are in p->page already wait. */
static void write_texts(struct parquet *p, size_t at, struct chunk *c)
{
	const struct parquet_column *column = &p->columns[at];
	const numbers *v = &p->values[at];
	struct index words = {0};
	bytes levels = {0};
	unsigned width;

	put(&levels, p->page.v, p->page.n);
	p->indices.n = 0;
	for (size_t i = 0; i < v->n; i++)
		if (!column->optional || !is_null(p, at, i))
			*vec_push(&p->indices) = index_of(&words, (uint64_t)v->v[i]);
	write_dictionary(p, column, c, &words);
	keep_limits(p, c);
	width = width_of(words.n ? (uint32_t)words.n - 1 : 0);
	p->page.n = 0;
	put(&p->page, levels.v, levels.n);
	*vec_push(&p->page) = (uint8_t)width;
	put_hybrid(&p->page, p->indices.v, p->indices.n, width);
	c->data_at = p->at;
	write_page(p, c, PAGE_DATA, v->n, ENCODING_RLE_DICTIONARY);
	vec_free(&levels);
	index_free(&words);
}

static void write_group(struct parquet *p)
{
	if (!p->rows)
		return;
	for (size_t i = 0; i < p->ncolumns; i++) {
		const struct parquet_column *column = &p->columns[i];
		struct chunk *c = vec_push(&p->chunks);

		p->page.n = 0;
		if (column->optional)
			put_levels(p, c, i);
		if (column->type == PARQUET_TEXT)
			write_texts(p, i, c);
		else
			write_numbers(p, i, c);
		p->values[i].n = p->known[i].n = 0;
	}
	*vec_push(&p->group_sizes) = p->rows;
	p->total += p->rows;
	p->rows = 0;
	text_pool_free(&p->passing);
}

/* ---- metadata ---- */

static int stored_type(const struct parquet_column *c)
{
	return c->type == PARQUET_UINT64 ? PARQUET_INT64 : (int)c->type;
}

static void put_schema(struct parquet *p, struct thrift *m)
{
	thrift_list(m, 2, THRIFT_STRUCT, p->ncolumns + 1);
	thrift_element_struct(m);
	thrift_text(m, 4, "trace");
	thrift_int(m, 5, THRIFT_I32, (int64_t)p->ncolumns);
	thrift_end(m);
	for (size_t i = 0; i < p->ncolumns; i++) {
		const struct parquet_column *c = &p->columns[i];

		thrift_element_struct(m);
		thrift_int(m, 1, THRIFT_I32, stored_type(c));
		thrift_int(m, 3, THRIFT_I32, c->optional ? OPTIONAL : REQUIRED);
		thrift_text(m, 4, c->name);
		if (c->type == PARQUET_TEXT) {
			thrift_int(m, 6, THRIFT_I32, CONVERTED_UTF8);
			thrift_struct(m, 10); /* the logical type: */
			thrift_struct(m, 1);  /* a string */
			thrift_end(m);
			thrift_end(m);
		}
		if (c->type == PARQUET_UINT64) {
			thrift_int(m, 6, THRIFT_I32, CONVERTED_UINT_64);
			thrift_struct(m, 10);
			thrift_struct(m, 10); /* an integer */
			thrift_byte(m, 1, 64);
			thrift_bool(m, 2, false); /* without a sign */
			thrift_end(m);
			thrift_end(m);
		}
		thrift_end(m);
	}
}

static void put_limit(struct parquet *p, struct thrift *m, unsigned field,
		      const struct parquet_column *column, int64_t value)
{
	uint8_t truth = value != 0;

	if (column->type == PARQUET_TEXT)
		thrift_text(m, field, text_of(p, value));
	else if (column->type == PARQUET_BOOL)
		thrift_bytes(m, field, &truth, 1);
	else
		thrift_bytes(m, field, &value, column->type == PARQUET_INT32 ? 4 : 8);
}

static void put_statistics(struct parquet *p, struct thrift *m, const struct parquet_column *column,
			   const struct chunk *c)
{
	thrift_struct(m, 12);
	thrift_int(m, 3, THRIFT_I64, (int64_t)c->nulls);
	if (c->has_range) {
		put_limit(p, m, 5, column, c->max);
		put_limit(p, m, 6, column, c->min);
	}
	thrift_end(m);
}

static void put_chunk(struct parquet *p, struct thrift *m, const struct parquet_column *column,
		      const struct chunk *c, uint64_t rows)
{
	bool is_text = column->type == PARQUET_TEXT;

	thrift_element_struct(m);
	thrift_int(m, 2, THRIFT_I64, (int64_t)(is_text ? c->dictionary_at : c->data_at));
	thrift_struct(m, 3);
	thrift_int(m, 1, THRIFT_I32, stored_type(column));
	thrift_list(m, 2, THRIFT_I32, is_text ? 3 : 2);
	thrift_element_int(m, ENCODING_PLAIN);
	thrift_element_int(m, ENCODING_RLE);
	if (is_text)
		thrift_element_int(m, ENCODING_RLE_DICTIONARY);
	thrift_list(m, 3, THRIFT_TEXT, 1);
	thrift_element_text(m, column->name);
#ifdef HAVE_ZSTD
	thrift_int(m, 4, THRIFT_I32, CODEC_ZSTD);
#else
	thrift_int(m, 4, THRIFT_I32, CODEC_NONE);
#endif
	thrift_int(m, 5, THRIFT_I64, (int64_t)rows);
	thrift_int(m, 6, THRIFT_I64, (int64_t)c->plain);
	thrift_int(m, 7, THRIFT_I64, (int64_t)c->stored);
	thrift_int(m, 9, THRIFT_I64, (int64_t)c->data_at);
	if (is_text)
		thrift_int(m, 11, THRIFT_I64, (int64_t)c->dictionary_at);
	put_statistics(p, m, column, c);
	thrift_end(m);
	thrift_end(m);
}

static void put_order(const struct parquet *p, struct thrift *m)
{
	if (p->sorted_by < 0)
		return;
	thrift_list(m, 4, THRIFT_STRUCT, 1);
	thrift_element_struct(m);
	thrift_int(m, 1, THRIFT_I32, p->sorted_by);
	thrift_bool(m, 2, false); /* descending */
	thrift_bool(m, 3, false); /* nulls come first */
	thrift_end(m);
}

static void put_group(struct parquet *p, struct thrift *m, size_t group)
{
	const struct chunk *c = &p->chunks.v[group * p->ncolumns];
	uint64_t plain = 0, stored = 0;

	thrift_element_struct(m);
	thrift_list(m, 1, THRIFT_STRUCT, p->ncolumns);
	for (size_t i = 0; i < p->ncolumns; i++) {
		put_chunk(p, m, &p->columns[i], &c[i], p->group_sizes.v[group]);
		plain += c[i].plain;
		stored += c[i].stored;
	}
	thrift_int(m, 2, THRIFT_I64, (int64_t)plain);
	thrift_int(m, 3, THRIFT_I64, (int64_t)p->group_sizes.v[group]);
	put_order(p, m);
	thrift_int(m, 6, THRIFT_I64, (int64_t)stored);
	thrift_end(m);
}

static void put_notes(struct parquet *p, struct thrift *m)
{
	thrift_list(m, 5, THRIFT_STRUCT, p->notes.n / 2);
	for (size_t i = 0; i + 1 < p->notes.n; i += 2) {
		thrift_element_struct(m);
		thrift_text(m, 1, p->notes.v[i]);
		thrift_text(m, 2, p->notes.v[i + 1]);
		thrift_end(m);
	}
}

static void write_metadata(struct parquet *p)
{
	struct thrift m = {0};
	uint32_t size;

	thrift_int(&m, 1, THRIFT_I32, 1);
	put_schema(p, &m);
	thrift_int(&m, 3, THRIFT_I64, (int64_t)p->total);
	thrift_list(&m, 4, THRIFT_STRUCT, p->group_sizes.n);
	for (size_t i = 0; i < p->group_sizes.n; i++)
		put_group(p, &m, i);
	put_notes(p, &m);
	thrift_text(&m, 6, "kron");
	thrift_list(&m, 7, THRIFT_STRUCT, p->ncolumns); /* how each column's limits are ordered: */
	for (size_t i = 0; i < p->ncolumns; i++) {
		thrift_element_struct(&m);
		thrift_struct(&m, 1); /* as its type is */
		thrift_end(&m);
		thrift_end(&m);
	}
	thrift_end(&m);
	write_out(p, m.bytes.v, m.bytes.n);
	size = (uint32_t)m.bytes.n;
	write_out(p, &size, sizeof(size));
	write_out(p, "PAR1", 4);
	thrift_free(&m);
}

/* ---- the file ---- */

struct parquet *parquet_open(FILE *out, const struct parquet_column *columns, size_t ncolumns,
			     struct text_pool *texts)
{
	struct parquet *p = xcalloc(1, sizeof(*p));

	p->out = out;
	p->columns = columns;
	p->ncolumns = ncolumns;
	p->texts = texts;
	p->sorted_by = -1;
	p->values = xcalloc(ncolumns, sizeof(*p->values));
	p->known = xcalloc(ncolumns, sizeof(*p->known));
#ifdef HAVE_ZSTD
	p->zstd = ZSTD_createCCtx();
	if (!p->zstd)
		abort(); /* as xmalloc() does */
#endif
	write_out(p, "PAR1", 4);
	return p;
}

int64_t parquet_passing_text(struct parquet *p, const char *s)
{
	return ~(int64_t)text_pool_add(&p->passing, s);
}

void parquet_sorted_by(struct parquet *p, unsigned column)
{
	p->sorted_by = (int)column;
}

void parquet_row(struct parquet *p, const int64_t *values, const bool *known)
{
	for (size_t i = 0; i < p->ncolumns; i++) {
		*vec_push(&p->values[i]) = values[i];
		*vec_push(&p->known[i]) = known[i];
	}
	if (++p->rows == PARQUET_GROUP)
		write_group(p);
}

void parquet_note(struct parquet *p, const char *key, const char *value)
{
	*vec_push(&p->notes) = xstrdup(key);
	*vec_push(&p->notes) = xstrdup(value);
}

void parquet_close(struct parquet *p)
{
	write_group(p);
	write_metadata(p);
#ifdef HAVE_ZSTD
	ZSTD_freeCCtx(p->zstd);
#endif
	for (size_t i = 0; i < p->ncolumns; i++) {
		vec_free(&p->values[i]);
		vec_free(&p->known[i]);
	}
	xfree(p->values);
	xfree(p->known);
	vec_for(&p->notes, s)
		xfree(*s);
	vec_free(&p->notes);
	vec_free(&p->chunks);
	vec_free(&p->group_sizes);
	vec_free(&p->page);
	vec_free(&p->packed);
	vec_free(&p->indices);
	thrift_free(&p->head);
	xfree(p);
}
