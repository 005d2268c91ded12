/* SPDX-License-Identifier: MIT */
/* view.c - kron view: a trace as one HTML file with pictures. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
	 "Let the page have about BYTES at most, 20M by default: the more, the more of a long "
	 "trace is shown one by one.",
	 VIEW_SIZE_MIN, VIEW_SIZE_MAX},
	{0, "detail", OPT_SIZE, &view.detail, "BYTES",
	 "Let calls that are too short for the picture of the whole have about BYTES more, 20M "
	 "by default, 0 for none: they are packed, and unpacked when the timeline is close enough.",
	 0, VIEW_DETAIL_MAX},
	ANALYSIS_TAIL_CALLS,
	ANALYSIS_FILTER,
	OPT_END,
};

static const struct opt_command command = {
	.name = "view",
	.operands = "[DIR]",
	.summary =
		"Make a page with pictures of the trace DIR (default kron.data), one file that any "
		"browser shows.",
	.opts = options,
	.max_operands = 1,
};

/* false: it is no time */
static bool read_time(const char *text, uint64_t *ns)
{
	static const struct {
		const char *unit;
		double ns;
	} units[] = {{"", 1e9}, {"s", 1e9}, {"ms", 1e6}, {"us", 1e3}, {"ns", 1}};
	char *end;
	double v = strtod(text, &end);

	while (*end == ' ')
		end++;
	if (end == text || !(v >= 0))
		return false;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(end, units[i].unit))
			continue;
		if (!(v * units[i].ns < 1e18))
			return false;
		*ns = (uint64_t)(v * units[i].ns + 0.5);
		return true;
	}
	return false;
}

/* What is wrong with the options; NULL: nothing. */
static const char *check_options(void)
{
	if (from && !read_time(from, &view.from_ns))
		return "--from wants a time, such as 1.5s, 20ms, 300us or 4000ns";
	if (to && !read_time(to, &view.to_ns))
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
				"a page is nothing for a terminal: use -o FILE, or a pipe");
	t = analysis_open(&command, argc, argv, first);
	if (!t)
		return CMD_ERROR;
	view.where = analysis_filter.where;
	view.trigger = analysis_filter.trigger;
	view.dir = first < argc ? argv[first] : TRACE_DEFAULT_DIR;
	status = to_stdout ? print_page(t) : write_page(t);
	if (status == CMD_OK && !to_stdout)
		fprintf(stderr, "kron view: %s\n", output);
	return analysis_close(&command, t, status);
}
