/* SPDX-License-Identifier: MIT */
/*
 * view.c - makes the page: the parts that are always the same, and between them the data.
 *
 *   pass 1  a lane after another    how many samples, from when to when
 *   pass 2  a lane after another    calls: functions, call tree, a track for each thread
 *   pass 3  all in order of time    CPUs, intervals, messages, samples, losses
 *   pass 4  a lane after another    calls that pass 2 had no room for, packed
 *
 * Memory: a chunk for each lane, what is written of one lane, and sums; the samples themselves
 * are never kept.  How much room each picture has follows from the size that the file may have.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "trace/text.h"
#include "trace/value.h"
#include "trace/view/view_assets.h"
#include "trace/view/view_impl.h"

int64_t view_ns(const struct view *v, uint64_t tsc)
{
	const struct trace *t = v->t;

	return tsc >= t->start_tsc ? (int64_t)trace_ns(t, tsc - t->start_tsc)
				   : -(int64_t)trace_ns(t, t->start_tsc - tsc);
}

/* ---- what is there, and what of it is shown ---- */

void view_widen(struct view *v, uint64_t first, uint64_t last)
{
	if (!v->trace_last || first < v->trace_first)
		v->trace_first = first;
	if (last > v->trace_last)
		v->trace_last = last;
}

static void look_at_lane(struct view *v, size_t lane, uint64_t from, uint64_t to)
{
	struct view_lane *l = &v->lanes[lane];
	struct trace_cursor *c = trace_cursor_open(v->t, (int)lane);
	struct trace_event e;
	bool any = false;

	while (trace_cursor_next(c, &e)) {
		if (!any || e.tsc < l->first)
			l->first = e.tsc;
		if (!any || e.tsc > l->last)
			l->last = e.tsc;
		any = true;
		v->trace_samples++;
		v->trace_records += e.s.event >= KRON_EVENT_SPECIAL;
		if (e.tsc >= from && e.tsc <= to) {
			l->samples++;
			v->records += e.s.event >= KRON_EVENT_SPECIAL;
		}
		if (e.s.event == KRON_EVENT_LOST)
			l->lost += e.s.payload;
	}
	trace_cursor_close(c);
	if (!any)
		return;
	l->last = trace_lane_end(v->t, (uint32_t)lane, l->last);
	view_widen(v, l->first, l->last);
	v->samples += l->samples;
}

static uint64_t tsc_at(const struct trace *t, uint64_t ns)
{
	double ticks = (double)ns * t->tsc_hz / 1e9;

	return ns == UINT64_MAX || ticks > 9e18 ? UINT64_MAX : t->start_tsc + (uint64_t)ticks;
}

static int look(struct view *v, struct err *err)
{
	const struct trace *t = v->t;
	uint64_t from = v->o->from_ns ? tsc_at(t, v->o->from_ns) : 0;
	uint64_t to = tsc_at(t, v->o->to_ns);

	v->lanes = xcalloc(t->nlanes, sizeof(*v->lanes));
	for (size_t lane = 0; lane < t->nlanes; lane++)
		look_at_lane(v, lane, from, to);
	view_monitor_look(v);
	view_memory_look(v);
	v->from = from > v->trace_first ? from : v->trace_first;
	v->to = to < v->trace_last ? to : v->trace_last;
	if ((v->trace_samples || v->monitored || v->any_memory) && v->from > v->to)
		return err_set(err, ENODATA,
			       "nothing was recorded then: the samples lie between %.9f s and "
			       "%.9f s after the start of the trace",
			       (double)view_ns(v, v->trace_first) / 1e9,
			       (double)view_ns(v, v->trace_last) / 1e9);
	return 0;
}

static const struct view *sorting; /* qsort has no argument for it */

static int by_samples(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	uint64_t m = sorting->lanes[x].samples, n = sorting->lanes[y].samples;

	if (m != n)
		return m < n ? -1 : 1;
	return x < y ? 1 : -1;
}

static void order_lanes(struct view *v)
{
	size_t n = v->t->nlanes;

	v->order = xcalloc(n, sizeof(*v->order));
	for (size_t i = 0; i < n; i++)
		v->order[i] = (uint32_t)i;
	sorting = v;
	if (n)
		qsort(v->order, n, sizeof(*v->order), by_samples);
	for (size_t i = 0; i < n; i++)
		v->lanes[v->order[i]].shown =
			n - i <= v->budget.lanes && v->lanes[v->order[i]].samples;
}

/* The greatest power of two that is not above n. */
static uint64_t power_below(uint64_t n)
{
	uint64_t p = 1;

	while (p <= n / 2)
		p *= 2;
	return p;
}

#define BINS_MOST 16384u /* screens are narrower; the rest is for zooming */
#define BINS_LEAST 64u

/* Bytes in the file: 12 a bin with its upper levels, 16 a call or sample, 20 a node, and so on. */
static void share_out(struct view *v)
{
	struct view_budget *b = &v->budget;
	uint64_t size = v->o->size, bins = size / 160, n = v->t->nlanes;

	b->lanes = n < bins / BINS_LEAST ? n : bins / BINS_LEAST;
	b->bins = power_below(bins / (b->lanes ? b->lanes : 1));
	b->bins = b->bins > BINS_MOST ? BINS_MOST : b->bins;
	b->cpus = power_below(bins / 2 / 16);
	b->cpus = b->cpus > BINS_MOST ? BINS_MOST : b->cpus;
	b->spans = size / 100;
	b->samples = size / 160;
	b->nodes = size / 800;
	b->functions = size / 1000;
	b->histograms = size / 60000;
	b->messages = size / 1000;
	b->losses = size / 4000;
	b->readings = size / 100;
	v->bin_ticks = (v->to - v->from) / b->bins + 1;
}

/* ---- the data ---- */

static void put_session(struct view *v)
{
	static const char *const keys[] = {
		"command",        "hostname",      "kernel",   "cpu",       "ncpu",
		"kron",           "clock_every",   "bus",      "when_full", "exit",
		"error",          "start_real_ns", "probe_ns", "filter",    "processes",
		"probe_ns_limit", "probe_ns_off",  "node",     "processes", "threads",
		"refused",        "probes"};
	struct json *j = &v->j;

	json_key(j, "session");
	json_open(j, '{');
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		const char *value = trace_session(v->t, keys[i]);

		if (value)
			view_put_key_name(j, keys[i], value);
	}
	json_close(j, '}');
}

static void put_processes(struct view *v)
{
	const struct trace *t = v->t;
	struct json *j = &v->j;

	json_key(j, "processes");
	json_open(j, '[');
	for (size_t i = 0; i < t->nprocs && i < v->budget.messages; i++) {
		const struct trace_proc *p = &t->procs[i];

		json_open(j, '{');
		json_ku64(j, "uid", p->uid);
		json_ku64(j, "pid", (uint64_t)p->pid);
		json_ku64(j, "parent", p->parent_uid);
		json_key(j, "fork");
		json_bool(j, p->by_fork);
		json_key(j, "known");
		json_bool(j, p->known);
		json_key(j, "start_ns");
		json_i64(j, p->start_tsc ? view_ns(v, p->start_tsc) : 0);
		view_put_key_name(j, "exe", p->exe ? text_base(p->exe) : "");
		view_put_key_name(j, "cmdline", p->cmdline ? p->cmdline : "");
		json_close(j, '}');
	}
	json_close(j, ']');
}

/* What the numbers of events of the user mean: number, name, level, payload, its type. */
static void put_user_events(struct view *v)
{
	struct json *j = &v->j;

	json_key(j, "user_events");
	json_open(j, '[');
	for (size_t i = 0; i < v->t->nuser_events && i < v->budget.functions; i++) {
		const struct trace_user_event *u = &v->t->user_events[i];
		char type[16];

		json_open(j, '[');
		json_u64(j, KRON_EVENT_ENTRY(u->n));
		view_put_name(j, u->name);
		json_u64(j, u->level);
		view_put_name(j, u->payload);
		json_str(j, value_type_text(&u->type, type));
		json_close(j, ']');
	}
	json_close(j, ']');
}

static void put_head(struct view *v)
{
	const struct trace *t = v->t;
	struct json *j = &v->j;
	char number[32];

	json_ku64(j, "version", 1);
	view_put_key_name(j, "dir", v->o->dir);
	json_key(j, "hz");
	json_f64(j, t->tsc_hz);
	snprintf(number, sizeof(number), "%" PRIu64, v->from); /* JSON's numbers have 53 bits */
	json_kstr(j, "from_tsc", number);
	json_key(j, "from_ns");
	json_i64(j, view_ns(v, v->from));
	json_key(j, "to_ns");
	json_i64(j, view_ns(v, v->to));
	json_key(j, "trace_from_ns");
	json_i64(j, view_ns(v, v->trace_first));
	json_key(j, "trace_to_ns");
	json_i64(j, view_ns(v, v->trace_last));
	json_ku64(j, "view_samples", v->samples);
	json_ku64(j, "view_records", v->records);
	json_ku64(j, "trace_samples", v->trace_samples);
	json_ku64(j, "trace_records", v->trace_records);
	json_ku64(j, "lost", t->lost);
	json_ku64(j, "cut_off", t->cut_off);
	json_ku64(j, "damaged", t->damaged);
	json_key(j, "complete");
	json_bool(j, t->complete);
	json_ku64(j, "bins", v->budget.bins);
	json_ku64(j, "bin_ticks", v->bin_ticks);
	json_ku64(j, "level_factor", VIEW_LEVEL_FACTOR);
	json_ku64(j, "lanes", t->nlanes);
	json_ku64(j, "lanes_shown", v->budget.lanes);
	json_ku64(j, "size", v->o->size);
	if (v->o->intervals)
		view_put_key_name(j, "intervals_file", v->o->intervals);
	if (v->o->where)
		view_put_key_name(j, "where", v->o->where);
	if (v->o->trigger)
		view_put_key_name(j, "trigger", v->o->trigger);
	put_session(v);
	put_processes(v);
	put_user_events(v);
}

static void put_counts(struct view *v)
{
	struct json *j = &v->j;

	json_key(j, "calls");
	json_open(j, '{');
	json_ku64(j, "calls", v->counts.calls);
	json_ku64(j, "inferred", v->counts.inferred);
	json_ku64(j, "open", v->counts.open);
	json_ku64(j, "orphans", v->counts.orphans);
	json_ku64(j, "spans_loss", v->counts.spans_loss);
	json_close(j, '}');
}

static void in_order(struct view *v, struct view_intervals *intervals)
{
	struct view_cpus *cpus = view_cpus_open(v);
	struct view_samples *samples = view_samples_open(v);
	struct trace_cursor *c = trace_cursor_open(v->t, -1);
	struct trace_event e;

	while (trace_cursor_next(c, &e)) {
		view_cpus_feed(cpus, &e);
		view_samples_feed(samples, &e);
		view_intervals_feed(intervals, &e);
	}
	trace_cursor_close(c);
	view_cpus_put(cpus);
	view_samples_put(samples);
	view_intervals_put(intervals);
	view_cpus_free(cpus);
	view_samples_free(samples);
}

static void put_data(struct view *v, struct view_intervals *intervals)
{
	struct json *j = &v->j;

	json_open(j, '{');
	put_head(v);
	view_calls(v);
	put_counts(v);
	view_monitor_put(v);
	view_memory_put(v);
	view_sleeps_put(v);
	view_put_functions(v);
	view_put_tree(v);
	view_calls_free(v);
	in_order(v, intervals);
	json_close(j, '}');
}

static int put_page(struct view *v, struct view_intervals *intervals, FILE *out, struct err *err)
{
	FILE *safe = view_put_open(out);

	if (!safe)
		return err_set(err, errno, "cannot open a stream: %s", strerror(errno));
	fwrite(view_page_before, 1, view_page_before_size, out);
	v->j = (struct json)JSON_INIT(safe);
	put_data(v, intervals);
	fclose(safe);
	if (v->o->detail)
		view_detail(v, out);
	fwrite(view_page_after, 1, view_page_after_size, out);
	return 0;
}

int report_view(const struct trace *t, const struct view_options *o, FILE *out, struct err *err)
{
	struct view v = {.t = t, .o = o, .plans = track_plans_open(t)};
	struct view_intervals *intervals = NULL;
	int ret = look(&v, err);

	if (!ret)
		ret = view_intervals_open(&intervals, &v, err);
	if (!ret) {
		share_out(&v);
		/* the file is asked first: nothing was written yet if it is wrong */
		order_lanes(&v);
		ret = put_page(&v, intervals, out, err);
	}
	view_intervals_free(intervals);
	for (size_t i = 0; i < t->nlanes; i++)
		view_rows_free(&v.lanes[i].rows);
	track_plans_close(v.plans);
	view_memory_free(&v);
	xfree(v.lanes);
	xfree(v.order);
	return ret;
}
