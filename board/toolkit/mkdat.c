/* SPDX-License-Identifier: MIT */
/* mkdat.c - see mkdat.h. */
#define _GNU_SOURCE
#include "board/toolkit/mkdat.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/vec.h"

enum {
	BUFFER = 1 << 18,
	CHAIN_CUT = 4,   /* samples that prove a beginning inside what could be a sample itself */
	CHAIN_LOOK = 32, /* no need to follow it further */
	LOOK = (CHAIN_LOOK + 2) * (int)KRON_RESOURCE_SIZE,
};

void mkdat_decode(const uint8_t *p, struct mkdat_sample *s)
{
	s->header = p[3];
	s->cpu = s->header >> 5;
	s->time = sample_time(p);
	s->source = sample_word(p + 8);
	s->data = (uint64_t)sample_word(p + 12) << 32 | sample_word(p + 16);
	s->resource = sample_size(p) == KRON_RESOURCE_SIZE;
	for (size_t i = 0; s->resource && i < KRON_COUNTERS; i++)
		s->counter[i] = sample_word(p + KRON_SAMPLE_SIZE + 4 * i);
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

/* The first beginning after damage, as far as the buffer shows; true: `at` is at one. */
static bool find_beginning(struct mkdat *m)
{
	const uint8_t *p = m->buf + m->at;
	size_t n = m->n - m->at, limit, found;

	if (m->eof) {
		found = sample_find(p, n, n, 1, CHAIN_LOOK, true);
		/* one last sample that ends the file and fits to those before it */
		if (found == n && n >= KRON_SAMPLE_SIZE && m->has_last) {
			size_t o = n - KRON_SAMPLE_SIZE;

			if (sample_size(p + o) == KRON_SAMPLE_SIZE &&
			    sample_can_follow(m->last_time, sample_time(p + o)))
				found = o;
		}
		skip(m, found);
		return found < n;
	}
	/* so far that every candidate has its chain in the buffer */
	limit = n > LOOK ? n - LOOK + 1 : 1;
	found = sample_find(p, n, limit, 1, CHAIN_LOOK, false);
	skip(m, found < n ? found : limit);
	return found < n;
}

/* By their lengths alone, samples from 0 on meet a beginning at `found`. */
static bool leads_to(const uint8_t *p, size_t found)
{
	size_t at = 0, size;

	while (at < found) {
		size = sample_size(p + at);
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
	bool next = left >= size + 4 ? sample_size(p + size) != 0 : left == size;

	return next && m->has_last && sample_can_follow(m->last_time, sample_time(p));
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
	found = sample_find(p, n, size < n ? size : n, 1, CHAIN_LOOK, m->eof);
	if (found >= n || leads_to(p, found))
		return 0;
	return sample_chain(p + found, n - found, CHAIN_CUT, &end, &moved) == CHAIN_CUT && moved
		       ? found
		       : 0;
}

/* true: *size bytes at `at` are a sample.  false: look again, or there is no more. */
static bool at_sample(struct mkdat *m, size_t *size)
{
	size_t left = m->n - m->at, cut;

	*size = left >= 4 ? sample_size(m->buf + m->at) : 0;
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
			     c->damaged == 1 ? "is not a sample" : "are not samples");
	if (c->cut && n >= 0 && (size_t)n < size)
		snprintf(out + n, size - (size_t)n,
			 "%sthe last sample is cut off: %" PRIu64 " %s of it left out",
			 n ? "; " : "", c->cut, c->cut == 1 ? "byte" : "bytes");
	return out;
}
