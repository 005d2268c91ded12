/* SPDX-License-Identifier: MIT */
/*
 * code_rseq.c - finds restartable sequences, so that nobody patches them.
 *
 * A sequence is described by a struct rseq_cs in data (<linux/rseq.h>, aligned to 32 bytes):
 *
 *    0  u32 version        0
 *    4  u32 flags
 *    8  u64 start_ip       pointer into code: relocated in position independent files
 *   16  u64 post_commit_offset   length of the sequence
 *   24  u64 abort_ip       pointer into code, outside the sequence; the four bytes in front of
 *                          it are the signature that the kernel wants to see there
 *
 * Descriptors are found by their form wherever they lie, since not every author keeps them in
 * the section __rseq_cs.  Outside of it the signature must be the one that glibc registers for
 * every thread: tables of function pointers and small numbers look much the same otherwise.
 */
#include <string.h>

#include "inject/code/code_map_impl.h"
#include "inject/elf/elf_image_impl.h"

#define SEQUENCE_MAX 4096 /* bytes; real ones have a few dozen */
#define SIGNATURE 0x53053053u

static bool is_sequence(const struct map_builder *b, uint64_t start, uint64_t len,
			uint64_t abort_ip)
{
	return len && len <= SEQUENCE_MAX && map_has(b, start) && map_has(b, start + len) &&
	       map_has(b, abort_ip) && map_has(b, abort_ip - 4) && abort_ip - start >= len;
}

static void mark_sequence(struct map_builder *b, uint64_t start, uint64_t len, uint64_t abort_ip)
{
	for (uint64_t at = start; at < start + len; at++)
		map_mark(b, at, CODE_RSEQ);
	for (uint64_t at = abort_ip - 4; at <= abort_ip; at++)
		map_mark(b, at, CODE_RSEQ);
	map_mark(b, abort_ip, CODE_CONSTANT);
}

static bool is_signed(const struct map_builder *b, uint64_t abort_ip)
{
	const uint8_t *p = elf_image_at(b->img, abort_ip - 4, 4);

	return p && elf_read32(p) == SIGNATURE;
}

static bool is_in_section(const struct map_builder *b, uint64_t vaddr)
{
	const struct elf_section *s = elf_image_section_at(b->img, vaddr);

	return s && !strcmp(s->name, "__rseq_cs");
}

/* A descriptor at vaddr whose pointers are these? */
static void try_descriptor(struct map_builder *b, uint64_t vaddr, uint64_t start, uint64_t abort_ip)
{
	const uint8_t *p = elf_image_at(b->img, vaddr, 32);
	uint64_t len;

	if (vaddr & 31 || !p || elf_read32(p))
		return;
	len = elf_read64(p + 16);
	if (is_sequence(b, start, len, abort_ip) &&
	    (is_signed(b, abort_ip) || is_in_section(b, vaddr)))
		mark_sequence(b, start, len, abort_ip);
}

struct scan {
	struct map_builder *b;
	uint64_t where, value; /* of the last pointer seen */
};

/* Relocations of a table come in the order of their places: the two of a descriptor meet. */
static void see_pointer(uint64_t where, uint64_t value, void *ctx)
{
	struct scan *s = ctx;

	if (where - s->where == 16)
		try_descriptor(s->b, s->where - 8, s->value, value);
	s->where = where;
	s->value = value;
}

/* Files whose pointers stand in place: ET_EXEC, and RELR. */
static void scan_words(struct map_builder *b)
{
	for (size_t i = 0; i < b->img->nsegments; i++) {
		const struct elf_segment *g = &b->img->segments[i];
		uint64_t at = (g->vaddr + 31) & ~31ull;
		const uint8_t *p =
			g->flags & PF_X ? NULL : elf_image_at(b->img, g->vaddr, g->filesz);

		for (; p && at + 32 <= g->vaddr + g->filesz; at += 32) {
			const uint8_t *d = p + (at - g->vaddr);

			if (map_has(b, elf_read64(d + 8)) && map_has(b, elf_read64(d + 24)))
				try_descriptor(b, at, elf_read64(d + 8), elf_read64(d + 24));
		}
	}
}

void rseq_mark(struct map_builder *b)
{
	elf_for_each_relative(b->img, see_pointer, &(struct scan){.b = b});
	scan_words(b);
}
