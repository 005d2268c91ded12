/* SPDX-License-Identifier: MIT */
/*
 * filter.c - see filter.h.  A trigger makes windows of time, found in one pass over all samples.
 *
 * A time that is over where samples were lost decides nothing: a pass before looks for those gaps,
 * if the trigger waits for something and samples were lost.
 */
#include "trace/analysis/filter.h"
#include "base/search.h"

#include <errno.h>
#include <string.h>

#include "trace/analysis/window.h"

struct filter {
	struct trace_filter face; /* what cursors see of it */
	struct condition *where;
	bool has_trigger;
	struct window_finder windows;
	uint64_t unsure;
	char *unknown; /* a name in the trigger */
};

/* ---- where samples were lost ---- */

/* Between the last sample before them and the record that tells of them. */
struct gap {
	uint64_t from, to; /* to: UINT64_MAX: no record came any more */
	size_t next;       /* of the same lane; index + 1 */
};

struct gaps {
	VEC(struct gap) v;
	size_t *first,
		*last; /* by lane, and after them what all share: not passed yet; index + 1 */
	size_t nlanes;
};

static void add_gap(struct gaps *g, size_t lane, uint64_t from, uint64_t to)
{
	*vec_push(&g->v) = (struct gap){.from = from, .to = to};
	if (g->last[lane])
		g->v.v[g->last[lane] - 1].next = g->v.n;
	else
		g->first[lane] = g->v.n;
	g->last[lane] = g->v.n;
}

/* What a process has lost and no record tells of was lost after the last sample of some thread. */
static void add_last_gaps(struct gaps *g, const struct trace *t, const uint64_t *seen,
			  const uint64_t *told)
{
	for (size_t i = 0; i < t->nlanes; i++) {
		const struct trace_proc *p = trace_proc_of(t, t->lanes[i].proc_uid);

		if (p && p->lost > told[p - t->procs])
			add_gap(g, i, seen[i], UINT64_MAX);
	}
}

static void find_gaps(struct gaps *g, const struct trace *t, bool board)
{
	uint64_t *seen = xcalloc(t->nlanes + 1, sizeof(*seen));
	uint64_t *told = xcalloc(t->nprocs + 1, sizeof(*told));
	struct trace_cursor *c = trace_cursor_open(t, -1);
	const struct trace_proc *p;
	struct trace_event e;

	for (size_t i = 0; i < t->nlanes; i++) {
		p = trace_proc_of(t, t->lanes[i].proc_uid);
		seen[i] = p ? p->start_tsc : 0;
	}
	while (trace_cursor_next(c, &e)) {
		if (e.s.event == KRON_EVENT_LOST) {
			add_gap(g, e.lane, seen[e.lane], e.tsc);
			p = trace_proc_of(t, t->lanes[e.lane].proc_uid);
			if (p)
				told[p - t->procs] += e.s.payload;
		} else if (board && e.s.head & KRON_HEAD_FIFO_OVERFLOW) {
			add_gap(g, t->nlanes, seen[t->nlanes], e.tsc);
		}
		if (e.s.event >= KRON_EVENT_SPECIAL)
			continue; /* it comes with the LOST, and tells nothing of what was before */
		seen[e.lane] = e.tsc > seen[e.lane] ? e.tsc : seen[e.lane];
		seen[t->nlanes] = e.tsc > seen[t->nlanes] ? e.tsc : seen[t->nlanes];
	}
	trace_cursor_close(c);
	if (!board && !trace_session(t, "trigger")) /* a window has not all of the records */
		add_last_gaps(g, t, seen, told);
	xfree(seen);
	xfree(told);
}

static void gaps_open(struct gaps *g, const struct trace *t, const struct trigger *trigger,
		      bool board)
{
	const char *lost = trace_session(t, "lost");

	*g = (struct gaps){.nlanes = t->nlanes};
	g->first = xcalloc(t->nlanes + 1, sizeof(*g->first));
	g->last = xcalloc(t->nlanes + 1, sizeof(*g->last));
	if (trigger_waits(trigger) && (board || !lost || strcmp(lost, "0") != 0))
		find_gaps(g, t, board);
}

static void gaps_close(struct gaps *g)
{
	vec_free(&g->v);
	xfree(g->first);
	xfree(g->last);
}

static void pass_gap(struct gaps *g, size_t lane)
{
	if (g->first[lane])
		g->first[lane] = g->v.v[g->first[lane] - 1].next;
}

/* Is this moment, up to which all has been passed, in a gap of the lane? */
static bool is_in_gap(const struct gaps *g, size_t lane, uint64_t tsc)
{
	return g->first[lane] && g->v.v[g->first[lane] - 1].from < tsc;
}

static bool is_unsure(const struct gaps *gaps, const struct trigger *g,
		      const struct trigger_due *due)
{
	if (!trigger_is_across(g))
		return is_in_gap(gaps, due->lane, due->at) ||
		       is_in_gap(gaps, gaps->nlanes, due->at);
	for (size_t lane = 0; lane <= gaps->nlanes; lane++)
		if (is_in_gap(gaps, lane, due->at))
			return true;
	return false;
}

/* ---- windows ---- */

/* What waits in a process that ends first will never be too late. */
static bool had_time(const struct trace *t, const struct trigger *g, const struct trigger_due *due)
{
	const struct trace_proc *p = trace_proc_of(t, t->lanes[due->lane].proc_uid);

	return trigger_is_across(g) || !p || !p->end_tsc || p->end_tsc >= due->at;
}

/* All that was over before this moment. */
static void let_time_pass(struct window_finder *f, const struct trace *t, const struct gaps *gaps,
			  struct trigger *g, uint64_t now)
{
	struct trigger_due due;

	while (trigger_due(g, now, &due)) {
		bool fires = had_time(t, g, &due);

		if (fires && is_unsure(gaps, g, &due)) {
			trigger_lost(g, due.lane);
			continue;
		}
		if (fires)
			window_finder_open(f, due.note, due.at);
		trigger_settle(g, fires);
	}
}

static void see_event(struct window_finder *f, struct trigger *g, const struct trace_event *e)
{
	struct trigger_wants w = trigger_wants(g, e->lane);
	uint8_t bits = trigger_may_want_event(&w, e) ? trigger_test(g, &w, e) : 0;
	enum trigger_answer a = bits ? trigger_feed(g, e, bits) : TRIGGER_NOTHING;

	if (e->s.event < KRON_EVENT_SPECIAL)
		window_finder_see(f, e->tsc);
	if (a == TRIGGER_FIRES)
		window_finder_open(f, window_finder_from(f, e->tsc), e->tsc);
	else if (a == TRIGGER_WAITS)
		trigger_note(g, window_finder_from(f, e->tsc));
}

static void find_windows(struct window_finder *f, const struct trace *t, struct trigger *g)
{
	struct trace_cursor *c = trace_cursor_open(t, -1);
	bool board = trace_session_is(t, "bus", "exact");
	uint64_t last = t->end_tsc;
	struct trace_event e;
	struct gaps gaps;

	trigger_bind(g, t);
	gaps_open(&gaps, t, g, board);
	f->hz = t->tsc_hz;
	while (trace_cursor_next(c, &e)) {
		let_time_pass(f, t, &gaps, g, e.tsc);
		if (board && e.s.event != KRON_EVENT_LOST && e.s.head & KRON_HEAD_FIFO_OVERFLOW) {
			trigger_lost_any(g);
			pass_gap(&gaps, t->nlanes);
		}
		if (e.s.event < KRON_EVENT_SPECIAL || kron_event_is_unwinding(e.s.event)) {
			see_event(f, g, &e);
		} else if (e.s.event == KRON_EVENT_LOST) {
			trigger_lost(g, e.lane);
			pass_gap(&gaps, e.lane);
		}
		last = e.tsc > last ? e.tsc : last;
	}
	let_time_pass(f, t, &gaps, g, last + 1);
	trace_cursor_close(c);
	gaps_close(&gaps);
}

static int set_trigger(struct filter *f, const struct trace *t, const struct filter_options *o,
		       struct err *err)
{
	struct trigger *g;
	int ret = window_finder_init(&f->windows, o->pre, o->post, err);

	if (!ret)
		ret = trigger_parse(&g, "--trigger", o->trigger, err);
	if (ret)
		return ret;
	find_windows(&f->windows, t, g);
	f->has_trigger = true;
	f->unsure = trigger_unsure(g);
	if (trigger_unknown_name(g, true))
		f->unknown = xstrdup(trigger_unknown_name(g, true));
	trigger_free(g);
	return 0;
}

/* ---- the filter ---- */

static const struct filter *of(const struct trace_filter *face)
{
	return (const struct filter *)face;
}

/* The window that it is in, or NULL. */
static const struct trace_window *window_of(const struct filter *f, uint64_t tsc)
{
	size_t lo = partition_point(i, f->windows.found.n, f->windows.found.v[i].to < tsc);

	return lo < f->windows.found.n && f->windows.found.v[lo].from <= tsc
		       ? &f->windows.found.v[lo]
		       : NULL;
}

static uint64_t window_end(const struct trace_filter *face, uint64_t tsc)
{
	const struct filter *f = of(face);
	const struct trace_window *w;

	if (!f->has_trigger)
		return UINT64_MAX;
	w = window_of(f, tsc);
	return w ? w->to : tsc;
}

static uint64_t until(const struct trace_filter *face, uint64_t tsc)
{
	return of(face)->where ? tsc : window_end(face, tsc);
}

static bool passes(const struct trace_filter *face, const struct trace_event *e)
{
	const struct filter *f = of(face);

	if (e->s.event >= KRON_EVENT_SPECIAL)
		return true;
	if (f->has_trigger && !window_of(f, e->tsc))
		return false;
	return !f->where || condition_holds(f->where, e);
}

static void free_filter(struct trace_filter *face)
{
	struct filter *f = (struct filter *)face;

	condition_free(f->where);
	window_finder_free(&f->windows);
	xfree(f->unknown);
	xfree(f);
}

int trace_filter_set(struct trace *t, const struct filter_options *o, struct err *err)
{
	struct filter *f;
	size_t at = 0;
	int ret = 0;

	if (!o->trigger && (o->pre || o->post))
		return err_set(err, EINVAL, "--pre and --post belong to a --trigger");
	if (!o->where && !o->trigger)
		return 0;
	f = xcalloc(1, sizeof(*f));
	f->face = (struct trace_filter){
		.passes = passes, .until = until, .window_end = window_end, .free = free_filter};
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
		free_filter(&f->face);
	else
		t->filter = &f->face;
	return ret;
}

const char *trace_filter_unknown_name(const struct trace_filter *face)
{
	const struct filter *f = of(face);
	const char *name = f->where ? condition_unknown_name(f->where, true) : NULL;

	return name ? name : f->unknown;
}

const char *trace_filter_unsure_event(const struct trace_filter *face)
{
	const struct filter *f = of(face);

	return f->where ? condition_unsure_event(f->where) : NULL;
}

uint64_t trace_filter_fired(const struct trace_filter *f)
{
	return of(f)->windows.fired;
}

uint64_t trace_filter_unsure(const struct trace_filter *f)
{
	return of(f)->unsure;
}
