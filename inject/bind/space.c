/* SPDX-License-Identifier: MIT */
/*
 * space.c - finds a gap for a trampoline block.
 *
 *   reach_lo           text_lo    text_hi                    reach_hi
 *      |  ...gap | lib |  | module |  gap  | heap -->   gap     |
 *                    ^ first: nearest below
 *                                    ^ then: nearest above, but far from what may grow
 *
 * Below a module nothing grows: heaps grow up, and mmap fills gaps of its own accord, which
 * a block in one of them does not hinder.  Above a program comes its heap, now or later, so
 * blocks that have to go there keep a distance, and beside low (non-PIE) programs, which have
 * all of the rest of 2 GiB above them, go as high as they can.  Once the heap is there it never
 * begins lower: then the gap below it is as good as any other.  The kernel puts it up to 1 GiB
 * above the program, so for one low program in a hundred there is no other.
 */
#include "inject/bind/space.h"

#include <kron/segment.h>

#define PAGE 4096ull
#define REACH 0x7ff00000ull /* 2 GiB less a MiB: operands of instructions, not only their ends */
#define LOWEST 0x10000ull   /* vm.mmap_min_addr as Linux sets it */
#define HIGHEST 0x7ffffffff000ull
#define HEAP_ROOM 0x40000000ull  /* 1 GiB over a heap, or over a program that has none yet */
#define STACK_ROOM 0x40000000ull /* as much below the stack */
#define LOW_MODULE 0x100000000ull

struct gap {
	uint64_t start, end;
};

static uint64_t max64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t min64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static struct gap clip(struct gap g, uint64_t lo, uint64_t hi)
{
	return (struct gap){max64(g.start, lo), min64(g.end, hi)};
}

static bool fits(struct gap g, size_t len)
{
	return g.end > g.start && g.end - g.start >= len;
}

/* The gap below maps[i] (i == n: below the end of user space), without what may grow into it. */
static struct gap gap_below(const struct space_mapping *maps, size_t n, size_t i)
{
	struct gap g = {i ? maps[i - 1].end : LOWEST, i < n ? maps[i].start : HIGHEST};

	if (i && maps[i - 1].is_heap)
		g.start = g.start > HIGHEST - HEAP_ROOM ? HIGHEST : g.start + HEAP_ROOM;
	if (i < n && maps[i].is_stack)
		g.end = g.end > STACK_ROOM ? g.end - STACK_ROOM : 0;
	g = clip(g, LOWEST, HIGHEST);
	g.start = (g.start + PAGE - 1) & -PAGE;
	g.end &= -PAGE;
	return g;
}

/* The gap without the board's window: what lies below it, and what lies above. */
static void split_at_window(struct gap g, struct gap parts[2])
{
	parts[0] = clip(g, 0, KRON_WINDOW_ADDR);
	parts[1] = clip(g, KRON_WINDOW_ADDR + KRON_WINDOW_SIZE, HIGHEST);
}

struct choice {
	uint64_t below, above; /* 0: none */
	uint64_t heap_room;    /* above the module, for a heap that is still to come */
};

static bool has_heap(const struct space_mapping *maps, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (maps[i].is_heap)
			return true;
	return false;
}

/* The lowest address that the text means: a program below 2 GiB says 0 for a symbol that nobody defines. */
static uint64_t first_meant(uint64_t text_lo)
{
	return text_lo < REACH ? 0 : text_lo;
}

static void consider(struct choice *c, struct gap g, uint64_t text_lo, uint64_t text_hi, size_t len)
{
	/* every byte of text and block within REACH of each other */
	struct gap below = clip(g, text_hi > REACH ? text_hi - REACH : 0, text_lo);
	struct gap above = clip(g, text_hi + c->heap_room, first_meant(text_lo) + REACH);

	if (fits(below, len))
		c->below = max64(c->below, below.end - len);
	if (!fits(above, len))
		return;
	if (text_lo < LOW_MODULE)
		c->above = max64(c->above, above.end - len);
	else if (!c->above)
		c->above = above.start;
}

uint64_t space_find(const struct space_mapping *maps, size_t n, uint64_t text_lo, uint64_t text_hi,
		    size_t len)
{
	struct choice c = {.heap_room = has_heap(maps, n) ? 0 : HEAP_ROOM};
	struct gap parts[2];

	len = (len + PAGE - 1) & -PAGE;
	text_lo &= -PAGE;
	text_hi = (text_hi + PAGE - 1) & -PAGE;
	if (!len || text_hi < text_lo || text_hi > HIGHEST || text_hi - text_lo > REACH)
		return 0;
	for (size_t i = 0; i <= n; i++) {
		split_at_window(gap_below(maps, n, i), parts);
		consider(&c, parts[0], text_lo, text_hi, len);
		consider(&c, parts[1], text_lo, text_hi, len);
	}
	return c.below ? c.below : c.above;
}

uint64_t space_find_low(const struct space_mapping *maps, size_t n, size_t len)
{
	const uint64_t end = 0x80000000ull;
	uint64_t best = 0, above = 0;
	struct gap parts[2];

	len = (len + PAGE - 1) & -PAGE;
	for (size_t i = 0; len && i <= n; i++) {
		split_at_window(gap_below(maps, n, i), parts);
		parts[1] = clip(parts[1], 0, end);
		if (fits(parts[0], len))
			best = max64(best, parts[0].end - len);
		if (fits(parts[1], len))
			above = max64(above, parts[1].end - len);
	}
	return best ? best : above;
}

uint64_t space_find_apart(const struct space_mapping *maps, size_t n, uint64_t text_lo,
			  uint64_t text_hi, size_t len, uint64_t apart)
{
	for (apart &= -PAGE; apart; apart = apart / 2 & -PAGE) {
		uint64_t at = space_find(maps, n, text_lo, text_hi, len + 2 * apart);

		if (at)
			return at + apart;
	}
	return space_find(maps, n, text_lo, text_hi, len);
}
