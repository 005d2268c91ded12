/* SPDX-License-Identifier: MIT */
/* unwind_tables.c - lays out a block's tables (kron/tables.h) and fills in the spots. */
#include "inject/bind/unwind.h"

#include <string.h>

#define ALIGN(n) (((n) + 15) & ~(size_t)15)

/* A granule has one spot more at most: that which goes on in it. */
static size_t room_for_spots(size_t nspots, uint32_t ngranules)
{
	return (nspots + ngranules) * sizeof(uint32_t);
}

static uint32_t count_granules(uint32_t stubs_end)
{
	return (stubs_end + KRON_GRANULE - 1) / KRON_GRANULE;
}

/* Offsets of everything; returns the size. */
static size_t lay_out(struct kron_tables *t, size_t nspots, size_t ntraps, uint32_t stubs_end,
		      const struct unwind_names *names)
{
	size_t at = ALIGN(sizeof(*t));

	t->ngranules = count_granules(stubs_end);
	t->traps_at = at, at += ALIGN(ntraps * sizeof(struct kron_trap));
	t->depth_at = at, at += ALIGN(KRON_SHAPES * KRON_SHAPE_BYTES);
	t->frame_hdr_at = at, at += ALIGN(KRON_FRAME_HDR_SIZE);
	t->walker_hdr_at = at, at += ALIGN(KRON_FRAME_HDR_SIZE);
	t->frame_at = at, at += UNWIND_FRAME_MAX;
	t->elf_at = at, at += ALIGN(unwind_elf_size(names));
	t->granule_at = at, at += (t->ngranules + 1) * sizeof(struct kron_granule);
	t->spot_at = at, at += room_for_spots(nspots, t->ngranules);
	return ALIGN(at);
}

size_t unwind_size(size_t nspots, size_t ntraps, uint32_t stubs_end,
		   const struct unwind_names *names)
{
	struct kron_tables t;

	return lay_out(&t, nspots, ntraps, stubs_end, names);
}

uint32_t unwind_next(struct unwind_cursor *c, const struct plan_site *site)
{
	uint32_t at = c->at, granule;

	if (c->is_inside && site->vaddr + site->window - c->insn >= KRON_SPOT_SPAN)
		at = (at + KRON_GRANULE - 1) & -KRON_GRANULE, c->is_inside = false;
	if (!c->is_inside)
		c->insn = site->vaddr;
	granule = at / KRON_GRANULE;
	c->at = at + site->code_len;
	if (c->at / KRON_GRANULE != granule)
		c->insn = site->vaddr;
	c->is_inside = c->at % KRON_GRANULE;
	return at;
}

/* ---- spots ---- */

struct filling {
	uint32_t *spot;
	struct kron_granule *granule;
	uint32_t n, ngranules; /* so far */
	uint32_t site;         /* counted from kron_tables.lo */
	uint32_t start, insn;  /* of the last spot */
	uint8_t shape;
	bool sorted;
};

static void put_spot(struct filling *f)
{
	uint32_t from = f->insn - f->granule[f->ngranules - 1].insn;

	f->spot[f->n++] = f->start % KRON_GRANULE | (uint32_t)f->shape << KRON_SPOT_SHAPE_BIT |
			  from << KRON_SPOT_INSN_BIT;
}

/* Granules up to that of `at`; the last spot goes on to `end`. */
static void open_granules(struct filling *f, uint32_t at, uint32_t end)
{
	while (f->ngranules <= at / KRON_GRANULE) {
		uint32_t start = f->ngranules * KRON_GRANULE;

		f->granule[f->ngranules++] = (struct kron_granule){f->n, f->site};
		if (f->n && start < end)
			put_spot(f);
	}
}

static void add_site(struct filling *f, const struct unwind_block *in, const struct plan_site *site,
		     uint32_t stub)
{
	const struct plan_map *maps = in->plan->maps + site->first_map;
	uint32_t first = (uint32_t)(in->bias + site->vaddr - in->lo), end = f->start;

	for (uint32_t i = 0; i < site->nmaps; i++) {
		uint32_t start = stub + maps[i].stub_off, insn = first + maps[i].window_off;

		if (!i)
			f->site = first;
		open_granules(f, start, i ? start : end);
		f->sorted &= insn >= f->insn;
		f->start = start;
		f->insn = insn;
		f->shape = maps[i].shape;
		put_spot(f);
	}
	end = stub + site->code_len;
	open_granules(f, end - 1, end);
}

static void add_spots(uint8_t *out, struct kron_tables *t, const struct unwind_block *in)
{
	struct filling f = {.spot = (uint32_t *)(void *)(out + t->spot_at),
			    .granule = (struct kron_granule *)(void *)(out + t->granule_at),
			    .sorted = true};

	for (size_t i = 0; i < in->plan->nsites; i++)
		if (in->stub_at[i])
			add_site(&f, in, &in->plan->sites[i], in->stub_at[i]);
	f.granule[f.ngranules].first = f.n;
	t->flags = f.sorted ? KRON_TABLES_SORTED : 0;
}

/* Sites are sorted, so these are. */
static void add_traps(uint8_t *out, const struct kron_tables *t, const struct unwind_block *in)
{
	struct kron_trap *trap = (struct kron_trap *)(void *)(out + t->traps_at);

	for (size_t i = 0; i < in->plan->nsites; i++)
		if (in->stub_at[i] && unwind_is_trap(&in->plan->sites[i]))
			*trap++ = (struct kron_trap){in->bias + in->plan->sites[i].vaddr,
						     in->block + in->stub_at[i]};
}

static void add_frames(uint8_t *out, struct kron_tables *t, uint64_t at,
		       const struct unwind_block *in)
{
	const struct unwind_places w = {.block = in->block,
					.stubs = in->block + in->stubs_at,
					.stubs_end = in->block + in->stubs_end,
					.lo = in->lo,
					.spot = at + t->spot_at,
					.granule = at + t->granule_at,
					.depth = at + t->depth_at};
	uint32_t fde[UNWIND_FDES];
	size_t frame;

	unwind_shapes((uint8_t(*)[KRON_SHAPE_BYTES])(out + t->depth_at));
	unwind_frame_make(out + t->frame_at, &w, false, fde);
	unwind_hdr_make(out + t->frame_hdr_at, at + t->frame_hdr_at, at + t->frame_at, &w, fde);
	t->elf_size = (uint32_t)unwind_elf_make(out + t->elf_at, &w, in, &frame, fde);
	unwind_hdr_make(out + t->walker_hdr_at, at + t->walker_hdr_at, at + t->elf_at + frame, &w,
			fde);
}

void unwind_make(uint8_t *out, uint64_t at, const struct unwind_block *in)
{
	struct kron_tables t = {.magic = KRON_TABLES_MAGIC,
				.block = in->block,
				.lo = in->lo,
				.hi = in->hi,
				.stubs_at = in->stubs_at,
				.ntraps = in->ntraps,
				.offset = (uint32_t)(at - in->block)};

	t.size = lay_out(&t, in->nspots, in->ntraps, in->stubs_end, &in->names);
	add_spots(out, &t, in);
	add_traps(out, &t, in);
	add_frames(out, &t, at, in);
	memcpy(out, &t, sizeof(t));
}
