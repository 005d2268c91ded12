/* SPDX-License-Identifier: MIT */
/*
 * rpt_json.c - mk_rpt --json: {"hz", "samples", ..., "intervals": [{"description", "count",
 * "total", ..., "groups": [{"cpu" or "source", "count", ...}]}]}.  Lengths are in ticks.
 */
#define _GNU_SOURCE
#include "board/toolkit/rpt_print.h"

#include "base/json.h"
#include "board/toolkit/histogram.h"

static void put_number(struct json *j, const char *key, bool known, int64_t v)
{
	json_key(j, key);
	if (known)
		json_i64(j, v);
	else
		json_str(j, NULL);
}

static void put_real(struct json *j, const char *key, bool known, long double v)
{
	json_key(j, key);
	if (known)
		json_f64(j, (double)v);
	else
		json_str(j, NULL);
}

static void put_list(struct json *j, struct tally_sum *s)
{
	histogram_chronological(s);
	json_key(j, "chronological");
	json_open(j, '[');
	vec_for(&s->lengths, l) {
		json_open(j, '[');
		json_i64(j, l->begin);
		json_i64(j, l->ticks);
		json_close(j, ']');
	}
	json_close(j, ']');
}

static void put_bins(const struct rpt *r, struct json *j, const struct tally_sum *s)
{
	struct histogram h;

	histogram_make(&h, s, r->nbins);
	json_key(j, "histogram");
	json_open(j, '[');
	vec_for(&h.bins, b) {
		json_open(j, '[');
		json_i64(j, b->from);
		json_i64(j, b->to);
		json_u64(j, b->count);
		json_close(j, ']');
	}
	json_close(j, ']');
	histogram_free(&h);
}

static void put_sum(const struct rpt *r, struct json *j, struct tally_sum *s, bool lengths)
{
	bool any = s->count;

	json_ku64(j, "count", s->count);
	json_key(j, "total");
	if (s->total >= INT64_MIN && s->total <= INT64_MAX)
		json_i64(j, (int64_t)s->total);
	else
		json_f64(j, (double)s->total);
	put_number(j, "min", any, s->min);
	put_number(j, "max", any, s->max);
	put_real(j, "avg", any, s->mean);
	put_real(j, "stddev", any, tally_deviation(s));
	if (lengths && r->chronological)
		put_list(j, s);
	else if (lengths)
		put_bins(r, j, s);
}

static void put_groups(const struct rpt *r, struct json *j, struct tally_row *row)
{
	json_key(j, "groups");
	json_open(j, '[');
	vec_for(&row->groups, g) {
		json_open(j, '{');
		json_ku64(j, r->tally->by == TALLY_BY_CPU ? "cpu" : "source", (*g)->key);
		put_sum(r, j, &(*g)->sum, r->histogram);
		json_close(j, '}');
	}
	json_close(j, ']');
}

static void put_row(const struct rpt *r, struct json *j, struct tally_row *row)
{
	const struct intervals_left *left = intervals_left(r->intervals, row->def_number);

	json_open(j, '{');
	json_ku64(j, "class", (uint64_t)row->def->class);
	json_ku64(j, "line", row->def->line);
	json_key(j, "events");
	json_open(j, '[');
	for (int i = 0; i < row->def->nevents; i++)
		json_u64(j, row->def->event[i]);
	json_close(j, ']');
	json_kstr(j, "description", row->def->name[row->part]);
	json_ku64(j, "not_ended", left->begun);
	json_ku64(j, "not_begun", left->ended);
	put_sum(r, j, &row->all, r->summary);
	if (r->tally->by != TALLY_BY_NONE)
		put_groups(r, j, row);
	json_close(j, '}');
}

void rpt_print_json(const struct rpt *r, FILE *out)
{
	struct json j = JSON_INIT(out);

	json_open(&j, '{');
	json_ku64(&j, "hz", r->hz);
	json_ku64(&j, "samples", r->count->trace + r->count->resource);
	json_ku64(&j, "trace", r->count->trace);
	json_ku64(&j, "resource", r->count->resource);
	json_ku64(&j, "other", intervals_other(r->intervals));
	json_ku64(&j, "parts", intervals_parts(r->intervals));
	json_ku64(&j, "damaged_bytes", r->count->damaged + r->count->cut);
	json_key(&j, "intervals");
	json_open(&j, '[');
	vec_for(&r->tally->rows, row)
		put_row(r, &j, row);
	json_close(&j, ']');
	json_close(&j, '}');
}
