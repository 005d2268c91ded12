/* SPDX-License-Identifier: MIT */
/*
 * frame_info.c - what the planner asks of the frame information: the stack depth at a place,
 * and where exceptions land.
 *
 * Questions come in ascending order, many for each function: the rows of the last function
 * asked for are kept.
 */
#include <stdlib.h>

#include "base/vec.h"
#include "inject/elf/eh_frame.h"
#include "inject/elf/elf_image_impl.h"
#include "inject/code/functions.h"

struct span {
	uint64_t start, end;
	int64_t cfa; /* from rsp, -1 unknown */
};

struct frame_info {
	const struct elf_image *img;
	struct eh_frame frame;
	const struct eh_fde *cached; /* whose rows these are */
	VEC(struct span) spans;
	VEC(uint64_t) pads; /* sorted, when somebody has asked */
	bool has_pads;
	bool is_shared; /* `frame` is another one's */
};

struct frame_info *frame_info_open(const struct elf_image *img)
{
	struct frame_info *fi = xcalloc(1, sizeof(*fi));

	fi->img = img;
	eh_frame_read(&fi->frame, img);
	return fi;
}

struct frame_info *frame_info_share(const struct frame_info *fi)
{
	struct frame_info *other;

	if (!fi)
		return NULL;
	other = xcalloc(1, sizeof(*other));
	other->img = fi->img;
	other->frame = fi->frame;
	other->is_shared = true;
	return other;
}

void frame_info_close(struct frame_info *fi)
{
	if (!fi)
		return;
	if (!fi->is_shared)
		eh_frame_free(&fi->frame);
	vec_free(&fi->spans);
	vec_free(&fi->pads);
	xfree(fi);
}

static bool keep_row(uint64_t start, uint64_t end, const struct eh_row *row, void *ctx)
{
	struct frame_info *fi = ctx;
	struct span *s = vec_push(&fi->spans);

	s->start = start;
	s->end = end;
	s->cfa = row->reg == EH_REG_RSP && row->offset >= 0 ? row->offset : -1;
	return true;
}

int64_t frame_info_cfa_from_sp(struct frame_info *fi, uint64_t vaddr)
{
	size_t lo = 0, hi;

	if (!fi->cached || vaddr < fi->cached->start || vaddr >= fi->cached->end) {
		fi->spans.n = 0;
		fi->cached = eh_frame_at(&fi->frame, vaddr);
		if (!fi->cached)
			return -1;
		eh_frame_rows(&fi->frame, fi->cached, keep_row, fi);
	}
	for (hi = fi->spans.n; lo < hi;) {
		size_t mid = lo + (hi - lo) / 2;
		const struct span *s = &fi->spans.v[mid];

		if (vaddr < s->start)
			hi = mid;
		else if (vaddr >= s->end)
			lo = mid + 1;
		else
			return s->cfa;
	}
	return -1;
}

/* ---- landing pads ---- */

struct pads {
	void (*fn)(uint64_t vaddr, void *ctx);
	void *ctx;
	uint64_t budget; /* bytes: the tables of a hostile file may all be the same large one */
};

/*
 * LSDA (Itanium C++ ABI, "Exception Handling Tables"): encoding and value of the landing pads'
 * base (default: the function's start), encoding and offset of the type table, encoding and
 * length of the call site table; then its entries: start, length, landing pad, action.
 */
static void read_lsda(struct pads *pads, struct eh_cursor c, uint64_t func)
{
	uint64_t base = func, size;
	uint8_t encoding = eh_uint(&c, 1);

	if (encoding != 0xff)
		base = eh_encoded(&c, encoding, func);
	encoding = eh_uint(&c, 1);
	if (encoding != 0xff)
		eh_uleb(&c);
	encoding = eh_uint(&c, 1);
	size = eh_uleb(&c);
	if (c.failed || size > (uint64_t)(c.end - c.p) || size > pads->budget)
		return;
	pads->budget -= size;
	c.end = c.p + size;
	while (c.p < c.end && !c.failed) {
		uint64_t pad;

		eh_encoded(&c, encoding & 0x0f, 0);
		eh_encoded(&c, encoding & 0x0f, 0);
		pad = eh_encoded(&c, encoding & 0x0f, 0);
		eh_uleb(&c);
		if (pad && !c.failed)
			pads->fn(base + pad, pads->ctx);
	}
}

void frame_info_for_each_landing_pad(struct frame_info *fi, void (*fn)(uint64_t vaddr, void *ctx),
				     void *ctx)
{
	struct pads pads = {.fn = fn, .ctx = ctx, .budget = 2 * fi->img->size};

	for (size_t i = 0; i < fi->frame.n; i++) {
		const struct eh_fde *fde = &fi->frame.v[i];
		uint64_t room = fde->lsda ? elf_image_room(fi->img, fde->lsda) : 0;
		const uint8_t *p = room ? elf_image_at(fi->img, fde->lsda, room) : NULL;

		if (p)
			read_lsda(&pads,
				  (struct eh_cursor){.p = p, .end = p + room, .vaddr = fde->lsda},
				  fde->start);
	}
}

static void keep_pad(uint64_t vaddr, void *ctx)
{
	struct frame_info *fi = ctx;

	*vec_push(&fi->pads) = vaddr;
}

static int compare_pads(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

bool frame_info_is_landing_pad(struct frame_info *fi, uint64_t vaddr)
{
	if (!fi->has_pads) {
		fi->has_pads = true;
		frame_info_for_each_landing_pad(fi, keep_pad, fi);
		if (fi->pads.n)
			qsort(fi->pads.v, fi->pads.n, sizeof(vaddr), compare_pads);
	}
	return fi->pads.n && bsearch(&vaddr, fi->pads.v, fi->pads.n, sizeof(vaddr), compare_pads);
}
