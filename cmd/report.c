/* SPDX-License-Identifier: MIT */
/* report.c - kron report: calls and times by function. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/analysis.h"
#include "cmd/cmd.h"
#include "trace/report/report.h"
#include "trace/report/report_monitor.h"

static struct profile_options profile = {.sort = PROFILE_TOTAL};
static struct edges_options edges;
static struct intervals_options intervals;
static const char *callers, *callees, *threshold;
static struct graph_options graph = {.threshold = 0.5};
static bool call_graph, events, monitor, messages;
static bool by_thread, by_process, by_cpu, by_group, no_pager;

static const struct opt options[] = {
	{0, "json", OPT_FLAG, &profile.json, NULL,
	 "Print a JSON array of objects with function, module, calls, total_ns, self_ns, min_ns, "
	 "avg_ns, max_ns, p50_ns, p90_ns and p99_ns.",
	 0, 0},
	{0, "by-thread", OPT_FLAG, &by_thread, NULL, "One table for each thread.", 0, 0},
	{0, "by-process", OPT_FLAG, &by_process, NULL, "One table for each process.", 0, 0},
	{0, "by-cpu", OPT_FLAG, &by_cpu, NULL,
	 "One table for each CPU; a call counts for the one that it was entered on.", 0, 0},
	{0, "by-group", OPT_FLAG, &by_group, NULL,
	 "One table for each filter level that functions were given (record --level).", 0, 0},
	{'p', "percentiles", OPT_FLAG, &profile.percentiles, NULL,
	 "Show what half, 90% and 99% of a function's calls did not exceed, within 1.6%.", 0, 0},
	{'V', "virtual", OPT_FLAG, &profile.virtual, NULL,
	 "Show each time also without the cost of the probes that it encloses.", 0, 0},
	{'c', "on-cpu", OPT_FLAG, &profile.on_cpu, NULL,
	 "Show total and self also without the time that the thread was not on a processor, where "
	 "context switches were recorded.",
	 0, 0},
	{0, "histogram", OPT_FLAG, &profile.histogram, NULL,
	 "Show how long the calls of each function took, as bars.", 0, 0},
	{0, "totals", OPT_FLAG, &profile.totals, NULL,
	 "Show only what stands below the table: calls, losses, migrations, cost of the probes; "
	 "with --json an object.",
	 0, 0},
	{0, "callers", OPT_STR, &callers, "FUNC",
	 "Show who calls FUNC, a name or a glob, and how much of its time is theirs.", 0, 0},
	{0, "callees", OPT_STR, &callees, "FUNC",
	 "Show whom FUNC calls, and how much of its time they take.", 0, 0},
	{'g', "call-graph", OPT_FLAG, &call_graph, NULL,
	 "Show the tree of calls, each way to a function on a line.", 0, 0},
	{0, "threshold", OPT_STR, &threshold, "PERCENT",
	 "Leave out of the tree what takes less than PERCENT of all time. Default 0.5.", 0, 0},
	{0, "events", OPT_FLAG, &events, NULL,
	 "Show the events of the probes that record -p placed: how many, and their values. A trace "
	 "that has no functions shows them without being asked.",
	 0, 0},
	{0, "monitor", OPT_FLAG, &monitor, NULL,
	 "Show the intervals that kron monitor has saved, as it shows them. A trace that has nothing else "
	 "shows them without being asked.",
	 0, 0},
	{'i', "intervals", OPT_STR, &intervals.file, "FILE",
	 "Show the intervals that FILE describes, an interval.info(5) whose events may be names of "
	 "functions.",
	 0, 0},
	{0, "messages", OPT_FLAG, &messages, NULL,
	 "Show which process has sent how many messages to which, and how long they took: those of MPI and "
	 "of TCP, which record -P mpi and -P net record, and for which processes the others have waited; "
	 "with --intervals those among its intervals (class 4).",
	 0, 0},
	{'s', "sort", OPT_CHOICE, &profile.sort, PROFILE_KEYS,
	 "Sort by this column: total, self, calls, avg, min, max, name, module, p50, p90, p99, "
	 "on-cpu or self-on-cpu. Default total.",
	 0, 0},
	{'n', "limit", OPT_UINT, &profile.limit, "N", "Show only the first N functions.", 1, 0},
	{0, "no-pager", OPT_FLAG, &no_pager, NULL, "Do not page output on a terminal.", 0, 0},
	ANALYSIS_TAIL_CALLS,
	ANALYSIS_FILTER,
	OPT_END,
};

static const struct opt_command command = {
	.name = "report",
	.operands = "[DIR]...",
	.summary =
		"Show where the time went: calls, total, self, average, minimum and maximum time "
		"of each function in the trace DIR (default kron.data). Several traces, or a "
		"folder of them, are one.",
	.opts = options,
};

/* What report shows; bits. */
enum { PROFILE = 1, EDGES = 2, GRAPH = 4, EVENTS = 8, INTERVALS = 16, MONITOR = 32, MPI = 64 };
static const struct {
	unsigned kind;
	const char *name;
} kinds[] = {{PROFILE, "a profile"}, {EDGES, "--callers and --callees"}, {GRAPH, "--call-graph"},
	     {EVENTS, "--events"},   {INTERVALS, "--intervals"},         {MONITOR, "--monitor"},
	     {MPI, "--messages"}};

static unsigned kind_wanted(void)
{
	return callers || callees ? EDGES
	       : intervals.file   ? INTERVALS
	       : messages         ? MPI
	       : events           ? EVENTS
	       : monitor          ? MONITOR
	       : call_graph       ? GRAPH
				  : PROFILE;
}

static const char *kind_name(unsigned kind)
{
	size_t k = 0;

	while (kinds[k].kind != kind)
		k++;
	return kinds[k].name;
}

struct given {
	const char *name;
	bool given;
	unsigned kinds; /* that it is for */
};

/* The first option that was given and is not for this kind. */
static bool find_unfit(unsigned kind, struct given *out)
{
	const struct given v[] = {
		{"--by-thread", by_thread, PROFILE | INTERVALS},
		{"--messages", messages, INTERVALS | MPI},
		{"--by-process", by_process, PROFILE | INTERVALS},
		{"--by-cpu", by_cpu, PROFILE | INTERVALS},
		{"--by-group", by_group, PROFILE},
		{"--percentiles", profile.percentiles, PROFILE | INTERVALS},
		{"--virtual", profile.virtual, PROFILE | INTERVALS},
		{"--on-cpu", profile.on_cpu, PROFILE},
		{"--histogram", profile.histogram, PROFILE | INTERVALS},
		{"--totals", profile.totals, PROFILE},
		{"--sort", profile.sort != PROFILE_TOTAL, PROFILE},
		{"--limit", profile.limit, PROFILE | EVENTS},
		{"--threshold", threshold, GRAPH},
	};

	for (size_t i = 0; i < sizeof(v) / sizeof(v[0]); i++) {
		if (!v[i].given || v[i].kinds & kind)
			continue;
		*out = v[i];
		return true;
	}
	return false;
}

/* An option that would change nothing is refused: who gives it expects something else. */
static const char *check_kind(void)
{
	static char text[80];
	struct given o;

	if (!find_unfit(kind_wanted(), &o))
		return NULL;
	if (o.kinds == GRAPH)
		snprintf(text, sizeof(text), "%s needs %s", o.name, kind_name(GRAPH));
	else
		snprintf(text, sizeof(text), "%s does not apply to %s", o.name,
			 kind_name(kind_wanted()));
	return text;
}

/* A trace of events alone shows these, unless something was asked that they have not. */
static bool shows_events(const struct trace *t)
{
	struct given o;

	return events || (t->nuser_events && !t->nfunctions && !profile.json &&
			  !find_unfit(EVENTS | GRAPH, &o));
}

static bool shows_monitor(const struct trace *t)
{
	struct given o;

	return monitor || (kind_wanted() == PROFILE && !t->nfunctions && !t->nuser_events &&
			   !find_unfit(MONITOR, &o) && report_monitor_has(t));
}

/* What is wrong with the options together; NULL: nothing. */
static const char *check_options(void)
{
	char *end;

	if (by_thread + by_process + by_cpu + by_group > 1)
		return "--by-thread, --by-process, --by-cpu and --by-group exclude each other";
	if ((callers || callees) + call_graph + events + monitor +
		    (intervals.file != NULL || messages) >
	    1)
		return "--intervals, --messages, --events, --monitor, --call-graph, and --callers or "
		       "--callees exclude each other, but for --messages with --intervals";
	if (messages && (by_thread || by_process || by_cpu || profile.percentiles ||
			 profile.virtual || profile.histogram))
		return "--messages has a row for each two processes: --by-thread, --by-process, --by-cpu, "
		       "--percentiles, --virtual and --histogram do not apply to it";
	if (callers && callees && strcmp(callers, callees))
		return "--callers and --callees together want the same function";
	if (threshold) {
		graph.threshold = strtod(threshold, &end);
		if (end == threshold || *end || !(graph.threshold >= 0 && graph.threshold <= 100))
			return "--threshold wants a number from 0 to 100";
	}
	return check_kind();
}

static void take_options(void)
{
	profile.by = by_thread    ? PROFILE_BY_THREAD
		     : by_process ? PROFILE_BY_PROCESS
		     : by_cpu     ? PROFILE_BY_CPU
		     : by_group   ? PROFILE_BY_GROUP
				  : PROFILE_BY_FUNCTION;
	if (profile.sort >= PROFILE_ON_CPU)
		profile.on_cpu = true;
	else if (profile.sort >= PROFILE_KEY_P50)
		profile.percentiles = true;
	edges = (struct edges_options){.function = callers ? callers : callees,
				       .callers = callers,
				       .callees = callees,
				       .json = profile.json};
	graph.json = profile.json;
	intervals.by = profile.by;
	intervals.json = profile.json;
	intervals.histogram = profile.histogram;
	intervals.virtual = profile.virtual;
}

static int run(const struct trace *t)
{
	uint64_t damaged;
	struct err err;

	if (edges.function) {
		if (report_edges(t, &edges, stdout, &err))
			return cmd_fail(&command, CMD_ERROR, "%s", err.msg);
		analysis_say_lost(&command, t);
	} else if (intervals.file) {
		if (messages ? report_messages(t, &intervals, stdout, &err)
			     : report_intervals(t, &intervals, stdout, &err))
			return cmd_fail(&command, CMD_ERROR, "%s", err.msg);
	} else if (messages) {
		if (report_matched(t, profile.json, stdout, &err))
			return cmd_fail(&command, CMD_ERROR, "%s", err.msg);
	} else if (shows_monitor(t)) {
		if (!report_monitor_has(t))
			return cmd_fail(&command, CMD_ERROR,
					"%s has no intervals of kron monitor (--save keeps them)",
					t->dir);
		damaged = report_monitor(t, profile.json, stdout);
		if (damaged)
			fprintf(stderr,
				"kron report: %" PRIu64
				" lines of intervals make no sense, and are left out\n",
				damaged);
	} else if (shows_events(t)) {
		report_events(t, profile.json, profile.limit, stdout);
	} else if (call_graph) {
		report_graph(t, &graph, stdout);
		analysis_say_lost(&command, t);
	} else {
		if (report_profile_check(t, &profile, &err))
			return cmd_fail(&command, CMD_ERROR, "%s", err.msg);
		report_profile(t, &profile, stdout);
	}
	return CMD_OK;
}

int cmd_report(int argc, char **argv)
{
	int status, first = cmd_parse(&command, argc, argv, &status);
	const char *wrong;
	struct trace *t;

	if (!first)
		return status;
	wrong = check_options();
	if (wrong)
		return cmd_fail(&command, CMD_USAGE, "%s", wrong);
	take_options();
	t = analysis_open_all(&command, argc, argv, first);
	if (!t)
		return CMD_ERROR;
	analysis_output(no_pager || profile.json);
	return analysis_close(&command, t, run(t));
}
