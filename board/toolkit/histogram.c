/* SPDX-License-Identifier: MIT */
/* histogram.c - see histogram.h. */
#include "board/toolkit/histogram.h"

#include <stdlib.h>

static int by_number(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

static int by_begin(const void *a, const void *b)
{
	const struct tally_length *x = a, *y = b;

	if (x->begin != y->begin)
		return x->begin < y->begin ? -1 : 1;
	return x->ticks < y->ticks ? -1 : x->ticks > y->ticks;
}

void histogram_chronological(struct tally_sum *s)
{
	if (s->lengths.n)
		qsort(s->lengths.v, s->lengths.n, sizeof(*s->lengths.v), by_begin);
}

static void each_length(struct histogram *h, const int64_t *ticks, size_t n)
{
	struct histogram_bin *b = NULL;

	for (size_t i = 0; i < n; i++) {
		if (!b || b->from != ticks[i]) {
			b = vec_push(&h->bins);
			b->from = b->to = ticks[i];
		}
		b->count++;
	}
}

static void equal_bins(struct histogram *h, const int64_t *ticks, size_t n, uint64_t nbins)
{
	uint64_t first = (uint64_t)ticks[0], span = (uint64_t)ticks[n - 1] - first;
	uint64_t width = span / nbins + (span / nbins < UINT64_MAX);

	for (uint64_t i = 0; i < nbins && i <= span / width; i++) {
		struct histogram_bin *b = vec_push(&h->bins);

		b->from = (int64_t)(first + i * width);
		b->to = (int64_t)(first + i * width + (width - 1));
	}
	if (h->bins.n <= span / width) /* garbage that spans 64 bits */
		h->bins.v[h->bins.n - 1].to = ticks[n - 1];
	for (size_t i = 0; i < n; i++) {
		uint64_t bin = ((uint64_t)ticks[i] - first) / width;

		h->bins.v[bin < h->bins.n ? bin : h->bins.n - 1].count++;
	}
}

void histogram_make(struct histogram *h, const struct tally_sum *s, uint64_t nbins)
{
	size_t n = s->lengths.n;
	int64_t *ticks;

	*h = (struct histogram){.total = n};
	if (!n)
		return;
	ticks = xmalloc(n * sizeof(*ticks));
	for (size_t i = 0; i < n; i++)
		ticks[i] = s->lengths.v[i].ticks;
	qsort(ticks, n, sizeof(*ticks), by_number);
	if (nbins)
		equal_bins(h, ticks, n, nbins);
	else
		each_length(h, ticks, n);
	vec_for(&h->bins, b)
		if (b->count > h->largest)
			h->largest = b->count;
	xfree(ticks);
}

void histogram_free(struct histogram *h)
{
	vec_free(&h->bins);
}
