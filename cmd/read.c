/* SPDX-License-Identifier: MIT */
/*
 * read.c - kron read: writes mk.dat, the data file of the MultiKron toolkit, from a trace or
 * from the local memory of a board.
 *
 * mk.dat is what lies in a board's memory: samples of 20 or 84 bytes, each 32-bit word
 * little-endian, no header.  trace/export/export_mkdat.c makes it from a trace.
 */
#define _GNU_SOURCE
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/output.h"
#include "base/str.h"
#include "base/vec.h"
#include "board/bus/samples.h"
#include "cmd/analysis.h"
#include "cmd/cmd.h"
#include "trace/export/export_mkdat.h"

static const char *output = "mk.dat", *board, *intervals;
static uint64_t hz; /* 0: not said */

static const struct opt options[] = {
	{'o', "output", OPT_STR, &output, "FILE", "Write to FILE (default mk.dat); - is stdout.", 0,
	 0},
	{0, "hz", OPT_UINT, &hz, "N",
	 "Timestamps of a trace count N ticks a second. Default 10000000, as the board's do; those of "
	 "a trace by the exact bus stay what the board said.",
	 1, 1000000000000ull},
	{0, "intervals", OPT_STR, &intervals, "FILE",
	 "Also write an interval description for mk_rpt to FILE: one line of class 1 for each "
	 "function that is in the trace.",
	 0, 0},
	{0, "board", OPT_STR, &board, "NAME",
	 "Read the local memory of this board, or of the device with this path, instead of a "
	 "trace.",
	 0, 0},
	ANALYSIS_FILTER,
	OPT_END,
};

static const struct opt_command command = {
	.name = "read",
	.operands = "[DIR]",
	.summary = "Write the samples of the trace DIR (default kron.data) in order of time as the "
		   "MultiKron toolkit's data file mk.dat, or those in a board's local memory.",
	.opts = options,
	.max_operands = 1,
};

struct file {
	struct output out;
	FILE *f;
	const char *name;
	uint64_t samples;
};

/* ---- output ---- */

static int open_file(struct file *o, const char *name)
{
	struct err err;

	*o = (struct file){.name = name, .f = stdout};
	if (!strcmp(name, "-"))
		return CMD_OK;
	if (output_begin(&o->out, name, OUTPUT_STREAM, &err))
		return cmd_fail(&command, CMD_ERROR, "%s", err.msg);
	o->f = output_stream(&o->out);
	return CMD_OK;
}

/* What is wrong with standard output, cmd_finish() says. */
static int close_file(struct file *o)
{
	struct err err;

	if (o->f != stdout && output_end(&o->out, &err))
		return cmd_fail(&command, CMD_ERROR, "%s", err.msg);
	return CMD_OK;
}

static void drop_file(struct file *o)
{
	if (o->f != stdout)
		output_drop(&o->out);
}

static void put_words(struct file *o, const uint32_t *words, size_t n)
{
	uint32_t le[KRON_RESOURCE_SIZE / 4] = {0};

	for (size_t i = 0; i < n; i++)
		le[i] = htole32(words[i]);
	fwrite(le, sizeof(le[0]), n, o->f);
}

static int say_result(const struct file *o)
{
	char n[STR_NUMBER];

	if (o->f != stdout)
		printf("%s samples -> %s\n", str_thousands(n, sizeof(n), o->samples), o->name);
	return cmd_finish(&command, CMD_OK);
}

/* ---- a trace ---- */

/* interval.info(5): \" and \\ in double quotes. */
static void put_quoted(FILE *f, const char *s)
{
	putc('"', f);
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			putc('\\', f);
		putc(*s == '\n' ? ' ' : *s, f);
	}
	putc('"', f);
}

static int write_intervals(const struct trace *t, const uint8_t *seen, uint32_t limit)
{
	struct file o;
	int status = open_file(&o, intervals);

	if (status)
		return status;
	for (size_t i = 0; i < t->nfunctions; i++) {
		uint32_t n = t->functions[i].n;

		if (n >= limit || !seen[n])
			continue;
		fprintf(o.f, "1 %" PRIu32 " %" PRIu32 " ", KRON_EVENT_ENTRY(n), KRON_EVENT_EXIT(n));
		put_quoted(o.f, t->functions[i].name);
		putc('\n', o.f);
	}
	return close_file(&o);
}

static int read_trace(int argc, char **argv, int first)
{
	struct trace *t = analysis_open(&command, argc, argv, first);
	uint8_t *seen = NULL;
	uint32_t limit = 0;
	struct file o;
	int status;

	if (!t)
		return CMD_ERROR;
	status = open_file(&o, output);
	if (!status) {
		if (intervals) {
			limit = trace_function_limit(t);
			seen = xcalloc(limit + 1, 1);
		}
		o.samples = export_mkdat_at(t, o.f, hz, seen, limit);
		status = close_file(&o);
	}
	if (!status && intervals)
		status = write_intervals(t, seen, limit);
	if (!status)
		status = say_result(&o);
	xfree(seen);
	return analysis_close(&command, t, status);
}

/* ---- a board ---- */

static int put_sample(void *to, const uint32_t *words, unsigned n)
{
	struct file *o = to;

	put_words(o, words, n);
	o->samples++;
	return ferror(o->f) ? -EIO : 0;
}

static int read_board(void)
{
	struct bus bus;
	struct err err;
	struct file o;
	int code, status;

	if (bus_open(&bus, board, &err))
		return cmd_fail(&command, CMD_ERROR, "%s", err.msg);
	status = open_file(&o, output);
	if (!status) {
		code = bus_samples(&bus, put_sample, &o, &err);
		if (!code)
			status = close_file(&o);
		else
			drop_file(&o);
		if (code)
			status = cmd_fail(&command, CMD_ERROR, "%s", err.msg);
	}
	bus_close(&bus);
	return status ? status : say_result(&o);
}

/* ---- all together ---- */

int cmd_read(int argc, char **argv)
{
	int status, first = cmd_parse(&command, argc, argv, &status);

	if (!first)
		return status;
	if (!board)
		return read_trace(argc, argv, first);
	if (first < argc)
		return cmd_fail(&command, CMD_USAGE, "either a trace or --board, not both");
	if (intervals)
		return cmd_fail(&command, CMD_USAGE,
				"a board knows no functions: --intervals needs a trace");
	return read_board();
}
