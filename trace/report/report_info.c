/* SPDX-License-Identifier: MIT */
/*
 * report_info.c - what was recorded, on what, how much, what is missing and why.
 *
 * Numbers of samples are counted, not taken from the session: the trace may have been cut
 * short after its last line was written.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "base/name_forms.h"
#include "base/str.h"
#include "base/vec.h"
#include "trace/analysis/cost.h"
#include "trace/analysis/offcpu.h"
#include "trace/report/report.h"
#include "trace/report/report_changes.h"
#include "trace/report/report_sleeps.h"
#include "trace/report/report_snapshots.h"
#include "trace/report/report_counters.h"
#include "trace/report/report_imports.h"
#include "trace/report/report_machine.h"
#include "trace/report/report_monitor.h"
#include "trace/text.h"

struct facts {
	const char *command, *exit, *error;
	uint64_t samples, lost, cut_off, overwritten, probes, refused, processes, threads;
	uint64_t left_out;                  /* lines about processes */
	uint64_t overruns, waits, on_board; /* what the board counted; on_board: not fetched */
	uint64_t counted_by_collector;      /* UINT64_MAX: it did not say */
	uint64_t start_real_ns, duration_ns;
	double probe_ns, probe_ns_limit, probe_ns_off; /* 0: not measured */
	struct cost cost;
	const struct report_state *state;
	struct trace_refusal *refusals; /* summed over modules; module is not set */
	size_t nrefusals;
};

static double real_or_0(const struct trace *t, const char *key)
{
	const char *s = trace_session(t, key);
	double v = s ? strtod(s, NULL) : 0;

	return v > 0 && v < 1e9 ? v : 0;
}

static void sum_modules(const struct trace *t, struct facts *f)
{
	uint64_t probes = 0, refused = 0;

	for (size_t i = 0; i < t->nmodules; i++) {
		const struct trace_module *m = &t->modules[i];

		probes += m->patched_entries + m->patched_exits;
		refused += m->refused_entries + m->refused_exits;
	}
	f->probes = trace_session_number(t, "probes", probes);
	f->refused = trace_session_number(t, "refused", refused);
}

static int by_kind_and_key(const void *a, const void *b)
{
	const struct trace_refusal *x = a, *y = b;

	if (x->exit != y->exit)
		return x->exit ? 1 : -1;
	if (x->place != y->place)
		return x->place ? 1 : -1;
	return strcmp(x->key, y->key);
}

static int by_count(const void *a, const void *b)
{
	const struct trace_refusal *x = a, *y = b;

	if (x->count != y->count)
		return x->count > y->count ? -1 : 1;
	return by_kind_and_key(a, b);
}

static void sum_refusals(const struct trace *t, struct facts *f)
{
	struct trace_refusal *r = xcalloc(t->nrefusals, sizeof(*r));
	size_t n = 0;

	if (t->nrefusals)
		memcpy(r, t->refusals, t->nrefusals * sizeof(*r));
	qsort(r, t->nrefusals, sizeof(*r), by_kind_and_key);
	for (size_t i = 0; i < t->nrefusals; i++) {
		if (n && !by_kind_and_key(&r[n - 1], &r[i]))
			r[n - 1].count += r[i].count;
		else
			r[n++] = r[i];
	}
	qsort(r, n, sizeof(*r), by_count);
	f->refusals = r;
	f->nrefusals = n;
}

/* From the first calibration to the last one, or to the last sample where that is missing. */
static uint64_t duration(const struct trace *t)
{
	struct trace_cursor *c;
	struct trace_event e;
	uint64_t last = t->end_tsc;

	if (!last) {
		c = trace_cursor_open(t, -1);
		while (trace_cursor_next(c, &e))
			if (e.tsc > last)
				last = e.tsc;
		trace_cursor_close(c);
	}
	return trace_time(t, last);
}

static struct facts gather(struct trace *t)
{
	struct facts f = {
		.command = trace_session(t, "command"),
		.exit = trace_session(t, "exit"),
		.error = trace_session(t, "error"),
		.counted_by_collector = trace_session_number(t, "samples", UINT64_MAX),
		.start_real_ns = trace_session_number(t, "start_real_ns", 0),
		.probe_ns = real_or_0(t, "probe_ns"),
		.probe_ns_limit = real_or_0(t, "probe_ns_limit"),
		.probe_ns_off = real_or_0(t, "probe_ns_off"),
	};

	trace_count(t);
	f.samples = t->samples;
	f.lost = t->lost;
	f.cut_off = t->cut_off;
	f.overwritten = trace_session_number(t, "overwritten", 0);
	f.overruns = trace_session_number(t, "board_overruns", 0);
	f.waits = trace_session_number(t, "board_waits", 0);
	f.on_board = trace_session_number(t, "board_samples", 0);
	f.processes = trace_session_number(t, "processes", t->nprocs);
	f.left_out = trace_session_number(t, "left_out", 0);
	f.threads = trace_session_number(t, "threads", t->nlanes);
	f.duration_ns = duration(t);
	if (!t->complete && report_monitor_ns(t) > f.duration_ns)
		f.duration_ns = report_monitor_ns(t);
	cost_of_trace(&f.cost, t, f.samples);
	sum_modules(t, &f);
	sum_refusals(t, &f);
	return f;
}

/* ---- text ---- */

static const char *date_of(uint64_t real_ns, char *buf, size_t size)
{
	time_t s = (time_t)(real_ns / 1000000000);
	struct tm tm;

	if (!real_ns || !localtime_r(&s, &tm) || !strftime(buf, size, "%F %T %z", &tm))
		snprintf(buf, size, "unknown");
	return buf;
}

static void put_trigger(const struct trace *t, FILE *out)
{
	const char *trigger = trace_session(t, "trigger"), *by = trace_session(t, "trigger_by");
	uint64_t ns = trace_session_number(t, "trigger_ns", 0);
	char n[STR_NUMBER];

	if (!trigger)
		return;
	report_line(out, "trigger:", trigger);
	if (ns)
		fprintf(out, REPORT_LABEL "%.6f s after the start", "fired:", (double)ns / 1e9);
	else
		fprintf(out, REPORT_LABEL "never", "fired:");
	if (by)
		fprintf(out, ", that of %s", by);
	fprintf(out, "; %s samples were not near it",
		str_thousands(n, sizeof(n), trace_session_number(t, "outside", 0)));
	if (trace_session_number(t, "unsure", 0))
		fprintf(out, "; %s times it could not be judged, because samples were lost",
			str_thousands(n, sizeof(n), trace_session_number(t, "unsure", 0)));
	fputc('\n', out);
}

static bool is_detached(const struct trace *t)
{
	const char *s = trace_session(t, "attach_detached");

	return s && !strcmp(s, "yes");
}

/* The processes that ran already when the recording began. */
static void put_attach(const struct trace *t, FILE *out)
{
	const char *pids = trace_session(t, "attach_pids");
	const char *kept = trace_session(t, "attach_kept");
	char text[STR_NUMBER];

	if (!pids)
		return;
	fprintf(out, REPORT_LABEL "%s; their threads stood still for %s at once, at most%s%s%s\n",
		"attached to:", pids,
		str_duration(text, sizeof(text),
			     trace_session_number(t, "attach_longest_stop_us", 0) * 1000),
		is_detached(t) ? "" : "; kron has not left all of them", kept ? ": " : "",
		kept ? kept : "");
}

static void put_samples(const struct trace *t, const struct facts *f, FILE *out)
{
	char a[STR_NUMBER], b[STR_NUMBER];

	if (report_samples_are_elsewhere(t)) {
		fprintf(out,
			REPORT_LABEL "in the snapshots\n" REPORT_LABEL "%s, %s sites refused\n",
			"samples:", "probes:", str_thousands(a, sizeof(a), f->probes),
			str_thousands(b, sizeof(b), f->refused));
		return;
	}
	fprintf(out, REPORT_LABEL "%s, %s lost",
		"samples:", str_thousands(a, sizeof(a), f->samples),
		str_thousands(b, sizeof(b), f->lost));
	if (f->overwritten)
		fprintf(out, ", %s of them overwritten",
			str_thousands(a, sizeof(a), f->overwritten));
	if (f->cut_off)
		fprintf(out, ", %s cut off by a kill or a longjmp",
			str_thousands(a, sizeof(a), f->cut_off));
	fprintf(out, "%s\n", report_missing(t));
	if (f->counted_by_collector != UINT64_MAX && f->counted_by_collector != f->samples)
		fprintf(out, REPORT_LABEL "the collector took %s: the files are not whole\n", "",
			str_thousands(a, sizeof(a), f->counted_by_collector));
	if (t->damaged)
		fprintf(out,
			REPORT_LABEL
			"%s bytes or lines of the trace make no sense and are left out\n",
			"damaged:", str_thousands(a, sizeof(a), t->damaged));
	fprintf(out, REPORT_LABEL "%s, %s sites refused\n",
		"probes:", str_thousands(a, sizeof(a), f->probes),
		str_thousands(b, sizeof(b), f->refused));
}

static void json_events(struct json *j, const struct trace *t)
{
	json_key(j, "events");
	json_open(j, '[');
	for (size_t i = 0; i < t->nuser_events; i++) {
		const struct trace_user_event *e = &t->user_events[i];

		json_open(j, '{');
		json_ku64(j, "number", e->n);
		json_kstr(j, "name", e->name);
		json_ku64(j, "level", e->level);
		json_kstr(j, "kind", e->resource ? "resource" : "trace");
		json_kstr(j, "payload", e->payload);
		json_close(j, '}');
	}
	json_close(j, ']');
}

static void put_switches(const struct trace *t, FILE *out)
{
	char a[STR_NUMBER], b[STR_NUMBER], c[STR_NUMBER];
	struct offcpu *o;
	struct offcpu_counts n;

	if (!offcpu_is_known(t)) {
		report_line(out, "switches:", trace_session(t, "switches") ? "not recorded" : NULL);
		report_line(out, "because:", trace_session(t, "switches"));
		return;
	}
	o = offcpu_open(t);
	n = offcpu_count(o);
	offcpu_close(o);
	fprintf(out,
		REPORT_LABEL "%s times off a processor, %s of them preempted, %s records lost\n",
		"switches:", str_thousands(a, sizeof(a), n.outs),
		str_thousands(b, sizeof(b), n.preempted), str_thousands(c, sizeof(c), n.lost));
}

static void put_cost(const struct facts *f, FILE *out)
{
	if (!f->probe_ns)
		return;
	fprintf(out, REPORT_LABEL "%.1f ns a sample", "probe cost:", f->probe_ns);
	if (f->probe_ns_limit)
		fprintf(out, " (reading the clock and one store: %.1f ns)", f->probe_ns_limit);
	if (f->probe_ns_off)
		fprintf(out, ", %.1f ns switched off", f->probe_ns_off);
	fprintf(out, "\n" REPORT_LABEL, "probes cost:");
	cost_print(out, &f->cost);
	fputc('\n', out);
}

static double percent(uint64_t part, uint64_t rest)
{
	return part + rest ? 100.0 * (double)part / (double)(part + rest) : 100.0;
}

static void put_modules(const struct trace *t, FILE *out)
{
	if (!t->nmodules)
		return;
	fprintf(out, "\n%9s  %8s %7s  %8s %7s  %s\n", "Functions", "Entries", "", "Exits", "",
		"Module");
	for (size_t i = 0; i < t->nmodules; i++) {
		const struct trace_module *m = &t->modules[i];

		fprintf(out, "%9u  %8" PRIu64 " %6.2f%%  %8" PRIu64 " %6.2f%%  ", m->nfunctions,
			m->patched_entries, percent(m->patched_entries, m->refused_entries),
			m->patched_exits, percent(m->patched_exits, m->refused_exits));
		text_put(out, m->path);
		fputc('\n', out);
	}
}

static void put_refusals(const struct facts *f, FILE *out)
{
	if (!f->nrefusals)
		return;
	fprintf(out, "\n%9s  %-6s %s\n", "Refused", "Where", "Reason");
	for (size_t i = 0; i < f->nrefusals; i++) {
		fprintf(out, "%9" PRIu64 "  %-6s ", f->refusals[i].count,
			f->refusals[i].place  ? "places"
			: f->refusals[i].exit ? "exits"
					      : "entries");
		text_put(out, f->refusals[i].key);
		if (f->refusals[i].text[0]) {
			fputs(": ", out);
			text_put(out, f->refusals[i].text);
		}
		fputc('\n', out);
	}
}

#define PROCS_SHOWN 50
#define COMMAND_SHOWN 100 /* bytes of a command line in the table */

static void put_command(const char *s, FILE *out)
{
	char head[COMMAND_SHOWN + 1];
	size_t n = strnlen(s, COMMAND_SHOWN);

	while (s[n] && n > 0 && (s[n] & 0xc0) == 0x80) /* not inside a character */
		n--;
	memcpy(head, s, n);
	head[n] = 0;
	text_put(out, head);
	fputs(s[n] ? "..." : "", out);
}

static void put_proc(const struct trace *t, const struct trace_proc *p, size_t *lane, FILE *out)
{
	uint64_t samples = 0, threads = 0;
	char number[STR_NUMBER], pid[TRACE_PID_TEXT], *shown;

	for (; *lane < t->nlanes && t->lanes[*lane].proc_uid <= p->uid; ++*lane)
		if (t->lanes[*lane].proc_uid == p->uid)
			samples += t->lanes[*lane].samples, threads++;
	shown = text_shown(trace_pid_text(t, p, pid, sizeof(pid)));
	if (report_samples_are_elsewhere(t))
		fprintf(out, "%9s  %7s  %14s  ", shown, "-", "-");
	else
		fprintf(out, "%9s  %7" PRIu64 "  %14s  ", shown, threads,
			str_thousands(number, sizeof(number), samples));
	xfree(shown);
	text_put_duration(out, trace_time(t, p->start_tsc));
	fputs("  ", out);
	if (p->end_tsc)
		text_put_duration(out, trace_time(t, p->end_tsc));
	else
		fputs("         -", out);
	fprintf(out, "  %s", p->by_fork ? "(fork) " : "");
	put_command(p->cmdline[0] ? p->cmdline : p->exe[0] ? p->exe : "?", out);
	if (p->note[0]) {
		fputs(": ", out);
		text_put(out, p->note);
	}
	fputc('\n', out);
}

static void put_procs(const struct trace *t, FILE *out)
{
	size_t lane = 0;

	if (!t->nprocs)
		return;
	fprintf(out, "\n%9s  %7s  %14s  %10s  %10s  %s\n", "Process", "Threads", "Samples", "Start",
		"End", "Command");
	for (size_t i = 0; i < t->nprocs && i < PROCS_SHOWN; i++)
		put_proc(t, &t->procs[i], &lane, out);
	if (t->nprocs > PROCS_SHOWN)
		fprintf(out, "%9s  ... and %zu more (--json has all)\n", "",
			t->nprocs - PROCS_SHOWN);
}

static void put_untraced(const struct trace *t, FILE *out)
{
	if (!t->nuntraced)
		return;
	fprintf(out, "\n%9s  %s\n", "Untraced", "Why");
	for (size_t i = 0; i < t->nuntraced; i++) {
		if (t->untraced[i].pid)
			fprintf(out, "%9d  ", t->untraced[i].pid);
		else /* several */
			fprintf(out, "%9s  ", "");
		text_put(out, t->untraced[i].reason);
		fputc('\n', out);
	}
}

static const char *bus_of(const struct trace *t)
{
	const char *bus = trace_session(t, "bus");

	return bus && *bus ? bus : "lane";
}

/* What the board said of itself when the recording ended. */
static void list_lines(struct json *j, const char *lines)
{
	char *line;

	json_open(j, '[');
	while ((line = name_forms_next(&lines))) {
		json_str(j, line);
		xfree(line);
	}
	json_close(j, ']');
}

static void print_readings(const struct trace *t, FILE *out)
{
	const char *globs = trace_session(t, "timed"), *before = "; each one of ";
	char *glob;

	if (trace_clock_every(t) <= 1)
		return;
	fprintf(out, REPORT_LABEL "%u samples share a reading", "readings:", trace_clock_every(t));
	while ((glob = name_forms_next(&globs))) {
		fputs(before, out);
		text_put(out, glob);
		xfree(glob);
		before = ", ";
	}
	fputs(trace_session(t, "timed") ? " has its own\n" : "\n", out);
}

static void put_board(const struct trace *t, const struct facts *f, FILE *out)
{
	const char *device = trace_session(t, "device");
	char a[STR_NUMBER], b[STR_NUMBER];

	fprintf(out, REPORT_LABEL "%s", "bus:", bus_of(t));
	if (device) {
		fputs(", ", out);
		text_put(out, device);
	}
	fprintf(out, "%s\n", trace_session(t, "constant_time") ? ", constant time" : "");
	print_readings(t, out);
	if (!strcmp(bus_of(t), "lane") || !trace_session(t, "board_overruns"))
		return;
	fprintf(out, REPORT_LABEL "%s triggers found its FIFO full, %s clocks of waiting",
		"board:", str_thousands(a, sizeof(a), f->overruns),
		str_thousands(b, sizeof(b), f->waits));
	if (trace_session(t, "board_samples"))
		fprintf(out, ", %s samples in its memory",
			str_thousands(a, sizeof(a), f->on_board));
	fputc('\n', out);
}

static void put_recording(const struct trace *t, const struct facts *f, FILE *out)
{
	put_samples(t, f, out);
	report_counters_text(t, out);
	put_cost(f, out);
	put_attach(t, out);
	put_switches(t, out);
	fprintf(out, REPORT_LABEL "%" PRIu64 ", with %" PRIu64 " threads",
		"processes:", f->processes, f->threads);
	if (f->left_out)
		fprintf(out, "; %" PRIu64 " lines about them are left out", f->left_out);
	fputc('\n', out);
	put_board(t, f, out);
	report_line(out, "when full:", trace_session(t, "when_full"));
	put_trigger(t, out);
	report_snapshots_put(t, out);
}

static void print_text(const struct trace *t, const struct facts *f, FILE *out)
{
	char buf[64], number[STR_NUMBER];

	report_line(out, "command:", f->command);
	fprintf(out, REPORT_LABEL "%s, for %s\n",
		"recorded:", date_of(f->start_real_ns, buf, sizeof(buf)),
		str_duration(number, sizeof(number), f->duration_ns));
	report_line(out, "ended:",
		    f->exit       ? f->exit
		    : t->complete ? NULL
				  : "unknown: the collector did not finish this trace");
	report_line(out, "error:", f->error);
	report_line(out, "state:", *f->state->text ? f->state->text : NULL);
	report_machine_put(t, out);
	/* a monitor takes no samples */
	if (!trace_session(t, "monitor"))
		put_recording(t, f, out);
	report_monitor_put(t, out);
	put_modules(t, out);
	put_refusals(f, out);
	report_imports_put(t, out);
	report_machine_nodes(t, out);
	put_procs(t, out);
	put_untraced(t, out);
	report_changes_put(t, out);
	report_sleeps_put(t, out);
}

/* ---- JSON ---- */

static void json_attach(struct json *j, const struct trace *t)
{
	const char *s = trace_session(t, "attach_pids"), *kept = trace_session(t, "attach_kept");
	char *end;

	if (!s)
		return;
	json_key(j, "attach");
	json_open(j, '{');
	json_key(j, "pids");
	json_open(j, '[');
	for (; *s; s = *end ? end + 1 : end) {
		json_u64(j, strtoull(s, &end, 10));
		if (end == s)
			break;
	}
	json_close(j, ']');
	json_ku64(j, "longest_stop_us", trace_session_number(t, "attach_longest_stop_us", 0));
	json_ku64(j, "sites", trace_session_number(t, "attach_sites", 0));
	json_key(j, "detached");
	json_bool(j, is_detached(t));
	if (kept)
		json_kstr(j, "reason", kept);
	json_close(j, '}');
}

static void json_session(struct json *j, const struct trace *t, const struct facts *f)
{
	char buf[64];

	json_kstr(j, "directory", t->dir);
	json_kstr(j, "command", f->command);
	json_kstr(j, "exit", f->exit);
	json_kstr(j, "error", f->error);
	json_kstr(j, "date", date_of(f->start_real_ns, buf, sizeof(buf)));
	json_ku64(j, "start_real_ns", f->start_real_ns);
	json_ku64(j, "duration_ns", f->duration_ns);
	report_machine_json(j, t);
	json_kstr(j, "when_full", trace_session(t, "when_full"));
	if (trace_session(t, "trigger")) {
		json_kstr(j, "trigger", trace_session(t, "trigger"));
		json_ku64(j, "trigger_ns", trace_session_number(t, "trigger_ns", 0));
		json_ku64(j, "outside", trace_session_number(t, "outside", 0));
		json_ku64(j, "unsure", trace_session_number(t, "unsure", 0));
	}
	json_kstr(j, "bus", bus_of(t));
	json_kstr(j, "device", trace_session(t, "device"));
	json_key(j, "clock");
	json_open(j, '{');
	json_ku64(j, "every", trace_clock_every(t));
	json_key(j, "timed");
	list_lines(j, trace_session(t, "timed"));
	json_close(j, '}');
	json_key(j, "constant_time");
	json_bool(j, trace_session(t, "constant_time") != NULL);
	json_ku64(j, "board_overruns", f->overruns);
	json_ku64(j, "board_waits", f->waits);
	json_ku64(j, "board_samples", f->on_board);
	json_attach(j, t);
	json_key(j, "tsc_hz");
	json_f64(j, t->tsc_hz);
	json_key(j, "complete");
	json_bool(j, t->complete);
	json_kstr(j, "state", f->state->key);
	json_key(j, "probe_ns");
	json_f64(j, f->probe_ns);
	json_key(j, "probe_ns_limit");
	json_f64(j, f->probe_ns_limit);
	json_key(j, "probe_ns_off");
	json_f64(j, f->probe_ns_off);
	cost_json(j, &f->cost);
}

static void json_switches(struct json *j, const struct trace *t)
{
	struct offcpu *o = offcpu_open(t);
	struct offcpu_counts n = offcpu_count(o);
	bool known = offcpu_is_known(t);

	offcpu_close(o);
	json_key(j, "switches");
	json_open(j, '{');
	json_key(j, "recorded");
	json_bool(j, known);
	json_kstr(j, "why_not", known ? NULL : offcpu_why_not(t));
	json_ku64(j, "outs", n.outs);
	json_ku64(j, "preempted", n.preempted);
	json_ku64(j, "lost", n.lost);
	json_close(j, '}');
}

static void json_modules(struct json *j, const struct trace *t)
{
	json_key(j, "modules");
	json_open(j, '[');
	for (size_t i = 0; i < t->nmodules; i++) {
		const struct trace_module *m = &t->modules[i];

		json_open(j, '{');
		json_kstr(j, "path", m->path);
		json_kstr(j, "build_id", m->build_id);
		json_ku64(j, "functions", m->nfunctions);
		json_ku64(j, "patched_entries", m->patched_entries);
		json_ku64(j, "refused_entries", m->refused_entries);
		json_ku64(j, "patched_exits", m->patched_exits);
		json_ku64(j, "refused_exits", m->refused_exits);
		json_close(j, '}');
	}
	json_close(j, ']');
}

/* Each reason with its sentence, most frequent first. */
static void json_reasons(struct json *j, const struct facts *f)
{
	json_key(j, "refusals");
	json_open(j, '[');
	for (size_t i = 0; i < f->nrefusals; i++) {
		json_open(j, '{');
		json_kstr(j, "at",
			  f->refusals[i].place  ? "place"
			  : f->refusals[i].exit ? "exit"
						: "entry");
		json_kstr(j, "key", f->refusals[i].key);
		json_ku64(j, "count", f->refusals[i].count);
		json_kstr(j, "reason", f->refusals[i].text);
		json_close(j, '}');
	}
	json_close(j, ']');
}

static void json_refusals(struct json *j, const struct facts *f, bool exits, const char *key)
{
	json_key(j, key);
	json_open(j, '{');
	for (size_t i = 0; i < f->nrefusals; i++)
		if (f->refusals[i].exit == exits)
			json_ku64(j, f->refusals[i].key, f->refusals[i].count);
	json_close(j, '}');
}

static void json_proc(struct json *j, const struct trace *t, const struct trace_proc *p,
		      size_t *lane)
{
	json_open(j, '{');
	json_key(j, "pid");
	json_i64(j, p->pid);
	if (trace_nodes(t))
		json_kstr(j, "node", trace_node_at(t, p->node)->name);
	json_ku64(j, "uid", p->uid);
	json_ku64(j, "parent_uid", p->parent_uid);
	json_kstr(j, "origin", p->by_fork ? "fork" : "exec");
	json_kstr(j, "exe", p->exe);
	json_kstr(j, "command", p->cmdline);
	json_kstr(j, "note", p->note);
	json_ku64(j, "start_ns", trace_time(t, p->start_tsc));
	json_key(j, "end_ns");
	if (p->end_tsc)
		json_u64(j, trace_time(t, p->end_tsc));
	else
		json_str(j, NULL);
	json_ku64(j, "lost", p->lost);
	json_ku64(j, "cut_off", p->cut_off);
	json_key(j, "threads");
	json_open(j, '[');
	for (; *lane < t->nlanes && t->lanes[*lane].proc_uid <= p->uid; ++*lane) {
		if (t->lanes[*lane].proc_uid != p->uid)
			continue;
		json_open(j, '{');
		json_ku64(j, "tid", t->lanes[*lane].tid);
		json_kstr(j, "name", t->lanes[*lane].name);
		json_ku64(j, "samples", t->lanes[*lane].samples);
		json_close(j, '}');
	}
	json_close(j, ']');
	json_close(j, '}');
}

static void print_json(const struct trace *t, const struct facts *f, FILE *out)
{
	struct json j = JSON_INIT(out);
	size_t lane = 0;

	json_open(&j, '{');
	json_ku64(&j, "samples", f->samples);
	json_ku64(&j, "lost", f->lost);
	json_ku64(&j, "cut_off", f->cut_off);
	json_ku64(&j, "overwritten", f->overwritten);
	json_ku64(&j, "probes", f->probes);
	json_ku64(&j, "refused", f->refused);
	json_ku64(&j, "processes", f->processes);
	json_ku64(&j, "left_out", f->left_out);
	json_ku64(&j, "threads", f->threads);
	json_ku64(&j, "damaged", t->damaged);
	json_session(&j, t, f);
	report_counters_json(&j, t);
	json_events(&j, t);
	json_switches(&j, t);
	json_modules(&j, t);
	json_refusals(&j, f, false, "refused_entries");
	json_refusals(&j, f, true, "refused_exits");
	json_reasons(&j, f);
	report_imports_json(&j, t);
	report_machine_nodes_json(&j, t);
	json_key(&j, "process_list");
	json_open(&j, '[');
	for (size_t i = 0; i < t->nprocs; i++)
		json_proc(&j, t, &t->procs[i], &lane);
	json_close(&j, ']');
	report_changes_json(&j, t);
	report_sleeps_json(&j, t);
	report_snapshots_json(&j, t);
	report_monitor_json(&j, t);
	json_key(&j, "untraced");
	json_open(&j, '[');
	for (size_t i = 0; i < t->nuntraced; i++) {
		json_open(&j, '{');
		json_key(&j, "pid");
		json_i64(&j, t->untraced[i].pid);
		json_kstr(&j, "reason", t->untraced[i].reason);
		json_close(&j, '}');
	}
	json_close(&j, ']');
	json_close(&j, '}');
}

void report_info(struct trace *t, const struct report_state *state, bool json, FILE *out)
{
	struct facts f = gather(t);

	f.state = state;
	if (json)
		print_json(t, &f, out);
	else
		print_text(t, &f, out);
	xfree(f.refusals);
}
