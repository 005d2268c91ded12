/* SPDX-License-Identifier: MIT */
/* report_slack.c - see report_slack.h. */
#include "trace/report/report_slack.h"

#include "base/str.h"
#include "trace/text.h"

static uint64_t ns_or_unknown(const struct trace *t, uint64_t ticks)
{
	return ticks == UINT64_MAX ? ticks : trace_ns(t, ticks);
}

void report_slack_put_off(const struct trace *t, const struct slack *s, const char *what,
			  uint64_t sum, uint64_t off, FILE *out)
{
	char buf[STR_NUMBER];

	fprintf(out, "%s %s%s", what, s->has_no_end ? ">" : "+-",
		str_duration(buf, sizeof(buf),
			     trace_ns(t, s->has_no_end ? slack_around(s, sum, off).lo : off)));
}

void report_slack_put_sum(const struct trace *t, const struct slack *s, uint64_t sum, FILE *out)
{
	if (s && (s->sum || s->has_no_end))
		report_slack_put_off(t, s, "  total", sum, s->sum, out);
}

void report_slack_put(const struct trace *t, const struct slack *s, uint64_t total, uint64_t self,
		      FILE *out)
{
	if (!s || !(s->total || s->self || s->has_no_end))
		return;
	report_slack_put_off(t, s, "  total", total, s->total, out);
	report_slack_put_off(t, s, ", self", self, s->self, out);
}

void report_slack_put_length(const struct trace *t, uint64_t ticks, struct trace_bounds b,
			     FILE *out)
{
	text_put_bounded(out, trace_ns(t, ticks), trace_ns(t, b.lo), ns_or_unknown(t, b.hi));
}

void report_slack_put_shortest(const struct trace *t, const struct slack *s, uint64_t ticks,
			       FILE *out)
{
	report_slack_put_length(
		t, ticks, s && s->has_calls ? s->shortest : (struct trace_bounds){ticks, ticks},
		out);
}

void report_slack_put_longest(const struct trace *t, const struct slack *s, uint64_t ticks,
			      FILE *out)
{
	report_slack_put_length(
		t, ticks, s && s->has_calls ? s->longest : (struct trace_bounds){ticks, ticks},
		out);
}

void report_slack_put_elsewhere(const struct slack *s, const struct loghist *h, FILE *out)
{
	const uint64_t all = loghist_count(h);

	if (s && all)
		fprintf(out, "  %.1f%% of these may belong in another line\n",
			100.0 * (double)slack_elsewhere(s, loghist_line(h)) / (double)all);
}

void report_slack_json_elsewhere(struct json *j, const struct slack *s)
{
	if (s)
		json_ku64(j, "histogram_elsewhere", slack_elsewhere(s, 1));
}

void report_slack_foot(const struct trace *t, FILE *out)
{
	if (trace_clock_every(t) > 1)
		fprintf(out,
			"%u samples share a reading of the clock: calls and their order are exact; times of "
			"calls are bounds (<, >) where they are not known better, sums are off by no more than they say\n",
			trace_clock_every(t));
}

void report_slack_json(struct json *j, const struct trace *t, const char *low, const char *high,
		       struct trace_bounds b)
{
	json_ku64(j, low, trace_ns(t, b.lo));
	if (b.hi != UINT64_MAX)
		json_ku64(j, high, trace_ns(t, b.hi));
}

void report_slack_json_ns(struct json *j, const char *low, const char *high, struct trace_bounds ns)
{
	json_ku64(j, low, ns.lo);
	if (ns.hi != UINT64_MAX)
		json_ku64(j, high, ns.hi);
}

void report_slack_json_sums(struct json *j, const struct trace *t, const struct slack *s,
			    uint64_t total, uint64_t self)
{
	if (!s)
		return;
	report_slack_json(j, t, "total_low_ns", "total_high_ns", slack_around(s, total, s->total));
	report_slack_json(j, t, "self_low_ns", "self_high_ns", slack_around(s, self, s->self));
}

void report_slack_json_extremes(struct json *j, const struct trace *t, const struct slack *s)
{
	if (!s || !s->has_calls)
		return;
	report_slack_json(j, t, "min_low_ns", "min_high_ns", s->shortest);
	report_slack_json(j, t, "max_low_ns", "max_high_ns", s->longest);
}
