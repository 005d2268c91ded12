/* SPDX-License-Identifier: MIT */
/* window.c - see window.h. */
#include "trace/analysis/window.h"

#include <string.h>

#define DEFAULT_SPAN "1000"
#define RING_MAX (1u << 24) /* samples before a trigger: their times are in memory */

int window_finder_init(struct window_finder *f, const char *pre, const char *post, struct err *err)
{
	int ret;

	memset(f, 0, sizeof(*f));
	ret = trigger_parse_span(&f->pre, "--pre", pre ? pre : DEFAULT_SPAN, err);
	if (!ret)
		ret = trigger_parse_span(&f->post, "--post", post ? post : DEFAULT_SPAN, err);
	if (!ret && f->pre.samples > RING_MAX)
		ret = condition_error(err, "--pre", pre, 0,
				      "at most %u samples; a time, like 2s, may be more", RING_MAX);
	if (!ret && !f->pre.ns)
		f->ring = xmalloc((f->pre.samples + 1) * sizeof(*f->ring));
	return ret;
}

void window_finder_free(struct window_finder *f)
{
	vec_free(&f->found);
	xfree(f->ring);
	f->ring = NULL;
}

static uint64_t ticks(const struct window_finder *f, uint64_t ns)
{
	double v = (double)ns * f->hz / 1e9;

	return v < 0x1p62 ? (uint64_t)v : 1ull << 62;
}

/* The time of the sample `n` before the last one. */
static uint64_t back(const struct window_finder *f, uint64_t n)
{
	if (n >= f->n)
		n = f->n - 1;
	return f->ring[(f->n - 1 - n) % (f->pre.samples + 1)];
}

uint64_t window_finder_from(const struct window_finder *f, uint64_t tsc)
{
	uint64_t span;

	if (f->ring)
		return f->n ? back(f, f->pre.samples) : tsc;
	span = ticks(f, f->pre.ns);
	return span < tsc ? tsc - span : 0;
}

static struct trace_window *newest(const struct window_finder *f)
{
	return f->found.n ? &f->found.v[f->found.n - 1] : NULL;
}

void window_finder_open(struct window_finder *f, uint64_t from, uint64_t tsc)
{
	struct trace_window w = {from, tsc + ticks(f, f->post.ns)};
	struct trace_window *last = newest(f);

	f->fired++;
	f->open = f->post.samples;
	while (last && w.from <= last->to) {
		w.from = last->from < w.from ? last->from : w.from;
		w.to = last->to > w.to ? last->to : w.to;
		f->found.n--;
		last = newest(f);
	}
	*vec_push(&f->found) = w;
}

void window_finder_see(struct window_finder *f, uint64_t tsc)
{
	if (f->ring)
		f->ring[f->n % (f->pre.samples + 1)] = tsc;
	f->n++;
	if (f->open) {
		f->open--;
		if (tsc > newest(f)->to)
			newest(f)->to = tsc;
	}
}

bool window_finder_is_closed(const struct window_finder *f, uint64_t now)
{
	return f->fired && !f->open && now > newest(f)->to;
}
