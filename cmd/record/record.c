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
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/guard.h"
#include "base/paths.h"
#include "base/str.h"
#include "base/vec.h"
#include "board/bus/bus.h"
#include "board/bus/node.h"
#include "cmd/record/attached.h"
#include "cmd/record/budget_record.h"
#include "cmd/record/cabled.h"
#include "cmd/record/child.h"
#include "cmd/record/clock.h"
#include "cmd/record/control_record.h"
#include "cmd/record/flight_record.h"
#include "cmd/record/job.h"
#include "cmd/record/pids.h"
#include "cmd/record/record.h"
#include "cmd/cmd.h"
#include "cmd/levels.h"
#include "cmd/record/say.h"
#include "cmd/probe_cost.h"
#include "cmd/probe_options.h"
#include "collect/cable/address.h"
#include "collect/collector.h"
#include "collect/live/starter.h"
#include "collect/attach/program.h"
#include "collect/modules/unmatched.h"
#include "config.h"
#include "inject/plan/callsite.h"
#include "inject/plan/tactics.h"
#include "trace/format.h"

enum { NOT_FOUND = 127, NOT_EXECUTABLE = 126, OWN_FAILURE = 125 };

static const char *output = TRACE_DEFAULT_DIR, *token, *group;
static struct opt_list only, except, libraries, levels, timed, keep, specs, files, pids;
static const char *lasting;
static const char *tactics;
static uint32_t tactic_set;
static bool no_wait;
static struct level_globs level_globs;
static struct probe_set probes;
#define NO_FILTER UINT64_MAX
#define NO_NODE UINT64_MAX
static uint64_t buffer, filter = NO_FILTER, node = NO_NODE;
static const char *board, *bus = "lane", *clock_words, *budget;
static uint16_t clock_every;
static int when_full;
static bool no_children, children, quiet, constant_time;
static int switches; /* enum collector_switches */
static int verbose;

static struct watch_options watch;
static struct flight_options flight;

static const struct opt options[] = {
	{'o', "output", OPT_STR, &output, "DIR",
	 "Write the trace to DIR (default kron.data). A trace that is there becomes DIR.old. "
	 "In an MPI job each rank writes to DIR/RANK. "
	 "tcp://HOST[:PORT] or unix:PATH: send it to the `kron collect` that listens there. "
	 "ssh://[USER@]HOST[:PORT]/DIR: to one that ssh runs there, for a directory in DIR.",
	 0, 0},
	{0, "token", OPT_STR, &token, "FILE",
	 "The token that the collector at -o tcp://HOST has, and those of a --trigger-group on several hosts: "
	 "nothing goes to another host without one. The file is its owner's alone (mode 0600).",
	 0, 0},
	{'F', "function", OPT_LIST, &only, "GLOB",
	 "Record only functions whose name matches GLOB. May be repeated.", 0, 0},
	{'N', "no-function", OPT_LIST, &except, "GLOB",
	 "Do not record functions whose name matches GLOB. May be repeated.", 0, 0},
	{'L', "library", OPT_LIST, &libraries, "GLOB",
	 "Also record the libraries whose file name, soname or path matches GLOB: 'libz*', or '*' for "
	 "all. May be repeated.",
	 0, 0},
	{'p', "probe", OPT_LIST, &specs, "SPEC",
	 "Place a probe: see kron-probes(7). With it functions are recorded only if -F, -N or -L "
	 "asks for them. May be repeated.",
	 0, 0},
	{'P', "probe-file", OPT_LIST, &files, "FILE",
	 "Place the probes of FILE, or of kron's pack of this name (malloc, pthread, io, process, "
	 "mpi, net, python3, libstdcxx, blocks). May be repeated.",
	 0, 0},
	{0, "pid", OPT_LIST, &pids, "PID[,PID]...",
	 "Record these processes, which run already, instead of a program that is started. They run on "
	 "afterwards. `-p PID` is the same.",
	 0, 0},
	{0, "for", OPT_STR, &lasting, "TIME",
	 "With --pid: end after this time, like 5s or 500ms. Default: at Ctrl-C, when all of them have "
	 "ended, or when the --trigger has fired and its --post is there.",
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
	{0, "flight", OPT_STR, &flight.text, "SIZE|TIME",
	 "A flight recorder: keep the last 64M of samples, or the last 10s, in memory, and write them only "
	 "where something happens: `kron snapshot`, SIGUSR2, the program's crash or end. Each snapshot is a "
	 "trace, DIR/001, DIR/002 and so on. See FLIGHT RECORDER in kron-record(1).",
	 0, 0},
	{0, "snapshot-on", OPT_STR, &flight.on, "SEQUENCE",
	 "With --flight: a snapshot whenever SEQUENCE matches, as with --trigger: 'FUNC>20ms', 'A then B within "
	 "1ms'.",
	 0, 0},
	{0, "worst", OPT_STR, &flight.worst, "N:FUNC",
	 "With --flight: keep a snapshot of each of the N slowest calls of FUNC, from its entry to its exit.",
	 0, 0},
	{0, "max-snapshots", OPT_UINT, &flight.most, "N",
	 "With --flight: take no more than N snapshots (default 1000), and the one at the end.", 1,
	 1000000},
	{0, "trigger-group", OPT_STR, &group, "NAME",
	 "Stop together with all recordings of this group, at the moment when the trigger of one of them "
	 "fires, each with what lies around it. Without a --trigger this one is stopped by the others only. "
	 "NAME@HOST[:PORT],...: members on other hosts, and with a --token.",
	 0, 0},
	{0, "board", OPT_STR, &board, "NAME",
	 "Record on the board with this name; it is made if it is not there, and then goes at the "
	 "end. Default: $KRON_BOARD, else a board of this recording's own.",
	 0, 0},
	{0, "node", OPT_UINT, &node, "N",
	 "The node of a parallel machine that this is, 0 to 1023: it stands in the source address of every "
	 "sample. Default: that of a board that is there; else the rank in an MPI job, $SLURM_NODEID, the "
	 "number at the end of the host's name, or 0.",
	 0, NODE_MAX},
	{0, "bus", OPT_STR, &bus, "lane|exact|device:PATH",
	 "How samples travel: into a buffer of their thread (lane, the default); each one by a bus "
	 "cycle of the emulated board, with its clock, FIFOs and limits (exact); by a store to a "
	 "real board at PATH, a PCI BAR or /dev/mk0, whose samples stay there (device).",
	 0, 0},
	{0, "clock", OPT_STR, &clock_words, "full|every:N",
	 "Read the clock for each sample (full, the default), or for one of N at most, a power of two up to 256 "
	 "(every alone: 16). A probe then costs a third. Order is exact; a time lies between the two readings "
	 "around it, and reports say how far a sum may be off. Samples of -p, of static programs, and with --pid of "
	 "those whose C library registers no rseq(2) area, read it each time.",
	 0, 0},
	{0, "timed", OPT_LIST, &timed, "GLOB",
	 "With --clock every:N: functions whose name matches GLOB read the clock each time that they are entered "
	 "and left, so that their times are exact. May be repeated.",
	 0, 0},
	{0, "budget", OPT_STR, &budget, "N%",
	 "Keep what probes cost within N % of the program's processor time, like 1%: functions with many short "
	 "calls are taken out while it runs, and looked at again for a moment, first after a second, then after "
	 "gaps that double. Their calls of that time are exact, the rest is estimated where enough was seen; `kron "
	 "info` says which, and for how long each was watched.",
	 0, 0},
	{0, "keep", OPT_LIST, &keep, "GLOB",
	 "With --budget: functions whose name matches GLOB are never taken out. May be repeated.",
	 0, 0},
	{0, "constant-time", OPT_FLAG, &constant_time, NULL,
	 "A probe takes the same time whether its level is on or off, as on the hardware. Without "
	 "this a level that is off costs next to nothing.",
	 0, 0},
	{0, "switches", OPT_CHOICE, &switches, "auto|yes|no",
	 "Also record when the kernel takes threads off a processor, so that reports can tell time "
	 "on a processor from time that went by: where perf_event_open(2) allows it (auto, the "
	 "default; with --pid where samples share a reading of the clock), or not at all without it (yes).",
	 0, 0},
	{0, "no-children", OPT_FLAG, &no_children, NULL,
	 "Do not record the programs that the program starts.", 0, 0},
	{0, "children", OPT_FLAG, &children, NULL,
	 "With --pid: also record the programs that these processes execute from now on. Processes that "
	 "they fork are recorded in any case.",
	 0, 0},
	{0, "no-wait", OPT_FLAG, &no_wait, NULL,
	 "The program starts at once: files without a plan in the cache are planned while it runs, and recorded "
	 "from then on. `kron info` says from when. The C library, static programs and files with probes of -p "
	 "are waited for.",
	 0, 0},
	{'q', "quiet", OPT_FLAG, &quiet, NULL, "Print neither summary nor notes.", 0, 0},
	{'v', "verbose", OPT_COUNT, &verbose, NULL, "Say more about the recording.", 0, 0},
	{0, "tactics", OPT_STR, &tactics, "LIST",
	 "Use only these tactics, separated by commas: " TACTICS_HELP
	 ". With + or - before each: the default, and these too or without them. int3, a trap, is not in the default: it is slow, "
	 "and in code that runs with SIGTRAP blocked it ends the program.",
	 0, 0},
	OPT_END,
};

static const struct opt_command command = {
	.name = "record",
	.operands = "[--] CMD [ARG]... | --pid PID",
	.summary = "Run CMD and record the entry and exit of each of its functions.",
	.opts = options,
	.stop_at_operand = true,
	.usage_status = OWN_FAILURE,
};

/* Of whoever runs us. */
static const struct opt_command *who = &command;
static const struct record_counting *counting; /* NULL: what runs is recorded */

static bool counts_calls(void)
{
	return counting && !counting->specs.n;
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

static struct attached attached;
static struct collector collector;
static struct starter starter = STARTER_INIT(starter);
#define OWN_PATH "/proc/self/exe"

/* Static programs that the recorded ones execute. */
static void begin_starter(const char *runtime)
{
	char *value = collector_environment(&collector, runtime);

	starter_start(&starter, &collector.server, OWN_PATH, xasprintf(KRON_ENV_RT "=%s", value));
	xfree(value);
}

/* It ran, or runs, untraced. */
static int start_static(struct child *child, struct program *p, char **argv, const char *runtime)
{
	int code = attached_launch(&attached, &collector, runtime, child, p->path, argv, &p->why);

	p->verdict = p->why.msg[0] ? PROGRAM_UNTRACEABLE : PROGRAM_TRACEABLE;
	return code;
}

static int start_program(struct child *child, struct program *p, char **argv, char **env,
			 const char *runtime)
{
	if (p->verdict == PROGRAM_STATIC)
		return start_static(child, p, argv, runtime);
	return child_start_program(child, p->path, p->needs_shell, argv, env);
}

static void explain_exec_failure(const struct program *p, int code)
{
	if (p->verdict != PROGRAM_TRACEABLE)
		cmd_fail(who, 0, "cannot execute %s: %s (%s)", p->path, strerror(-code),
			 p->why.msg);
	else
		cmd_fail(who, 0, "cannot execute %s: %s", p->path, strerror(-code));
}

/* ---- what matches nothing, before the program has run ---- */

/* Set by the thread that answers the program. */
static bool ended_early;

/* The program waits for its plan, and the kernel ends it before it gets any further. */
static void end_early(const struct peer *p, const char *why)
{
	__atomic_store_n(&ended_early, true, __ATOMIC_RELAXED);
	cmd_fail(who, 0, "%s: the program was not run", why);
	syscall(SYS_pidfd_send_signal, p->pidfd, SIGKILL, NULL, 0);
}

bool record_ended_early(void)
{
	return __atomic_load_n(&ended_early, __ATOMIC_RELAXED);
}

static void look_at_selection(void *ctx, const struct peer *p, bool is_program)
{
	struct collector *c = ctx;
	struct unmatched u;
	bool alone, final;

	unmatched_find(&u, &c->modules);
	alone = u.v.n && is_program && (no_children || !unmatched_may_execute(p->pid));
	final = u.is_all && u.v.n && alone;
	vec_for(&u.v, i)
		final &= !i->may_come;
	if (final) {
		end_early(p, u.v.v[0].sentence);
	} else {
		trace_writer_settle(c->journal.w);
		vec_for(&u.v, i)
			say("kron: %s%s", i->sentence,
			    i->may_come || !alone ? "; what comes later may" : "");
	}
	unmatched_free(&u);
	say_unknown_yet(c->watch);
}

/* ---- all together ---- */

static struct say_options words;

/* `-p 1234` is a process, as in perf. */
static void take_pids_from_probes(void)
{
	size_t n = 0;

	for (size_t i = 0; i < specs.n; i++) {
		const char *s = specs.v[i];

		if (*s && s[strspn(s, "0123456789,")] == 0)
			*vec_push(&pids) = s;
		else
			specs.v[n++] = s;
	}
	specs.n = n;
}

/* The recording of a program that kron starts and of one that runs end in the same way. */
static int finish(const struct collector_end *end, const struct program *p,
		  const struct child *child)
{
	struct collector_end known = *end;
	struct collector_summary summary;
	bool failed, unsent;
	struct err err;

	starter_stop(&starter);
	cabled_hurry();
	known.undo = record_ended_early();
	collector_finish(&collector, &known, &summary);
	unsent = cabled_finish(&err);
	control_record_end(&collector);
	if (known.undo) {
		collector_free(&collector);
		return OWN_FAILURE;
	}
	if (!counting || counts_calls() || counting->notes)
		say_notes(&collector, &summary, p, child);
	if (!counting || counts_calls())
		say_end(&collector, &summary);
	if (unsent)
		cmd_fail(who, 0, "%s", err.msg);
	failed = counting ? counting->at_end(&collector, &summary)
			  : summary.error.msg[0] || summary.cut || unsent;
	collector_free(&collector);
	return failed ? OWN_FAILURE : -1;
}

static int run_attached(const char *runtime)
{
	const struct collector_end end = {.how = "detached"};
	const struct program program = {.verdict = PROGRAM_TRACEABLE};
	const struct child child = {.ended = true};
	char *names = attached_names(&attached), size[STR_NUMBER];
	struct err err;
	int code;

	if (collector.flight) /* what is written as it comes */
		switches = SWITCHES_NO;
	if (collector_watch_running(&collector, (enum collector_switches)switches,
				    &attached.switches, &err)) {
		collector_abandon(&collector);
		return cmd_fail(who, OWN_FAILURE, "%s", err.msg);
	}
	say_node(&collector);
	starter.leaves = children;
	begin_starter(runtime);
	code = attached_start(&attached, &collector, runtime, &err);
	if (!code && counting && counting->attached)
		code = counting->attached(&collector, &err);
	if (code) {
		attached_stop(&attached);
		say_untraced(&collector, &program);
		collector_abandon(&collector);
		return cmd_fail(who, OWN_FAILURE, "%s", err.msg);
	}
	collector_note_running(&collector, attached_unwatched(&attached));
	if (switches == SWITCHES_YES && attached_unwatched(&attached))
		say("kron: context switches are not recorded: %s", attached_unwatched(&attached));
	say("kron: %s %s; %s", counting ? "counting in" : "recording", names,
	    attached.for_ns || watch.trigger ? "Ctrl-C ends it sooner" : "Ctrl-C ends it");
	control_record_begin(&collector, &attached.surgeon, true, probes.default_level);
	budget_record_begin(&collector);
	attached_wait(&attached, collector.watch);
	budget_record_stop();
	control_record_stop();
	if (counting && counting->leaves)
		counting->leaves();
	attached.changes_ns = control_record_longest_stop_ns();
	starter_stop(&starter);
	starter_wait(&starter);
	attached_stop(&attached);
	attached_note(&attached, &collector.journal);
	code = finish(&end, &program, &child);
	vec_for(&attached.errors, e) /* what stays in a process is not a note */
		fprintf(stderr, "kron: %s\n", e->msg);
	if (!attached.errors.n) {
		char *outcome = attached_outcome(&attached);

		say("kron: %s; stood still for %s at most", outcome,
		    str_duration(size, sizeof(size), attached_longest_stop_ns(&attached)));
		xfree(outcome);
	}
	xfree(names);
	attached_free(&attached);
	return code < 0 ? 0 : code;
}

static int run(struct child *child, struct program *p, char **argv, const char *runtime)
{
	struct collector_end end;
	char how[32], **env = environ;
	struct err err;
	size_t own = 0;
	int code;

	if (collector.flight) /* what is written as it comes */
		switches = SWITCHES_NO;
	if (collector_watch_switches(&collector, (enum collector_switches)switches, &err)) {
		collector_abandon(&collector);
		return cmd_fail(who, OWN_FAILURE, "%s", err.msg);
	}
	if (p->verdict == PROGRAM_TRACEABLE)
		env = traced_environment(&collector, runtime, &own);
	say_buffer(&collector.seg);
	say_node(&collector);
	begin_starter(runtime);
	if (counting && counting->starts)
		counting->starts(&collector, child);
	code = start_program(child, p, argv, env, runtime);
	free_environment(env, own);
	if (code) {
		explain_exec_failure(p, code);
		collector_abandon(&collector);
		return code == -EAGAIN || code == -ENOMEM ? OWN_FAILURE : NOT_EXECUTABLE;
	}
	collector_program_starts(&collector);
	if (counting && counting->started)
		counting->started(child);
	control_record_begin(&collector, &attached.surgeon, attached.surgeon.pid > 0,
			     probes.default_level);
	budget_record_begin(&collector);
	child_wait(child);
	budget_record_stop();
	control_record_stop();
	child_describe_end(child, how, sizeof(how));
	if (p->verdict != PROGRAM_TRACEABLE)
		server_note_untraced(&collector.server, child->pid, NULL, p->why.msg);
	end = (struct collector_end){
		.how = how, .cpu_ns = child_cpu_ns(child), .program = child->pid};
	return finish(&end, p, child);
}

static bool take_bus(struct collector_options *o)
{
	static const char prefix[] = "device:";
	const char *path = strncmp(bus, prefix, strlen(prefix)) ? NULL : bus + strlen(prefix);

	o->bus = path ? KRON_BUS_HARDWARE : strcmp(bus, "exact") ? KRON_BUS_LANE : KRON_BUS_EXACT;
	o->hardware = path;
	return path ? *path : o->bus == KRON_BUS_EXACT || !strcmp(bus, "lane");
}

/* Which of them have matched something is asked for. */
static struct globs globs_of(const struct opt_list *l)
{
	return (struct globs){l->v, l->n, xcalloc(l->n + 1, sizeof(bool))};
}

static void take_options(struct collector_options *o, char **argv)
{
	*o = (struct collector_options){
		.dir = output,
		.command = cmd_quoted(argv),
		.version = PACKAGE_VERSION,
		.selection = {.only = globs_of(&only),
			      .except = globs_of(&except),
			      .libraries = globs_of(&libraries),
			      .levels = level_globs,
			      .timed = globs_of(&timed),
			      .keep = globs_of(&keep),
			      .probes = probes.specs.n ? &probes : NULL,
			      .tactics = tactic_set,
			      .no_wait = no_wait,
			      .calls = counts_calls(),
			      .probes_only =
				      probes.specs.n && !only.n && !except.n && !libraries.n},
		.buffer = buffer,
		.when_full = (enum kron_when_full)when_full,
		.filter = filter == NO_FILTER ? 0xffff : (uint32_t)filter,
		.keep_filter = filter == NO_FILTER,
		.board = board,
		.node = node == NO_NODE ? NODE_DEFAULT : (int)node,
		.kron = OWN_PATH,
		.is_scratch = counting,
		.pages = counting ? counting->pages : (struct pages_setup){0},
		.no_children = no_children,
		.constant_time = constant_time,
		.clock_every = clock_every,
		.budget = budget,
		.watch = {.trigger = group && !watch.trigger ? WATCH_OTHERS_ONLY : watch.trigger,
			  .pre = watch.pre,
			  .post = watch.post},
		.flight = flight,
		.measure = counting ? NULL
			   : pids.n ? probe_cost_measure_attached
				    : probe_cost_measure,
		.on_first = look_at_selection,
		.on_first_ctx = &collector,
		.on_exec = starter_on_exec,
		.on_exec_ctx = &starter,
	};
}

/* What is wrong with --trigger here; NULL: nothing. */
static const char *check_watch(const struct collector_options *o, struct err *err)
{
	if (token && !cable_is_address(output) && !(group && strchr(group, '@')))
		return "--token belongs to -o tcp://HOST, or to --trigger-group NAME@HOST";
	if (!o->watch.trigger)
		return o->watch.pre || o->watch.post ? "--pre and --post belong to a --trigger"
						     : NULL;
	if (o->bus == KRON_BUS_HARDWARE)
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

static int open_collector(struct collector_options *opt, struct err *err)
{
	char *of_rank = NULL;
	int code = 0;

	if (!counting && !pids.n && !cable_is_address(output))
		code = job_dir(output, &of_rank, err);
	if (of_rank)
		opt->dir = words.output = of_rank;
	if (!code)
		code = cabled_open(opt, output, token, err);
	if (!code)
		code = cabled_group(opt, group, token, err);
	if (!code)
		code = collector_open(&collector, opt, err);
	if (!code && (code = cabled_start(err)))
		collector_abandon(&collector);
	return code;
}

static int record_attached(void)
{
	char runtime[4096], *command_line, *none[] = {NULL};
	struct collector_options opt;
	struct child child;
	const char *why_not;
	struct err err;
	int status;

	if (paths_runtime(runtime, sizeof(runtime), &err))
		return cmd_fail(who, OWN_FAILURE, "%s", err.msg);
	take_options(&opt, none);
	command_line = attached_names(&attached);
	xfree((char *)opt.command);
	opt.command = command_line;
	if (!take_bus(&opt) || opt.bus == KRON_BUS_HARDWARE)
		return cmd_fail(who, OWN_FAILURE, "--bus: with --pid there are lane and exact");
	why_not = check_watch(&opt, &err);
	why_not = why_not ? why_not : clock_check(&opt);
	why_not = why_not ? why_not : budget_record_check(&opt, &err);
	why_not = why_not ? why_not : flight_record_check(&opt, switches == SWITCHES_YES, &err);
	if (why_not)
		return cmd_fail(who, OWN_FAILURE, "%s", why_not);
	child_prepare(&child);
	if (counting)
		child_needs_reader();
	flight_record_prepare(&opt);
	if (attached_prepare(&attached, &err) || open_collector(&opt, &err))
		return cmd_fail(who, OWN_FAILURE, "%s", err.msg);
	status = run_attached(runtime);
	xfree(command_line);
	return status;
}

static int record(char **argv)
{
	struct collector_options opt;
	const char *why_not;
	struct program program;
	char runtime[4096] = "";
	struct child child;
	struct err err;
	int status;

	guard_install(OWN_FAILURE);
	vec_set_exit_status(OWN_FAILURE);
	words = (struct say_options){.command = who,
				     .counting = counting,
				     .probes = &probes,
				     .output = output,
				     .quiet = quiet,
				     .attached = pids.n,
				     .verbose = verbose};
	say_begin(&words);
	if (!pids.n && !*argv)
		return cmd_fail(
			who, OWN_FAILURE,
			"no command given; usage: kron %s [OPTION]... [--] CMD [ARG]..., or "
			"--pid PID",
			who->name);
	if (pids.n && *argv && pids_check(&pids, &err)) /* a value that was empty, mostly */
		return cmd_fail(who, OWN_FAILURE, "%s", err.msg);
	if (pids.n && *argv)
		return cmd_fail(
			who, OWN_FAILURE,
			"--pid records a process that runs: it takes no command (--for TIME says "
			"how long)");
	if (lasting && !pids.n)
		return cmd_fail(who, OWN_FAILURE, "--for belongs to --pid");
	if (children && !pids.n)
		return cmd_fail(
			who, OWN_FAILURE,
			"--children belongs to --pid: the programs that a command starts are "
			"recorded without it");
	if (no_wait && pids.n)
		return cmd_fail(
			who, OWN_FAILURE,
			"--no-wait is for programs that kron starts: with --pid nothing waits");
	attached.children = children;
	if (attached_take(&attached, &pids, &err) ||
	    (lasting && attached_take_time(&attached, lasting, &err)))
		return cmd_fail(who, OWN_FAILURE, "%s", err.msg);
	if (!board && !counting && getenv(BOARDS_ENV) && *getenv(BOARDS_ENV))
		board = getenv(BOARDS_ENV);
	words.board = board;
	if (levels_take(&level_globs, &levels, &err))
		return cmd_fail(who, OWN_FAILURE, "%s (`kron record --help` shows the usage)",
				err.msg);
	if (probe_options_read(&probes, &specs, &files, level_globs.others, &err) ||
	    (tactics && tactics_parse(&tactic_set, tactics, &err)))
		return cmd_fail(who, OWN_FAILURE, "%s", err.msg);
	if (no_wait && tactic_set & USE_INT3)
		return cmd_fail(who, OWN_FAILURE,
				"--no-wait cannot place traps while the program runs: not with "
				"--tactics int3");
	if (clock_take(clock_words, &clock_every, &err))
		return cmd_fail(who, OWN_FAILURE, "%s", err.msg);
	if (counting)
		probe_options_name(&probes, &counting->names);
	probes.no_callsites = no_wait || !callsite_is_on(tactic_set);
	if (pids.n)
		return record_attached();
	status = program_find(&program, argv[0], getenv("PATH"), &err);
	if (status)
		return cmd_fail(who, status == -ENOENT ? NOT_FOUND : NOT_EXECUTABLE, "%s", err.msg);
	if (program.verdict == PROGRAM_BROKEN)
		return cmd_fail(who, NOT_EXECUTABLE, "cannot execute %s: %s", argv[0],
				program.why.msg);
	if (program.verdict != PROGRAM_UNTRACEABLE && paths_runtime(runtime, sizeof(runtime), &err))
		return cmd_fail(who, OWN_FAILURE, "%s", err.msg);
	take_options(&opt, argv);
	if (!take_bus(&opt))
		return cmd_fail(who, OWN_FAILURE,
				"--bus: unknown value '%s'; choose one of lane, exact, device:PATH",
				bus);
	if (opt.bus == KRON_BUS_LANE && opt.constant_time && wants_counters(&probes))
		return cmd_fail(who, OWN_FAILURE,
				"a Resource sample takes longer than others: not with "
				"--constant-time");
	why_not = check_watch(&opt, &err);
	why_not = why_not ? why_not : clock_check(&opt);
	why_not = why_not ? why_not : budget_record_check(&opt, &err);
	why_not = why_not ? why_not : flight_record_check(&opt, switches == SWITCHES_YES, &err);
	if (why_not)
		return cmd_fail(who, OWN_FAILURE, "%s", why_not);
	child_prepare(&child);
	if (counting)
		child_needs_reader();
	flight_record_prepare(&opt);
	if ((program.verdict == PROGRAM_STATIC && attached_prepare(&attached, &err)) ||
	    open_collector(&opt, &err))
		return cmd_fail(who, OWN_FAILURE, "%s", err.msg);
	status = run(&child, &program, argv, runtime);
	attached_free(&attached);
	program_free(&program);
	xfree((char *)opt.command);
	return status < 0 ? child_hand_on(&child) : status;
}

int cmd_record(int argc, char **argv)
{
	int status, first = cmd_parse(&command, argc, argv, &status);

	if (!first)
		return status;
	take_pids_from_probes();
	return record(argv + first);
}

int record_count(const struct record_counting *c, char **argv)
{
	counting = c;
	who = c->command;
	output = c->dir;
	only = c->only, except = c->except, libraries = c->libraries, pids = c->pids;
	specs = c->specs;
	files = c->files;
	lasting = c->lasting;
	no_children = c->no_children;
	quiet = c->quiet;
	switches = SWITCHES_NO;
	return record(argv);
}
