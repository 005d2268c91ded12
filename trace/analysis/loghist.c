/* SPDX-License-Identifier: MIT */
/* loghist.c - see loghist.h. */
#include "trace/analysis/loghist.h"

#include <inttypes.h>
#include <string.h>

#include "base/str.h"
#include "base/vec.h"
#include "trace/text.h"

enum { BAR = 40 };

void loghist_grow(struct loghist *h, unsigned octave)
{
	unsigned first = h->n && h->first < octave ? h->first : octave;
	unsigned end = h->n && h->first + h->n > octave ? h->first + h->n : octave + 1u;
	uint32_t *v = xcalloc((size_t)(end - first) * LOGHIST_BINS, sizeof(*v));

	if (h->n)
		memcpy(v + (size_t)(h->first - first) * LOGHIST_BINS, h->v,
		       (size_t)h->n * LOGHIST_BINS * sizeof(*v));
	xfree(h->v);
	h->v = v;
	h->first = (uint8_t)first;
	h->n = (uint8_t)(end - first);
}

void loghist_free(struct loghist *h)
{
	xfree(h->v);
	*h = (struct loghist){0};
}

static uint64_t lowest(unsigned bin)
{
	unsigned shift = bin / LOGHIST_BINS;

	if (bin < 2 * LOGHIST_BINS)
		return bin;
	return (uint64_t)(LOGHIST_BINS + bin % LOGHIST_BINS) << (shift - 1);
}

static uint64_t width(unsigned bin)
{
	return bin < 2 * LOGHIST_BINS ? 1 : 1ull << (bin / LOGHIST_BINS - 1);
}

static unsigned bins(const struct loghist *h)
{
	return h->n * LOGHIST_BINS;
}

static uint64_t count(const struct loghist *h)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < bins(h); i++)
		sum += h->v[i];
	return sum;
}

uint64_t loghist_percentile(const struct loghist *h, unsigned percent)
{
	uint64_t n = count(h), seen = 0, rank;

	if (!n)
		return 0;
	rank = n / 100 * percent + (n % 100 * percent + 99) / 100;
	for (unsigned i = 0; i < bins(h); i++) {
		unsigned bin = h->first * LOGHIST_BINS + i;

		seen += h->v[i];
		if (seen >= rank && h->v[i])
			return lowest(bin) + (width(bin) - 1) / 2;
	}
	return 0;
}

/* ---- output ---- */

static void put_bar(const struct trace *t, unsigned from, unsigned to, uint64_t n, uint64_t most,
		    uint64_t all, FILE *out)
{
	unsigned length = (unsigned)((double)n / (double)most * BAR + 0.5);
	char number[STR_NUMBER];

	fputs("  ", out);
	text_put_duration(out, trace_ns(t, lowest(from)));
	fputs(" - ", out);
	text_put_duration(out, trace_ns(t, lowest(to) + width(to) - 1));
	fputs("  ", out);
	for (unsigned i = 0; i < BAR; i++)
		fputc(i < length || (!i && n) ? '#' : ' ', out);
	fprintf(out, "  %12s  %5.1f%%\n", str_thousands(number, sizeof(number), n),
		100.0 * (double)n / (double)all);
}

static uint64_t sum_bins(const struct loghist *h, unsigned from, unsigned step)
{
	uint64_t sum = 0;

	for (unsigned i = from; i < from + step && i < bins(h); i++)
		sum += h->v[i];
	return sum;
}

/* The bins that are used, and how many of them are a line. */
struct lines {
	unsigned first, end, step;
};

static struct lines lines_of(const struct loghist *h)
{
	struct lines l = {0, bins(h), LOGHIST_BINS};

	while (l.first < l.end && !h->v[l.first])
		l.first++;
	while (l.end > l.first && !h->v[l.end - 1])
		l.end--;
	while (l.step > 1 && (l.end - l.first) / l.step < 6)
		l.step /= 2;
	l.first -= l.first % l.step;
	return l;
}

void loghist_print(const struct loghist *h, const struct trace *t, FILE *out)
{
	const struct lines l = lines_of(h);
	const unsigned base = h->first * LOGHIST_BINS;
	uint64_t most = 1, all = count(h);

	if (!all)
		return;
	for (unsigned i = l.first; i < l.end; i += l.step)
		if (sum_bins(h, i, l.step) > most)
			most = sum_bins(h, i, l.step);
	for (unsigned i = l.first; i < l.end; i += l.step)
		put_bar(t, base + i, base + i + l.step - 1, sum_bins(h, i, l.step), most, all, out);
}

unsigned loghist_line(const struct loghist *h)
{
	return lines_of(h).step;
}

uint64_t loghist_count(const struct loghist *h)
{
	return count(h);
}

void loghist_json(const struct loghist *h, const struct trace *t, struct json *j)
{
	json_open(j, '[');
	for (unsigned i = 0; i < bins(h); i++) {
		unsigned bin = h->first * LOGHIST_BINS + i;

		if (!h->v[i])
			continue;
		json_open(j, '[');
		json_u64(j, trace_ns(t, lowest(bin)));
		json_u64(j, trace_ns(t, lowest(bin) + width(bin) - 1));
		json_u64(j, h->v[i]);
		json_close(j, ']');
	}
	json_close(j, ']');
}
