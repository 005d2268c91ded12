/* SPDX-License-Identifier: MIT */
/* spots.c - see spots.h. */
#include "runtime/faults/spots.h"
#include "runtime/sys/mini.h"

uint64_t rt_block_start(const struct kron_tables *t)
{
	return (uint64_t)t - t->offset;
}

/* What instructions count from. */
static uint64_t text_of(const struct kron_tables *t)
{
	return t->lo + kron_tables_bias(t);
}

static const uint32_t *spots(const struct kron_tables *t)
{
	return (const uint32_t *)((const uint8_t *)t + t->spot_at);
}

static const struct kron_granule *granules(const struct kron_tables *t)
{
	return (const struct kron_granule *)((const uint8_t *)t + t->granule_at);
}

/* Spot i, of granule g.  The first one may go on from the granule before. */
static struct rt_spot spot_of_granule(const struct kron_tables *t, uint32_t g, uint32_t i)
{
	const struct kron_granule *granule = granules(t) + g;
	uint32_t spot = spots(t)[i], off = KRON_SPOT_OFFSET(spot);
	uint64_t start = rt_block_start(t) + (uint64_t)g * KRON_GRANULE + off;

	if (i == granule->first && off && (uint64_t)g * KRON_GRANULE > t->stubs_at)
		start -= KRON_GRANULE;
	return (struct rt_spot){
		.start = start,
		.insn = text_of(t) + granule->insn + KRON_SPOT_INSN(spot),
		.shape = KRON_SPOT_SHAPE(spot),
	};
}

uint64_t rt_spot_depth(const struct kron_tables *t, const struct rt_spot *s, uint64_t pos)
{
	const uint8_t *depth = (const uint8_t *)t + t->depth_at + s->shape * KRON_SHAPE_BYTES;

	return 8ull * depth[pos < KRON_SHAPE_BYTES ? pos : KRON_SHAPE_BYTES - 1];
}

bool rt_spot_at(const struct kron_tables *t, uint64_t pc, struct rt_spot *out)
{
	uint64_t x = pc - rt_block_start(t);
	uint32_t g = (uint32_t)(x / KRON_GRANULE), i, end;

	if (x < t->stubs_at || x / KRON_GRANULE >= t->ngranules)
		return false;
	i = granules(t)[g].first;
	end = granules(t)[g + 1].first;
	if (i == end)
		return false;
	while (i + 1 < end && KRON_SPOT_OFFSET(spots(t)[i + 1]) <= x % KRON_GRANULE)
		i++;
	*out = spot_of_granule(t, g, i);
	return true;
}

/* A granule that comes before the instruction's first spot. */
static uint32_t granule_before(const struct kron_tables *t, uint64_t insn)
{
	uint32_t lo = 0, hi = t->ngranules;

	if (!(t->flags & KRON_TABLES_SORTED))
		return 0;
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (text_of(t) + granules(t)[mid].insn < insn)
			lo = mid + 1;
		else
			hi = mid;
	}
	/* its site may be longer than a granule, and its instructions lie after the site's start */
	while (lo && text_of(t) + granules(t)[lo - 1].insn + KRON_WINDOW_MAX >= insn)
		lo--;
	return lo ? lo - 1 : 0;
}

bool rt_spot_of(const struct kron_tables *t, uint64_t insn, struct rt_spot *out)
{
	for (uint32_t g = granule_before(t, insn); g < t->ngranules; g++) {
		if (t->flags & KRON_TABLES_SORTED && text_of(t) + granules(t)[g].insn > insn)
			return false;
		for (uint32_t i = granules(t)[g].first; i < granules(t)[g + 1].first; i++) {
			*out = spot_of_granule(t, g, i);
			/* what only leads back to it is not the instruction */
			if (out->insn == insn && out->shape != KRON_SHAPE_BACK)
				return true;
		}
	}
	return false;
}

const struct kron_trap *rt_trap_at(const struct kron_tables *t, uint64_t addr)
{
	const struct kron_trap *trap = (const struct kron_trap *)((const uint8_t *)t + t->traps_at);
	uint32_t lo = 0, hi = t->ntraps;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (trap[mid].addr < addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < t->ntraps && trap[lo].addr == addr ? &trap[lo] : NULL;
}
