/* SPDX-License-Identifier: MIT */
/*
 * mk_rpt.c - statistics of the intervals that interval.info describes (NISTIR 5993, 3.5).
 *
 *   interval.info ─► interval_info ─┐
 *   mk.dat ─► input ─► intervals ───┴─► tally ─► rpt_print, rpt_json
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "board/toolkit/histogram.h"
#include "board/toolkit/input.h"
#include "board/toolkit/rpt_print.h"

/*
 * Reading: the report says of -e only "change event size from default (see below)", and
 * nothing below.  Here the event (sequence number) is the low -e bits of the user data.  The
 * default is what a 32-bit bus writes in one piece, and where kron keeps the event.
 */
#define EVENT_BITS 32
#define HZ 10000000 /* 40 MHz / 4, the board's recommended setting */

static bool verbose, histogram, summary, chronological, wide, json;
static const char *info_name = INTERVAL_INFO_FILE;
static uint64_t event_bits = EVENT_BITS, hz = HZ, nbins;
static int by = TALLY_BY_CPU, match = MATCH_SOURCE;

static const struct opt options[] = {
	{'v', "verbose", OPT_FLAG, &verbose, NULL,
	 "Say what is read, and name every interval that did not occur.", 0, 0},
	{'f', "file", OPT_STR, &info_name, "FILE",
	 "Read the intervals from FILE instead of interval.info.", 0, 0},
	{'h', "histogram", OPT_FLAG, &histogram, NULL,
	 "Print a histogram of the lengths of each interval for each processor.", 0, 0},
	{'e', "event-size", OPT_UINT, &event_bits, "BITS",
	 "The event is the low BITS bits of the user data (default 32).", 1, 64},
	{'s', "summary", OPT_FLAG, &summary, NULL,
	 "Print a histogram of each interval across all processors.", 0, 0},
	{'n', "no-sort", OPT_FLAG, &chronological, NULL,
	 "Print no sorted histogram but each begin and length in chronological order; means -h "
	 "where neither -h nor -s is given.",
	 0, 0},
	{'d', "double", OPT_FLAG, &wide, NULL,
	 "Compute with all 56 bits of the timestamps, not with the low 32, which hold 429 seconds "
	 "at 10 MHz.",
	 0, 0},
	{0, "bins", OPT_UINT, &nbins, "N",
	 "Make histograms of N bins of one width instead of one line for each length.", 1,
	 HISTOGRAM_BINS_MAX},
	{0, "by", OPT_CHOICE, &by, TALLY_BY_WORDS,
	 "Group by processor (the default), by source address, or not at all.", 0, 0},
	{0, "match", OPT_CHOICE, &match, INTERVALS_MATCH_WORDS,
	 "The end of an interval of class 1, 2 or 3 has to come from the same source address (the "
	 "default), the same processor, or anywhere.",
	 0, 0},
	{0, "hz", OPT_UINT, &hz, "N", "Timestamps count N ticks a second (default 10000000).", 1,
	 1000000000000},
	{0, "json", OPT_FLAG, &json, NULL, "Print a JSON object; lengths are in ticks.", 0, 0},
	OPT_END,
};

static const struct opt_command command = {
	.name = "mk_rpt",
	.operands = "[FILE]...",
	.summary =
		"Print how often the intervals of interval.info occur in mk.dat, or in the FILEs "
		"one after the other (- is standard input), and how long they last.",
	.opts = options,
	.alone = true,
};

static int say_errors(struct interval_info *info)
{
	vec_for(&info->errors, e)
		fprintf(stderr, "%s:%s\n", info_name, *e);
	if (info->nerrors > info->errors.n)
		fprintf(stderr, "%s: and %zu more errors\n", info_name,
			info->nerrors - info->errors.n);
	return TOOL_ERROR;
}

static int read_info(struct interval_info *info)
{
	FILE *f = fopen(info_name, "re");
	struct err err;
	int code;

	if (!f)
		return tool_fail(&command, TOOL_ERROR,
				 "cannot open %s: %s (it describes the intervals; see "
				 "interval.info(5))",
				 info_name, strerror(errno));
	code = interval_info_read(info, f, (unsigned)event_bits, NULL, &err);
	fclose(f);
	if (info->nerrors)
		return say_errors(info);
	if (code)
		return tool_fail(&command, TOOL_ERROR, "%s: %s", info_name, err.msg);
	if (!info->defs.n)
		return tool_fail(&command, TOOL_ERROR, "%s describes no interval", info_name);
	if (verbose)
		tool_note(&command, "%s: %zu %s", info_name, info->defs.n,
			  info->defs.n == 1 ? "interval" : "intervals");
	return TOOL_OK;
}

/* The board's 56 bits made a time that goes on where they wrap. */
struct clock {
	struct intervals *m;
	uint64_t time56;
	int64_t time;
	bool runs;
};

static bool take_sample(void *arg, const struct mkdat_sample *s)
{
	struct clock *c = arg;
	struct interval_sample out = {.data = s->data, .source = s->source, .cpu = s->cpu};
	int64_t step = c->runs ? sample_elapsed(c->time56, s->time) : (int64_t)s->time;

	c->time = (int64_t)((uint64_t)c->time + (uint64_t)step);
	c->time56 = s->time;
	c->runs = true;
	out.time = c->time;
	intervals_sample(c->m, &out);
	return true;
}

/* What a reader of the table should know about its numbers. */
static void say_notes(const struct rpt *r)
{
	const struct tally *t = r->tally;

	if (verbose)
		tool_note(&command,
			  "%" PRIu64 " Trace and %" PRIu64 " Resource samples, %" PRIu64
			  " with events of no interval; time goes back %" PRIu64 " times",
			  r->count->trace, r->count->resource, intervals_other(r->intervals),
			  intervals_parts(r->intervals) - 1);
	if (t->cut)
		tool_note(&command,
			  "%" PRIu64 " lengths do not fit into 32 bits (%.0f seconds) and are "
			  "shown too short: -d computes with 56",
			  t->cut, 4294967296.0 / (double)hz);
	if (t->negative)
		tool_note(&command,
			  "%" PRIu64 " ends are earlier than their begins: the clocks of the "
			  "boards differ, or samples are missing",
			  t->negative);
}

static int report(const struct interval_info *info, struct input *in)
{
	struct tally tally = {
		.by = by, .wide = wide, .keep_groups = histogram, .keep_all = summary};
	struct rpt rpt = {.tally = &tally,
			  .count = &in->count,
			  .hz = hz,
			  .nbins = nbins,
			  .histogram = histogram,
			  .summary = summary,
			  .chronological = chronological,
			  .verbose = verbose};
	struct clock clock = {0};
	struct intervals *m = intervals_new(info, match, (unsigned)event_bits, tally_add, &tally);
	int status;

	tally_init(&tally, info);
	rpt.intervals = clock.m = m;
	status = input_read(in, take_sample, &clock);
	if (in->count.trace + in->count.resource) {
		intervals_finish(m);
		tally_sort(&tally);
		(json ? rpt_print_json : rpt_print_text)(&rpt, stdout);
		say_notes(&rpt);
	}
	intervals_free(m);
	tally_free(&tally);
	return tool_finish(&command, status);
}

int main(int argc, char **argv)
{
	int status, first = tool_parse(&command, argc, argv, &status);
	struct input in = {.command = &command};
	struct interval_info info = {0};

	if (!first)
		return status;
	in.names = argv + first;
	in.n = argc - first;
	if (chronological && !histogram && !summary)
		histogram = true;
	/* without groups there is only the whole */
	if (by == TALLY_BY_NONE && histogram) {
		histogram = false;
		summary = true;
	}
	status = read_info(&info);
	if (!status)
		status = report(&info, &in);
	interval_info_free(&info);
	return status;
}
