/* SPDX-License-Identifier: MIT */
/*
 * code_map.c - the passes of code_map.h in their order.
 *
 *   sweep_functions    instructions, direct branches, lea      (code_sweep.c)
 *   doubt_symbols      functions that start inside of instructions (code_doubt.c)
 *   functions_mark_parts    .cold parts join their parents     (functions.c, on our evidence)
 *   mark_constants     relocations, data words, symbols, landing pads, restartable sequences
 *   sweep_gaps         branches from code that nobody names    (code_sweep.c)
 *   jump_tables_resolve                                        (jump_table.c)
 *   walk_functions     what is reachable: padding and exits    (code_walk.c)
 *
 * The order matters: constants are not evidence against overlapping code but direct branches
 * are, so gaps, where data looks like code, come after the sweep of functions; jump tables
 * need the parts, since a table of a function also points into its .cold part.
 *
 * This file decides nothing about windows and patches, and does not change the image.
 */
#include "inject/code/code_map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "inject/code/code_map_impl.h"
#include "inject/elf/elf_symbols.h"

#define SPAN_MAX (1ull << 30) /* with a byte for each byte of code */
#define BEYOND 16u            /* bytes that may be read after the last one's */

/* ---- other ways to arrive ---- */

static void mark_constant(uint64_t value, void *ctx)
{
	struct map_builder *b = ctx;

	if (map_has(b, value))
		*map_flag(b, value) |= CODE_CONSTANT | CODE_TAKEN;
}

static void mark_landing_pad(uint64_t vaddr, void *ctx)
{
	map_mark(ctx, vaddr, CODE_CONSTANT);
}

/*
 * Go starts each goroutine with a return address one byte after the start of runtime.goexit, a
 * nop, so that it looks as if it had been called from there.  Nothing in the file names it.
 */
static bool is_returned_into(const char *name)
{
	return !strcmp(name, "runtime.goexit") || !strcmp(name, "runtime.goexit.abi0");
}

static bool mark_symbol(const struct elf_symbol *sym, void *ctx)
{
	bool is_code = sym->type == STT_NOTYPE || sym->type == STT_FUNC ||
		       sym->type == STT_GNU_IFUNC || sym->type == STT_OBJECT;

	if (is_code && sym->shndx != SHN_UNDEF && sym->shndx != SHN_ABS)
		map_mark(ctx, sym->value, CODE_CONSTANT);
	if (is_code && is_returned_into(sym->name))
		map_mark(ctx, sym->value + 1, CODE_CONSTANT);
	return true;
}

static void collect_start_evidence(struct map_builder *b)
{
	for (size_t i = 0; i < b->f->n; i++) {
		uint64_t start = b->f->v[i].start;
		uint64_t off = start - b->m->lo;

		if (!map_has(b, start))
			continue;
		b->evidence[i].called = b->called[off / 8] >> (off & 7) & 1;
		b->evidence[i].address_taken = *map_flag(b, start) & CODE_TAKEN;
		b->f->v[i].is_pointed_at = b->evidence[i].address_taken;
	}
}

static void link_parts(struct map_builder *b)
{
	for (size_t i = 0; i < b->f->n; i++)
		b->next_part[i] = FUNCTION_NONE;
	for (uint32_t i = 0; i < b->f->n; i++) {
		struct function *fn = &b->f->v[i];

		if (map_root(b, i) == i)
			continue;
		b->next_part[i] = b->next_part[fn->parent];
		b->next_part[fn->parent] = i;
	}
}

static void mark_other_arrivals(struct map_builder *b, struct frame_info *fi)
{
	for (size_t i = 0; i < b->f->n; i++) {
		const struct function *fn = &b->f->v[i];

		map_mark(b, fn->start, CODE_CONSTANT);
		if (fn->name && is_returned_into(fn->name))
			map_mark(b, fn->start + 1, CODE_CONSTANT);
	}
	for (size_t i = 0; i < b->f->nsymbols; i++) /* also those of separate debug files */
		map_mark(b, b->f->symbols[i], CODE_CONSTANT);
	elf_symbols_for_each(b->img, SHT_SYMTAB, mark_symbol, b);
	elf_symbols_for_each(b->img, SHT_DYNSYM, mark_symbol, b);
	if (fi)
		frame_info_for_each_landing_pad(fi, mark_landing_pad, b);
	rseq_mark(b);
	sweep_gaps(b);
}

/* ---- facts about a function and its parts ---- */

/* An unresolved jump of one may lead into the others; neighbours that are joined are a stretch. */
static void share_among_joined(struct map_builder *b)
{
	struct code_function *cf = b->m->per_function;

	for (uint32_t i = 1; i < b->f->n; i++)
		if (cf[i].joined && cf[i - 1].joined)
			cf[i].unresolved_indirect |= cf[i - 1].unresolved_indirect;
	for (uint32_t i = (uint32_t)b->f->n; i-- > 1;)
		if (cf[i].joined && cf[i - 1].joined)
			cf[i - 1].unresolved_indirect |= cf[i].unresolved_indirect;
}

/* What holds for a part holds for the whole: control moves freely between them. */
static void share_among_parts(struct map_builder *b)
{
	struct code_function *cf = b->m->per_function;

	vec_for(&b->jumps, j) {
		if (j->form != JUMP_UNRESOLVED)
			continue;
		cf[map_root(b, j->function)].unresolved_indirect = true;
		if (!b->f->v[j->function].has_fde)
			spread_jump(b, j->addr);
	}
	share_among_joined(b);
	for (uint32_t i = 0; i < b->f->n; i++) {
		uint32_t root = map_root(b, i);

		if (root == i)
			continue;
		cf[i].unresolved_indirect = cf[root].unresolved_indirect;
		cf[i].undecodable |= cf[root].undecodable;
	}
	for (uint32_t i = 0; i < b->f->n; i++)
		cf[map_root(b, i)].undecodable |= cf[i].undecodable;
}

/* ---- the whole ---- */

static bool is_position_dependent(const struct elf_image *img)
{
	return img->size > 17 && (img->bytes[16] | img->bytes[17] << 8) == ET_EXEC;
}

static int find_span(struct code_map *m, const struct elf_image *img, struct err *err)
{
	m->lo = UINT64_MAX;
	for (size_t i = 0; i < img->nsegments; i++) {
		const struct elf_segment *g = &img->segments[i];

		if (!(g->flags & PF_X) || !g->filesz)
			continue;
		if (g->vaddr < m->lo)
			m->lo = g->vaddr;
		if (g->vaddr + g->filesz > m->hi)
			m->hi = g->vaddr + g->filesz;
	}
	if (m->lo > m->hi)
		m->lo = m->hi;
	if (m->hi - m->lo > SPAN_MAX)
		return err_set(err, EFBIG, "%s spreads its code over more than 1 GiB", img->path);
	return 0;
}

/* The pointers' bit has done its work. */
static void mark_data(struct map_builder *b)
{
	const uint64_t keep = ~(UINT64_MAX / 0xff * CODE_TAKEN); /* in each byte */

	for (size_t i = 0; i < b->m->hi - b->m->lo; i += 8) { /* there is room after the end */
		uint64_t eight;

		memcpy(&eight, b->m->flags + i, 8);
		eight &= keep;
		memcpy(b->m->flags + i, &eight, 8);
	}
	vec_for(&b->data, d)
		for (uint64_t at = d->at; at < d->at + d->len; at++)
			map_mark(b, at, CODE_DATA);
	vec_free(&b->data);
}

/*
 * To those who want to know all jumps that lead somewhere it is as good as a pointer: they look
 * among the jumps of functions.
 */
static void mark_strays(struct map_builder *b)
{
	vec_for(&b->strays, to)
		map_mark(b, *to, CODE_CONSTANT);
	for (uint64_t i = 0; i < (b->m->hi - b->m->lo + 7) / 8; i++)
		for (unsigned bits = b->called[i]; bits; bits &= bits - 1)
			map_mark(b, b->m->lo + 8 * i + (unsigned)__builtin_ctz(bits),
				 CODE_CONSTANT);
	vec_free(&b->strays);
}

static void analyse(struct map_builder *b)
{
	struct frame_info *fi = frame_info_open(b->img);

	sweep_functions(b);
	elf_image_for_each_address_constant(b->img, mark_constant, b);
	collect_start_evidence(b);
	doubt_symbols(b);
	join_functions(b);
	functions_mark_parts(b->f, b->evidence);
	link_parts(b);
	mark_other_arrivals(b, fi);
	jump_tables_resolve(b);
	share_among_parts(b);
	walk_functions(b, fi);
	mark_strays(b);
	mark_data(b);
	frame_info_close(fi);
}

static uint64_t last_id;

int code_map_build(struct code_map **out, const struct elf_image *img, struct functions *f,
		   struct err *err)
{
	struct code_map *m = xcalloc(1, sizeof(*m));
	struct map_builder b = {
		.m = m,
		.img = img,
		.f = f,
		.position_dependent = is_position_dependent(img),
	};
	size_t span;
	int rc = find_span(m, img, err);

	if (rc) {
		xfree(m);
		return rc;
	}
	span = m->hi - m->lo;
	m->id = __atomic_add_fetch(&last_id, 1, __ATOMIC_RELAXED);
	m->img = img;
	m->functions = f;
	m->per_function = xcalloc(f->n + 1, sizeof(*m->per_function));
	m->flags = xpages_full(span + BEYOND);
	b.shape = xpages_full(span + BEYOND);
	b.called = xcalloc(span / 8 + 1, 1);
	b.evidence = xcalloc(f->n + 1, sizeof(*b.evidence));
	b.first_lea = xcalloc(f->n + 1, sizeof(*b.first_lea));
	b.next_part = xcalloc(f->n + 1, sizeof(*b.next_part));
	analyse(&b);
	xfree_pages(b.shape, span + BEYOND);
	xfree(b.called);
	xfree(b.evidence);
	xfree(b.first_lea);
	xfree(b.next_part);
	vec_free(&b.branches);
	vec_free(&b.leas);
	vec_free(&b.jumps);
	vec_free(&b.pieces);
	*out = m;
	return 0;
}

void code_map_free(struct code_map *m)
{
	if (!m)
		return;
	xfree(m->per_function);
	xfree(m->exits);
	xfree_pages(m->flags, m->hi - m->lo + BEYOND);
	xfree(m);
}
