/* SPDX-License-Identifier: MIT */
/*
 * find_sample.c - see find_sample.h.
 *
 * Finding the next beginning.  Problem: any four bytes are a header with a chance of 1 in 4
 * (two type bits of which one must be set, a bit that must be zero), and data repeat every 20
 * bytes, so that a wrong place often looks as regular as the right one.
 *
 * Example, 32-bit words, samples of five; a reader that starts at (2) sees words (2), (7),
 * (12) as headers: source addresses, all alike, "Trace" if their bits are so.
 *
 *     (0)head (1)time (2)source (3)data (4)data | (5)head (6)time (7)source ...
 *
 * What tells them apart is time: after true headers it advances, by less than CHAIN_STEP from
 * one sample to the next.  So each candidate is scored by how many samples follow from it in
 * that way, and one whose time stands still loses against one whose time goes on.  (User data
 * whose upper half looks like a header and whose lower half counts up are a second clock: then
 * the first candidate wins, and may be wrong.)
 */
#include "board/bus/find_sample.h"

/* Ticks between two samples of a chain: 2^40 are thirty hours at 10 MHz. */
#define CHAIN_STEP (1ll << 40)

uint32_t sample_word(const uint8_t *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

uint64_t sample_time(const uint8_t *p)
{
	return (uint64_t)(sample_word(p) & KRON_HEAD_TIME_MASK) << 32 | sample_word(p + 4);
}

size_t sample_size(const uint8_t *p)
{
	uint32_t head = sample_word(p);

	if (head & 1u << 24) /* the header's N/A bit is zero */
		return 0;
	switch (head >> KRON_HEAD_TYPE_SHIFT & KRON_HEAD_TYPE_MASK) {
	case KRON_HEAD_TYPE_TRACE:
		return KRON_SAMPLE_SIZE;
	case KRON_HEAD_TYPE_RESOURCE:
		return KRON_RESOURCE_SIZE;
	default:
		return 0;
	}
}

int64_t sample_elapsed(uint64_t a, uint64_t b)
{
	/* the difference's sign bit is bit 55 */
	return (int64_t)((b - a) << (64 - SAMPLE_TIME_BITS)) >> (64 - SAMPLE_TIME_BITS);
}

bool sample_can_follow(uint64_t before, uint64_t time)
{
	int64_t step = sample_elapsed(before, time);

	return step >= 0 && step < CHAIN_STEP;
}

size_t sample_chain(const uint8_t *p, size_t n, size_t max, size_t *end, bool *moved)
{
	size_t at = 0, count = 0;
	uint64_t first = 0, last = 0;

	while (count < max && n - at >= KRON_SAMPLE_SIZE) {
		size_t size = sample_size(p + at);
		uint64_t time = sample_time(p + at);

		if (!size || size > n - at || (count && !sample_can_follow(last, time)))
			break;
		if (!count)
			first = time;
		last = time;
		at += size;
		count++;
	}
	*end = at;
	if (moved)
		*moved = last != first;
	return count;
}

/* 0: not believable; else the more the better. */
static size_t score(const uint8_t *p, size_t n, size_t max, bool whole)
{
	size_t end, count;
	bool moved;

	if (n < KRON_SAMPLE_SIZE || !sample_size(p))
		return 0;
	count = sample_chain(p, n, max, &end, &moved);
	/* at the end of the data two will do, if they fill it to the last byte */
	if (count < SAMPLE_CHAIN_MIN && !(whole && count == 2 && end == n))
		return 0;
	return 2 * count + moved;
}

size_t sample_find(const uint8_t *p, size_t n, size_t limit, size_t step, size_t max, bool whole)
{
	size_t best = n, best_score = 0, last = limit;

	for (size_t o = 0; o < last && o < n; o += step) {
		size_t s = score(p + o, n - o, max, whole);

		/* a better one can only be another phase of the same samples */
		if (!best_score && s && last > o + KRON_RESOURCE_SIZE)
			last = o + KRON_RESOURCE_SIZE;
		if (s > best_score) {
			best = o;
			best_score = s;
		}
	}
	return best;
}
