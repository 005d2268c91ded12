/* SPDX-License-Identifier: MIT */
/* export.c - kron export: a trace for other tools. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/duration.h"
#include "base/output.h"
#include "base/vec.h"
#include "cmd/analysis.h"
#include "cmd/cmd.h"
#include "trace/export/export.h"
#include "trace/report/report_monitor.h"

static int format = -1;
static const char *output, *dataset, *slice;
static uint64_t slice_ns;
static bool monitor; /* the table of intervals */

/* in the order of EXPORT_STREAMS, then EXPORT_PATHS */
#define FORMATS \
	"folded|callgrind|chrome|speedscope|perfetto|pprof|parquet|csv|mk.dat|uftrace|sqlite|ctf|otf2"

static const struct opt options[] = {
	{'f', "format", OPT_CHOICE, &format, FORMATS,
	 "Format of the output: folded (stacks for flame graphs, with self times in ns), callgrind "
	 "(for callgrind_annotate and KCachegrind), chrome (trace event JSON), speedscope, "
	 "perfetto, pprof, parquet (a table of calls), csv (the same), mk.dat, uftrace (a directory), "
	 "sqlite (a database), ctf (a directory, for "
	 "babeltrace2), otf2 (a directory, for otf2-print and Vampir).",
	 0, 0},
	{'o', "output", OPT_STR, &output, "FILE",
	 "Write to FILE instead of standard output (-). Formats that are a directory or a database "
	 "need it. A directory of that name may not hold anything yet.",
	 0, 0},
	{0, "dataset", OPT_STR, &dataset, "DIR",
	 "Write parquet as a data set: files in folders node=N/pid=P below DIR, in order of time. "
	 "DIR may not hold anything yet.",
	 0, 0},
	{0, "slice", OPT_STR, &slice, "SPAN",
	 "Begin a new file of the data set with each SPAN of the trace, like 1s or 50ms. Without it, "
	 "and within a SPAN, files have 983,040 rows.",
	 0, 0},
	{0, "monitor", OPT_FLAG, &monitor, NULL,
	 "With parquet or csv: a table of the intervals that kron monitor has saved, not of calls. A trace that "
	 "has nothing else is written so without it.",
	 0, 0},
	ANALYSIS_TAIL_CALLS,
	ANALYSIS_FILTER,
	OPT_END,
};

static const struct opt_command command = {
	.name = "export",
	.operands = "-f FORMAT [DIR]...",
	.summary = "Write the trace DIR (default kron.data) in the format of another tool. Several "
		   "traces, or a folder of them, are one; a database keeps several DIRs apart.",
	.opts = options,
};

#define X(name, function, text) function,
static void (*const streams[])(const struct trace *, FILE *) = {EXPORT_STREAMS(X)};
static int (*const paths[])(const struct trace *, const char *, struct err *) = {EXPORT_PATHS(X)};
#undef X
#define NSTREAMS (int)(sizeof(streams) / sizeof(streams[0]))

static bool is_binary(void)
{
	return format < NSTREAMS &&
	       (streams[format] == export_perfetto || streams[format] == export_pprof ||
		streams[format] == export_parquet || streams[format] == export_mkdat);
}

#define CHROME_MUCH (100u << 20)

static void warn_of_size(FILE *f)
{
	off_t size = ftello(f);

	if (streams[format] == export_chrome && size > CHROME_MUCH && !analysis_quiet)
		fprintf(stderr,
			"kron export: %s has %.0f MB; viewers of this format choke above some 100. "
			"--where takes less of the trace, -f perfetto writes a fifth\n",
			output, (double)size / 1e6);
}

/* Weights of folded stacks are nanoseconds, and an event takes none. */
static void warn_of_events(const struct trace *t)
{
	struct trace_cursor *c;
	struct trace_event e;
	uint64_t n = 0;

	if (format >= NSTREAMS || streams[format] != export_folded || !t->nuser_events)
		return;
	c = trace_cursor_open(t, -1);
	while (trace_cursor_next(c, &e))
		n += trace_user_event_of(t, e.s.event) != NULL;
	trace_cursor_close(c);
	if (n)
		fprintf(stderr,
			"kron export: %" PRIu64 " events of users' probes are not in it: folded "
			"stacks have no place for them. -f callgrind, pprof and speedscope count "
			"them by stack, all others keep each one\n",
			n);
}

static void warn_of_clock(const struct trace *t)
{
	if (trace_clock_every(t) > 1 && !analysis_quiet)
		fprintf(stderr,
			"kron export: %u samples share a reading of the clock: times in between are "
			"interpolated\n",
			trace_clock_every(t));
}

static bool has_conditions(void)
{
	return analysis_filter.where || analysis_filter.trigger;
}

/* ---- which table ---- */

static bool has_tables(void)
{
	return format < NSTREAMS &&
	       (streams[format] == export_parquet || streams[format] == export_csv);
}

static void write_stream(const struct trace *t, FILE *out)
{
	if (!monitor)
		streams[format](t, out);
	else
		(streams[format] == export_csv ? export_intervals_csv
					       : export_intervals_parquet)(t, out);
}

static bool is_database(void)
{
	return format >= NSTREAMS && paths[format - NSTREAMS] == export_sqlite;
}

/* Of a trace that holds both, one table is written: who asks for calls is told what is not in it. */
static int choose_table(const struct trace *t)
{
	const bool has = report_monitor_has(t);

	if (monitor && !has)
		return cmd_fail(&command, CMD_ERROR,
				"%s has no intervals of kron monitor (--save keeps them)",
				t->dir ? t->dir : "the trace");
	if (!has || monitor || is_database())
		return CMD_OK;
	if (!has_tables() || dataset) {
		if (!t->nlanes && !analysis_quiet)
			fprintf(stderr,
				"kron export: no calls, but intervals of counters: -f csv, parquet and sqlite have tables of them\n");
		return CMD_OK;
	}
	monitor = !t->nlanes && !has_conditions();
	if (!monitor && !analysis_quiet)
		fprintf(stderr,
			"kron export: intervals of kron monitor are not in it: --monitor writes them\n");
	return CMD_OK;
}

static int export_to_file(const struct trace *t)
{
	struct output out;
	struct err err;

	if (output_begin(&out, output, OUTPUT_STREAM, &err))
		return cmd_fail(&command, CMD_ERROR, "%s", err.msg);
	write_stream(t, output_stream(&out));
	warn_of_size(output_stream(&out));
	if (output_end(&out, &err))
		return cmd_fail(&command, CMD_ERROR, "%s", err.msg);
	return CMD_OK;
}

static int export_path(const struct trace *t)
{
	struct err err;

	if (paths[format - NSTREAMS](t, output, &err))
		return cmd_fail(&command, CMD_ERROR, "%s", err.msg);
	return CMD_OK;
}

static int export_to_dataset(const struct trace *t)
{
	struct err err;

	if (export_dataset(t, dataset, slice_ns, &err))
		return cmd_fail(&command, CMD_ERROR, "%s", err.msg);
	return CMD_OK;
}

static int export_to_stdout(const struct trace *t)
{
	analysis_streams();
	analysis_output(true);
	write_stream(t, stdout);
	return CMD_OK;
}

/* The rest of the operands into one database. */
static int export_many(int argc, char **argv, int first)
{
	size_t n = (size_t)(argc - first), open = 0;
	struct trace **traces = xcalloc(n, sizeof(*traces));
	struct err err;
	int status = CMD_OK;

	while (open < n && (traces[open] = analysis_open(&command, argc, argv, first + (int)open)))
		open++;
	if (open < n)
		status = CMD_ERROR;
	else if (export_sqlite_many((const struct trace *const *)traces, n, output, &err))
		status = cmd_fail(&command, CMD_ERROR, "%s", err.msg);
	while (open)
		status = analysis_close(&command, traces[--open], status);
	xfree(traces);
	return status;
}

static int check_dataset(void)
{
	if (slice && !dataset)
		return cmd_fail(&command, CMD_USAGE, "--slice is for a data set: use --dataset");
	if (!dataset)
		return CMD_OK;
	if (format >= NSTREAMS || streams[format] != export_parquet)
		return cmd_fail(&command, CMD_USAGE, "--dataset is for -f parquet");
	if (monitor)
		return cmd_fail(&command, CMD_USAGE, "--dataset: of calls, and not of intervals");
	if (output)
		return cmd_fail(&command, CMD_USAGE, "either -o or --dataset, not both");
	if (slice && (!duration_parse(slice, &slice_ns) || !slice_ns))
		return cmd_fail(&command, CMD_USAGE,
				"--slice '%s' is not a span of time; write it like 1s or 50ms",
				slice);
	return CMD_OK;
}

static int check_output(void)
{
	if (format < 0)
		return cmd_fail(&command, CMD_USAGE,
				"no format given: use -f with one of " FORMATS);
	if (check_dataset())
		return CMD_USAGE;
	if (dataset)
		return CMD_OK;
	if (output && !strcmp(output, "-"))
		output = NULL;
	if (monitor && !has_tables())
		return cmd_fail(
			&command, CMD_USAGE,
			"--monitor is for -f parquet and csv; sqlite has the intervals besides");
	if (monitor && has_conditions())
		return cmd_fail(&command, CMD_USAGE,
				"--monitor: --where and --trigger choose samples, not intervals");
	if (format >= NSTREAMS && !output)
		return cmd_fail(&command, CMD_USAGE, "this format needs an output: use -o");
	if (!output && is_binary() && isatty(STDOUT_FILENO))
		return cmd_fail(&command, CMD_USAGE,
				"refusing to write binary data to a terminal: use -o or a pipe");
	return CMD_OK;
}

int cmd_export(int argc, char **argv)
{
	int status, first = cmd_parse(&command, argc, argv, &status);
	struct trace *t;

	if (!first)
		return status;
	status = check_output();
	if (status)
		return status;
	analysis_has_pages = is_database();
	if (argc - first > 1 && analysis_has_pages)
		return export_many(argc, argv, first);
	t = analysis_open_all(&command, argc, argv, first);
	if (!t)
		return CMD_ERROR;
	status = choose_table(t);
	if (status)
		return analysis_close(&command, t, status);
	if (dataset)
		status = export_to_dataset(t);
	else if (format >= NSTREAMS)
		status = export_path(t);
	else
		status = output ? export_to_file(t) : export_to_stdout(t);
	if (status == CMD_OK) {
		warn_of_events(t);
		warn_of_clock(t);
		if (!analysis_quiet && !monitor)
			analysis_say_lost(&command, t);
	}
	return analysis_close(&command, t, status);
}
