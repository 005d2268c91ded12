/* SPDX-License-Identifier: MIT */
/* export.c - kron export: a trace for other tools. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cmd/analysis.h"
#include "cmd/cmd.h"
#include "trace/export.h"

static int format = -1;
static const char *output;

static const struct opt options[] = {
	{'f', "format", OPT_CHOICE, &format, "folded|callgrind|chrome|speedscope",
	 "Format of the output: folded stacks for flame graphs, with self times in ns; callgrind's, "
	 "for callgrind_annotate and KCachegrind; Chrome's trace event JSON; speedscope's.",
	 0, 0},
	{'o', "output", OPT_STR, &output, "FILE", "Write to FILE instead of standard output.", 0,
	 0},
	OPT_END,
};

static const struct opt_command command = {
	.name = "export",
	.operands = "-f FORMAT [DIR]",
	.summary = "Write the trace DIR (default kron.data) in the format of another tool.",
	.opts = options,
	.max_operands = 1,
};

#define X(name, function, text) function,
static void (*const exporters[])(const struct trace *, FILE *) = {EXPORTS(X)};
#undef X

/* To a file of our own, so that a failure names it. */
static int export_to_file(const struct trace *t)
{
	FILE *f = fopen(output, "we");
	bool failed;

	if (!f)
		return cmd_fail(&command, CMD_ERROR, "cannot write %s: %s", output,
				strerror(errno));
	exporters[format](t, f);
	failed = ferror(f);
	if (fclose(f) || failed)
		return cmd_fail(&command, CMD_ERROR, "cannot write %s: %s", output,
				strerror(errno));
	return CMD_OK;
}

int cmd_export(int argc, char **argv)
{
	int status, first = cmd_parse(&command, argc, argv, &status);
	struct trace *t;

	if (!first)
		return status;
	if (format < 0)
		return cmd_fail(&command, CMD_USAGE,
				"which format? -f "
				"folded|callgrind|chrome|speedscope");
	t = analysis_open(&command, argc, argv, first);
	if (!t)
		return CMD_ERROR;
	status = CMD_OK;
	if (output) {
		status = export_to_file(t);
	} else {
		analysis_output(true);
		exporters[format](t, stdout);
	}
	return analysis_close(&command, t, status);
}
