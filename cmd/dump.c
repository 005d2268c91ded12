/* SPDX-License-Identifier: MIT */
/* dump.c - kron dump: every sample. */
#define _GNU_SOURCE
#include "cmd/analysis.h"
#include "cmd/cmd.h"
#include "trace/report/report.h"

static bool json, switches, no_pager;

static const struct opt options[] = {
	{0, "json", OPT_FLAG, &json, NULL, "Print one JSON object a line.", 0, 0},
	{0, "switches", OPT_FLAG, &switches, NULL,
	 "Also show context switches, where the trace has them.", 0, 0},
	{0, "no-pager", OPT_FLAG, &no_pager, NULL, "Do not page output on a terminal.", 0, 0},
	ANALYSIS_FILTER,
	OPT_END,
};

static const struct opt_command command = {
	.name = "dump",
	.operands = "[DIR]...",
	.summary =
		"Show every sample of the trace DIR (default kron.data): time, header bits, CPU, "
		"source, data, and what it means. Several traces, or a folder of them, are one.",
	.opts = options,
};

int cmd_dump(int argc, char **argv)
{
	int status, first = cmd_parse(&command, argc, argv, &status);
	struct trace *t;

	if (!first)
		return status;
	t = analysis_open_all(&command, argc, argv, first);
	if (!t)
		return CMD_ERROR;
	analysis_streams();
	analysis_output(no_pager || json);
	report_dump(t, json, switches, stdout);
	return analysis_close(&command, t, CMD_OK);
}
