/* SPDX-License-Identifier: MIT */
/*
 * record.c - kron record: runs a program and records its functions.
 *
 * Exit status: the program's own; a signal that killed it kills kron; 127 there is no such
 * program; 126 it cannot be executed; 125 kron itself failed.
 *
 * Whatever keeps kron from tracing, the program runs, and a note says why it is untraced.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/guard.h"
#include "base/paths.h"
#include "base/str.h"
#include "base/vec.h"
#include "board/bus/bus.h"
#include "cmd/child.h"
#include "cmd/cmd.h"
#include "cmd/levels.h"
#include "cmd/probe_cost.h"
#include "cmd/probe_options.h"
#include "collect/collector.h"
#include "collect/attach/program.h"
#include "config.h"
#include "inject/plan/interpose.h"
#include "inject/plan/tactics.h"
#include "trace/format.h"

enum { NOT_FOUND = 127, NOT_EXECUTABLE = 126, OWN_FAILURE = 125 };

static const char *output = TRACE_DEFAULT_DIR;
static struct opt_list only, except, libraries, levels, specs, files;
static const char *tactics;
static uint32_t tactic_set;
static struct level_globs level_globs;
static struct probe_set probes;
#define NO_FILTER UINT64_MAX
static uint64_t buffer, filter = NO_FILTER;
static const char *board, *bus = "lane";
static int when_full;
static bool no_children, quiet, constant_time;
static int switches; /* enum collector_switches */
static int verbose;

static struct watch_options watch;

static const struct opt options[] = {
	{'o', "output", OPT_STR, &output, "DIR",
	 "Write the trace to DIR (default kron.data). A trace that is there becomes DIR.old.", 0,
	 0},
	{'F', "function", OPT_LIST, &only, "GLOB",
	 "Record only functions whose name matches GLOB. May be repeated.", 0, 0},
	{'N', "no-function", OPT_LIST, &except, "GLOB",
	 "Do not record functions whose name matches GLOB. May be repeated.", 0, 0},
	{'L', "library", OPT_LIST, &libraries, "GLOB",
	 "Also record the libraries whose file name or path matches GLOB: 'libz*', or '*' for "
	 "all. May be repeated.",
	 0, 0},
	{'p', "probe", OPT_LIST, &specs, "SPEC",
	 "Place a probe: see kron-probes(7). With it functions are recorded only if -F, -N or -L "
	 "asks for them. May be repeated.",
	 0, 0},
	{'P', "probe-file", OPT_LIST, &files, "FILE",
	 "Place the probes of FILE, or of kron's pack of this name (malloc, pthread, io, process, "
	 "python3, libstdcxx). May be repeated.",
	 0, 0},
	{'b', "buffer", OPT_SIZE, &buffer, "SIZE",
	 "Let the buffer in shared memory grow up to SIZE: 64M, 1G. Default: 1G, or less if memory "
	 "is short, a quarter of what the memory cgroup has left (4M at least); 256M with "
	 "--trigger, 64M with --when-full wrap.",
	 1024 * 1024, 2ull << 30},
	{0, "when-full", OPT_CHOICE, &when_full, "discard|wait|wrap",
	 "What happens to a sample when the buffer is full: it is lost and counted; the program "
	 "waits; the oldest samples go.",
	 0, 0},
	{0, "filter", OPT_HEX, &filter, "MASK",
	 "Filter Register at the start: one bit a level, 1 = record. Default ffff, or on a board "
	 "that is there what it is.",
	 0, 0xffff},
	{'g', "level", OPT_LIST, &levels, "LEVEL[=GLOB]",
	 "Filter level of the probes, 0 to 15, default 0; or of those of the functions, or of the "
	 "library, whose name matches GLOB. May be repeated; where several match, the last one "
	 "counts.",
	 0, 0},
	{0, "trigger", OPT_STR, &watch.trigger, "SEQUENCE",
	 "Keep only what lies around the place where SEQUENCE matches, then stop recording: "
	 "'A then B within 1ms', 'A without B within 20ms', 'FUNC>20ms'; see TRIGGERS in kron-report(1).",
	 0, 0},
	{0, "pre", OPT_STR, &watch.pre, "SPAN",
	 "How much to keep from before the trigger, or from before what it waited from: a number of "
	 "samples, or a time like 20us. Default 1000.",
	 0, 0},
	{0, "post", OPT_STR, &watch.post, "SPAN", "How much to keep after it. Default 1000.", 0, 0},
	{0, "board", OPT_STR, &board, "NAME",
	 "Record on the board with this name; it is made if it is not there, and then goes at the "
	 "end. Default: $KRON_BOARD, else a board of this recording's own.",
	 0, 0},
	{0, "bus", OPT_STR, &bus, "lane|exact|device:PATH",
	 "How samples travel: into a buffer of their thread (lane, the default); each one by a bus "
	 "cycle of the emulated board, with its clock, FIFOs and limits (exact); by a store to a "
	 "real board at PATH, a PCI BAR or /dev/mk0, whose samples stay there (device).",
	 0, 0},
	{0, "constant-time", OPT_FLAG, &constant_time, NULL,
	 "A probe takes the same time whether its level is on or off, as on the hardware. Without "
	 "this a level that is off costs next to nothing.",
	 0, 0},
	{0, "switches", OPT_CHOICE, &switches, "auto|yes|no",
	 "Also record when the kernel takes threads off a processor, so that reports can tell time "
	 "on a processor from time that went by: where perf_event_open(2) allows it (auto, the "
	 "default), or not at all without it (yes).",
	 0, 0},
	{0, "no-children", OPT_FLAG, &no_children, NULL,
	 "Do not record the programs that the program starts.", 0, 0},
	{'q', "quiet", OPT_FLAG, &quiet, NULL, "Print neither summary nor notes.", 0, 0},
	{'v', "verbose", OPT_COUNT, &verbose, NULL, "Say more about the recording.", 0, 0},
	{0, "tactics", OPT_STR, &tactics, "LIST",
	 "Use only these tactics, separated by commas: jump, short, evict, arrivals, detour, pun, relay, int3, import. "
	 "With + or - before each: the default, and these too or without them. int3, a trap, is not in the default.",
	 0, 0},
	OPT_END,
};

static const struct opt_command command = {
	.name = "record",
	.operands = "[--] CMD [ARG]...",
	.summary = "Run CMD and record the entry and exit of each of its functions.",
	.opts = options,
	.stop_at_operand = true,
	.usage_status = OWN_FAILURE,
	.min_operands = 1,
};

static void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* One line, one write: other programs may use the same terminal. */
static void say(const char *fmt, ...)
{
	char text[2048];
	va_list ap;
	int n;

	if (quiet)
		return;
	va_start(ap, fmt);
	n = vsnprintf(text, sizeof(text) - 1, fmt, ap);
	va_end(ap);
	if (n < 0)
		return;
	if (n > (int)sizeof(text) - 2)
		n = (int)sizeof(text) - 2;
	text[n] = '\n';
	if (write(STDERR_FILENO, text, (size_t)n + 1) < 0)
		return; /* nowhere to say it */
}

/* ---- the program's environment ---- */

static char **environment_with(char **extra, size_t nextra, const char *without)
{
	size_t n = 0, len = without ? strlen(without) : 0;
	char **env;

	while (environ[n])
		n++;
	env = xcalloc(n + nextra + 1, sizeof(*env));
	n = 0;
	/* ours first: the runtime finds them soon */
	for (size_t i = 0; i < nextra; i++)
		env[n++] = extra[i];
	for (char **e = environ; *e; e++)
		if (!without || strncmp(*e, without, len) || (*e)[len] != '=')
			env[n++] = *e;
	return env;
}

/* As kron/wire.h says: two entries more, whether LD_PRELOAD was there before or not.  The first
 * *own entries are ours to free. */
static char **traced_environment(const struct collector *c, const char *runtime, size_t *own)
{
	const char *before = getenv("LD_PRELOAD");
	char *value = collector_environment(c, runtime);
	char *extra[3];
	size_t n = 0;

	extra[n++] = before ? xasprintf("LD_PRELOAD=%s:%s", runtime, before)
			    : xasprintf("LD_PRELOAD=%s", runtime);
	extra[n++] = xasprintf(KRON_ENV_RT "=%s", value);
	if (before)
		extra[n++] = xstrdup(KRON_ENV_PAD "=");
	xfree(value);
	*own = n;
	return environment_with(extra, n, "LD_PRELOAD");
}

static void free_environment(char **env, size_t own)
{
	while (own)
		xfree(env[--own]);
	if (env != environ)
		xfree(env);
}

/* ---- start ---- */

static char *quoted_command(char **argv)
{
	char word[1024], *line = xstrdup("");

	for (; *argv; argv++) {
		char *more = xasprintf("%s%s%s", line, *line ? " " : "",
				       str_shell(word, sizeof(word), *argv));

		xfree(line);
		line = more;
	}
	return line;
}

static char **shell_argv(const struct program *p, char **argv)
{
	size_t n = 0;
	char **v;

	while (argv[n])
		n++;
	v = xcalloc(n + 2, sizeof(*v));
	v[0] = "sh";
	v[1] = p->path;
	for (size_t i = 1; i < n; i++)
		v[i + 1] = argv[i];
	return v;
}

static int start_program(struct child *child, const struct program *p, char **argv, char **env)
{
	int code;

	if (!p->needs_shell)
		return child_start(child, p->path, argv, env);
	argv = shell_argv(p, argv);
	code = child_start(child, "/bin/sh", argv, env);
	xfree(argv);
	return code;
}

static void explain_exec_failure(const struct program *p, int code)
{
	if (p->verdict != PROGRAM_TRACEABLE)
		cmd_fail(&command, 0, "cannot execute %s: %s (%s)", p->path, strerror(-code),
			 p->why.msg);
	else
		cmd_fail(&command, 0, "cannot execute %s: %s", p->path, strerror(-code));
}

/* ---- the end ---- */

static const char *signal_name(int sig, char *buf, size_t size)
{
	const char *abbrev = sigabbrev_np(sig);

	if (abbrev)
		snprintf(buf, size, "SIG%s", abbrev);
	else
		snprintf(buf, size, "signal %d", sig);
	return buf;
}

/* Of the program, and of the children that it, or who it waited for, waited for. */
static uint64_t cpu_ns(const struct child *child)
{
	const struct rusage *r = &child->usage;

	if (!child->ended)
		return 0;
	return (uint64_t)(r->ru_utime.tv_sec + r->ru_stime.tv_sec) * 1000000000u +
	       (uint64_t)(r->ru_utime.tv_usec + r->ru_stime.tv_usec) * 1000u;
}

/* Another probe of the same event found a place. */
static bool has_alternative(const struct probe_results *r, size_t spec)
{
	const struct probe_spec *s = &probes.specs.v[spec], *other = probes.specs.v;

	for (size_t i = 0; s->event && i < r->n; i++, other++)
		if (r->v[i].places && other->event && !strcmp(other->event, s->event) &&
		    other->level == s->level)
			return true;
	return false;
}

/* No module of the program was meant by it. */
static bool is_elsewhere(const struct probe_results *r, size_t spec)
{
	return !r->v[spec].places && !r->v[spec].notes.n &&
	       !probe_spec_gave_up(&probes.specs.v[spec]) && (verbose || !has_alternative(r, spec));
}

/* "FILE:12": how much of it is FILE. */
static size_t file_length(const struct probe_spec *s)
{
	const char *colon = strrchr(s->where, ':');

	return colon ? (size_t)(colon - s->where) : strlen(s->where);
}

/* The probes of one file, a pack mostly, in one line; returns the last of them that it is about. */
static size_t say_elsewhere(const struct probe_results *r, size_t first)
{
	const struct probe_spec *s = &probes.specs.v[first], *next = s + 1;
	size_t n = file_length(s), last = first;

	while (last + 1 < r->n && is_elsewhere(r, last + 1) && file_length(next) == n &&
	       !strncmp(next->where, s->where, n)) {
		last++;
		next++;
	}
	if (last == first)
		say("kron: %s: %s: the program loaded no module that this means", s->where,
		    s->text);
	else
		say("kron: %.*s: %s and %zu more: the program loaded no module that they mean",
		    (int)n, s->where, s->text, last - first);
	return last;
}

/* Probes that found no place, and what is wrong with those that did. */
static void say_probes(const struct collector *c)
{
	const struct probe_results *r = &c->modules.results;

	for (size_t i = 0; i < r->n; i++) {
		const struct probe_spec *s = &probes.specs.v[i];

		if (!r->v[i].places && !verbose && has_alternative(r, i))
			continue;
		for (size_t k = 0; k < r->v[i].notes.n; k++)
			if (!r->v[i].places || verbose || probe_spec_gave_up(s))
				say("kron: %s: %s", s->where, r->v[i].notes.v[k]);
		if (!r->v[i].places && !r->v[i].notes.n && probe_spec_gave_up(s))
			say("kron: %s: %s: the expression takes too long for some paths: a simpler "
			    "one will do",
			    s->where, s->text);
		else if (is_elsewhere(r, i))
			i = say_elsewhere(r, i);
	}
}

static void say_notes(struct collector *c, const struct collector_summary *s,
		      const struct program *p, const struct child *child)
{
	char buf[STR_NUMBER], left[STR_NUMBER];

	vec_for(&c->server.untraced.v, u) {
		char *text = untraced_sentence(u);

		if (p->verdict != PROGRAM_TRACEABLE && !strcmp(text, p->why.msg))
			; /* said below */
		else if (u->count > 1)
			say("kron: untraced (%" PRIu64 " times): %s", u->count, text);
		else
			say("kron: untraced: %s", text);
		xfree(text);
	}
	if (p->verdict != PROGRAM_TRACEABLE)
		say("kron: the program ran untraced: %s", p->why.msg);
	else if (!s->starts && !c->server.untraced.v.n)
		say("kron: the program ran untraced: it never loaded libkron-rt.so, or ended "
		    "before it was ready");
	else if (s->starts && !s->modules && !probes.specs.n && !c->server.untraced.v.n)
		say("kron: no function was selected: nothing matches -F, or -N takes all");
	if (s->left_out)
		say("kron: a process asked for plans, or executed programs that have no samples, again "
		    "and again: %s of them are not in the trace's table of processes",
		    str_thousands(left, sizeof(left), s->left_out));
	say_probes(c);
	if (child->signal && !child->ended)
		say("kron: %s: recording ends; the program (pid %d) still runs, untraced from here",
		    signal_name(child->signal, buf, sizeof(buf)), child->pid);
	else if (s->living)
		say("kron: %u traced %s still %s, untraced from here", s->living,
		    s->living == 1 ? "process" : "processes", s->living == 1 ? "runs" : "run");
	if (c->server.debugged)
		say("kron: %s: breakpoints at functions are hit, those at instructions that probes "
		    "have displaced are not",
		    c->server.debugged);
	if (c->seg.pool_limited)
		say("kron: /dev/shm is small: the buffer can grow to %" PRIu64 " MiB only",
		    (uint64_t)segment_limit(&c->seg) * KRON_CHUNK_SIZE >> 20);
	if (s->lost && c->seg.follows_cgroups && c->seg.cgroup_left != CGROUP_NO_LIMIT)
		say("kron: the buffer grew to %s, for the memory cgroup had %s left: -b asks for "
		    "more, --when-full wait loses nothing",
		    str_bytes(buf, sizeof(buf), (uint64_t)segment_ready(&c->seg) * KRON_CHUNK_SIZE),
		    str_bytes(left, sizeof(left), c->seg.cgroup_left));
	if (c->seg.unnamed)
		say("kron: no name in /dev/shm (%s): kron ctl, status and top did not find this "
		    "recording",
		    strerror(-c->seg.unnamed));
}

/* Before the program starts: a size that was asked for is kept, whatever comes of it. */
static void say_buffer(const struct segment *seg)
{
	uint64_t most = (uint64_t)segment_limit(seg) * KRON_CHUNK_SIZE;
	char size[STR_NUMBER], left[STR_NUMBER];

	if (!seg->follows_cgroups && most > seg->cgroup_left)
		say("kron: the buffer may grow to %s, but the memory cgroup has %s left: the "
		    "kernel may kill the program, or kron, for it",
		    str_bytes(size, sizeof(size), most),
		    str_bytes(left, sizeof(left), seg->cgroup_left));
}

/* What the board itself has counted. */
static void say_board(const struct collector_summary *s)
{
	char overruns[STR_NUMBER], gone[STR_NUMBER], waits[STR_NUMBER];

	say("kron: board: %s triggers found its FIFO full, %s samples were overwritten in its "
	    "memory, %s clocks of waiting; a bus cycle costs %.1f ns here",
	    str_thousands(overruns, sizeof(overruns), s->overruns),
	    str_thousands(gone, sizeof(gone), s->overwritten),
	    str_thousands(waits, sizeof(waits), s->waited), s->cost.on);
}

static void say_details(const struct collector *c, const struct collector_summary *s)
{
	char size[STR_NUMBER];

	say("kron: %" PRIu64 " modules with %s probes; %" PRIu64 " processes, %" PRIu64
	    " threads; %.3f s",
	    s->modules, str_thousands(size, sizeof(size), s->probes), s->processes, s->threads,
	    s->seconds);
	if (c->opt.bus == KRON_BUS_EXACT)
		say_board(s);
	else if (c->opt.bus == KRON_BUS_LANE)
		say("kron: a probe costs %.1f ns here (rdtsc and a store: %.1f ns), switched off "
		    "%.1f ns; the buffer grew to %s",
		    s->cost.on, s->cost.limit, s->cost.off,
		    str_bytes(size, sizeof(size),
			      (uint64_t)segment_ready(&c->seg) * KRON_CHUNK_SIZE));
}

static void say_device_summary(const struct collector *c, const struct collector_summary *s)
{
	char samples[STR_NUMBER], lost[STR_NUMBER];

	str_thousands(lost, sizeof(lost), s->lost + s->device.overruns);
	if (s->device_answers)
		say("kron: %s samples are on the board at %s, %s lost; `mk_rdsample --board %s` "
		    "fetches them; the functions' names -> %s",
		    str_thousands(samples, sizeof(samples), s->device.samples), c->opt.device, lost,
		    c->opt.device, output);
	else
		say("kron: %s is memory and no board: it took the stores of the probes, %s were "
		    "not made, and there are no samples; the functions' names -> %s",
		    c->opt.device, lost, output);
}

static void say_trigger(const struct collector_summary *s)
{
	char number[STR_NUMBER];

	str_thousands(number, sizeof(number), s->outside);
	if (s->fired_ns)
		say("kron: the trigger fired after %.6f s; %s samples were not near it",
		    (double)s->fired_ns / 1e9, number);
	else
		say("kron: the trigger never fired; %s samples were discarded", number);
	if (s->unknown[0])
		say("kron: nothing that got a probe is called '%s', as the trigger says",
		    s->unknown);
	if (s->lost && !s->fired_ns)
		say("kron: %s samples were lost before the trigger saw them, because the buffer was "
		    "full: a larger --buffer, or --when-full wait, keeps them",
		    str_thousands(number, sizeof(number), s->lost));
	if (s->unsure)
		say("kron: %s times a sample that was waited for may be among those that were lost: "
		    "the trigger did not fire then",
		    str_thousands(number, sizeof(number), s->unsure));
}

static void say_summary(struct collector *c, const struct collector_summary *s)
{
	char samples[STR_NUMBER], lost[STR_NUMBER], refused[STR_NUMBER], cost[COST_TEXT];

	if (verbose)
		say_details(c, s);
	if (c->opt.bus == KRON_BUS_DEVICE) {
		say_device_summary(c, s);
		return;
	}
	if (s->cut_off && verbose)
		say("kron: %" PRIu64 " samples were cut off by a kill", s->cut_off);
	if (c->fetch.damaged)
		say("kron: %" PRIu64 " words of the board's memory belong to no sample: something "
		    "wrote over it",
		    c->fetch.damaged);
	if (c->opt.watch.trigger)
		say_trigger(s);
	say("kron: %s samples, %s lost, %s sites refused, probes cost about %s -> %s",
	    str_thousands(samples, sizeof(samples), s->samples),
	    str_thousands(lost, sizeof(lost), s->lost),
	    str_thousands(refused, sizeof(refused), s->refused), cost_text(cost, &s->probes_cost),
	    output);
}

/* The disk is full: say what is where.  Not silenced by -q. */
static void explain_failure(const struct collector_summary *s)
{
	char file[STR_NUMBER], segment[STR_NUMBER];

	cmd_fail(&command, 0,
		 "%s: %s samples are in %s, %s more in shared memory (%s): make room, then "
		 "`kron recover %s` adds them",
		 s->error.msg, str_thousands(file, sizeof(file), s->samples), output,
		 str_thousands(segment, sizeof(segment), s->stranded), s->segment, output);
}

/* Likewise. */
static void explain_cut(const struct collector_summary *s)
{
	char file[STR_NUMBER];

	cmd_fail(&command, 0,
		 "another process cut off the shared memory of board %s, and the recording ended "
		 "then; %s samples are in %s",
		 board, str_thousands(file, sizeof(file), s->samples), output);
}

static void describe_end(const struct child *child, char *text, size_t size)
{
	if (!child->ended)
		snprintf(text, size, "running");
	else if (WIFSIGNALED(child->status))
		snprintf(text, size, "signal %d", WTERMSIG(child->status));
	else
		snprintf(text, size, "exited %d", WEXITSTATUS(child->status));
}

static int hand_on(const struct child *child)
{
	if (!child->ended) {
		child_raise(child->signal);
		return 128 + child->signal;
	}
	if (WIFSIGNALED(child->status)) {
		child_raise(WTERMSIG(child->status));
		return 128 + WTERMSIG(child->status);
	}
	return WEXITSTATUS(child->status);
}

/* ---- all together ---- */

static struct collector collector;

static int run(struct child *child, const struct program *p, char **argv, const char *runtime)
{
	struct collector_summary summary;
	struct collector_end end;
	char how[32], **env = environ;
	struct err err;
	size_t own = 0;
	int code;

	if (collector_watch_switches(&collector, (enum collector_switches)switches, &err)) {
		collector_abandon(&collector, err.msg);
		return cmd_fail(&command, OWN_FAILURE, "%s", err.msg);
	}
	if (p->verdict == PROGRAM_TRACEABLE)
		env = traced_environment(&collector, runtime, &own);
	say_buffer(&collector.seg);
	code = start_program(child, p, argv, env);
	free_environment(env, own);
	if (code) {
		explain_exec_failure(p, code);
		collector_abandon(&collector, strerror(-code));
		return code == -EAGAIN || code == -ENOMEM ? OWN_FAILURE : NOT_EXECUTABLE;
	}
	collector_program_starts(&collector);
	child_wait(child);
	describe_end(child, how, sizeof(how));
	if (p->verdict != PROGRAM_TRACEABLE)
		server_note_untraced(&collector.server, child->pid, NULL, p->why.msg);
	end = (struct collector_end){.how = how, .cpu_ns = cpu_ns(child)};
	collector_finish(&collector, &end, &summary);
	say_notes(&collector, &summary, p, child);
	if (summary.error.msg[0])
		explain_failure(&summary);
	else if (summary.cut)
		explain_cut(&summary);
	else
		say_summary(&collector, &summary);
	collector_free(&collector);
	return summary.error.msg[0] || summary.cut ? OWN_FAILURE : -1;
}

static bool take_bus(struct collector_options *o)
{
	static const char prefix[] = "device:";
	const char *path = strncmp(bus, prefix, strlen(prefix)) ? NULL : bus + strlen(prefix);

	o->bus = path ? KRON_BUS_DEVICE : strcmp(bus, "exact") ? KRON_BUS_LANE : KRON_BUS_EXACT;
	o->device = path;
	return path ? *path : o->bus == KRON_BUS_EXACT || !strcmp(bus, "lane");
}

static void take_options(struct collector_options *o, char **argv)
{
	*o = (struct collector_options){
		.dir = output,
		.command = quoted_command(argv),
		.version = PACKAGE_VERSION,
		.selection = {.only = {only.v, only.n},
			      .except = {except.v, except.n},
			      .libraries = {libraries.v, libraries.n},
			      .levels = level_globs,
			      .probes = probes.specs.n ? &probes : NULL,
			      .tactics = tactic_set,
			      .probes_only =
				      probes.specs.n && !only.n && !except.n && !libraries.n},
		.buffer = buffer,
		.when_full = (enum kron_when_full)when_full,
		.filter = filter == NO_FILTER ? 0xffff : (uint32_t)filter,
		.keep_filter = filter == NO_FILTER,
		.board = board,
		.kron = "/proc/self/exe",
		.no_children = no_children,
		.constant_time = constant_time,
		.watch = watch,
		.measure = probe_cost_measure,
	};
}

/* What is wrong with --trigger here; NULL: nothing. */
static const char *check_watch(const struct collector_options *o, struct err *err)
{
	if (!o->watch.trigger)
		return o->watch.pre || o->watch.post ? "--pre and --post belong to a --trigger"
						     : NULL;
	if (o->bus == KRON_BUS_DEVICE)
		return "--trigger looks at samples as they come, and those of a real board stay "
		       "there: use --bus lane or exact";
	if (o->when_full == KRON_WHEN_FULL_WRAP)
		return "--trigger has a circular buffer of its own (--pre): leave out --when-full "
		       "wrap";
	return watch_check(&o->watch, err) ? err->msg : NULL;
}

/* Does one of them trigger a Resource sample? */
static bool wants_counters(const struct probe_set *set)
{
	for (size_t i = 0; i < set->specs.n; i++)
		if (set->specs.v[i].kind == SPEC_RESOURCE ||
		    (set->specs.v[i].kind == SPEC_STORE &&
		     set->specs.v[i].word >= KRON_WORD_RESOURCE))
			return true;
	return false;
}

int cmd_record(int argc, char **argv)
{
	struct collector_options opt;
	const char *why_not;
	struct program program;
	char runtime[4096] = "";
	struct child child;
	struct err err;
	int status, first = cmd_parse(&command, argc, argv, &status);

	if (!first)
		return status;
	guard_install(OWN_FAILURE);
	vec_set_exit_status(OWN_FAILURE);
	argv += first;
	if (!board && getenv(BOARDS_ENV) && *getenv(BOARDS_ENV))
		board = getenv(BOARDS_ENV);
	if (levels_take(&level_globs, &levels, &err))
		return cmd_fail(&command, OWN_FAILURE, "%s (`kron record --help` shows the usage)",
				err.msg);
	if (probe_options_read(&probes, &specs, &files, level_globs.others, &err) ||
	    (tactics && tactics_parse(&tactic_set, tactics, &err)))
		return cmd_fail(&command, OWN_FAILURE, "%s", err.msg);
	probes.no_callers = !interpose_is_on(tactic_set);
	status = program_find(&program, argv[0], getenv("PATH"), &err);
	if (status)
		return cmd_fail(&command, status == -ENOENT ? NOT_FOUND : NOT_EXECUTABLE, "%s",
				err.msg);
	if (program.verdict == PROGRAM_BROKEN)
		return cmd_fail(&command, NOT_EXECUTABLE, "cannot execute %s: %s", argv[0],
				program.why.msg);
	if (program.verdict == PROGRAM_TRACEABLE && paths_runtime(runtime, sizeof(runtime), &err))
		return cmd_fail(&command, OWN_FAILURE, "%s", err.msg);
	take_options(&opt, argv);
	if (!take_bus(&opt))
		return cmd_fail(&command, OWN_FAILURE,
				"--bus: \"%s\" is none of lane, exact, device:PATH", bus);
	if (opt.bus == KRON_BUS_LANE && opt.constant_time && wants_counters(&probes))
		return cmd_fail(&command, OWN_FAILURE,
				"a Resource sample takes longer than others: not with "
				"--constant-time");
	why_not = check_watch(&opt, &err);
	if (why_not)
		return cmd_fail(&command, OWN_FAILURE, "%s", why_not);
	child_prepare(&child);
	if (collector_open(&collector, &opt, &err))
		return cmd_fail(&command, OWN_FAILURE, "%s", err.msg);
	status = run(&child, &program, argv, runtime);
	program_free(&program);
	xfree((char *)opt.command);
	return status < 0 ? hand_on(&child) : status;
}
