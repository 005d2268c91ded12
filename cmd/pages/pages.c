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
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "base/output.h"
#include "base/str.h"
#include "base/temp.h"
#include "base/vec.h"
#include "cmd/analysis.h"
#include "cmd/cmd.h"
#include "cmd/pages/symbols.h"
#include "cmd/record/record.h"
#include "inject/elf/demangle.h"
#include "trace/report/report_pages.h"

enum { OWN_FAILURE = 125 };

static struct opt_list functions, libraries, alloc_fns;
static struct pages_options pages;
static int width = -1, by = -1;
static const char *output, *every, *migrate, *from;
static const char *kept; /* the trace that -o names */
static bool quiet, lines;

static const struct opt options[] = {
	{'F', "function", OPT_LIST, &functions, "GLOB",
	 "Count the references of functions whose name matches GLOB only. May be repeated.", 0, 0},
	{'L', "library", OPT_LIST, &libraries, "GLOB",
	 "Count those of the program or library whose file name, soname or path matches GLOB only. May be "
	 "repeated. Default: the program and all of its libraries.",
	 0, 0},
	{'o', "output", OPT_STR, &output, "FILE|DIR",
	 "Write to FILE, not to standard output. A DIR, which is there or whose name ends with / or "
	 ".data: keep the counts there as a trace, which kron pages --from, view and export show, "
	 "and print nothing.",
	 0, 0},
	{0, "json", OPT_FLAG, &pages.json, NULL,
	 "Print a JSON array of objects with address, size, node, reads, writes, pid, mapping and "
	 "variables; with --every one of steps.",
	 0, 0},
	{'n', "limit", OPT_UINT, &pages.limit, "N",
	 "Show only the N hottest pages and ranges. Default: 20; with --json all.", 1, 0},
	{0, "lines", OPT_FLAG, &lines, NULL, "Count lines of 64 bytes, not pages.", 0, 0},
	{0, "by", OPT_CHOICE, &by, "function|site",
	 "Show which functions touch each page, too, and how often; or where what lies there was "
	 "allocated, by malloc, its kin and C++'s new.",
	 0, 1},
	{0, "alloc-fn", OPT_LIST, &alloc_fns, "FUNC",
	 "With --by site: FUNC allocates for its caller, who is the site. May be repeated.", 0, 0},
	{0, "every", OPT_STR, &every, "T",
	 "Show how much was touched in each step of so long a time, from 1ms on, like 100ms.", 0,
	 0},
	{0, "migrate", OPT_STR, &migrate, "N[,M]",
	 "Move a page to the node that has made N references to it since it came to its home, and M "
	 "more than that one; M is N if it is not given. On a machine with one node: say so.",
	 0, 0},
	{0, "from", OPT_STR, &from, "DIR",
	 "Run nothing: report what kron record has counted there, with probes of the kind pages or "
	 "lines.",
	 0, 0},
	{0, "sharing", OPT_FLAG, &pages.sharing, NULL,
	 "Show only pages (or lines) that several threads write, and what each thread did there.",
	 0, 0},
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

enum { BY_FUNCTION, BY_SITE };

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
			*vec_push(specs) = xasprintf("%s:%s%%accesses %s%s", l->v[i], f->v[k],
						     lines ? "lines" : "pages",
						     by == BY_FUNCTION ? ":function" : "");
}

/* As the report names it: readable, and without its arguments. */
static char *plain_name(const char *function)
{
	char *name = symbol_demangle(function);
	char *arguments;

	if (!name)
		name = xstrdup(function);
	arguments = strchr(name, '(');
	if (arguments && arguments > name && !strstr(name, "operator()"))
		*arguments = 0;
	return name;
}

/* Events have words for names; what is none stands there in hexadecimal. */
static char *event_of_name(const char *function)
{
	char *hex, *name;
	size_t n;

	for (n = 0; isalnum((unsigned char)function[n]) || function[n] == '_'; n++)
		;
	if (!function[n])
		return xasprintf(REPORT_SITES_FOR "%s", function);
	n = strlen(function);
	hex = xmalloc(2 * n + 1);
	for (size_t i = 0; i < n; i++)
		snprintf(hex + 2 * i, 3, "%02x", (unsigned)(unsigned char)function[i]);
	hex[2 * n] = 0;
	name = xasprintf(REPORT_SITES_FOR_HEX "%s", hex);
	xfree(hex);
	return name;
}

static char *event_of(const char *function)
{
	char *plain = plain_name(function);
	char *event = event_of_name(plain);

	xfree(plain);
	return event;
}

static void add_sites(void)
{
	*vec_push(&counting.files) = "blocks";
	for (size_t i = 0; i < alloc_fns.n; i++) {
		const char *f = alloc_fns.v[i];
		char *event = event_of(f);

		*vec_push(&counting.specs) =
			xasprintf("block:%s_site=*:\"%s\" stack=+0($sp):x64[3]", event, f);
		*vec_push(&counting.specs) = xasprintf("block:%s_end=*:\"%s\"%%return", event, f);
		xfree(event);
	}
}

/* ---- the report ---- */

static bool has_counted(const struct trace *t, const struct trace_pages *counted, int32_t pid)
{
	uint32_t last = 0;

	for (size_t i = 0; i < counted->v.n; last = counted->v.v[i++].uid) {
		const struct trace_proc *p =
			counted->v.v[i].uid == last ? NULL : trace_proc_of(t, counted->v.v[i].uid);

		if (p && p->pid == pid)
			return true;
	}
	return false;
}

static void say_notes(const struct trace *t, const struct trace_pages *counted)
{
	char n[STR_NUMBER];
	uint64_t refused = trace_session_number(t, "refused", 0);
	uint64_t unnoted = trace_session_number(t, "unnoted_maps", 0);

	if (quiet)
		return;
	if (!counted->v.n && !t->pages_damaged)
		fputs("kron: nothing was counted: no function that was asked for was executed, or none of them "
		      "can be counted (a file from `kron patch` has probes of its own)\n",
		      stderr);
	if (t->lost)
		fprintf(stderr,
			"kron: %s references are not counted: no memory for their counters\n",
			str_thousands(n, sizeof(n), t->lost));
	if (refused)
		fprintf(stderr,
			"kron: %s instructions are not counted: kron cannot place a probe there\n",
			str_thousands(n, sizeof(n), refused));
	if (unnoted)
		fprintf(stderr,
			"kron: some pages are shown without their mapping: a process made more mappings than "
			"kron notes (%s times one was left out)\n",
			str_thousands(n, sizeof(n), unnoted));
	for (size_t i = 0; i < t->nuntraced; i++)
		fprintf(stderr,
			has_counted(t, counted, t->untraced[i].pid)
				? "kron: of process %" PRId64 ": %s\n"
				: "kron: process %" PRId64 " is not counted: %s\n",
			(int64_t)t->untraced[i].pid, t->untraced[i].reason);
}

static bool has_event(const struct trace *t, const char *name)
{
	for (size_t i = 0; i < t->nuser_events; i++)
		if (!strcmp(t->user_events[i].name, name))
			return true;
	return false;
}

static void say_unmet(const struct trace *t)
{
	for (size_t i = 0; i < alloc_fns.n; i++) {
		char *event = event_of(alloc_fns.v[i]);
		char *site = xasprintf("%s_site", event);

		if (!quiet && !has_event(t, site))
			fprintf(stderr,
				"kron: --alloc-fn: no file of the program has a function %s that "
				"can be probed\n",
				alloc_fns.v[i]);
		xfree(site);
		xfree(event);
	}
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
	if (from)
		analysis_say_state(&command, t);
	if (trace_pages_read(&counted, dir, &err)) {
		trace_close(t);
		return cmd_fail(&command, OWN_FAILURE, "%s",
				from ? err.msg : "nothing was counted");
	}
	say_notes(t, &counted);
	say_unmet(t);
	pages.steps |= from && counted.looks.n && !pages.json;
	pages.migrate |= from && counted.moves.n;
	if (pages.functions && counted.v.n && !counted.functions.n) {
		fputs("kron: --by: nothing was counted by function there; kron pages --by function -o DIR "
		      "keeps that\n",
		      stderr);
		pages.functions = false;
	}
	if (pages.sites && !report_pages_has_sites(t)) {
		fputs(from ? "kron: --by: no allocations were recorded there; kron pages --by site -o DIR "
			     "keeps them\n"
			   : "kron: --by: no allocator was found: nothing that the program loaded has a "
			     "function malloc, or one of its kin\n",
		      stderr);
		pages.sites = false;
	}
	if (pages.width && counted.unit != TRACE_PAGE_SIZE)
		fputs("kron: --width: refcnt(5) has counters of pages, not of lines\n", stderr);
	pages.symbols = (struct report_symbols){pages_symbols_find, pages_symbols_function,
						pages_symbols_new()};
	report_pages(t, &counted, &pages, output ? output_stream(&out) : stdout);
	pages_symbols_free(pages.symbols.ctx);
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

static int keep(const char *dir)
{
	struct trace_pages counted;
	char quoted[2048];
	struct trace *t;
	struct err err;

	if (trace_open(&t, dir, &err))
		return cmd_fail(&command, OWN_FAILURE, "%s", err.msg);
	str_shell(quoted, sizeof(quoted), dir);
	if (!trace_pages_read(&counted, dir, &err)) {
		say_notes(t, &counted);
		say_unmet(t);
		trace_pages_free(&counted);
	}
	if (!quiet)
		fprintf(stderr,
			"kron: `kron pages --from %s` and `kron view %s` show what was counted\n",
			quoted, quoted);
	trace_close(t);
	return 0;
}

/* What comes after it may be a signal that ends us as it ended the program. */
static int show(struct collector *c, const struct collector_summary *s)
{
	int code;

	(void)c;
	if (kept)
		return s->error.msg[0] ? cmd_fail(&command, OWN_FAILURE, "%s", s->error.msg)
				       : keep(kept);
	code = s->error.msg[0] ? fail_unwritten(s->error.msg) : report(counting.dir);
	if (is_begun)
		output_drop(&out);
	is_begun = false;
	temp_close(&folder);
	return code;
}

static int run(char **argv)
{
	char *dir = kept ? xstrdup(kept) : xasprintf("%s/trace", folder.path);
	int status;

	counting.command = &command;
	counting.dir = dir;
	counting.quiet = quiet;
	counting.at_end = show;
	add_probes(&counting.specs);
	if (by == BY_SITE)
		add_sites();
	status = record_count(&counting, argv);
	vec_for(&counting.specs, s)
		xfree((char *)*s);
	vec_free(&counting.specs);
	vec_free(&counting.files);
	xfree(dir);
	return status;
}

/* ---- options ---- */

static bool take_number(const char *s, uint64_t *out)
{
	char *end;

	errno = 0;
	*out = strtoull(s, &end, 10);
	return *s >= '0' && *s <= '9' && !*end && !errno;
}

static bool take_thresholds(struct pages_thresholds *out)
{
	const char *comma = strchr(migrate, ',');
	char *first = comma ? xstrndup(migrate, (size_t)(comma - migrate)) : xstrdup(migrate);

	out->on = take_number(first, &out->absolute) && out->absolute;
	out->differential = out->absolute;
	if (comma)
		out->on &= take_number(comma + 1, &out->differential);
	xfree(first);
	return out->on;
}

#define EVERY_LEAST 1000000u

/* NULL: all is well. */
static const char *take_options(void)
{
	struct pages_setup *setup = &counting.pages;

	if (every && (!duration_parse(every, &setup->every_ns) || setup->every_ns < EVERY_LEAST))
		return "--every is a time from 1ms on, like 100ms";
	if (migrate && !take_thresholds(&setup->migrate))
		return "--migrate is N or N,M: how many references, and how many more than from home";
	if (from && (every || migrate || lines || functions.n || libraries.n || alloc_fns.n))
		return "--from shows what was recorded: --every, --migrate, --lines, --alloc-fn, -F and -L "
		       "belong to a command";
	for (size_t i = 0; i < alloc_fns.n; i++)
		if (!*alloc_fns.v[i] || strpbrk(alloc_fns.v[i], "\"\n"))
			return "--alloc-fn: no function has such a name";
	if (alloc_fns.n && by != BY_SITE)
		return "--alloc-fn says whose callers are sites: it belongs to --by site";
	if (output && cmd_names_folder(output)) {
		if (from || pages.json || pages.limit || pages.sharing || width >= 0)
			return "-o DIR keeps the counts as a trace: --from, --json, -n, --sharing and --width "
			       "belong to a report of it, kron pages --from DIR";
		kept = output;
		output = NULL;
	}
	if (every && pages.json && (pages.limit || pages.sharing || width >= 0))
		return "--json with --every has all pages of each step: -n, --sharing and --width are of the "
		       "other reports; -o DIR/ keeps the counts for several";
	if (by >= 0 && every && pages.json)
		return "--every --json prints steps, and they are not counted by function or site: leave one "
		       "of them or --by out";
	if (pages.width && lines)
		return "--width: refcnt(5) has counters of pages, not of lines";
	pages.steps = every;
	pages.migrate = migrate;
	pages.functions = by == BY_FUNCTION;
	pages.sites = by == BY_SITE;
	return NULL;
}

static int report_from(const char *dir)
{
	struct err err;
	int status;

	if (output && output_begin(&out, output, OUTPUT_STREAM, &err))
		return cmd_fail(&command, OWN_FAILURE, "%s", err.msg);
	is_begun = output;
	status = report(dir);
	if (is_begun)
		output_drop(&out);
	return status;
}

int cmd_pages(int argc, char **argv)
{
	static const unsigned widths[] = {11, 19, 0};
	int status, first = cmd_parse(&command, argc, argv, &status);
	const char *wrong;
	struct err err;

	if (!first)
		return status;
	pages.width = width < 0 ? 0 : widths[width];
	wrong = take_options();
	if (!wrong && from && first < argc)
		wrong = "--from runs no command";
	if (wrong)
		return cmd_fail(&command, OWN_FAILURE, "%s", wrong);
	if (from)
		return report_from(from);
	if (first == argc)
		return cmd_fail(
			&command, OWN_FAILURE,
			"no command given; usage: kron pages [OPTION]... [--] CMD [ARG]...");
	if (!kept && cmd_temp_folder(&folder, &command, &err))
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
