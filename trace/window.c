/* SPDX-License-Identifier: MIT */
/* window.c - see window.h. */
#include "trace/window.h"

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
	return (uint64_t)((double)ns * f->hz / 1e9);
}

uint64_t window_finder_horizon(const struct window_finder *f, uint64_t now)
{
	uint64_t back = f->pre.samples < f->n ? f->pre.samples : f->n ? f->n - 1 : 0, span;

	if (f->ring)
		return f->n ? f->ring[(f->n - 1 - back) % (f->pre.samples + 1)] : 0;
	span = ticks(f, f->pre.ns);
	return span < now ? now - span : 0;
}

static struct trace_window *newest(const struct window_finder *f)
{
	return f->found.n ? &f->found.v[f->found.n - 1] : NULL;
}

static void open_window(struct window_finder *f, uint64_t tsc)
{
	struct trace_window w = {window_finder_horizon(f, tsc), tsc + ticks(f, f->post.ns)};
	struct trace_window *last = newest(f);

	f->fired++;
	f->open = f->post.samples;
	if (last && w.from <= last->to)
		last->to = w.to > last->to ? w.to : last->to;
	else
		*vec_push(&f->found) = w;
}

void window_finder_see(struct window_finder *f, uint64_t tsc, bool fires)
{
	if (f->ring)
		f->ring[f->n % (f->pre.samples + 1)] = tsc;
	f->n++;
	if (f->open) {
		f->open--;
		if (tsc > newest(f)->to)
			newest(f)->to = tsc;
	}
	if (fires)
		open_window(f, tsc);
}

bool window_finder_is_closed(const struct window_finder *f, uint64_t now)
{
	return f->fired && !f->open && now > newest(f)->to;
}
