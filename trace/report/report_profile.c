/* SPDX-License-Identifier: MIT */
/*
 * report_profile.c - calls and times by function; trace/analysis/profile.c adds them up.
 *
 *   ~N without exit  calls closed by inference: by an exception, or because the exit has no
 *                    probe.  Their times are upper limits.
 *   virtual          with --virtual, a second line below each row: the same times without the
 *                    cost of the probes that they enclose
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "trace/analysis/cost.h"
#include "trace/analysis/profile.h"
#include "trace/jumps.h"
#include "trace/text.h"
#include "trace/report/report.h"
#include "trace/report/report_slack.h"
#include "trace/report/report_sleeps.h"

struct report {
	struct profile p;
	const struct trace *t;
	const struct profile_options *o;
	uint64_t self_sum; /* of the table that is printed */
	struct offcpu_counts switches;
	struct watched
		watched; /* empty where calls are not estimated: with a filter, and by anything else */
};

/* ---- sorting ---- */

static int by_name(const struct trace *t, const struct profile_row *x, const struct profile_row *y)
{
	char bx[32], by[32];

	return strcmp(text_function(t, x->function, bx, sizeof(bx)),
		      text_function(t, y->function, by, sizeof(by)));
}

/* Groups in the trace's order; numbers from large to small, words from a to z. */
static int by_options(const void *a, const void *b, void *ctx)
{
	const struct profile_row *x = a, *y = b;
	const struct report *r = ctx;
	int key = r->o->sort, order = 0;

	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	if (key == PROFILE_MODULE)
		order = strcmp(text_module(r->t, x->function), text_module(r->t, y->function));
	if (!order && key == PROFILE_NAME)
		order = by_name(r->t, x, y);
	if (!order) {
		uint64_t vx = profile_value(x, key), vy = profile_value(y, key);

		order = (vx < vy) - (vx > vy);
	}
	if (!order)
		order = by_name(r->t, x, y);
	return order ? order : (x->function > y->function) - (x->function < y->function);
}

/* ---- text ---- */

static void print_process(const struct report *r, const struct trace_proc *proc, FILE *out)
{
	char pid[TRACE_PID_TEXT];

	fputs("process ", out);
	text_put(out, trace_pid_text(r->t, proc, pid, sizeof(pid)));
}

static void print_group(const struct report *r, uint32_t group, FILE *out)
{
	const struct trace_lane *l = &r->t->lanes[group];
	const struct trace_proc *proc;

	if (r->o->by == PROFILE_BY_CPU) {
		fprintf(out, "CPU %u:\n", group);
		return;
	}
	if (r->o->by == PROFILE_BY_GROUP) {
		fprintf(out, "filter level %u:\n", group);
		return;
	}
	proc = trace_proc_of(r->t, l->proc_uid);
	if (r->o->by == PROFILE_BY_THREAD) {
		fprintf(out, "thread %u", l->tid);
		if (l->name[0]) {
			fputs(" (", out);
			text_put(out, l->name);
			fputc(')', out);
		}
		fputs(" of ", out);
	}
	if (proc && proc->known)
		print_process(r, proc, out);
	else
		fputs("an unknown process", out);
	if (proc && proc->exe[0]) {
		fputs(" (", out);
		text_put(out, text_base(proc->exe));
		fputc(')', out);
	}
	fputs(":\n", out);
}

#define GAP "  "
#define RULE "=========="

static void print_head(const struct report *r, FILE *out)
{
	bool more = r->o->percentiles;

	fprintf(out,
		"Total time" GAP " Self time" GAP "Self %%" GAP "%s       Calls" GAP
		"  Avg time" GAP "  Min time" GAP "%s  Max time" GAP "Function [Module]\n",
		r->o->on_cpu ? " Total CPU" GAP "  Self CPU" GAP : "",
		more ? "       p50" GAP "       p90" GAP "       p99" GAP : "");
	fprintf(out,
		RULE GAP RULE GAP "======" GAP "%s============" GAP RULE GAP RULE GAP "%s" RULE GAP
				  "=================\n",
		r->o->on_cpu ? RULE GAP RULE GAP : "", more ? RULE GAP RULE GAP RULE GAP : "");
}

static void put_ns(uint64_t ns, FILE *out)
{
	text_put_duration(out, ns);
	fputs(GAP, out);
}

static void put_time(const struct report *r, uint64_t ticks, FILE *out)
{
	put_ns(trace_ns(r->t, ticks), out);
}

static void put_shortest(const struct report *r, const struct profile_row *row, FILE *out)
{
	report_slack_put_shortest(r->t, row->s.slack, profile_minimum(&row->s), out);
	fputs(GAP, out);
}

static void put_longest(const struct report *r, const struct profile_row *row, FILE *out)
{
	report_slack_put_longest(r->t, row->s.slack, profile_maximum(&row->s), out);
	fputs(GAP, out);
}

static void put_percentiles(const struct report *r, const uint64_t *v, FILE *out)
{
	for (int i = 0; r->o->percentiles && i < PROFILE_NPERCENTILES; i++)
		put_time(r, v[i], out);
}

static void put_bounded_percentiles(const struct report *r, const uint64_t *v,
				    const struct trace_bounds *in, const struct slack *s, FILE *out)
{
	if (!s || !s->has_calls) {
		put_percentiles(r, v, out);
		return;
	}
	for (int i = 0; r->o->percentiles && i < PROFILE_NPERCENTILES; i++) {
		report_slack_put_length(r->t, v[i], in[i], out);
		fputs(GAP, out);
	}
}

static void put_average(const struct trace *t, const struct profile_stat *s, FILE *out)
{
	const struct trace_bounds in = profile_average_in(t, s);

	text_put_bounded(out, profile_average_ns(t, s), in.lo, in.hi);
	fputs(GAP, out);
}

static void print_virtual(const struct report *r, const struct profile_row *row, FILE *out)
{
	const struct slack *x = row->s.more ? row->s.more->virtual_slack : NULL;
	struct profile_virtual v = profile_virtual_of(&r->p, row);
	char a[STR_NUMBER], b[STR_NUMBER];

	put_time(r, v.total, out);
	put_time(r, v.self, out);
	fprintf(out, "%6s" GAP "%*s%12s" GAP, "", r->o->on_cpu ? 24 : 0, "", "");
	text_put_bounded(out, v.average_ns, v.average_in.lo, v.average_in.hi);
	fputs(GAP, out);
	report_slack_put_shortest(r->t, x, v.minimum, out);
	fputs(GAP, out);
	put_bounded_percentiles(r, row->virtual_percentile, row->virtual_percentile_in, x, out);
	report_slack_put_longest(r->t, x, v.maximum, out);
	if (row->s.slack && row->s.slack->has_no_end)
		fputs(GAP "  virtual\n", out);
	else
		fprintf(out, GAP "  virtual; total +-%s, self +-%s\n",
			str_duration(a, sizeof(a), trace_ns(r->t, v.total_error)),
			str_duration(b, sizeof(b), trace_ns(r->t, v.self_error)));
}

static void put_on_cpu_slack(const struct report *r, const struct profile_row *row, FILE *out)
{
	const struct slack *s = r->o->on_cpu && row->s.more ? row->s.more->on_cpu : NULL;

	if (!s || !(s->total || s->self || s->has_no_end))
		return;
	report_slack_put_off(r->t, s, ", total CPU", profile_on_cpu_total(row), s->total, out);
	report_slack_put_off(r->t, s, ", self CPU", profile_on_cpu_self(row), s->self, out);
}

static bool has_way(const struct trace *t, uint32_t function, enum trace_way way)
{
	const struct trace_function *f = trace_function_of(t, KRON_EVENT_ENTRY(function));

	return f && f->ways & way;
}

static void print_row(const struct report *r, const struct profile_row *row, FILE *out)
{
	const struct profile_stat *s = &row->s;
	const struct trace *t = r->t;
	char calls[STR_NUMBER];

	put_time(r, s->total, out);
	put_time(r, s->self, out);
	fprintf(out, "%5.1f%%" GAP,
		r->self_sum ? 100.0 * (double)s->self / (double)r->self_sum : 0.0);
	if (r->o->on_cpu) {
		put_time(r, profile_on_cpu_total(row), out);
		put_time(r, profile_on_cpu_self(row), out);
	}
	fprintf(out, "%12s" GAP, str_thousands(calls, sizeof(calls), s->calls));
	put_average(t, s, out);
	put_shortest(r, row, out);
	put_bounded_percentiles(r, row->percentile, row->percentile_in, s->slack, out);
	put_longest(r, row, out);
	text_put_function(out, t, row->function);
	fputs(" [", out);
	text_put(out, text_base(text_module(t, row->function)));
	fputs(has_way(t, row->function, TRACE_CHOOSES) ? "] (resolver)" : "]", out);
	if (s->inferred)
		fprintf(out, "  ~%s without exit",
			s->inferred == s->calls ? "all"
						: str_thousands(calls, sizeof(calls), s->inferred));
	if (s->at_least)
		fputs(", at least so long", out);
	report_slack_put(t, s->slack, s->total, s->self, out);
	put_on_cpu_slack(r, row, out);
	fputc('\n', out);
	if (r->o->virtual)
		print_virtual(r, row, out);
	if (r->o->histogram) {
		loghist_print(&s->lengths, t, out);
		report_slack_put_elsewhere(s->slack, &s->lengths, out);
	}
}

static void print_count(FILE *out, uint64_t n, const char *text)
{
	char number[STR_NUMBER];

	if (n)
		fprintf(out, ", %s %s", str_thousands(number, sizeof(number), n), text);
}

/* What "Self %" is of: all rows of one table, also those that -n leaves out. */
static uint64_t sum_self(const struct report *r, size_t from)
{
	const struct profile_row *row = r->p.rows.v;
	uint64_t sum = 0;

	for (size_t i = from; i < r->p.rows.n && row[i].group == row[from].group; i++)
		sum += row[i].s.self;
	return sum;
}

/* ---- what stands below ---- */

struct totals {
	uint64_t lost, overwritten, cut_off;
	double probe_ns, error_ns, threads_ns;
	struct cost cost; /* of all probes, or, with a filter, of those that are seen */
};

static struct totals know_totals(const struct report *r)
{
	const struct profile_totals *p = &r->p.totals;
	double ns = 1e9 / r->t->tsc_hz;
	struct totals s = {
		.lost = r->t->lost > p->lost ? r->t->lost : p->lost,
		.overwritten = trace_session_number(r->t, "overwritten", 0),
		.cut_off = r->t->cut_off,
		.probe_ns = r->p.probe_ticks * ns,
		.error_ns = r->p.probe_error * ns,
		.threads_ns = (double)p->thread_ticks * ns,
	};

	if (r->t->filter)
		cost_take(&s.cost, p->samples, s.probe_ns, s.error_ns, 0, 0);
	else
		cost_of_trace(&s.cost, r->t, p->samples);
	return s;
}

static void print_cost(const struct totals *s, FILE *out)
{
	char number[STR_NUMBER];

	if (s->probe_ns <= 0) {
		fputs("what a probe costs was not measured\n", out);
		return;
	}
	fprintf(out, "%s probe%s of %.1f ns (+-%.1f): ",
		str_thousands(number, sizeof(number), s->cost.probes),
		s->cost.probes == 1 ? "" : "s", s->probe_ns, s->error_ns);
	cost_print(out, &s->cost);
	fputc('\n', out);
}

static void print_losses(const struct report *r, const struct totals *s, FILE *out)
{
	const struct profile_totals *p = &r->p.totals;
	char number[STR_NUMBER], places[STR_NUMBER];

	fprintf(out, "; %s sample%s lost", str_thousands(number, sizeof(number), s->lost),
		s->lost == 1 ? "" : "s");
	if (p->loss_places)
		fprintf(out, " in %s place%s",
			str_thousands(places, sizeof(places), p->loss_places),
			p->loss_places == 1 ? "" : "s");
	print_count(out, s->overwritten, "overwritten");
	print_count(out, s->cut_off, "cut off by a kill or a longjmp");
	fprintf(out, "%s\n", report_missing(r->t));
}

static uint64_t on_cpu_ns(const struct report *r)
{
	const struct profile_totals *p = &r->p.totals;

	return trace_ns(r->t, p->thread_ticks > p->off_ticks ? p->thread_ticks - p->off_ticks : 0);
}

static void print_switches(const struct report *r, FILE *out)
{
	char on[STR_NUMBER], all[STR_NUMBER], number[STR_NUMBER];

	fprintf(out, "threads were on a processor for %s of %s; %s context switch%s",
		str_duration(on, sizeof(on), on_cpu_ns(r)),
		str_duration(all, sizeof(all), trace_ns(r->t, r->p.totals.thread_ticks)),
		str_thousands(number, sizeof(number), r->switches.outs),
		r->switches.outs == 1 ? "" : "es");
	print_count(out, r->switches.preempted, "involuntary");
	print_count(out, r->switches.lost, "records of them lost: on-CPU times are upper limits");
	fputc('\n', out);
}

#define TARGETS 4 /* that are named */

/* What they jumped to, as far as the trace has names for it. */
static void print_targets(const struct report *r, FILE *out)
{
	const char *said[TARGETS];
	size_t n = 0, k;

	for (size_t i = 0; i < r->p.left_by.n; i++) {
		const char *name = trace_jump_known_name(r->t, r->p.left_by.v[i]);

		if (!name || n == TARGETS)
			continue;
		for (k = 0; k < n && strcmp(said[k], name) != 0;)
			k++;
		if (k < n)
			continue;
		fputs(n ? ", " : " (", out);
		text_put(out, name);
		said[n++] = name;
	}
	if (n)
		fputc(')', out);
}

static void print_at_least(const struct report *r, FILE *out)
{
	const uint64_t n = r->p.totals.calls.at_least;
	char number[STR_NUMBER];

	if (!n)
		return;
	fprintf(out, "%s call%s left by a jump to a function that was not recorded",
		str_thousands(number, sizeof(number), n), n == 1 ? "" : "s");
	print_targets(r, out);
	fprintf(out,
		": %s time%s at least what is shown; record that function, too, or who called %s\n",
		n == 1 ? "its" : "their", n == 1 ? " is" : "s are", n == 1 ? "it" : "them");
}

static void print_led_to(const struct report *r, FILE *out)
{
	const uint64_t n = r->p.totals.calls.led_to;
	char number[STR_NUMBER];

	if (n)
		fprintf(out,
			"%s call%s taken for what a jump through a pointer led to (kron-report(1), Tail calls)\n",
			str_thousands(number, sizeof(number), n), n == 1 ? " is" : "s are");
}

static void print_foot(struct report *r, FILE *out)
{
	const struct pair_counts *c = &r->p.totals.calls;
	struct totals s = know_totals(r);
	char number[STR_NUMBER];

	fprintf(out, "%s call%s", str_thousands(number, sizeof(number), c->entries),
		c->entries == 1 ? "" : "s");
	print_count(out, c->inferred, "of them without an exit (closed by inference)");
	print_count(out, c->open, "still running at the end");
	print_count(out, c->spans_loss,
		    r->t->nsleeps ? "across a loss, or a time when their function was not seen"
				  : "across a loss");
	print_count(out, c->orphans, "exits without an entry");
	print_losses(r, &s, out);
	fprintf(out, "%s migration%s of threads to another CPU",
		str_thousands(number, sizeof(number), r->p.totals.migrations),
		r->p.totals.migrations == 1 ? "" : "s");
	if (r->o->by == PROFILE_BY_CPU)
		print_count(out, r->p.totals.moved,
			    "calls ended on another CPU than the one they count for");
	fputc('\n', out);
	print_at_least(r, out);
	print_led_to(r, out);
	print_cost(&s, out);
	if (r->o->on_cpu)
		print_switches(r, out);
	report_slack_foot(r->t, out);
	if (r->o->percentiles || r->o->histogram)
		fprintf(out, "percentiles are within %.1f%%\n", LOGHIST_ERROR_PERCENT);
}

static void print_text(struct report *r, FILE *out)
{
	const struct profile_options *o = r->o;
	uint64_t shown = 0;

	if (o->by == PROFILE_BY_FUNCTION || !r->p.rows.n)
		print_head(r, out);
	r->self_sum = sum_self(r, 0);
	vec_for(&r->p.rows, row) {
		if (o->by != PROFILE_BY_FUNCTION &&
		    (row == r->p.rows.v || row[-1].group != row->group)) {
			if (row != r->p.rows.v)
				fputc('\n', out);
			r->self_sum = sum_self(r, (size_t)(row - r->p.rows.v));
			print_group(r, row->group, out);
			print_head(r, out);
			shown = 0;
		}
		if (!o->limit || shown++ < o->limit)
			print_row(r, row, out);
	}
	report_sleeps_estimates(&r->watched, o->limit, out);
	fputc('\n', out);
	print_foot(r, out);
}

/* ---- JSON ---- */

static void json_time(struct json *j, const struct report *r, const char *key, uint64_t ticks)
{
	json_ku64(j, key, trace_ns(r->t, ticks));
}

static void json_real(struct json *j, const char *key, double v)
{
	json_key(j, key);
	json_f64(j, v);
}

static void json_group(struct json *j, const struct report *r, uint32_t group)
{
	const struct trace_lane *l = &r->t->lanes[group];
	const struct trace_proc *proc;

	if (r->o->by == PROFILE_BY_CPU) {
		json_ku64(j, "cpu", group);
		return;
	}
	if (r->o->by == PROFILE_BY_GROUP) {
		json_ku64(j, "level", group);
		return;
	}
	proc = trace_proc_of(r->t, l->proc_uid);
	if (r->o->by == PROFILE_BY_THREAD) {
		json_ku64(j, "thread", l->tid);
		json_kstr(j, "thread_name", l->name[0] ? l->name : NULL);
	}
	json_ku64(j, "process", proc ? (uint64_t)proc->pid : 0);
	if (trace_nodes(r->t))
		json_kstr(j, "node", trace_node_at(r->t, l->node)->name);
	json_ku64(j, "process_uid", l->proc_uid);
	json_kstr(j, "exe", proc && proc->exe[0] ? proc->exe : NULL);
}

static void json_virtual_slack(struct json *j, const struct report *r,
			       const struct profile_row *row, const struct profile_virtual *v)
{
	const struct trace_bounds *in = row->virtual_percentile_in;
	const struct slack *s = row->s.slack, *x = row->s.more ? row->s.more->virtual_slack : NULL;

	if (!s || !x)
		return;
	report_slack_json(j, r->t, "total_virtual_low_ns", "total_virtual_high_ns",
			  slack_around(s, v->total, v->total_error));
	report_slack_json(j, r->t, "self_virtual_low_ns", "self_virtual_high_ns",
			  slack_around(s, v->self, v->self_error));
	report_slack_json_ns(j, "avg_virtual_low_ns", "avg_virtual_high_ns", v->average_in);
	if (!x->has_calls)
		return;
	report_slack_json(j, r->t, "min_virtual_low_ns", "min_virtual_high_ns", x->shortest);
	report_slack_json(j, r->t, "max_virtual_low_ns", "max_virtual_high_ns", x->longest);
	report_slack_json(j, r->t, "p50_virtual_low_ns", "p50_virtual_high_ns", in[PROFILE_P50]);
	report_slack_json(j, r->t, "p90_virtual_low_ns", "p90_virtual_high_ns", in[PROFILE_P90]);
	report_slack_json(j, r->t, "p99_virtual_low_ns", "p99_virtual_high_ns", in[PROFILE_P99]);
}

static void json_virtual(struct json *j, const struct report *r, const struct profile_row *row)
{
	struct profile_virtual v = profile_virtual_of(&r->p, row);

	json_time(j, r, "total_virtual_ns", v.total);
	json_time(j, r, "total_error_ns", v.total_error);
	json_time(j, r, "self_virtual_ns", v.self);
	json_time(j, r, "self_error_ns", v.self_error);
	json_time(j, r, "min_virtual_ns", v.minimum);
	json_ku64(j, "avg_virtual_ns", v.average_ns);
	json_time(j, r, "max_virtual_ns", v.maximum);
	json_time(j, r, "p50_virtual_ns", row->virtual_percentile[PROFILE_P50]);
	json_time(j, r, "p90_virtual_ns", row->virtual_percentile[PROFILE_P90]);
	json_time(j, r, "p99_virtual_ns", row->virtual_percentile[PROFILE_P99]);
	json_virtual_slack(j, r, row, &v);
}

static void json_on_cpu(struct json *j, const struct report *r, const struct profile_row *row)
{
	const struct slack *s = row->s.more ? row->s.more->on_cpu : NULL;
	const uint64_t total = profile_on_cpu_total(row), self = profile_on_cpu_self(row);

	json_time(j, r, "total_on_cpu_ns", total);
	json_time(j, r, "self_on_cpu_ns", self);
	if (!s)
		return;
	report_slack_json(j, r->t, "total_on_cpu_low_ns", "total_on_cpu_high_ns",
			  slack_around(s, total, s->total));
	report_slack_json(j, r->t, "self_on_cpu_low_ns", "self_on_cpu_high_ns",
			  slack_around(s, self, s->self));
}

/* Both ends of what the times above may be. */
static void json_slack(struct json *j, const struct report *r, const struct profile_row *row)
{
	const struct profile_stat *s = &row->s;
	const struct slack *x = s->slack;
	const struct trace_bounds mean = profile_average_in(r->t, s);

	report_slack_json_sums(j, r->t, x, s->total, s->self);
	report_slack_json_ns(j, "avg_low_ns", "avg_high_ns", mean);
	report_slack_json_extremes(j, r->t, x);
	if (!x->has_calls)
		return;
	report_slack_json(j, r->t, "p50_low_ns", "p50_high_ns", row->percentile_in[PROFILE_P50]);
	report_slack_json(j, r->t, "p90_low_ns", "p90_high_ns", row->percentile_in[PROFILE_P90]);
	report_slack_json(j, r->t, "p99_low_ns", "p99_high_ns", row->percentile_in[PROFILE_P99]);
}

static void json_mark(struct json *j, const struct report *r, const struct profile_row *row,
		      enum trace_way way, const char *key)
{
	if (!has_way(r->t, row->function, way))
		return;
	json_key(j, key);
	json_bool(j, true);
}

static void json_row(struct json *j, const struct report *r, const struct profile_row *row)
{
	char buf[32];

	json_open(j, '{');
	json_kstr(j, "function", text_function(r->t, row->function, buf, sizeof(buf)));
	json_kstr(j, "module", text_module(r->t, row->function));
	json_mark(j, r, row, TRACE_GUESSED, "guessed");
	json_mark(j, r, row, TRACE_CHOOSES, "resolver");
	json_ku64(j, "calls", row->s.calls);
	json_ku64(j, "inferred", row->s.inferred);
	json_ku64(j, "at_least", row->s.at_least);
	json_ku64(j, "spans_loss", row->s.calls - (row->s.rough ? 0 : row->s.measured));
	json_time(j, r, "total_ns", row->s.total);
	json_time(j, r, "self_ns", row->s.self);
	json_time(j, r, "min_ns", profile_minimum(&row->s));
	json_ku64(j, "avg_ns", profile_average_ns(r->t, &row->s));
	json_time(j, r, "max_ns", profile_maximum(&row->s));
	json_time(j, r, "p50_ns", row->percentile[PROFILE_P50]);
	json_time(j, r, "p90_ns", row->percentile[PROFILE_P90]);
	json_time(j, r, "p99_ns", row->percentile[PROFILE_P99]);
	if (row->s.slack)
		json_slack(j, r, row);
	if (r->o->virtual)
		json_virtual(j, r, row);
	if (r->o->on_cpu)
		json_on_cpu(j, r, row);
	report_sleeps_row_json(j, &r->watched, row->function);
	if (r->o->by != PROFILE_BY_FUNCTION)
		json_group(j, r, row->group);
	if (r->o->histogram) {
		json_key(j, "histogram");
		loghist_json(&row->s.lengths, r->t, j);
		report_slack_json_elsewhere(j, row->s.slack);
	}
	json_close(j, '}');
}

static void print_json(struct report *r, FILE *out)
{
	struct json j = JSON_INIT(out);
	uint64_t shown = 0;

	json_open(&j, '[');
	vec_for(&r->p.rows, row) {
		if (row == r->p.rows.v || row[-1].group != row->group)
			shown = 0;
		if (!r->o->limit || shown++ < r->o->limit) {
			fputc('\n', out);
			json_row(&j, r, row);
		}
	}
	json_close(&j, ']');
}

static void print_json_totals(struct report *r, FILE *out)
{
	const struct profile_totals *p = &r->p.totals;
	struct totals s = know_totals(r);
	struct json j = JSON_INIT(out);

	json_open(&j, '{');
	json_ku64(&j, "calls", p->calls.entries);
	json_ku64(&j, "inferred", p->calls.inferred);
	json_ku64(&j, "at_least", p->calls.at_least);
	json_ku64(&j, "led_to", p->calls.led_to);
	json_ku64(&j, "open", p->calls.open);
	json_ku64(&j, "spans_loss", p->calls.spans_loss);
	json_ku64(&j, "orphans", p->calls.orphans);
	json_ku64(&j, "samples", p->samples);
	json_ku64(&j, "lost", s.lost);
	json_ku64(&j, "loss_places", p->loss_places);
	json_key(&j, "complete");
	json_bool(&j, r->t->complete && !r->t->cut_short);
	json_ku64(&j, "overwritten", s.overwritten);
	json_ku64(&j, "cut_off", s.cut_off);
	json_ku64(&j, "migrations", p->migrations);
	json_real(&j, "threads_ns", s.threads_ns);
	json_real(&j, "probe_ns", s.probe_ns);
	json_real(&j, "probe_error_ns", s.error_ns);
	cost_json(&j, &s.cost);
	if (r->o->on_cpu) {
		json_ku64(&j, "on_cpu_ns", on_cpu_ns(r));
		json_ku64(&j, "switches", r->switches.outs);
		json_ku64(&j, "preempted", r->switches.preempted);
		json_ku64(&j, "switches_lost", r->switches.lost);
	}
	json_close(&j, '}');
}

int report_profile_check(const struct trace *t, const struct profile_options *o, struct err *err)
{
	if (o->virtual && profile_check_virtual(t, err))
		return -ENODATA;
	if (!o->on_cpu || offcpu_is_known(t))
		return 0;
	return err_set(err, ENODATA, "this trace has no context switches: %s", offcpu_why_not(t));
}

void report_profile(const struct trace *t, const struct profile_options *o, FILE *out)
{
	struct offcpu *offcpu = o->on_cpu ? offcpu_open(t) : NULL;
	struct report r = {.t = t, .o = o};
	struct profile_want want = {
		.offcpu = offcpu,
		.by = o->by,
		.percentiles = (o->percentiles || o->json || o->histogram) && !o->totals,
		.virtual = o->virtual && !o->totals,
		.histograms = o->histogram,
	};

	if (offcpu)
		r.switches = offcpu_count(offcpu);
	profile_gather(&r.p, t, &want);
	if (o->by == PROFILE_BY_FUNCTION && !t->filter) {
		watched_open(&r.watched, t);
		watched_count(&r.watched);
	}
	if (r.p.rows.n)
		qsort_r(r.p.rows.v, r.p.rows.n, sizeof(*r.p.rows.v), by_options, &r);
	if (o->totals)
		(o->json ? print_json_totals : print_foot)(&r, out);
	else if (o->json)
		print_json(&r, out);
	else
		print_text(&r, out);
	watched_free(&r.watched);
	profile_free(&r.p);
	offcpu_close(offcpu);
}
