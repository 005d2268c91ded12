/* SPDX-License-Identifier: MIT */
/*
 * unwind_disk.c - frame information for a block on disk.
 *
 *   .eh_frame_hdr (new)   the image's own entries, then ours: PT_GNU_EH_FRAME leads here
 *   .eh_frame (ours)      an entry for some pages of stubs
 *   the start-up code     has an .eh_frame of its own, whose entries are in the table too
 *
 * The image's .eh_frame stays where it is: the table says by itself where each entry lies.  A
 * static program may have no table, because it tells libgcc where its .eh_frame is; then the new one
 * has our entries only, and libgcc looks there for what it does not find.
 *
 * gdb reads no table, but sections: for it all entries of ours stand in a .debug_frame once more.
 */
#include "inject/bind/unwind.h"

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

#define HDR_HEAD 12u /* version, encodings, .eh_frame, count */
#define FDE_MAX 512u /* bytes of one of ours */
#define REST_MAX 128u
#define ALIGN(n) (((n) + 7) & ~(size_t)7)

struct entry {
	int32_t start, fde; /* from the table's address */
};

/* .eh_frame: pcrel sdata4; count: udata4; table: datarel sdata4, as all linkers make it. */
static const uint8_t form[4] = {1, 0x1b, 0x03, 0x3b};

/* ---- the start-up code's ---- */

#define FDE_START 8u /* of an entry's pc, which is pcrel sdata4: length and CIE stand before it */

/* The entries of that .eh_frame, as the compiler has made it; out may be NULL. */
static size_t list_fdes(const struct unwind_code *code, struct unwind_fde *out)
{
	size_t n = 0;
	uint32_t len, cie;

	for (size_t at = 0; at + FDE_START + 4 <= code->len; at += 4 + len) {
		int32_t start;

		memcpy(&len, code->frame + at, sizeof(len));
		memcpy(&cie, code->frame + at + 4, sizeof(cie));
		memcpy(&start, code->frame + at + FDE_START, sizeof(start));
		if (!len)
			break;
		if (!cie)
			continue;
		if (out)
			out[n] = (struct unwind_fde){
				.start = code->at + at + FDE_START + (uint64_t)(int64_t)start,
				.off = (uint32_t)at,
			};
		n++;
	}
	return n;
}

static int compare_fdes(const void *a, const void *b)
{
	const struct unwind_fde *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static void add_code(uint8_t *table, uint64_t at, const struct unwind_disk *d,
		     const struct unwind_code *code)
{
	struct unwind_fde *fdes = xcalloc(d->code + 1, sizeof(*fdes));

	list_fdes(code, fdes);
	qsort(fdes, d->code, sizeof(*fdes), compare_fdes);
	for (size_t i = 0; i < d->code; i++) {
		const struct entry e = {(int32_t)(fdes[i].start - at),
					(int32_t)(code->at + fdes[i].off - at)};

		memcpy(table + i * sizeof(e), &e, sizeof(e));
	}
	xfree(fdes);
}

/* ---- all of it ---- */

bool unwind_disk_plan(struct unwind_disk *d, const uint8_t *hdr, size_t len, uint64_t stubs_len,
		      const struct unwind_code *code)
{
	uint32_t n = 0;

	memset(d, 0, sizeof(*d));
	if (hdr && (len < HDR_HEAD || memcmp(hdr, form, sizeof(form))))
		return false;
	if (hdr)
		memcpy(&n, hdr + 8, sizeof(n));
	if (n && n > (len - HDR_HEAD) / sizeof(struct entry))
		return false;
	d->old = n;
	d->added = unwind_fde_count(stubs_len);
	d->code = list_fdes(code, NULL);
	d->hdr_len = HDR_HEAD + (d->old + d->added + d->code) * sizeof(struct entry);
	d->len = ALIGN(d->hdr_len) + d->added * FDE_MAX + REST_MAX;
	return true;
}

static void read_places(struct unwind_places *w, const struct unwind_tables *from)
{
	struct kron_tables t;

	memcpy(&t, from->bytes, sizeof(t));
	*w = (struct unwind_places){.block = t.block,
				    .stubs = t.block + t.stubs_at,
				    .stubs_end = from->at,
				    .lo = t.lo,
				    .spot = from->at + t.spot_at,
				    .granule = from->at + t.granule_at,
				    .depth = from->at + t.depth_at};
	memcpy(&w->id, from->id, sizeof(w->id));
}

/* An entry's address, as the table at one place has it, for the table at another. */
static int32_t moved(int32_t off, uint64_t from, uint64_t to)
{
	return (int32_t)(from + (uint64_t)(int64_t)off - to);
}

static void copy_entries(uint8_t *out, uint64_t at, const struct unwind_disk *d, const uint8_t *hdr,
			 uint64_t hdr_at)
{
	uint32_t n = (uint32_t)(d->old + d->added + d->code);
	int32_t frame = (int32_t)ALIGN(d->hdr_len) - 4; /* counts from its own place */

	memcpy(out, form, sizeof(form));
	if (hdr) {
		memcpy(&frame, hdr + 4, sizeof(frame));
		frame = moved(frame, hdr_at, at); /* 4 in both */
	}
	memcpy(out + 4, &frame, sizeof(frame));
	memcpy(out + 8, &n, sizeof(n));
	for (size_t i = 0; i < d->old; i++) {
		struct entry e;

		memcpy(&e, hdr + HDR_HEAD + i * sizeof(e), sizeof(e));
		e.start = moved(e.start, hdr_at, at);
		e.fde = moved(e.fde, hdr_at, at);
		memcpy(out + HDR_HEAD + i * sizeof(e), &e, sizeof(e));
	}
}

void unwind_disk_make(uint8_t *out, uint64_t at, const struct unwind_disk *d, const uint8_t *hdr,
		      uint64_t hdr_at, const struct unwind_tables *tables,
		      const struct unwind_code *code)
{
	const size_t frame = ALIGN(d->hdr_len);
	struct unwind_buffer b = {.v = out, .n = frame, .cap = d->len};
	struct unwind_fde *fdes = xcalloc(d->added, sizeof(*fdes));
	struct unwind_places w;

	read_places(&w, tables);
	copy_entries(out, at, d, hdr, hdr_at);
	unwind_frame_disk(&b, at + frame, &w, fdes);
	for (size_t i = 0; i < d->added; i++) {
		const struct entry e = {(int32_t)(fdes[i].start - at),
					(int32_t)(frame + fdes[i].off)};

		memcpy(out + HDR_HEAD + (d->old + i) * sizeof(e), &e, sizeof(e));
	}
	add_code(out + HDR_HEAD + (d->old + d->added) * sizeof(struct entry), at, d, code);
	xfree(fdes);
}

/* ---- .debug_frame ---- */

/*
 * The entries of an .eh_frame that was made for address `from`, for offset `to` of a .debug_frame,
 * in place.  Addresses stay relative to where they stand, which debuggers understand there, too.
 */
static size_t make_debug(uint8_t *v, size_t len, uint64_t from, uint64_t to)
{
	uint32_t size, id, shift = (uint32_t)(from - to), start;
	size_t at;

	for (at = 0; at + FDE_START + 4 <= len; at += 4 + size) {
		memcpy(&size, v + at, sizeof(size));
		memcpy(&id, v + at + 4, sizeof(id));
		if (!size)
			break;
		if (id) {
			memcpy(&start, v + at + FDE_START, sizeof(start));
			start += shift;
			memcpy(v + at + FDE_START, &start, sizeof(start));
		}
		id = id ? (uint32_t)(to + at + 4) - id : UINT32_MAX;
		memcpy(v + at + 4, &id, sizeof(id));
	}
	return at;
}

uint8_t *unwind_disk_debug(size_t *len, const struct unwind_tables *tables, uint64_t stubs_len,
			   const struct unwind_code *code)
{
	size_t n = unwind_fde_count(stubs_len), cap = n * FDE_MAX + REST_MAX;
	struct unwind_buffer b = {.v = xcalloc(cap + code->len, 1), .cap = cap};
	struct unwind_fde *fdes = xcalloc(n, sizeof(*fdes));
	struct unwind_places w;

	read_places(&w, tables);
	unwind_frame_disk(&b, 0, &w, fdes);
	xfree(fdes);
	*len = make_debug(b.v, b.n, 0, 0);
	if (code->len)
		memcpy(b.v + *len, code->frame, code->len);
	*len += make_debug(b.v + *len, code->len, code->at, *len);
	return b.v;
}
