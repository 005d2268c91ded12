/* SPDX-License-Identifier: MIT */
/*
 * pages.c - kron pages: runs a program and counts how often each page of its memory is read and written.
 *
 * A recording with the probes LIBRARY:FUNCTION%accesses pages, in a folder that goes at the end, and a report
 * of it.
 *
 * Exit status: as that of kron record.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/output.h"
#include "base/str.h"
#include "base/temp.h"
#include "base/vec.h"
#include "cmd/cmd.h"
#include "cmd/record/record.h"
#include "trace/report/report_pages.h"

enum { OWN_FAILURE = 125 };

static struct opt_list functions, libraries;
static struct pages_options pages;
static int width = -1;
static const char *output;
static bool quiet;

static const struct opt options[] = {
	{'F', "function", OPT_LIST, &functions, "GLOB",
	 "Count the references of functions whose name matches GLOB only. May be repeated.", 0, 0},
	{'L', "library", OPT_LIST, &libraries, "GLOB",
	 "Count those of the program or library whose file name or path matches GLOB only. May be "
	 "repeated. Default: the program and all of its libraries.",
	 0, 0},
	{'o', "output", OPT_STR, &output, "FILE", "Write to FILE, not to standard output.", 0, 0},
	{0, "json", OPT_FLAG, &pages.json, NULL,
	 "Print a JSON array of objects with address, size, node, reads, writes, pid and mapping.",
	 0, 0},
	{'n', "limit", OPT_UINT, &pages.limit, "N",
	 "Show only the N hottest pages and ranges. Default: 20; with --json all.", 1, 0},
	{0, "sharing", OPT_FLAG, &pages.sharing, NULL,
	 "Show only pages that several threads write, and what each thread did there.", 0, 0},
	{0, "width", OPT_CHOICE, &width, "11|19|64",
	 "Show for each page what a counter of so many bits holds, and its extended one of 32 bits, "
	 "as refcnt(5) has them.  64, the default: reads and writes only.",
	 0, 0},
	{'q', "quiet", OPT_FLAG, &quiet, NULL, "Print no notes.", 0, 0},
	OPT_END,
};

static const struct opt_command command = {
	.name = "pages",
	.operands = "[--] CMD [ARG]...",
	.summary = "Run CMD and count how often each page of its memory is read and written.",
	.opts = options,
	.stop_at_operand = true,
	.usage_status = OWN_FAILURE,
};

/* ---- the recording ---- */

static struct record_counting counting;
static struct temp folder;

static void add_probes(struct opt_list *specs)
{
	static const char *all[] = {"*"};
	struct opt_list every = {.v = all, .n = 1};
	struct opt_list *f = functions.n ? &functions : &every,
			*l = libraries.n ? &libraries : &every;

	for (size_t i = 0; i < l->n; i++)
		for (size_t k = 0; k < f->n; k++)
			*vec_push(specs) = xasprintf("%s:%s%%accesses pages", l->v[i], f->v[k]);
}

/* ---- the report ---- */

static void say_notes(const struct trace *t, const struct trace_pages *counted)
{
	char n[STR_NUMBER];
	uint64_t refused = trace_session_number(t, "refused", 0);

	if (quiet)
		return;
	if (!counted->v.n)
		fputs("kron: nothing was counted: no function that was asked for was executed\n",
		      stderr);
	if (t->lost)
		fprintf(stderr,
			"kron: %s references are not counted: no memory for their counters\n",
			str_thousands(n, sizeof(n), t->lost));
	if (refused)
		fprintf(stderr,
			"kron: %s instructions are not counted: kron cannot place a probe there\n",
			str_thousands(n, sizeof(n), refused));
	for (size_t i = 0; i < t->nuntraced; i++)
		fprintf(stderr, "kron: process %" PRId64 " is not counted: %s\n",
			(int64_t)t->untraced[i].pid, t->untraced[i].reason);
}

/* Begun before the program is: what it has counted is not to be lost for a name. */
static struct output out;
static bool is_begun;

static int report(const char *dir)
{
	struct trace_pages counted;
	struct trace *t;
	struct err err;
	int status = 0;

	if (trace_open(&t, dir, &err))
		return cmd_fail(&command, OWN_FAILURE, "%s", err.msg);
	if (trace_pages_read(&counted, dir, &err)) {
		trace_close(t);
		return cmd_fail(&command, OWN_FAILURE, "nothing was counted");
	}
	say_notes(t, &counted);
	report_pages(t, &counted, &pages, output ? output_stream(&out) : stdout);
	is_begun = false;
	if (output && output_end(&out, &err))
		status = cmd_fail(&command, OWN_FAILURE, "%s", err.msg);
	trace_pages_free(&counted);
	trace_close(t);
	return output ? status : cmd_finish(&command, status);
}

static int fail_unwritten(const char *why)
{
	return cmd_fail(&command, OWN_FAILURE,
			"the counts are lost, for their folder %s has no room: %s; TMPDIR can name "
			"another place",
			folder.path, why);
}

/* What comes after it may be a signal that ends us as it ended the program. */
static int show(struct collector *c, const struct collector_summary *s)
{
	int code;

	(void)c;
	code = s->error.msg[0] ? fail_unwritten(s->error.msg) : report(counting.dir);
	if (is_begun)
		output_drop(&out);
	is_begun = false;
	temp_close(&folder);
	return code;
}

static int run(char **argv)
{
	char *dir = xasprintf("%s/trace", folder.path);
	int status;

	counting.command = &command;
	counting.dir = dir;
	counting.quiet = quiet;
	counting.at_end = show;
	add_probes(&counting.specs);
	status = record_count(&counting, argv);
	vec_for(&counting.specs, s)
		xfree((char *)*s);
	vec_free(&counting.specs);
	xfree(dir);
	return status;
}

int cmd_pages(int argc, char **argv)
{
	static const unsigned widths[] = {11, 19, 0};
	int status, first = cmd_parse(&command, argc, argv, &status);
	struct err err;

	if (!first)
		return status;
	if (first == argc)
		return cmd_fail(
			&command, OWN_FAILURE,
			"no command given; usage: kron pages [OPTION]... [--] CMD [ARG]...");
	pages.width = width < 0 ? 0 : widths[width];
	if (pages.width && !report_pages_one_node())
		return cmd_fail(
			&command, OWN_FAILURE,
			"--width: counters are one for each node, and on a machine with several "
			"nodes it is not known from which one a reference came");
	if (cmd_temp_folder(&folder, &command, &err))
		return cmd_fail(&command, OWN_FAILURE, "%s", err.msg);
	if (output && output_begin(&out, output, OUTPUT_STREAM, &err)) {
		status = cmd_fail(&command, OWN_FAILURE, "%s", err.msg);
	} else {
		is_begun = output;
		status = run(argv + first);
	}
	if (is_begun)
		output_drop(&out);
	temp_close(&folder);
	return status;
}
