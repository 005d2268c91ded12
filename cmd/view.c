/* SPDX-License-Identifier: MIT */
/* view.c - kron view: a trace as one HTML file with pictures. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/duration.h"
#include "base/output.h"
#include "cmd/analysis.h"
#include "cmd/cmd.h"
#include "trace/view/view.h"

static const char *output = "kron.html", *from, *to;
static struct view_options view = {.to_ns = UINT64_MAX, .size = VIEW_SIZE, .detail = VIEW_DETAIL};

static const struct opt options[] = {
	{'o', "output", OPT_STR, &output, "FILE",
	 "Write the page to FILE, kron.html by default; - is standard output.", 0, 0},
	{0, "from", OPT_STR, &from, "TIME",
	 "Show the trace from TIME on, counted from its start: 1.5s, 20ms, 300us or 4000ns; a number "
	 "alone is seconds.",
	 0, 0},
	{0, "to", OPT_STR, &to, "TIME", "Show the trace up to TIME.", 0, 0},
	{'i', "intervals", OPT_STR, &view.intervals, "FILE",
	 "Also show the intervals that FILE describes, an interval.info(5) whose events may be names "
	 "of functions: their lengths, and those of class 4 as messages.",
	 0, 0},
	{0, "size", OPT_SIZE, &view.size, "BYTES",
	 "Limit the page to about BYTES, 20M by default. The larger it is, the more calls of a long "
	 "trace are shown one by one.",
	 VIEW_SIZE_MIN, VIEW_SIZE_MAX},
	{0, "detail", OPT_SIZE, &view.detail, "BYTES",
	 "Add about BYTES, 20M by default, for calls that are too short for the picture of the whole; "
	 "0 leaves them out. They are unpacked when the timeline is close enough.",
	 0, VIEW_DETAIL_MAX},
	ANALYSIS_TAIL_CALLS,
	ANALYSIS_FILTER,
	OPT_END,
};

static const struct opt_command command = {
	.name = "view",
	.operands = "[DIR]...",
	.summary =
		"Make a page with pictures of the trace DIR (default kron.data), one file that any "
		"browser shows. Several traces, or a folder of them, are one.",
	.opts = options,
};

/* What is wrong with the options; NULL: nothing. */
static const char *check_options(void)
{
	if (from && !duration_parse(from, &view.from_ns))
		return "--from wants a time, such as 1.5s, 20ms, 300us or 4000ns";
	if (to && !duration_parse(to, &view.to_ns))
		return "--to wants a time, such as 1.5s, 20ms, 300us or 4000ns";
	if (view.from_ns > view.to_ns)
		return "--from is later than --to";
	return NULL;
}

static int write_page(const struct trace *t)
{
	struct output out;
	struct err err;
	int code = output_begin(&out, output, OUTPUT_STREAM, &err);

	if (!code) {
		code = report_view(t, &view, output_stream(&out), &err);
		if (code)
			output_drop(&out);
		else
			code = output_end(&out, &err);
	}
	return code ? cmd_fail(&command, CMD_ERROR, "%s", err.msg) : CMD_OK;
}

static int print_page(const struct trace *t)
{
	struct err err;

	analysis_output(true);
	if (report_view(t, &view, stdout, &err))
		return cmd_fail(&command, CMD_ERROR, "%s", err.msg);
	return CMD_OK;
}

int cmd_view(int argc, char **argv)
{
	int status, first = cmd_parse(&command, argc, argv, &status);
	const char *wrong;
	struct trace *t;
	bool to_stdout;

	if (!first)
		return status;
	wrong = check_options();
	if (wrong)
		return cmd_fail(&command, CMD_USAGE, "%s", wrong);
	to_stdout = !strcmp(output, "-");
	if (to_stdout && isatty(STDOUT_FILENO))
		return cmd_fail(&command, CMD_USAGE,
				"refusing to write a page to a terminal: use -o FILE or a pipe");
	t = analysis_open_all(&command, argc, argv, first);
	if (!t)
		return CMD_ERROR;
	analysis_say_estimates(&command, t, "the times of the page");
	view.where = analysis_filter.where;
	view.trigger = analysis_filter.trigger;
	view.dir = t->dir;
	status = to_stdout ? print_page(t) : write_page(t);
	if (status == CMD_OK && !to_stdout && !analysis_quiet)
		fprintf(stderr, "kron view: %s\n", output);
	return analysis_close(&command, t, status);
}
