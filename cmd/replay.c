/* SPDX-License-Identifier: MIT */
/* replay.c - kron replay: calls in order, indented. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/term.h"
#include "base/vec.h"
#include "cmd/analysis.h"
#include "cmd/cmd.h"
#include "trace/report/report.h"

static struct opt_list threads, globs;
static struct replay_options replay;
static bool no_pager;
static int color = TERM_COLOR_AUTO;

static const struct opt options[] = {
	{'t', "thread", OPT_LIST, &threads, "TID", "Show only this thread. May be repeated.", 0, 0},
	{'F', "function", OPT_LIST, &globs, "GLOB",
	 "Show only functions whose name matches GLOB, and what they call. May be repeated.", 0, 0},
	{'D', "depth", OPT_UINT, &replay.depth, "N", "Show only N levels of calls.", 1, 0},
	{0, "no-merge", OPT_FLAG, &replay.no_merge, NULL,
	 "Show entry and exit of leaf calls on two lines, too.", 0, 0},
	{0, "switches", OPT_FLAG, &replay.switches, NULL,
	 "Also show when a thread was off its processor, and for how long, where context switches "
	 "were recorded.",
	 0, 0},
	{0, "color", OPT_CHOICE, &color, TERM_COLOR_WORDS, "Use colours. Default auto.", 0, 0},
	{0, "no-pager", OPT_FLAG, &no_pager, NULL, "Do not page output on a terminal.", 0, 0},
	ANALYSIS_TAIL_CALLS,
	ANALYSIS_FILTER,
	OPT_END,
};

static const struct opt_command command = {
	.name = "replay",
	.operands = "[DIR]...",
	.summary =
		"Show the calls in the trace DIR (default kron.data) in order of time, with their "
		"durations, indented by depth for each thread. Several traces, or a folder of them, "
		"are one.",
	.opts = options,
};

/* NULL: one of them is not a number. */
static uint64_t *read_tids(const char **bad)
{
	uint64_t *tids = xcalloc(threads.n, sizeof(*tids));

	for (size_t i = 0; i < threads.n; i++) {
		char *end;

		errno = 0;
		tids[i] = strtoull(threads.v[i], &end, 10);
		if (errno || *end || threads.v[i][0] < '0' || threads.v[i][0] > '9') {
			*bad = threads.v[i];
			xfree(tids);
			return NULL;
		}
	}
	return tids;
}

static int run(struct trace *t, uint64_t *tids)
{
	struct err err;

	replay.tids = tids;
	replay.ntids = threads.n;
	replay.globs = globs.v;
	replay.nglobs = globs.n;
	replay.color = term_wants_color((enum term_color)color, STDOUT_FILENO);
	analysis_streams();
	analysis_output(no_pager);
	if (report_replay(t, &replay, stdout, &err)) {
		cmd_fail(&command, CMD_ERROR, "%s", err.msg);
		return analysis_close(&command, t, CMD_ERROR);
	}
	return analysis_close(&command, t, CMD_OK);
}

int cmd_replay(int argc, char **argv)
{
	int status, first = cmd_parse(&command, argc, argv, &status);
	const char *bad = NULL;
	struct trace *t;
	uint64_t *tids;

	if (!first)
		return status;
	tids = read_tids(&bad);
	if (!tids)
		return cmd_fail(&command, CMD_USAGE, "--thread wants a thread's number, not %s",
				bad);
	t = analysis_open_all(&command, argc, argv, first);
	status = t ? run(t, tids) : CMD_ERROR;
	xfree(tids);
	return status;
}
