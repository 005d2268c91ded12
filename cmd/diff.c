/* SPDX-License-Identifier: MIT */
/* diff.c - kron diff: two traces by function. */
#define _GNU_SOURCE
#include "cmd/analysis.h"
#include "cmd/cmd.h"
#include "trace/report/report.h"

static struct diff_options diff;
static bool no_pager;

static const struct opt options[] = {
	{0, "json", OPT_FLAG, &diff.json, NULL,
	 "Print a JSON array of objects with function, module, before, after, t, df, p, "
	 "significant and untested.",
	 0, 0},
	{'s', "sort", OPT_CHOICE, &diff.sort, DIFF_KEYS,
	 "Show this, and sort by how much it differs. Default self.", 0, 0},
	{'n', "limit", OPT_UINT, &diff.limit, "N", "Show only the first N functions.", 1, 0},
	{0, "no-pager", OPT_FLAG, &no_pager, NULL, "Do not page output on a terminal.", 0, 0},
	ANALYSIS_TAIL_CALLS,
	ANALYSIS_FILTER,
	OPT_END,
};

static const struct opt_command command = {
	.name = "diff",
	.operands = "[BEFORE [AFTER]]",
	.summary =
		"Compare two traces by function: calls and times before and after, and whether a "
		"call's time differs significantly (default kron.data.old and kron.data).",
	.opts = options,
	.max_operands = 2,
};

int cmd_diff(int argc, char **argv)
{
	char old[] = TRACE_DEFAULT_DIR ".old", *old_argv[] = {old, NULL};
	int status, first = cmd_parse(&command, argc, argv, &status);
	struct trace *before, *after;

	if (!first)
		return status;
	before = first < argc ? analysis_open(&command, argc, argv, first)
			      : analysis_open(&command, 1, old_argv, 0);
	if (!before)
		return CMD_ERROR;
	after = analysis_open(&command, argc, argv, first + 1);
	if (!after) {
		trace_close(before);
		return CMD_ERROR;
	}
	analysis_output(no_pager || diff.json);
	report_diff(before, after, &diff, stdout);
	after->damaged += before->damaged;
	analysis_drop(&command, before);
	return analysis_close(&command, after, CMD_OK);
}
