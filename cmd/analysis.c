/* SPDX-License-Identifier: MIT */
/* analysis.c - see analysis.h. */
#define _GNU_SOURCE
#include "cmd/analysis.h"

#include <inttypes.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"
#include "base/vec.h"
#include "cmd/cmd.h"
#include "collect/recover/recover.h"
#include "trace/analysis/logical_clock.h"
#include "trace/text.h"

struct filter_options analysis_filter;
bool analysis_quiet;
const char *analysis_mend;
int analysis_tail_calls;
bool analysis_has_pages;

/*
 * Progress, on stderr if it is a terminal: a line that is written over, from half a second on,
 * and gone whenever a pass over the trace ends, for then output may come.
 */
#define PROGRESS_AFTER_NS 500000000u
#define PROGRESS_EVERY_NS 100000000u

static struct {
	const char *name; /* of the command */
	uint64_t next_ns;
	bool shown, never;
} progress;

static void hide_progress(void)
{
	if (progress.shown)
		fputs("\r\033[K", stderr);
	progress.shown = false;
}

static void show_progress(uint64_t done, uint64_t pass)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC_COARSE);

	if (!pass || done % pass == 0)
		hide_progress();
	else if (now >= progress.next_ns && !progress.never) {
		fprintf(stderr, "\rkron %s: %3.0f%% of %.0f MB read\033[K", progress.name,
			100.0 * (double)(done % pass) / (double)pass, (double)pass / 1e6);
		progress.shown = true;
		progress.next_ns = now + PROGRESS_EVERY_NS;
	}
}

static void start_progress(const struct opt_command *c, struct trace *t)
{
	if (analysis_quiet || !isatty(STDERR_FILENO))
		return;
	progress.name = c->name;
	progress.next_ns = clock_ns(CLOCK_MONOTONIC_COARSE) + PROGRESS_AFTER_NS;
	trace_set_progress(t, show_progress);
}

void analysis_streams(void)
{
	progress.never = isatty(STDOUT_FILENO);
}

/* What is wrong with a filter is wrong use, whatever the trace is. */
static struct trace *set_filter(const struct opt_command *c, struct trace *t)
{
	char number[STR_NUMBER];
	const char *unknown;
	struct err err;

	if (trace_filter_set(t, &analysis_filter, &err))
		exit(cmd_fail(c, CMD_USAGE, "%s", err.msg));
	unknown = t->filter ? trace_filter_unknown_name(t->filter) : NULL;
	if (unknown)
		fprintf(stderr, "kron %s: nothing in %s is called '%s'\n", c->name, t->dir,
			unknown);
	unknown = t->filter ? trace_filter_unsure_event(t->filter) : NULL;
	if (unknown)
		fprintf(stderr,
			"kron %s: '%s' is of several modules, and its samples do not say which: no "
			"module= or module!= holds of them\n",
			c->name, unknown);
	if (analysis_filter.trigger && !trace_filter_fired(t->filter))
		fprintf(stderr, "kron %s: the trigger never fires in %s\n", c->name, t->dir);
	if (analysis_filter.trigger && trace_filter_unsure(t->filter))
		fprintf(stderr,
			"kron %s: in %s %s times a sample that was waited for may be among those that "
			"were lost, or of a function whose probes were out: the trigger did not "
			"fire then\n",
			c->name, t->dir,
			str_thousands(number, sizeof(number), trace_filter_unsure(t->filter)));
	return t;
}

/* ---- clocks of several hosts ---- */

static void say_mended(const struct opt_command *c, const struct trace *t,
		       const struct logical_clock *l)
{
	char a[STR_NUMBER], b[STR_NUMBER];

	if (analysis_quiet)
		return;
	fprintf(stderr,
		"kron %s: %s of %s messages between the nodes were received before they were sent",
		c->name, str_thousands(a, sizeof(a), l->reversed),
		str_thousands(b, sizeof(b), l->messages));
	if (l->reversed)
		fprintf(stderr, ", by %s at most",
			str_duration(a, sizeof(a), trace_ns(t, l->most_reversed)));
	fputc('\n', stderr);
	for (uint32_t i = 0; i < l->nodes; i++) {
		char *name = text_shown(trace_node_at(t, i)->name);

		if (l->most[i])
			fprintf(stderr, "kron %s: times of node %s are moved, by %s at most\n",
				c->name, name, str_duration(a, sizeof(a), trace_ns(t, l->most[i])));
		xfree(name);
	}
	if (l->reversed && l->alone)
		fprintf(stderr,
			"kron %s: %s sendings and receptions are in no message: after one that is missing, "
			"each is taken for the next, and clocks that agree look wrong\n",
			c->name, str_thousands(a, sizeof(a), l->alone));
	if (l->circles)
		fprintf(stderr,
			"kron %s: %" PRIu64
			" messages are still received before they are sent: the messages of %s depend on "
			"each other in a circle, so it pairs some of them wrongly\n",
			c->name, l->circles, analysis_mend);
}

/* The same traces again, on mended clocks. */
static struct trace *mend(const struct opt_command *c, struct trace *t, const char *const *dirs,
			  size_t n)
{
	struct logical_clock l;
	struct err err;
	int code;

	if (!trace_nodes(t))
		exit(cmd_fail(c, CMD_USAGE, "--mend-clocks: %s is one trace, of one clock",
			      t->dir));
	code = logical_clock_find(&l, t, analysis_mend, &err);
	if (code)
		exit(cmd_fail(c, CMD_ERROR, "--mend-clocks: %s", err.msg));
	say_mended(c, t, &l);
	trace_close(t);
	if (trace_open_moved(&t, dirs, n, l.moves, l.nodes, &err))
		exit(cmd_fail(c, CMD_ERROR, "%s", err.msg));
	logical_clock_free(&l);
	return t;
}

struct trace *analysis_open(const struct opt_command *c, int argc, char **argv, int first)
{
	return analysis_open_all(c, first < argc ? first + 1 : argc, argv, first);
}

struct trace *analysis_open_all(const struct opt_command *c, int argc, char **argv, int first)
{
	static const char *const no_operand[] = {TRACE_DEFAULT_DIR};
	const char *const *dirs = first < argc ? (const char *const *)argv + first : no_operand;
	const size_t n = first < argc ? (size_t)(argc - first) : 1;
	struct trace *t;
	struct err err;

	if (!trace_open_all(&t, dirs, n, &err)) {
		if (analysis_mend)
			t = mend(c, t, dirs, n);
		t->flat_jumps = analysis_tail_calls == 1;
		start_progress(c, t);
		return set_filter(c, t);
	}
	if (first >= argc)
		cmd_fail(c, CMD_ERROR, "%s (`kron record` makes one)", err.msg);
	else
		cmd_fail(c, CMD_ERROR, "%s", err.msg);
	return NULL;
}

void analysis_say_estimates(const struct opt_command *c, const struct trace *t, const char *what)
{
	if (trace_clock_every(t) > 1)
		fprintf(stderr,
			"kron %s: %u samples share a reading of the clock in %s: %s are estimates "
			"between two readings, short times may be far off (`kron report` has bounds)\n",
			c->name, trace_clock_every(t), t->dir, what);
}

void analysis_output(bool no_pager)
{
	static char buffer[256 * 1024];

	cmd_pager(!no_pager);
	setvbuf(stdout, buffer, _IOFBF, sizeof(buffer));
	__fsetlocking(stdout, FSETLOCKING_BYCALLER);
}

static void explain_state(const struct trace *t, enum recover_state state, FILE *out)
{
	const char *error = trace_session(t, "error");
	char quoted[2048];

	text_put(out, t->dir);
	if (state == RECOVER_RECORDING) {
		fputs(" was still being recorded: what had been written by then is shown", out);
		return;
	}
	fputs(" is not complete: ", out);
	if (state == RECOVER_SENT) {
		text_put(out, error && *error
				      ? error
				      : "the link to its recorder, or the collector, was cut");
		fputs("; what is missing may wait there: `kron collect --send` sends it", out);
		return;
	}
	text_put(out, error && *error ? error : "its recorder was killed");
	if (state == RECOVER_GONE)
		fputs(", and what it had not written is lost", out);
	else
		fprintf(out,
			", and samples are still in shared memory: `kron recover %s` adds them",
			str_shell(quoted, sizeof(quoted), t->dir));
}

static void state_of(const struct trace *t, struct report_state *out)
{
	static const char *const keys[] = {
		[RECOVER_COMPLETE] = "complete",   [RECOVER_RECORDING] = "recording",
		[RECOVER_WAITING] = "recoverable", [RECOVER_SENT] = "cut off",
		[RECOVER_GONE] = "cut off",
	};
	enum recover_state state = recover_look(t);
	FILE *f;

	*out = (struct report_state){.key = keys[state]};
	if (state == RECOVER_COMPLETE)
		return;
	f = fmemopen(out->text, sizeof(out->text), "w");
	if (!f)
		return;
	explain_state(t, state, f);
	fclose(f);
	out->text[sizeof(out->text) - 1] = 0;
}

/* Of several the first that is not whole. */
void analysis_state(const struct trace *t, struct report_state *out)
{
	for (uint32_t i = 0; i < trace_nodes(t); i++) {
		analysis_state(trace_node_at(t, i)->t, out);
		if (*out->text)
			return;
	}
	if (trace_nodes(t))
		return;
	state_of(t, out);
}

static bool has_part(const struct trace *t, const char *name, struct stat *st)
{
	char *path = xasprintf("%s/%s", t->dir, name);
	const bool has = !stat(path, st);

	xfree(path);
	return has;
}

/* There are no samples: whoever looks for them here is told where they are. */
static void point_elsewhere(const struct opt_command *c, const struct trace *t)
{
	char quoted[2048];
	struct stat st;

	if (!t->dir || (has_part(t, "samples", &st) && st.st_size) || !strcmp(c->name, "info"))
		return;
	str_shell(quoted, sizeof(quoted), t->dir);
	if (has_part(t, "pages", &st) && strcmp(c->name, "view") != 0 && !analysis_has_pages)
		fprintf(stderr,
			"kron %s: no calls, but references to pages were counted: `kron pages "
			"--from %s`\n",
			c->name, quoted);
	if (has_part(t, "monitor", &st) && st.st_size && strcmp(c->name, "report") != 0 &&
	    strcmp(c->name, "view") != 0 && strcmp(c->name, "export") != 0)
		fprintf(stderr, "kron %s: no calls, but intervals of counters: `kron report %s`\n",
			c->name, quoted);
	if (trace_session(t, "flight") && has_part(t, "001", &st))
		fprintf(stderr,
			"kron %s: the samples of a flight recorder are in its snapshots: `kron %s "
			"%s/001`\n",
			c->name, c->name, quoted);
}

static void tell_of_sleeps(const struct opt_command *c, size_t n, const char *by, const char *more)
{
	if (n)
		fprintf(stderr,
			"kron %s: %zu function%s traced for part of the time only (%s): what there is of %s is of then, "
			"and what %s called otherwise counts for who had called %s%s\n",
			c->name, n, n == 1 ? " was" : "s were", by, n == 1 ? "it" : "them",
			n == 1 ? "it" : "they", n == 1 ? "it" : "them", more);
}

static void tell_of_groups(const struct opt_command *c, uint32_t groups)
{
	char text[TEXT_GROUPS];

	if (groups)
		fprintf(stderr,
			"kron %s: group%s %s %s off for part of the time (`kron info` says when): calls of then are "
			"missing, and what ran on ends where it began\n",
			c->name, groups & (groups - 1) ? "s" : "",
			text_groups(text, sizeof(text), groups),
			groups & (groups - 1) ? "were" : "was");
}

/* What was not seen is in no report's numbers. */
static void tell_of_all_sleeps(const struct opt_command *c, const struct trace *t)
{
	size_t by_budget = 0, asked = 0;

	if (!strcmp(c->name, "info") || !t->nsleeps)
		return;
	for (size_t i = 0; i < t->nfunctions; i++) {
		if (trace_slept_by_budget(t, t->functions[i].n))
			by_budget++;
		else if (trace_was_out(t, t->functions[i].n))
			asked++;
	}
	tell_of_sleeps(c, by_budget, "--budget", " (`kron info` says which)");
	tell_of_sleeps(c, asked, "kron ctl probe", " (`kron info` says when)");
	tell_of_groups(c, trace_groups_off(t));
}

void analysis_say_state(const struct opt_command *c, const struct trace *t)
{
	struct report_state state;

	analysis_state(t, &state);
	if (*state.text)
		fprintf(stderr, "kron %s: %s\n", c->name, state.text);
	if (t->cut_short)
		fprintf(stderr,
			"kron %s: samples are missing: the file with them is shorter than the recorder left it (a copy that was "
			"not finished?)\n",
			c->name);
	if (t->lacks_functions)
		fprintf(stderr,
			"kron %s: the file `functions` is not in the trace: functions have no names, and some reports leave their calls out\n",
			c->name);
	if (t->pages_damaged)
		fprintf(stderr,
			"kron %s: the counts of pages are damaged: some are missing or not what was counted\n",
			c->name);
}

void analysis_say_lost(const struct opt_command *c, const struct trace *t)
{
	char n[STR_NUMBER];

	if (t->lost)
		fprintf(stderr,
			"kron %s: %s sample%s lost: calls and times are too low, and a call may reach across a loss\n",
			c->name, str_thousands(n, sizeof(n), t->lost),
			t->lost == 1 ? " was" : "s were");
}

void analysis_drop(const struct opt_command *c, struct trace *t)
{
	point_elsewhere(c, t);
	tell_of_all_sleeps(c, t);
	analysis_say_state(c, t);
	trace_close(t);
}

int analysis_close(const struct opt_command *c, struct trace *t, int status)
{
	uint64_t damaged = t->damaged;

	hide_progress();
	status = cmd_finish(c, status);
	if (status == CMD_OK)
		analysis_drop(c, t);
	else
		trace_close(t);
	if (damaged && status == CMD_OK)
		fprintf(stderr,
			"kron %s: the trace is damaged: what makes no sense was skipped: %" PRIu64
			" bytes of samples or lines of tables\n",
			c->name, damaged);
	return status;
}
