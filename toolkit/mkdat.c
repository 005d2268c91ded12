/* SPDX-License-Identifier: MIT */
/*
 * mkdat.c - see mkdat.h.
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
 * What tells them apart is time: behind true headers it goes on, by less than CHAIN_STEP from
 * one sample to the next.  So each candidate is scored by how many samples follow from it in
 * that way, and one whose time stands still loses against one whose time goes on.  (User data
 * whose upper half looks like a header and whose lower half counts up are a second clock: then
 * the first candidate wins, and may be wrong.)
 */
#define _GNU_SOURCE
#include "toolkit/mkdat.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/vec.h"

enum {
	BUFFER = 1 << 18,
	CHAIN_MIN = 3,   /* samples that make a place believable in the middle of data */
	CHAIN_CUT = 4,   /* ... inside what could be a sample itself */
	CHAIN_LOOK = 32, /* no need to follow it further */
	LOOK = (CHAIN_LOOK + 2) * (int)KRON_RESOURCE_SIZE,
};
/* Ticks between two samples of a chain: 2^40 are thirty hours at 10 MHz. */
#define CHAIN_STEP (1ll << 40)

static uint32_t word_at(const uint8_t *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static uint64_t time_at(const uint8_t *p)
{
	return (uint64_t)(word_at(p) & KRON_HEAD_TIME_MASK) << 32 | word_at(p + 4);
}

size_t mkdat_size(const uint8_t *p)
{
	uint32_t head = word_at(p);

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

void mkdat_decode(const uint8_t *p, struct mkdat_sample *s)
{
	s->header = p[3];
	s->cpu = s->header >> 5;
	s->time = time_at(p);
	s->source = word_at(p + 8);
	s->data = (uint64_t)word_at(p + 12) << 32 | word_at(p + 16);
	s->resource = mkdat_size(p) == KRON_RESOURCE_SIZE;
	for (size_t i = 0; s->resource && i < KRON_COUNTERS; i++)
		s->counter[i] = word_at(p + KRON_SAMPLE_SIZE + 4 * i);
}

int64_t mkdat_elapsed(uint64_t a, uint64_t b)
{
	/* the difference's sign bit is bit 55 */
	return (int64_t)((b - a) << (64 - MKDAT_TIME_BITS)) >> (64 - MKDAT_TIME_BITS);
}

static bool can_follow(uint64_t before, uint64_t time)
{
	int64_t step = mkdat_elapsed(before, time);

	return step >= 0 && step < CHAIN_STEP;
}

/* *moved: the last sample is later than the first. */
static size_t follow(const uint8_t *p, size_t n, size_t max, size_t *end, bool *moved)
{
	size_t at = 0, count = 0;
	uint64_t first = 0, last = 0;

	while (count < max && n - at >= KRON_SAMPLE_SIZE) {
		size_t size = mkdat_size(p + at);
		uint64_t time = time_at(p + at);

		if (!size || size > n - at || (count && !can_follow(last, time)))
			break;
		if (!count)
			first = time;
		last = time;
		at += size;
		count++;
	}
	*end = at;
	*moved = last != first;
	return count;
}

size_t mkdat_chain(const uint8_t *p, size_t n, size_t max, size_t *end)
{
	bool moved;

	return follow(p, n, max, end, &moved);
}

/* 0: not believable; else the more the better. */
static size_t score(const uint8_t *p, size_t n, size_t max, bool whole)
{
	size_t end, count;
	bool moved;

	if (n < KRON_SAMPLE_SIZE || !mkdat_size(p))
		return 0;
	count = follow(p, n, max, &end, &moved);
	/* at the end of the data two will do, if they fill it to the last byte */
	if (count < CHAIN_MIN && !(whole && count == 2 && end == n))
		return 0;
	return 2 * count + moved;
}

size_t mkdat_find(const uint8_t *p, size_t n, size_t limit, size_t step, size_t max, bool whole)
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

/* ---- a file ---- */

void mkdat_open(struct mkdat *m, int fd)
{
	*m = (struct mkdat){.fd = fd, .buf = xmalloc(BUFFER)};
}

void mkdat_close(struct mkdat *m)
{
	xfree(m->buf);
	m->buf = NULL;
}

/* Have LOOK bytes at `at`, or all that there are. */
static int fill(struct mkdat *m, struct err *err)
{
	ssize_t got;

	if (m->n - m->at >= LOOK || m->eof)
		return 0;
	memmove(m->buf, m->buf + m->at, m->n - m->at);
	m->n -= m->at;
	m->at = 0;
	while (m->n < LOOK && !m->eof) {
		got = read(m->fd, m->buf + m->n, BUFFER - m->n);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_set(err, errno, "cannot be read: %s", strerror(errno));
		m->eof = got == 0;
		m->n += (size_t)got;
		m->count.bytes += (uint64_t)got;
	}
	return 0;
}

static void skip(struct mkdat *m, size_t n)
{
	if (!n)
		return;
	m->count.places += !m->in_damage;
	m->count.damaged += n;
	m->in_damage = true;
	m->at += n;
}

/* The first beginning behind damage, as far as the buffer shows; true: `at` is at one. */
static bool find_beginning(struct mkdat *m)
{
	const uint8_t *p = m->buf + m->at;
	size_t n = m->n - m->at, limit, found;

	if (m->eof) {
		found = mkdat_find(p, n, n, 1, CHAIN_LOOK, true);
		/* one last sample that ends the file and fits to those before it */
		if (found == n && n >= KRON_SAMPLE_SIZE && m->has_last) {
			size_t o = n - KRON_SAMPLE_SIZE;

			if (mkdat_size(p + o) == KRON_SAMPLE_SIZE &&
			    can_follow(m->last_time, time_at(p + o)))
				found = o;
		}
		skip(m, found);
		return found < n;
	}
	/* so far that every candidate has its chain in the buffer */
	limit = n > LOOK ? n - LOOK + 1 : 1;
	found = mkdat_find(p, n, limit, 1, CHAIN_LOOK, false);
	skip(m, found < n ? found : limit);
	return found < n;
}

/* By their lengths alone, samples from 0 on meet a beginning at `found`. */
static bool leads_to(const uint8_t *p, size_t found)
{
	size_t at = 0, size;

	while (at < found) {
		size = mkdat_size(p + at);
		if (!size)
			return false;
		at += size;
	}
	return at == found;
}

/* No reason to doubt that the `size` bytes at `at` are a sample. */
static bool is_expected(const struct mkdat *m, size_t size)
{
	const uint8_t *p = m->buf + m->at;
	size_t left = m->n - m->at;
	bool next = left >= size + 4 ? mkdat_size(p + size) != 0 : left == size;

	return next && m->has_last && can_follow(m->last_time, time_at(p));
}

/*
 * There is a header at `at`; where inside of what it announces does a better chain begin that
 * goes past it?  0: nowhere.  So a sample that was cut off is not filled up from the next file,
 * and a first sample whose time stands alone (a short file before a long one) is kept.
 */
static size_t cut_off_at(const struct mkdat *m, size_t size)
{
	const uint8_t *p = m->buf + m->at;
	size_t n = m->n - m->at, found, end;
	bool moved;

	if (is_expected(m, size))
		return 0;
	found = mkdat_find(p, n, size < n ? size : n, 1, CHAIN_LOOK, m->eof);
	if (found >= n || leads_to(p, found))
		return 0;
	return follow(p + found, n - found, CHAIN_CUT, &end, &moved) == CHAIN_CUT && moved ? found
											   : 0;
}

/* true: *size bytes at `at` are a sample.  false: look again, or there is no more. */
static bool at_sample(struct mkdat *m, size_t *size)
{
	size_t left = m->n - m->at, cut;

	*size = left >= 4 ? mkdat_size(m->buf + m->at) : 0;
	if (*size) {
		cut = cut_off_at(m, *size);
		if (!cut && *size <= left)
			return true;
		if (cut) {
			skip(m, cut);
			return false;
		}
	}
	if (*size || (left < 4 && !m->in_damage)) {
		m->count.cut += left; /* the file is too short for what its header says */
		m->at = m->n;
	} else {
		find_beginning(m);
	}
	return false;
}

int mkdat_next(struct mkdat *m, struct mkdat_sample *s, struct err *err)
{
	size_t size;
	int code;

	for (;;) {
		code = fill(m, err);
		if (code)
			return code;
		if (m->at == m->n)
			return 0;
		if (at_sample(m, &size))
			break;
	}
	mkdat_decode(m->buf + m->at, s);
	m->at += size;
	m->in_damage = false;
	m->last_time = s->time;
	m->has_last = true;
	if (s->resource)
		m->count.resource++;
	else
		m->count.trace++;
	return 1;
}

void mkdat_add(struct mkdat_count *sum, const struct mkdat_count *c)
{
	sum->bytes += c->bytes;
	sum->trace += c->trace;
	sum->resource += c->resource;
	sum->damaged += c->damaged;
	sum->places += c->places;
	sum->cut += c->cut;
}

const char *mkdat_complaint(const struct mkdat_count *c, char *out, size_t size)
{
	int n = 0;

	if (!c->damaged && !c->cut)
		return NULL;
	if (c->damaged)
		n = snprintf(out, size, "%" PRIu64 " %s in %" PRIu64 " %s %s and were left out",
			     c->damaged, c->damaged == 1 ? "byte" : "bytes", c->places,
			     c->places == 1 ? "place" : "places",
			     c->damaged == 1 ? "is no sample" : "are no samples");
	if (c->cut && n >= 0 && (size_t)n < size)
		snprintf(out + n, size - (size_t)n,
			 "%sthe last sample is cut off: %" PRIu64 " %s of it left out",
			 n ? "; " : "", c->cut, c->cut == 1 ? "byte" : "bytes");
	return out;
}
