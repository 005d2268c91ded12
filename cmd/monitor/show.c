/* SPDX-License-Identifier: MIT */
/* show.c - see show.h */
#include "cmd/monitor/show.h"

#include <inttypes.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/json.h"
#include "base/str.h"

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

static void put_values(struct show *s, const struct reading *v)
{
	char text[STR_NUMBER];

	for (size_t i = 0; i < s->columns->v.n; i++) {
		const struct column *c = &s->columns->v.v[i];

		value_text(text, sizeof(text), c, &v[i]);
		fprintf(s->out, " %*s", width_of(c), text);
	}
	putc('\n', s->out);
}

static void put_head(struct show *s)
{
	fprintf(s->out, "%*s %*s", FIXED, "time", FIXED, "interval");
	if (s->freezes)
		fprintf(s->out, " %*s %*s %*s", FIXED, "stood", FIXED, "skew", FIXED, "threads");
	for (size_t i = 0; i < s->columns->v.n; i++)
		fprintf(s->out, " %*s", width_of(&s->columns->v.v[i]), s->columns->v.v[i].name);
	putc('\n', s->out);
	s->has_begun = true;
}

static void put_fixed(struct show *s, uint64_t length_ns)
{
	fprintf(s->out, " %*.3fms", FIXED - 2, (double)length_ns / 1e6);
}

static void put_freeze(struct show *s, const struct monitor_row *row)
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

static void row_as_text(struct show *s, const struct monitor_row *row)
{
	if (!s->has_begun)
		put_head(s);
	fprintf(s->out, "%*.6f", FIXED, (double)row->to_ns / 1e9);
	put_fixed(s, row->to_ns - row->from_ns);
	put_freeze(s, row);
	put_values(s, row->v);
}

static void totals_as_text(struct show *s, const struct monitor_summary *sum,
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
	fprintf(s->out,
		"real time %s, virtual time %s: ", str_duration(real, sizeof(real), sum->real_ns),
		str_duration(virtual, sizeof(virtual), sum->virtual_ns));
	fprintf(s->out, "without %s stopped and %s of probes\n",
		str_duration(stood, sizeof(stood), sum->stood_ns),
		str_duration(probes, sizeof(probes), sum->probes_ns));
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

static void json_values(struct json *j, const struct show *s, const char *key,
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

static void row_as_json(struct show *s, const struct monitor_row *row)
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

static void totals_as_json(struct show *s, const struct monitor_summary *sum,
			   const struct reading *totals)
{
	struct json j = JSON_INIT(s->out);

	json_open(&j, '{');
	json_ku64(&j, "real_ns", sum->real_ns);
	json_ku64(&j, "virtual_ns", sum->virtual_ns);
	json_ku64(&j, "stood_ns", sum->stood_ns);
	json_ku64(&j, "probes_ns", sum->probes_ns);
	json_ku64(&j, "intervals", sum->intervals);
	if (s->freezes) {
		json_ku64(&j, "stops", sum->freezes);
		json_ku64(&j, "failed_stops", sum->failed_freezes);
		json_ku64(&j, "longest_skew_ns", sum->longest_skew_ns);
	}
	json_values(&j, s, "totals", totals);
	json_close(&j, '}');
}

/* ---- diagrams ---- */

#define ESC "\033"
#define BESIDE 62 /* characters of a row that are no interval */

static unsigned width_of_terminal(const struct show *s)
{
	struct winsize w;

	if (!s->is_live || ioctl(fileno(s->out), TIOCGWINSZ, &w) || w.ws_col <= BESIDE)
		return 60;
	return w.ws_col - BESIDE;
}

void show_begin(struct show *s)
{
	if (!s->draws)
		return;
	s->is_live = isatty(fileno(s->out));
	pictures_begin(&s->pictures, s->columns, width_of_terminal(s));
}

void show_end(struct show *s)
{
	if (s->draws)
		pictures_free(&s->pictures);
}

static void draw(struct show *s)
{
	if (s->lines)
		fprintf(s->out, ESC "[%uA", s->lines);
	s->lines = pictures_print(&s->pictures, s->out, s->is_live ? ESC "[K\n" : "\n");
}

static void row_as_picture(struct show *s, const struct monitor_row *row)
{
	pictures_add(&s->pictures, row->v, row->to_ns - row->from_ns);
	if (s->is_live)
		draw(s);
}

/* ---- all of them ---- */

void show_row(void *ctx, const struct monitor_row *row)
{
	struct show *s = ctx;

	if (s->draws)
		row_as_picture(s, row);
	else
		(s->json ? row_as_json : row_as_text)(s, row);
	fflush(s->out);
}

void show_totals(struct show *s, const struct monitor_summary *sum, const struct reading *totals)
{
	if (s->draws && !s->is_live)
		draw(s);
	(s->json ? totals_as_json : totals_as_text)(s, sum, totals);
	fflush(s->out);
}
