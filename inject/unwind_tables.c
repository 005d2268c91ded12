/* SPDX-License-Identifier: MIT */
/* unwind_tables.c - lays out a block's tables (kron/tables.h) and fills in the spots. */
#include "inject/unwind.h"

#include <string.h>

#define ALIGN(n) (((n) + 15) & ~(size_t)15)

static size_t power_of_two(size_t n)
{
	size_t p = 1;

	while (p < n)
		p *= 2;
	return p;
}

/* Offsets of everything; returns the size. */
static size_t lay_out(struct kron_tables *t, size_t nspots, size_t ntraps)
{
	size_t at = ALIGN(sizeof(*t));

	t->insn_at = at, at += ALIGN(nspots * sizeof(uint64_t));
	t->traps_at = at, at += ALIGN(ntraps * sizeof(struct kron_trap));
	t->depth_at = at, at += KRON_SHAPES * KRON_SHAPE_BYTES;
	t->frame_hdr_at = at, at += ALIGN(KRON_FRAME_HDR_SIZE);
	t->walker_hdr_at = at, at += ALIGN(KRON_FRAME_HDR_SIZE);
	t->frame_at = at, at += UNWIND_FRAME_MAX;
	t->elf_at = at, at += UNWIND_ELF_MAX;
	t->spot_at = at, at += power_of_two(nspots) * sizeof(uint32_t);
	t->shape_at = at, at += nspots;
	return ALIGN(at);
}

size_t unwind_size(size_t nspots, size_t ntraps)
{
	struct kron_tables t;

	return lay_out(&t, nspots, ntraps);
}

struct filling {
	uint32_t *spot;
	uint64_t *insn;
	uint8_t *shape;
	size_t n;
	bool sorted;
};

static void add_site(struct filling *f, const struct unwind_block *in, const struct plan_site *site,
		     uint32_t stub)
{
	const struct plan_map *maps = in->plan->maps + site->first_map;

	for (uint32_t i = 0; i < site->nmaps; i++) {
		f->spot[f->n] = stub + maps[i].stub_off;
		f->shape[f->n] = maps[i].shape;
		f->insn[f->n] = in->bias + site->vaddr + maps[i].window_off + 1;
		if (f->n && f->insn[f->n] < f->insn[f->n - 1])
			f->sorted = false;
		f->n++;
	}
}

static void add_spots(uint8_t *out, struct kron_tables *t, const struct unwind_block *in)
{
	struct filling f = {.spot = (uint32_t *)(void *)(out + t->spot_at),
			    .insn = (uint64_t *)(void *)(out + t->insn_at),
			    .shape = out + t->shape_at,
			    .sorted = true};

	for (size_t i = 0; i < in->plan->nsites; i++)
		if (in->stub_at[i])
			add_site(&f, in, &in->plan->sites[i], in->stub_at[i]);
	for (size_t i = f.n; i < power_of_two(f.n); i++)
		f.spot[i] = UINT32_MAX;
	t->nspots = f.n;
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
					.stubs = in->block + KRON_BLOCK_HEAD,
					.stubs_end = in->block + in->stubs_end,
					.spot = at + t->spot_at,
					.insn = at + t->insn_at,
					.shape = at + t->shape_at,
					.depth = at + t->depth_at,
					.nspots = power_of_two(t->nspots)};
	uint32_t fde[2];
	size_t frame;

	unwind_shapes((uint8_t(*)[KRON_SHAPE_BYTES])(out + t->depth_at));
	unwind_frame_make(out + t->frame_at, &w, false, fde);
	unwind_hdr_make(out + t->frame_hdr_at, at + t->frame_hdr_at, at + t->frame_at, &w, fde);
	t->elf_size = unwind_elf_make(out + t->elf_at, &w, &frame, fde);
	unwind_hdr_make(out + t->walker_hdr_at, at + t->walker_hdr_at, at + t->elf_at + frame, &w,
			fde);
}

void unwind_make(uint8_t *out, uint64_t at, const struct unwind_block *in)
{
	struct kron_tables t = {.magic = KRON_TABLES_MAGIC,
				.block = in->block,
				.lo = in->lo,
				.hi = in->hi,
				.ntraps = in->ntraps};

	t.size = lay_out(&t, in->nspots, in->ntraps);
	add_spots(out, &t, in);
	add_traps(out, &t, in);
	add_frames(out, &t, at, in);
	memcpy(out, &t, sizeof(t));
}
