/* SPDX-License-Identifier: MIT */
/* report_monitor.c - see report_monitor.h */
#include "trace/report/report_monitor.h"

#include <inttypes.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "trace/report/report_machine.h"

#define WIDTH 14
#define FIXED 10

static double as_double(uint64_t bits)
{
	double d;

	memcpy(&d, &bits, sizeof(d));
	return d;
}

static double percent_of(const struct reading *r)
{
	return 100.0 * (double)r->n / (double)r->of;
}

static bool is_known(const struct column *c, const struct reading *r)
{
	return r->known && (c->kind != READING_PERCENT || r->of);
}

static int width_of(const struct column *c)
{
	const int n = (int)strlen(c->name);

	return n > WIDTH ? n : WIDTH;
}

/* ---- the table ---- */

static void value_text(char *out, size_t size, const struct column *c, const struct reading *r)
{
	const char *about = r->is_estimate ? "~" : "";

	if (!is_known(c, r))
		snprintf(out, size, "-");
	else if (c->kind == READING_NS)
		snprintf(out, size, "%.3fms", (double)r->n / 1e6);
	else if (c->kind == READING_PERCENT)
		snprintf(out, size, "%.1f%%", percent_of(r));
	else if (c->type == VALUE_SIGNED)
		snprintf(out, size, "%" PRId64, (int64_t)r->n);
	else if (c->type == VALUE_HEX)
		snprintf(out, size, "0x%" PRIx64, r->n);
	else if (c->type == VALUE_DOUBLE)
		snprintf(out, size, "%.9g", as_double(r->n));
	else
		snprintf(out, size, "%s%" PRIu64 "%s", about, r->n, r->has_overrun ? "!" : "");
}

static void put_values(struct monitor_table *s, const struct reading *v)
{
	char text[STR_NUMBER];

	for (size_t i = 0; i < s->columns->v.n; i++) {
		const struct column *c = &s->columns->v.v[i];

		value_text(text, sizeof(text), c, &v[i]);
		fprintf(s->out, " %*s", width_of(c), text);
	}
	putc('\n', s->out);
}

static void put_head(struct monitor_table *s)
{
	fprintf(s->out, "%*s %*s", FIXED, "time", FIXED, "interval");
	if (s->freezes)
		fprintf(s->out, " %*s %*s %*s", FIXED, "stood", FIXED, "skew", FIXED, "threads");
	for (size_t i = 0; i < s->columns->v.n; i++)
		fprintf(s->out, " %*s", width_of(&s->columns->v.v[i]), s->columns->v.v[i].name);
	putc('\n', s->out);
	s->has_begun = true;
}

static void put_fixed(struct monitor_table *s, uint64_t length_ns)
{
	fprintf(s->out, " %*.3fms", FIXED - 2, (double)length_ns / 1e6);
}

static void put_freeze(struct monitor_table *s, const struct monitor_row *row)
{
	if (!s->freezes)
		return;
	if (!row->was_frozen) {
		fprintf(s->out, " %*s %*s %*s", FIXED, "-", FIXED, "-", FIXED, "-");
		return;
	}
	put_fixed(s, row->stood_ns);
	put_fixed(s, row->skew_ns);
	fprintf(s->out, " %*u", FIXED, row->threads);
}

static void row_as_text(struct monitor_table *s, const struct monitor_row *row)
{
	if (!s->has_begun)
		put_head(s);
	fprintf(s->out, "%*.6f", FIXED, (double)row->to_ns / 1e9);
	put_fixed(s, row->to_ns - row->from_ns);
	put_freeze(s, row);
	put_values(s, row->v);
}

static void totals_as_text(struct monitor_table *s, const struct monitor_summary *sum,
			   const struct reading *totals)
{
	char real[STR_NUMBER], virtual[STR_NUMBER], stood[STR_NUMBER], probes[STR_NUMBER],
		skew[STR_NUMBER];

	if (!s->has_begun)
		put_head(s);
	fprintf(s->out, "%*s", FIXED, "total");
	put_fixed(s, sum->real_ns - sum->all_stood_ns);
	if (s->freezes) {
		put_fixed(s, sum->all_stood_ns);
		put_fixed(s, sum->longest_skew_ns);
		fprintf(s->out, " %*s", FIXED, "");
	}
	put_values(s, totals);
	if (s->of_board)
		return;
	if (!sum->is_whole) {
		fprintf(s->out,
			"real time %s so far: the monitor did not end, so virtual time is not known\n",
			str_duration(real, sizeof(real), sum->real_ns));
		return;
	}
	str_duration(real, sizeof(real), sum->real_ns);
	str_duration(virtual, sizeof(virtual), sum->virtual_ns);
	str_duration(stood, sizeof(stood), sum->stood_ns);
	if (sum->probes_ns == MONITOR_COST_UNKNOWN)
		fprintf(s->out,
			"real time %s, virtual time %s at most: without %s stopped; what counting by "
			"probes took is not known\n",
			real, virtual, stood);
	else
		fprintf(s->out,
			"real time %s, virtual time %s: without %s stopped and %s of probes\n",
			real, virtual, stood, str_duration(probes, sizeof(probes), sum->probes_ns));
	if (s->freezes)
		fprintf(s->out, "stopped %" PRIu64 " times, skew between threads %s at most\n",
			sum->freezes, str_duration(skew, sizeof(skew), sum->longest_skew_ns));
}

/* ---- JSON ---- */

static void json_value(struct json *j, const struct column *c, const struct reading *r)
{
	json_key(j, c->name);
	if (!is_known(c, r))
		json_str(j, NULL);
	else if (c->kind == READING_PERCENT)
		json_f64(j, percent_of(r));
	else if (c->type == VALUE_SIGNED)
		json_i64(j, (int64_t)r->n);
	else if (c->type == VALUE_DOUBLE)
		json_f64_exact(j, as_double(r->n));
	else
		json_u64(j, r->n);
}

static void json_values(struct json *j, const struct monitor_table *s, const char *key,
			const struct reading *v)
{
	bool are_estimates = false, overrun = false;

	json_key(j, key);
	json_open(j, '{');
	for (size_t i = 0; i < s->columns->v.n; i++) {
		json_value(j, &s->columns->v.v[i], &v[i]);
		are_estimates |= v[i].is_estimate;
		overrun |= v[i].has_overrun;
	}
	json_close(j, '}');
	if (are_estimates) {
		json_key(j, "estimates");
		json_bool(j, true);
	}
	if (!overrun)
		return;
	json_key(j, "overrun");
	json_open(j, '[');
	for (size_t i = 0; i < s->columns->v.n; i++)
		if (v[i].has_overrun)
			json_str(j, s->columns->v.v[i].name);
	json_close(j, ']');
}

static void row_as_json(struct monitor_table *s, const struct monitor_row *row)
{
	struct json j = JSON_INIT(s->out);

	json_open(&j, '{');
	json_ku64(&j, "time_ns", row->to_ns);
	json_ku64(&j, "interval_ns", row->to_ns - row->from_ns);
	if (s->freezes) {
		json_key(&j, "stopped");
		json_bool(&j, row->was_frozen);
		json_ku64(&j, "stood_ns", row->stood_ns);
		json_ku64(&j, "skew_ns", row->skew_ns);
		json_ku64(&j, "threads", row->threads);
	}
	json_values(&j, s, "events", row->v);
	json_close(&j, '}');
}

/* Of a monitor that was killed nobody knows it. */
static void json_if_whole(struct json *j, const struct monitor_summary *sum, const char *key,
			  uint64_t ns)
{
	if (sum->is_whole && ns != MONITOR_COST_UNKNOWN)
		json_ku64(j, key, ns);
	else
		json_kstr(j, key, NULL);
}

static void totals_as_json(struct monitor_table *s, const struct monitor_summary *sum,
			   const struct reading *totals)
{
	struct json j = JSON_INIT(s->out);

	json_open(&j, '{');
	json_ku64(&j, "real_ns", sum->real_ns);
	json_if_whole(&j, sum, "virtual_ns", sum->virtual_ns);
	json_if_whole(&j, sum, "stood_ns", sum->stood_ns);
	json_if_whole(&j, sum, "probes_ns", sum->probes_ns);
	json_ku64(&j, "intervals", sum->intervals);
	if (s->freezes) {
		json_ku64(&j, "stops", sum->freezes);
		json_ku64(&j, "failed_stops", sum->failed_freezes);
		json_ku64(&j, "longest_skew_ns", sum->longest_skew_ns);
	}
	json_values(&j, s, "totals", totals);
	json_close(&j, '}');
}

/* ---- all of it ---- */

void monitor_table_row(struct monitor_table *s, const struct monitor_row *row)
{
	(s->json ? row_as_json : row_as_text)(s, row);
}

void monitor_table_totals(struct monitor_table *s, const struct monitor_summary *sum,
			  const struct reading *totals)
{
	(s->json ? totals_as_json : totals_as_text)(s, sum, totals);
}

static uint64_t put_one(const struct trace *t, bool json, FILE *out)
{
	struct monitor_table table = {.out = out, .json = json};
	struct monitor_row row;
	struct monitored m;

	if (!monitored_open(&m, t))
		return 0;
	table.freezes = m.freezes;
	table.of_board = m.of_board;
	table.columns = &m.columns;
	while (monitored_next(&m, &row))
		monitor_table_row(&table, &row);
	monitor_table_totals(&table, &m.sum, m.totals);
	monitored_close(&m);
	return m.damaged;
}

bool report_monitor_has(const struct trace *t)
{
	for (uint32_t i = 0; i < trace_nodes(t); i++)
		if (trace_is_monitored(trace_node_at(t, i)->t))
			return true;
	return trace_is_monitored(t);
}

uint64_t report_monitor(const struct trace *t, bool json, FILE *out)
{
	uint64_t damaged = put_one(t, json, out);

	for (uint32_t i = 0; i < trace_nodes(t); i++)
		damaged += put_one(trace_node_at(t, i)->t, json, out);
	return damaged;
}

/* ---- a part of kron info ---- */

static void count_rows(struct monitored *m)
{
	struct monitor_row row;

	while (monitored_next(m, &row))
		;
}

void report_monitor_put(const struct trace *t, FILE *out)
{
	char every[STR_NUMBER], n[STR_NUMBER];
	struct monitored m;

	if (!monitored_open(&m, t))
		return;
	count_rows(&m);
	fprintf(out,
		REPORT_LABEL
		"%s intervals of %s of a %s%s, %zu columns (`kron report` shows them)\n",
		"monitored:", str_thousands(n, sizeof(n), m.sum.intervals),
		str_duration(every, sizeof(every), m.every_ns), m.of_board ? "board" : "program",
		m.freezes ? " that was stopped at the end of each" : "", m.columns.v.n);
	if (m.damaged)
		fprintf(out, REPORT_LABEL "%s lines of intervals make no sense, and are left out\n",
			"damaged:", str_thousands(n, sizeof(n), m.damaged));
	monitored_close(&m);
}

void report_monitor_json(struct json *j, const struct trace *t)
{
	struct monitored m;

	if (!monitored_open(&m, t))
		return;
	count_rows(&m);
	json_key(j, "monitor");
	json_open(j, '{');
	json_kstr(j, "of", trace_session(t, "monitor"));
	json_ku64(j, "every_ns", m.every_ns);
	json_key(j, "freezes");
	json_bool(j, m.freezes);
	json_ku64(j, "intervals", m.sum.intervals);
	json_ku64(j, "damaged", m.damaged);
	json_key(j, "columns");
	json_open(j, '[');
	vec_for(&m.columns.v, c)
		json_str(j, c->name);
	json_close(j, ']');
	json_close(j, '}');
	monitored_close(&m);
}

uint64_t report_monitor_ns(const struct trace *t)
{
	struct monitored m;

	if (!monitored_open(&m, t))
		return 0;
	count_rows(&m);
	monitored_close(&m);
	return m.sum.real_ns;
}
