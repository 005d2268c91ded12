/* SPDX-License-Identifier: MIT */
/* local_memory.c - see local_memory.h. */
#define _GNU_SOURCE
#include "board/bus/local_memory.h"

#include <errno.h>
#include <string.h>

#include "base/vec.h"
#include "board/bus/find_sample.h"

/* mk.dat has the bytes of each word as the CPU reads it; so words[] is mk.dat already. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the board's CPU is little-endian");

enum {
	WORDS = KRON_BOARD_MEMORY_WORDS,
	RESOURCE_WORDS = KRON_RESOURCE_SIZE / 4,
	SEAM = 64 * RESOURCE_WORDS, /* words to each side of the memory's end that are compared */
	FOLLOW = 1 << 16,           /* samples that prove a beginning */
};

/* ---- has it wrapped? ---- */

/* Samples that begin before the memory's end continue at its beginning. */
static bool runs_over_the_end(struct bus *b, uint32_t map)
{
	uint32_t before = WORDS - map < SEAM ? WORDS - map : SEAM;
	uint32_t after = map < SEAM ? map : SEAM;
	uint32_t *seam = xmalloc((before + after) * sizeof(*seam));
	const uint8_t *p = (const uint8_t *)seam;
	size_t n = 4 * (size_t)(before + after), from, used = 0;

	bus_read_memory(b, WORDS - before, before, seam);
	bus_read_memory(b, 0, after, seam + before);
	from = sample_find(p, n, KRON_RESOURCE_SIZE, 4, FOLLOW, false);
	if (from < n)
		sample_chain(p + from, n - from, FOLLOW, &used, NULL);
	xfree(seam);
	/* up to one whole sample after the seam, at least */
	return from < 4 * (size_t)before && from + used >= 4 * (size_t)before + KRON_SAMPLE_SIZE;
}

static bool has_wrapped(struct bus *b, uint32_t config, uint32_t map)
{
	if (config & KRON_CONFIG_WRAPB)
		return false;
	return map > KRON_MAP_WORD || runs_over_the_end(b, map);
}

/* Words from 0 on that hold samples in a memory that has not wrapped. */
static uint32_t words_stored(uint32_t config, uint32_t map)
{
	/* A simple buffer's pointer stops at its maximum, with or without that word stored: if
	 * it is not, it ends no sample and is left out as the newest. */
	if (config & KRON_CONFIG_WRAPB && (map & KRON_MAP_WORD) == KRON_MAP_WORD)
		return WORDS;
	return map > KRON_MAP_WORD ? WORDS : map;
}

/* ---- which words ---- */

static int choose(struct local_memory *m, uint32_t config, const struct local_range *r,
		  uint32_t *start, uint32_t *end, struct err *err)
{
	uint32_t next = m->wrapped ? m->map & KRON_MAP_WORD : words_stored(config, m->map);

	*start = r->has_start ? r->start : m->wrapped && !r->has_end ? next : 0;
	*end = r->has_end ? r->end : next;
	if (*start <= *end || m->wrapped)
		return 0;
	if (r->has_end)
		return err_set(err, EINVAL,
			       "start %#x is past end %#x, and the memory has not wrapped", *start,
			       *end);
	return err_set(err, EINVAL, "start %#x is past the last sample: the pointer is at %#x",
		       *start, *end);
}

/* From start round to end; up to the pointer again that is the whole memory. */
static void copy(struct local_memory *m, struct bus *b, uint32_t start, uint32_t end, bool whole)
{
	uint32_t first = end - start;

	if (end < start || (end == start && whole))
		first = WORDS - start;
	else
		end = 0;
	m->n = first + end;
	m->words = xmalloc((m->n + 1) * sizeof(*m->words));
	bus_read_memory(b, start, first, m->words);
	bus_read_memory(b, 0, end, m->words + first);
}

/* ---- what to leave out ---- */

static void drop_first(struct local_memory *m, size_t n)
{
	m->n -= n;
	memmove(m->words, m->words + n, m->n * sizeof(*m->words));
}

/* The board went on from word `map`, over the oldest words, while they were read. */
static size_t count_overwritten(const struct local_memory *m, struct bus *b, uint32_t start)
{
	uint32_t stored = (bus_memory_pointer(b) - m->map) & KRON_MAP_MASK;
	uint32_t room = (start - m->map) & KRON_MAP_WORD; /* words before it meets the oldest */
	size_t n;

	if (!m->wrapped && start < (m->map & KRON_MAP_WORD))
		room = WORDS - (m->map & KRON_MAP_WORD) + start;
	n = stored > room ? stored - room : 0;
	return n < m->n ? n : m->n;
}

static void drop_cut_oldest(struct local_memory *m)
{
	const uint8_t *p = (const uint8_t *)m->words;
	size_t n = 4 * m->n, found = sample_find(p, n, KRON_RESOURCE_SIZE, 4, FOLLOW, true);

	if (found >= n)
		found = sample_find(p, n, n, 4, FOLLOW, true);
	m->oldest = found / 4;
	drop_first(m, m->oldest);
}

/* Walk from the first word to the last: what are they? */
static void count_samples(struct local_memory *m, bool drop_newest)
{
	const uint8_t *p = (const uint8_t *)m->words;
	size_t n = 4 * m->n, at = 0, size;

	while (n - at >= 4) {
		size = sample_size(p + at);
		if (size > n - at)
			break;
		if (size == KRON_SAMPLE_SIZE)
			m->trace++;
		else if (size)
			m->resource++;
		else
			size = sample_find(p + at, n - at, n - at, 4, 32, true);
		if (!sample_size(p + at))
			m->damaged += size / 4;
		at += size;
	}
	if (!drop_newest)
		return;
	m->newest = (n - at) / 4;
	m->n -= m->newest;
}

int local_memory_read(struct local_memory *m, struct bus *b, const struct local_range *range,
		      struct err *err)
{
	uint32_t config = bus_read32(b, KRON_BOARD_CONFIG), start, end;
	int code;

	*m = (struct local_memory){.map = bus_memory_pointer(b)};
	m->wrapped = has_wrapped(b, config, m->map);
	code = choose(m, config, range, &start, &end, err);
	if (code)
		return code;
	copy(m, b, start, end, m->wrapped && !range->has_end);
	if (!(config & KRON_CONFIG_WRAPB)) {
		m->overwritten = count_overwritten(m, b, start);
		drop_first(m, m->overwritten);
	}
	if (m->overwritten || (m->wrapped && !range->has_start && !range->has_end))
		drop_cut_oldest(m);
	count_samples(m, !range->has_end);
	return 0;
}

void local_memory_free(struct local_memory *m)
{
	xfree(m->words);
	m->words = NULL;
}
