/* SPDX-License-Identifier: MIT */
/* filter.c - see filter.h.  A trigger makes windows of time, found in one pass over all samples. */
#include "trace/filter.h"

#include <string.h>

#include "trace/window.h"

struct trace_filter {
	struct condition *where;
	bool has_trigger;
	struct window_finder windows;
};

/* What waits in a process that ends first will never be too late. */
static bool had_time(const struct trace *t, const struct trigger *g, const struct trigger_due *due)
{
	const struct trace_proc *p = trace_proc_of(t, t->lanes[due->lane].proc_uid);

	return trigger_is_across(g) || !p || !p->end_tsc || p->end_tsc >= due->at;
}

/* All that was over before this moment. */
static void let_time_pass(struct window_finder *f, const struct trace *t, struct trigger *g,
			  uint64_t now)
{
	struct trigger_due due;

	while (trigger_due(g, now, &due)) {
		bool fires = had_time(t, g, &due);

		if (fires)
			window_finder_open(f, due.note, due.at);
		trigger_settle(g, fires);
	}
}

static void see_sample(struct window_finder *f, struct trigger *g, const struct trace_event *e)
{
	struct trigger_wants w = trigger_wants(g, e->lane);
	uint8_t bits = trigger_may_want(&w, &e->s) ? trigger_test(g, &w, e) : 0;
	enum trigger_answer a = bits ? trigger_feed(g, e, bits) : TRIGGER_NOTHING;

	window_finder_see(f, e->tsc);
	if (a == TRIGGER_FIRES)
		window_finder_open(f, window_finder_from(f, e->tsc), e->tsc);
	else if (a == TRIGGER_WAITS)
		trigger_note(g, window_finder_from(f, e->tsc));
}

static void find_windows(struct window_finder *f, const struct trace *t, struct trigger *g)
{
	struct trace_cursor *c = trace_cursor_open(t, -1);
	const char *bus = trace_session(t, "bus");
	bool board = bus && !strcmp(bus, "exact");
	uint64_t last = t->end_tsc;
	struct trace_event e;

	trigger_bind(g, t);
	f->hz = t->tsc_hz;
	while (trace_cursor_next(c, &e)) {
		let_time_pass(f, t, g, e.tsc);
		if (board && e.s.head & KRON_HEAD_FIFO_OVERFLOW)
			trigger_lost_any(g);
		if (e.s.event < KRON_EVENT_SPECIAL)
			see_sample(f, g, &e);
		else if (e.s.event == KRON_EVENT_LOST)
			trigger_lost(g, e.lane);
		last = e.tsc > last ? e.tsc : last;
	}
	let_time_pass(f, t, g, last + 1);
	trace_cursor_close(c);
}

static int set_trigger(struct trace_filter *f, const struct trace *t,
		       const struct filter_options *o, struct err *err)
{
	struct trigger *g;
	int ret = window_finder_init(&f->windows, o->pre, o->post, err);

	if (!ret)
		ret = trigger_parse(&g, "--trigger", o->trigger, err);
	if (ret)
		return ret;
	find_windows(&f->windows, t, g);
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
	window_finder_free(&f->windows);
	xfree(f);
}

static bool is_in_window(const struct trace_filter *f, uint64_t tsc)
{
	size_t lo = 0, hi = f->windows.found.n;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (f->windows.found.v[mid].to < tsc)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < f->windows.found.n && f->windows.found.v[lo].from <= tsc;
}

bool trace_filter_passes(const struct trace_filter *f, const struct trace_event *e)
{
	if (e->s.event >= KRON_EVENT_SPECIAL)
		return true;
	if (f->has_trigger && !is_in_window(f, e->tsc))
		return false;
	return !f->where || condition_holds(f->where, e);
}

const char *trace_filter_unknown_name(const struct trace_filter *f)
{
	return f->where ? condition_unknown_name(f->where) : NULL;
}

uint64_t trace_filter_fired(const struct trace_filter *f)
{
	return f->windows.fired;
}
