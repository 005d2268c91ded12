/* SPDX-License-Identifier: MIT */
/*
 * report_intervals.c - how often the intervals of an interval.info occur in a trace, and how
 * long they last.
 *
 *   interval.info ─► interval_info ─┐
 *   samples ─► intervals ───────────┴─► a row for each name (and thread, process or CPU)
 *
 * Events are their numbers, or names of functions.  Ends of classes 1 to 3 belong to begins of
 * the same thread, so threads are read one after another; class 4 is matched over all threads,
 * and only then are they merged.  Lengths are counted in histograms of bounded size.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/number.h"
#include "base/search.h"
#include "base/str.h"
#include "base/vec.h"
#include "trace/index.h"
#include "trace/analysis/interval_names.h"
#include "trace/analysis/intervals.h"
#include "trace/analysis/profile.h"
#include "trace/text.h"
#include "trace/report/report.h"
#include "trace/report/report_slack.h"

struct interval_row { /* times in ticks */
	uint32_t def, part;
	uint32_t group; /* lane, process or CPU */
	uint64_t count, sum, min, max;
	uint64_t negative; /* ends that are earlier than their begins, counted as 0 */
	uint64_t most_negative;
	uint64_t spans_loss; /* samples of its thread were lost inside, or its functions slept */
	uint64_t probes;     /* within sum, of those that begin and end in one thread */
	bool across_threads; /* some do not */
	profile_square squares;
	struct loghist lengths;
	struct slack *slack; /* NULL: each sample has read the clock */
};

struct lane_now {
	uint64_t samples; /* so far */
	int64_t loss;     /* time of the last one */
	bool has_loss;
};

/* A function of a definition was out of the program for a while. */
struct gone {
	uint32_t node;
	int64_t since, until; /* its going */
};
typedef VEC(struct gone) gone_list;

struct by_intervals {
	const struct trace *t;
	const struct intervals_options *o;
	struct interval_info info;
	struct intervals *m;
	struct lane_now *lanes;
	gone_list *gone; /* by definition, in order of `until`; NULL: none has slept */
	struct index keys;
	VEC(struct interval_row) rows; /* by index of key */
	uint64_t lost;                 /* by the records among the samples */
	double probe_ticks, probe_error;
	bool is_sparse;
	bool guessed_order; /* samples of different threads were matched, by estimates */
};

/* ---- gathering ---- */

static uint32_t group_of(const struct by_intervals *r, const struct interval *i)
{
	switch (r->o->by) {
	case PROFILE_BY_THREAD:
		return i->source;
	case PROFILE_BY_PROCESS:
		return r->t->lanes[i->source].proc_uid;
	case PROFILE_BY_CPU:
		return i->cpu;
	default:
		return 0;
	}
}

static struct interval_row *row_of(struct by_intervals *r, size_t def, int part, uint32_t group)
{
	uint64_t key = ((uint64_t)def * INTERVAL_ROWS + (uint64_t)part) << 32 | group;
	uint32_t at = index_of(&r->keys, key);

	if (at == r->rows.n)
		*vec_push(&r->rows) = (struct interval_row){.def = (uint32_t)def,
							    .part = (uint32_t)part,
							    .group = group,
							    .min = UINT64_MAX};
	return &r->rows.v[at];
}

static bool names_one_of(const struct by_intervals *r, const struct interval_def *def,
			 const struct trace_sleep *row)
{
	for (int i = 0; i < def->nevents; i++)
		if (def->event[i] < KRON_EVENT_JUMPS &&
		    trace_sleep_has(r->t, row, (uint32_t)def->event[i] / 2))
			return true;
	return false;
}

static void list_gone(struct by_intervals *r)
{
	const struct trace *t = r->t;

	if (!t->nsleeps)
		return;
	r->gone = xcalloc(r->info.defs.n + 1, sizeof(*r->gone));
	for (size_t d = 0; d < r->info.defs.n; d++)
		for (size_t i = 0; i < t->nsleeps; i++) {
			const struct trace_sleep *row = &t->sleeps[i];

			if (!row->wakes && names_one_of(r, &r->info.defs.v[d], row))
				*vec_push(&r->gone[d]) = (struct gone){
					row->node, (int64_t)row->since, (int64_t)row->until};
		}
}

/* What ended it, or began it, may be another one's: those in between were not seen. */
static bool spans_sleep(const struct by_intervals *r, size_t def, const struct interval *i)
{
	const gone_list *g = &r->gone[def];
	const int64_t end = i->begin + i->ticks;
	size_t k = partition_point(x, g->n, g->v[x].until < i->begin);

	for (; k < g->n && g->v[k].since <= end; k++)
		if (g->v[k].node == r->t->lanes[i->source].node)
			return true;
	return false;
}

static void on_interval(void *arg, size_t def, int part, const struct interval *i)
{
	struct by_intervals *r = arg;
	struct interval_row *row = row_of(r, def, part, group_of(r, i));
	const struct lane_now *lane = &r->lanes[i->source];
	uint64_t time = i->ticks > 0 ? (uint64_t)i->ticks : 0;

	row->count++;
	row->sum += time;
	row->squares += (profile_square)time * time;
	row->negative += i->ticks < 0;
	if (i->ticks < 0 && 0 - (uint64_t)i->ticks > row->most_negative)
		row->most_negative = 0 - (uint64_t)i->ticks;
	row->spans_loss +=
		(lane->has_loss && i->begin <= lane->loss) || (r->gone && spans_sleep(r, def, i));
	if (i->source == i->end_source)
		row->probes += i->end_mark - i->begin_mark;
	else
		row->across_threads = true;
	if (time < row->min)
		row->min = time;
	if (time > row->max)
		row->max = time;
	loghist_add(&row->lengths, time);
	if (!r->is_sparse)
		return;
	r->guessed_order |= r->info.defs.v[def].class == 4 && interval_is_between(i);
	slack_add_interval(slack_at(&row->slack), i);
}

/* Rows that did not occur are shown, too. */
static void make_rows(struct by_intervals *r)
{
	for (size_t d = 0; r->o->by == PROFILE_BY_FUNCTION && d < r->info.defs.n; d++)
		for (int part = 0; part < r->info.defs.v[d].nrows; part++)
			row_of(r, d, part, 0);
}

static bool reach_across_threads(const struct interval_info *info)
{
	for (size_t d = 0; d < info->defs.n; d++)
		if (info->defs.v[d].class == 4)
			return true;
	return false;
}

/* Of one thread; -1: of all, by time. */
static void read_samples(struct by_intervals *r, int thread)
{
	struct trace_cursor *c = trace_cursor_open(r->t, thread);
	struct trace_event e;

	while (trace_cursor_next(c, &e)) {
		struct lane_now *lane = &r->lanes[e.lane];

		if (e.s.event == KRON_EVENT_LOST) {
			lane->loss = (int64_t)e.tsc;
			lane->has_loss = true;
			r->lost += e.s.payload;
		}
		if (e.s.event >= KRON_EVENT_SPECIAL)
			continue;
		interval_feed(r->m, r->t, &e, ++lane->samples);
	}
	trace_cursor_close(c);
}

static void gather(struct by_intervals *r)
{
	bool merged = reach_across_threads(&r->info);

	r->lanes = xcalloc(r->t->nlanes, sizeof(*r->lanes));
	r->m = interval_matcher(&r->info, r->t, merged ? MATCH_SOURCE : MATCH_ANY, on_interval, r);
	make_rows(r);
	list_gone(r);
	if (merged)
		read_samples(r, -1);
	for (size_t lane = 0; !merged && lane < r->t->nlanes; lane++) {
		read_samples(r, (int)lane);
		intervals_end_source(r->m);
	}
	intervals_finish(r->m);
}

static int by_place(const void *a, const void *b)
{
	const struct interval_row *x = a, *y = b;

	if (x->def != y->def)
		return x->def < y->def ? -1 : 1;
	if (x->part != y->part)
		return x->part < y->part ? -1 : 1;
	return (x->group > y->group) - (x->group < y->group);
}

/* ---- output ---- */

static uint64_t minimum(const struct interval_row *w)
{
	return w->count ? w->min : 0;
}

/* Of the sum in ns: a whole number of ticks is too rough for short ones. */
static uint64_t average_ns(const struct by_intervals *r, const struct interval_row *w)
{
	return w->count ? trace_ns(r->t, w->sum) / w->count : 0;
}

static uint64_t percentile(const struct interval_row *w, unsigned percent)
{
	uint64_t v = loghist_percentile(&w->lengths, percent);

	return v > w->max ? w->max : v < minimum(w) ? minimum(w) : v;
}

/* ns */
static struct trace_bounds average_in(const struct by_intervals *r, const struct interval_row *w)
{
	return slack_around_average(w->slack, average_ns(r, w),
				    w->slack ? trace_ns(r->t, w->slack->sum) : 0, w->count);
}

static double deviation(const struct interval_row *w)
{
	long double mean = w->count ? (long double)w->sum / w->count : 0;
	long double v = w->count ? (long double)w->squares / w->count - mean * mean : 0;

	return v > 0 ? (double)sqrtl(v) : 0;
}

static uint64_t virtual_sum(const struct by_intervals *r, const struct interval_row *w)
{
	double cost = (double)w->probes * r->probe_ticks;

	return cost < (double)w->sum ? w->sum - (uint64_t)(cost + 0.5) : 0;
}

static void put_group(const struct by_intervals *r, uint32_t group, FILE *out)
{
	const struct trace_proc *proc;

	if (r->o->by == PROFILE_BY_THREAD)
		fprintf(out, "  thread %u", r->t->lanes[group].tid);
	if (r->o->by == PROFILE_BY_CPU)
		fprintf(out, "  CPU %u", group);
	if (r->o->by == PROFILE_BY_PROCESS) {
		proc = trace_proc_of(r->t, group);
		fprintf(out, "  process %d", proc ? proc->pid : 0);
	}
}

static void put_ns(uint64_t ns, FILE *out)
{
	text_put_duration(out, ns);
	fputs("  ", out);
}

static void put_time(const struct by_intervals *r, uint64_t ticks, FILE *out)
{
	put_ns(trace_ns(r->t, ticks), out);
}

static void put_average(const struct by_intervals *r, const struct interval_row *w, FILE *out)
{
	const struct trace_bounds in = average_in(r, w);

	text_put_bounded(out, average_ns(r, w), in.lo, in.hi);
	fputs("  ", out);
}

static void put_percentile(const struct by_intervals *r, const struct interval_row *w,
			   unsigned percent, FILE *out)
{
	const uint64_t ticks = percentile(w, percent);

	report_slack_put_length(r->t, ticks,
				w->slack ? slack_percentile(w->slack, percent)
					 : (struct trace_bounds){ticks, ticks},
				out);
	fputs("  ", out);
}

static uint64_t virtual_error(const struct by_intervals *r, const struct interval_row *w)
{
	return number_u64((double)w->probes * r->probe_error) + (w->slack ? w->slack->sum : 0);
}

static void print_virtual(const struct by_intervals *r, const struct interval_row *w, FILE *out)
{
	uint64_t sum = virtual_sum(r, w);
	char error[STR_NUMBER];

	if (w->across_threads || !w->count)
		return;
	fprintf(out, "%12s  ", "");
	put_time(r, sum, out);
	put_ns(trace_ns(r->t, sum) / w->count, out);
	fprintf(out, "  virtual; total +-%s\n",
		str_duration(error, sizeof(error), trace_ns(r->t, virtual_error(r, w))));
}

static void print_row(const struct by_intervals *r, const struct interval_row *w, FILE *out)
{
	char count[STR_NUMBER], most[STR_NUMBER];

	fprintf(out, "%12s  ", str_thousands(count, sizeof(count), w->count));
	put_time(r, w->sum, out);
	put_average(r, w, out);
	report_slack_put_shortest(r->t, w->slack, minimum(w), out);
	fputs("  ", out);
	put_percentile(r, w, 50, out);
	put_percentile(r, w, 90, out);
	put_percentile(r, w, 99, out);
	report_slack_put_longest(r->t, w->slack, w->max, out);
	fputs("  ", out);
	text_put(out, r->info.defs.v[w->def].name[w->part]);
	put_group(r, w->group, out);
	if (w->spans_loss)
		fprintf(out, "  (%" PRIu64 " across a loss%s)", w->spans_loss,
			r->gone ? ", or a time when their functions were not seen" : "");
	if (w->negative)
		fprintf(out,
			"  (%" PRIu64
			" end before they begin, by %s at most: the clocks of the nodes disagree)",
			w->negative,
			str_duration(most, sizeof(most), trace_ns(r->t, w->most_negative)));
	report_slack_put_sum(r->t, w->slack, w->sum, out);
	fputc('\n', out);
	if (r->o->virtual)
		print_virtual(r, w, out);
	if (r->o->histogram) {
		loghist_print(&w->lengths, r->t, out);
		report_slack_put_elsewhere(w->slack, &w->lengths, out);
	}
}

static void print_left(const struct by_intervals *r, FILE *out)
{
	for (size_t d = 0; d < r->info.defs.n; d++) {
		const struct interval_def *def = &r->info.defs.v[d];
		const struct intervals_left *left = intervals_left(r->m, d);

		if (!left->begun && !left->ended)
			continue;
		fprintf(out, "not in any: %" PRIu64 " begins, %" PRIu64 " ends of ", left->begun,
			left->ended);
		text_put(out, def->name[def->nrows - 1]);
		fputc('\n', out);
	}
}

static void print_text(struct by_intervals *r, FILE *out)
{
	char lost[STR_NUMBER];

	fprintf(out, "%12s  %10s  %10s  %10s  %10s  %10s  %10s  %10s  %s\n", "Count", "Total time",
		"Avg time", "Min time", "p50", "p90", "p99", "Max time", "Interval");
	vec_for(&r->rows, w)
		print_row(r, w, out);
	fputc('\n', out);
	print_left(r, out);
	fprintf(out, "%s samples lost%s; percentiles are within %.1f%%\n",
		str_thousands(lost, sizeof(lost), r->t->lost > r->lost ? r->t->lost : r->lost),
		report_missing(r->t), LOGHIST_ERROR_PERCENT);
	report_slack_foot(r->t, out);
	if (r->guessed_order)
		fputs(REPORT_SLACK_ORDER, out);
}

static void json_time(struct json *j, const struct by_intervals *r, const char *key, uint64_t ticks)
{
	json_ku64(j, key, trace_ns(r->t, ticks));
}

static void json_group(struct json *j, const struct by_intervals *r, const struct interval_row *w)
{
	const struct trace_proc *proc;

	if (r->o->by == PROFILE_BY_CPU)
		json_ku64(j, "cpu", w->group);
	if (r->o->by == PROFILE_BY_THREAD)
		json_ku64(j, "thread", r->t->lanes[w->group].tid);
	if (r->o->by == PROFILE_BY_PROCESS) {
		proc = trace_proc_of(r->t, w->group);
		json_ku64(j, "process", proc ? (uint64_t)proc->pid : 0);
		json_ku64(j, "process_uid", w->group);
	}
}

static void json_slack(struct json *j, const struct by_intervals *r, const struct interval_row *w)
{
	const double ns = 1e9 / r->t->tsc_hz, deviates = deviation(w);
	const struct slack *s = w->slack;
	double off;

	if (!s)
		return;
	off = sqrt((double)(s->squares / w->count));
	report_slack_json(j, r->t, "total_low_ns", "total_high_ns",
			  slack_around(s, w->sum, s->sum));
	report_slack_json_ns(j, "avg_low_ns", "avg_high_ns", average_in(r, w));
	report_slack_json_extremes(j, r->t, s);
	report_slack_json(j, r->t, "p50_low_ns", "p50_high_ns", slack_percentile(s, 50));
	report_slack_json(j, r->t, "p90_low_ns", "p90_high_ns", slack_percentile(s, 90));
	report_slack_json(j, r->t, "p99_low_ns", "p99_high_ns", slack_percentile(s, 99));
	json_key(j, "stddev_low_ns");
	json_f64(j, deviates > off ? (deviates - off) * ns : 0);
	json_key(j, "stddev_high_ns");
	json_f64(j, s->has_no_end ? NAN : (deviates + off) * ns);
	if (r->o->virtual && !w->across_threads)
		report_slack_json(j, r->t, "total_virtual_low_ns", "total_virtual_high_ns",
				  slack_around(s, virtual_sum(r, w), virtual_error(r, w)));
}

static void json_row(struct json *j, const struct by_intervals *r, const struct interval_row *w)
{
	const struct interval_def *def = &r->info.defs.v[w->def];

	json_open(j, '{');
	json_kstr(j, "interval", def->name[w->part]);
	json_ku64(j, "class", (uint64_t)def->class);
	json_ku64(j, "line", def->line);
	json_group(j, r, w);
	json_ku64(j, "count", w->count);
	json_time(j, r, "total_ns", w->sum);
	json_ku64(j, "avg_ns", average_ns(r, w));
	json_time(j, r, "min_ns", minimum(w));
	json_time(j, r, "p50_ns", percentile(w, 50));
	json_time(j, r, "p90_ns", percentile(w, 90));
	json_time(j, r, "p99_ns", percentile(w, 99));
	json_time(j, r, "max_ns", w->max);
	json_key(j, "stddev_ns");
	json_f64(j, deviation(w) * 1e9 / r->t->tsc_hz);
	if (r->o->virtual && !w->across_threads)
		json_time(j, r, "total_virtual_ns", virtual_sum(r, w));
	json_slack(j, r, w);
	json_ku64(j, "spans_loss", w->spans_loss);
	json_ku64(j, "negative", w->negative);
	json_time(j, r, "most_negative_ns", w->most_negative);
	json_ku64(j, "begun", intervals_left(r->m, w->def)->begun);
	json_ku64(j, "ended", intervals_left(r->m, w->def)->ended);
	if (r->o->histogram) {
		json_key(j, "histogram");
		loghist_json(&w->lengths, r->t, j);
		report_slack_json_elsewhere(j, w->slack);
	}
	json_close(j, '}');
}

static void print_json(struct by_intervals *r, FILE *out)
{
	struct json j = JSON_INIT(out);

	json_open(&j, '[');
	vec_for(&r->rows, w) {
		fputc('\n', out);
		json_row(&j, r, w);
	}
	json_close(&j, ']');
}

int report_intervals(const struct trace *t, const struct intervals_options *o, FILE *out,
		     struct err *err)
{
	struct by_intervals r = {.t = t, .o = o, .is_sparse = trace_clock_every(t) > 1};
	int ret = o->virtual ? profile_check_virtual(t, err) : 0;

	if (!ret)
		ret = interval_info_open(&r.info, t, o->file, err);
	if (!ret) {
		profile_know_probe(t, &r.probe_ticks, &r.probe_error);
		gather(&r);
		if (r.rows.n)
			qsort(r.rows.v, r.rows.n, sizeof(*r.rows.v), by_place);
		(o->json ? print_json : print_text)(&r, out);
		intervals_free(r.m);
	}
	vec_for(&r.rows, w) {
		loghist_free(&w->lengths);
		slack_free(w->slack);
	}
	vec_free(&r.rows);
	index_free(&r.keys);
	xfree(r.lanes);
	for (size_t d = 0; r.gone && d < r.info.defs.n; d++)
		vec_free(&r.gone[d]);
	xfree(r.gone);
	interval_info_free(&r.info);
	return ret;
}
