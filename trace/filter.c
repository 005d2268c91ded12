/* SPDX-License-Identifier: MIT */
/*
 * filter.c - see filter.h.
 *
 * A trigger makes windows of time, found in one pass over all samples:
 *
 *      pre        fires      post
 *   |-------------X-------------|        |-----X-----|
 *
 * Counted in samples, a window begins with the time of the sample so many back, and ends with that
 * of the sample so many ahead.  Samples of the very same time belong to it, too.
 */
#include "trace/filter.h"

#include <string.h>

#define DEFAULT_SPAN "1000"
#define RING_MAX (1u << 24) /* samples before a trigger: their times are in memory */

struct window {
	uint64_t from, to; /* tsc, both inclusive */
};

struct trace_filter {
	struct condition *where;
	bool has_trigger;
	VEC(struct window) windows; /* in order, apart from each other */
	uint64_t fired;
};

/* ---- windows ---- */

struct finder {
	struct trace_filter *f;
	struct trigger_span pre, post;
	uint64_t ticks_per_s;
	uint64_t *ring; /* times of the last samples */
	uint64_t n;     /* samples so far */
	uint64_t open;  /* samples that the newest window still takes */
};

static uint64_t ticks(const struct finder *d, uint64_t ns)
{
	return (uint64_t)((double)ns * (double)d->ticks_per_s / 1e9);
}

static uint64_t start_of(const struct finder *d, uint64_t tsc)
{
	uint64_t back = d->pre.samples < d->n ? d->pre.samples : d->n - 1, span;

	if (d->ring)
		return d->ring[(d->n - 1 - back) % (d->pre.samples + 1)];
	span = ticks(d, d->pre.ns);
	return span < tsc ? tsc - span : 0;
}

static void open_window(struct finder *d, uint64_t tsc)
{
	struct window w = {start_of(d, tsc), tsc + ticks(d, d->post.ns)}, *last;

	d->f->fired++;
	d->open = d->post.samples;
	last = d->f->windows.n ? &d->f->windows.v[d->f->windows.n - 1] : NULL;
	if (last && w.from <= last->to)
		last->to = w.to > last->to ? w.to : last->to;
	else
		*vec_push(&d->f->windows) = w;
}

static void see_sample(struct finder *d, struct trigger *g, const struct trace_event *e)
{
	if (d->ring)
		d->ring[d->n % (d->pre.samples + 1)] = e->tsc;
	d->n++;
	if (d->open) {
		struct window *last = &d->f->windows.v[d->f->windows.n - 1];

		d->open--;
		if (e->tsc > last->to)
			last->to = e->tsc;
	}
	if (trigger_feed(g, e))
		open_window(d, e->tsc);
}

static void find_windows(struct finder *d, const struct trace *t, struct trigger *g)
{
	struct trace_cursor *c = trace_cursor_open(t, -1);
	struct trace_event e;

	trigger_bind(g, t);
	if (!d->pre.ns)
		d->ring = xmalloc((d->pre.samples + 1) * sizeof(*d->ring));
	while (trace_cursor_next(c, &e))
		if (e.s.event < KRON_EVENT_SPECIAL)
			see_sample(d, g, &e);
	trace_cursor_close(c);
	xfree(d->ring);
}

static int set_trigger(struct trace_filter *f, const struct trace *t,
		       const struct filter_options *o, struct err *err)
{
	struct finder d = {.f = f, .ticks_per_s = (uint64_t)t->tsc_hz};
	struct trigger *g;
	int ret = trigger_parse_span(&d.pre, "--pre", o->pre ? o->pre : DEFAULT_SPAN, err);

	if (!ret)
		ret = trigger_parse_span(&d.post, "--post", o->post ? o->post : DEFAULT_SPAN, err);
	if (!ret && d.pre.samples > RING_MAX)
		d.pre = (struct trigger_span){.ns = UINT64_MAX / 4}; /* in effect everything */
	if (!ret)
		ret = trigger_parse(&g, "--trigger", o->trigger, err);
	if (ret)
		return ret;
	find_windows(&d, t, g);
	f->has_trigger = true;
	trigger_free(g);
	return 0;
}

/* ---- the filter ---- */

int trace_filter_set(struct trace *t, const struct filter_options *o, struct err *err)
{
	struct trace_filter *f;
	size_t at = 0;
	int ret = 0;

	if (!o->where && !o->trigger)
		return 0;
	f = xcalloc(1, sizeof(*f));
	if (o->where) {
		ret = condition_parse(&f->where, "--where", o->where, &at, err);
		if (!ret && o->where[at])
			ret = condition_error(err, "--where", o->where, at,
					      "this belongs into a --trigger");
		if (!ret)
			condition_bind(f->where, t);
	}
	if (!ret && o->trigger)
		ret = set_trigger(f, t, o, err);
	if (ret)
		trace_filter_free(f);
	else
		t->filter = f;
	return ret;
}

void trace_filter_free(struct trace_filter *f)
{
	if (!f)
		return;
	condition_free(f->where);
	vec_free(&f->windows);
	xfree(f);
}

static bool is_in_window(const struct trace_filter *f, uint64_t tsc)
{
	size_t lo = 0, hi = f->windows.n;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (f->windows.v[mid].to < tsc)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < f->windows.n && f->windows.v[lo].from <= tsc;
}

bool trace_filter_passes(const struct trace_filter *f, const struct trace_event *e)
{
	if (e->s.event >= KRON_EVENT_SPECIAL)
		return true;
	if (f->has_trigger && !is_in_window(f, e->tsc))
		return false;
	return !f->where || condition_holds(f->where, e);
}

uint64_t trace_filter_fired(const struct trace_filter *f)
{
	return f->fired;
}
