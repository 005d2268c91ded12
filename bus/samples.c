/* SPDX-License-Identifier: MIT */
/* samples.c - see samples.h */
#include "bus/samples.h"

#include "base/vec.h"
#include "bus/view.h"

#define LONGEST (KRON_RESOURCE_SIZE / 4)
#define ENOUGH 64u /* samples in a row that fit together by no accident */

/* ---- where a sample begins ---- */

static bool is_head(uint32_t head)
{
	uint32_t type = head >> KRON_HEAD_TYPE_SHIFT & KRON_HEAD_TYPE_MASK;

	return (type == KRON_HEAD_TYPE_TRACE || type == KRON_HEAD_TYPE_RESOURCE) &&
	       !(head & 1u << 24);
}

static uint64_t time_of(const uint32_t *w)
{
	return (uint64_t)(w[0] & KRON_HEAD_TIME_MASK) << 32 | w[1];
}

static bool is_chain(const uint32_t *w, uint32_t n, uint32_t at)
{
	uint64_t last = 0;

	for (unsigned k = 0; k < ENOUGH && at + LONGEST <= n; k++) {
		if (!is_head(w[at]) || time_of(w + at) < last)
			return false;
		last = time_of(w + at);
		at += sample_words(w[at]);
	}
	return true;
}

static uint32_t find_first(const uint32_t *w, uint32_t n)
{
	for (uint32_t at = 0; at < LONGEST && at < n; at++)
		if (is_chain(w, n, at))
			return at;
	return 0;
}

/* ---- the walk ---- */

static void walk(const uint32_t *w, uint32_t n, uint32_t at,
		 int (*put)(void *to, const uint32_t *words, unsigned n), void *to)
{
	while (at < n) {
		unsigned len = sample_words(w[at]);

		if (len > n - at || put(to, w + at, len))
			return;
		at += len;
	}
}

int bus_samples(struct bus *b, int (*put)(void *to, const uint32_t *words, unsigned n), void *to,
		struct err *err)
{
	uint32_t n, first, *w;
	struct bus_view v;
	int code = bus_look(b, &v, err);

	if (code)
		return code;
	n = view_words_used(&v);
	if (!n)
		return 0;
	w = xmalloc(n * sizeof(*w));
	first = view_wraps(&v) ? v.map & KRON_MAP_WORD : 0;
	bus_read_memory(b, first, n - first, w);
	bus_read_memory(b, 0, first, w + (n - first));
	walk(w, n, view_wraps(&v) ? find_first(w, n) : 0, put, to);
	xfree(w);
	return 0;
}
