/* SPDX-License-Identifier: MIT */
/* rpt_print.c - the tables; see rpt_print.h.  rpt_json.c has the other half. */
#define _GNU_SOURCE
#include "board/toolkit/rpt_print.h"

#include <inttypes.h>

#include "board/toolkit/histogram.h"
#include "trace/text.h"

enum { BAR = 40, NAMED = 10 };

static long double us(const struct rpt *r, long double ticks)
{
	return ticks * 1e6L / (long double)r->hz;
}

static const char *name_of(const struct tally_row *row)
{
	return row->def->name[row->part];
}

/* "  0", "0000002a" or "all" in the column of the groups */
static void put_group(const struct rpt *r, FILE *out, const struct tally_group *g)
{
	if (r->tally->by == TALLY_BY_SOURCE) {
		if (g)
			fprintf(out, "%08" PRIx32, g->key);
		else
			fprintf(out, "%8s", "all");
	} else if (g) {
		fprintf(out, "%3" PRIu32, g->key);
	} else {
		fputs("all", out);
	}
}

/* ---- the statistics ---- */

static void put_sum(const struct rpt *r, FILE *out, const struct tally_row *row,
		    const struct tally_group *g)
{
	const struct tally_sum *s = g ? &g->sum : &row->all;

	fprintf(out, "%10" PRIu64 " %15.3Lf %13.3Lf %13.3Lf %13.3Lf %13.3Lf  ", s->count,
		us(r, (long double)s->total), us(r, s->mean), us(r, (long double)s->min),
		us(r, (long double)s->max), us(r, tally_deviation(s)));
	if (r->tally->by != TALLY_BY_NONE) {
		put_group(r, out, g);
		fputs("  ", out);
	}
	text_put(out, name_of(row));
	fputc('\n', out);
}

static void put_row(const struct rpt *r, FILE *out, struct tally_row *row)
{
	if (!row->all.count)
		return;
	vec_for(&row->groups, g)
		put_sum(r, out, row, *g);
	if (row->groups.n != 1)
		put_sum(r, out, row, NULL);
}

static void put_table(const struct rpt *r, FILE *out)
{
	static const char *const group[] = {"CPU  ", "Source    ", ""};

	fprintf(out, "%10s %15s %13s %13s %13s %13s  %sInterval\n", "Count", "Total us", "Avg us",
		"Min us", "Max us", "StdDev us", group[r->tally->by]);
	vec_for(&r->tally->rows, row)
		put_row(r, out, row);
}

/* ---- what is missing ---- */

/* Nothing of it is there: those with a begin or an end alone are incomplete. */
static bool is_unseen(const struct rpt *r, const struct tally_row *row)
{
	const struct intervals_left *left = intervals_left(r->intervals, row->def_number);

	return !row->all.count && !left->begun && !left->ended;
}

static void put_unseen(const struct rpt *r, FILE *out)
{
	size_t n = 0, named = 0;

	vec_for(&r->tally->rows, row)
		n += is_unseen(r, row);
	if (!n)
		return;
	fprintf(out, "\n%zu %s\n", n,
		n == 1 ? "interval did not occur:" : "intervals did not occur:");
	vec_for(&r->tally->rows, row) {
		if (!is_unseen(r, row) || (named >= NAMED && !r->verbose))
			continue;
		fputs("    ", out);
		text_put(out, name_of(row));
		fputc('\n', out);
		named++;
	}
	if (named < n)
		fprintf(out, "    and %zu more, which -v names\n", n - named);
}

static void put_incomplete(const struct rpt *r, FILE *out)
{
	size_t n = 0;

	vec_for(&r->tally->rows, row) {
		const struct intervals_left *left = intervals_left(r->intervals, row->def_number);

		if (row->part != 0 || !(left->begun | left->ended) || (n++ >= NAMED && !r->verbose))
			continue;
		if (n == 1)
			fputs("\nIncomplete:\n", out);
		fprintf(out, "%10" PRIu64 " begun and not ended, %" PRIu64 " ended and not begun  ",
			left->begun, left->ended);
		text_put(out, name_of(row));
		fputc('\n', out);
	}
	if (n > NAMED && !r->verbose)
		fprintf(out, "%10s and %zu more, which -v names\n", "", n - NAMED);
}

/* ---- histograms ---- */

static void put_title(const struct rpt *r, FILE *out, const struct tally_row *row,
		      const struct tally_group *g)
{
	fprintf(out, "\n%s: ", r->chronological ? "In chronological order" : "Histogram");
	text_put(out, name_of(row));
	if (r->tally->by == TALLY_BY_CPU && g)
		fprintf(out, ", CPU %" PRIu32, g->key);
	else if (g)
		fprintf(out, ", source %08" PRIx32, g->key);
	else
		fputs(r->tally->by == TALLY_BY_SOURCE ? ", all sources" : ", all processors", out);
	fputc('\n', out);
}

static void put_list(const struct rpt *r, FILE *out, struct tally_sum *s)
{
	histogram_chronological(s);
	fprintf(out, "%20s %15s\n", "Begin us", "Length us");
	vec_for(&s->lengths, l)
		fprintf(out, "%20.3Lf %15.3Lf\n", us(r, (long double)l->begin),
			us(r, (long double)l->ticks));
}

static void put_bins(const struct rpt *r, FILE *out, const struct tally_sum *s)
{
	static const char bar[BAR + 1] = "########################################";
	struct histogram h;

	histogram_make(&h, s, r->nbins);
	if (r->nbins)
		fprintf(out, "%15s %15s %10s %8s\n", "From us", "To us", "Count", "Percent");
	else
		fprintf(out, "%15s %10s %8s\n", "Length us", "Count", "Percent");
	vec_for(&h.bins, b) {
		int len = (int)(b->count * BAR / h.largest);

		fprintf(out, "%15.3Lf ", us(r, (long double)b->from));
		if (r->nbins)
			fprintf(out, "%15.3Lf ", us(r, (long double)b->to));
		fprintf(out, "%10" PRIu64 " %7.2f%%", b->count,
			100.0 * (double)b->count / (double)h.total);
		fprintf(out, len ? " %.*s\n" : "\n", len, bar);
	}
	histogram_free(&h);
}

static void put_histogram(const struct rpt *r, FILE *out, struct tally_row *row,
			  struct tally_group *g)
{
	struct tally_sum *s = g ? &g->sum : &row->all;

	put_title(r, out, row, g);
	if (r->chronological)
		put_list(r, out, s);
	else
		put_bins(r, out, s);
}

void rpt_print_text(const struct rpt *r, FILE *out)
{
	put_table(r, out);
	put_incomplete(r, out);
	put_unseen(r, out);
	vec_for(&r->tally->rows, row) {
		if (!row->all.count || ferror(out))
			continue;
		if (r->histogram)
			vec_for(&row->groups, g)
				put_histogram(r, out, row, *g);
		if (r->summary)
			put_histogram(r, out, row, NULL);
	}
}
