/* SPDX-License-Identifier: MIT */
/* info.c - kron info: what was recorded. */
#define _GNU_SOURCE
#include "cmd/analysis.h"
#include "cmd/cmd.h"
#include "trace/report/report.h"

static bool json, no_pager;

static const struct opt options[] = {
	{0, "json", OPT_FLAG, &json, NULL,
	 "Print a JSON object; among its keys are samples, lost, probes, refused, processes and "
	 "threads.",
	 0, 0},
	{0, "no-pager", OPT_FLAG, &no_pager, NULL, "Do not page output on a terminal.", 0, 0},
	ANALYSIS_QUIET,
	OPT_END,
};

static const struct opt_command command = {
	.name = "info",
	.operands = "[DIR]...",
	.summary = "Show what the trace DIR (default kron.data) holds: what was run, when and on "
		   "what, samples and losses, probes and refusals, processes. Several traces, or a "
		   "folder of them, are one.",
	.opts = options,
};

int cmd_info(int argc, char **argv)
{
	int status, first = cmd_parse(&command, argc, argv, &status);
	struct report_state state;
	struct trace *t;

	if (!first)
		return status;
	t = analysis_open_all(&command, argc, argv, first);
	if (!t)
		return CMD_ERROR;
	analysis_output(no_pager || json);
	analysis_state(t, &state);
	report_info(t, &state, json, stdout);
	return analysis_close(&command, t, CMD_OK);
}
