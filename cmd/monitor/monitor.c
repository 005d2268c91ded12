/* SPDX-License-Identifier: MIT */
/*
 * monitor.c - kron monitor: reads counters of a program at the end of each interval.
 *
 * Where calls are counted the program is started as `kron stat` starts it, else as it is.
 *
 * Exit status: as kron record's; with --pid 0.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/duration.h"
#include "base/guard.h"
#include "base/output.h"
#include "base/str.h"
#include "base/temp.h"
#include "base/vec.h"
#include "cmd/cmd.h"
#include "cmd/monitor/browser.h"
#include "cmd/monitor/notes.h"
#include "cmd/monitor/save.h"
#include "cmd/monitor/show.h"
#include "cmd/record/child.h"
#include "cmd/record/pids.h"
#include "cmd/record/record.h"
#include "collect/attach/program.h"
#include "collect/monitor/monitor.h"

enum { OWN_FAILURE = 125, NOT_EXECUTABLE = 126, NOT_FOUND = 127 };

#define EVERY_DEFAULT 1000000000u
#define EVERY_MIN 1000000u
#define PIDS_MAX 64

static struct opt_list events, variables, locks, ranges, libraries, pid_lists;
static const char *every, *lasting, *path, *save_dir, *board_name, *port;
static bool freezes, draws, json, quiet, is_silent;

static const struct opt options[] = {
	{0, "every", OPT_STR, &every, "TIME",
	 "Length of an interval, like 100ms or 2s; 1ms at least. Default: 1s.", 0, 0},
	{'e', "event", OPT_LIST, &events, "EVENT[,EVENT]...",
	 "Show this event: see EVENTS. May be repeated. Default: task-clock, page-faults, "
	 "context-switches, migrations and idle, as far as the kernel allows them.",
	 0, 0},
	{0, "var", OPT_LIST, &variables, "NAME[:TYPE]",
	 "Show the value of this global variable at the end of each interval, or of a member that it leads to, like "
	 "queue.len, head->next->n or table[3].id; TYPE is u8 to u64, s8 to s64, x8 to x64, float or double, by "
	 "default unsigned and of the symbol's size, of a member its own. May be repeated.",
	 0, 0},
	{0, "lock", OPT_LIST, &locks, "NAME[+OFFSET][:TYPE]",
	 "Show the state of this lock, a global variable or a part of one, at the end of each interval: who holds "
	 "it, and how many threads wait. TYPE is mutex (the default), rwlock or sem; see LOCKS. May be repeated.",
	 0, 0},
	{0, "range", OPT_LIST, &ranges, "RANGE[:r|w|rw]",
	 "Show how many loads (r), stores (w), or both, the program makes in this range of its memory: "
	 "0xA-0xB, the name of a global variable, or a mapping; see RANGES. May be repeated.",
	 0, 0},
	{0, "freeze", OPT_FLAG, &freezes, NULL,
	 "Stop all threads of the program and of the processes that it has started at the end of an "
	 "interval, read, and let them go on.",
	 0, 0},
	{'L', "library", OPT_LIST, &libraries, "GLOB",
	 "With calls alone: also count in the libraries whose file name, soname or path matches GLOB. With --range: only "
	 "the loads and stores of the program and libraries that match. May be repeated.",
	 0, 0},
	{0, "pid", OPT_LIST, &pid_lists, "PID[,PID]...",
	 "Watch these processes, which run already, instead of a program that is started.", 0, 0},
	{0, "board", OPT_STR, &board_name, "NAME",
	 "Watch the counters of this board instead of a program: a name, the process id of a kron record, or "
	 "the path of a device.",
	 0, 0},
	{0, "for", OPT_STR, &lasting, "TIME",
	 "Watch for this time, like 5s or 500ms. The program runs on. Default: until it ends, or "
	 "Ctrl-C.",
	 0, 0},
	{0, "draw", OPT_FLAG, &draws, NULL,
	 "Draw diagrams: the processors' utilisation, and each event over time. On a terminal they follow the "
	 "program, else they are written at the end.",
	 0, 0},
	{0, "json", OPT_FLAG, &json, NULL,
	 "Print JSON: an object a line for each interval, and one with the totals.", 0, 0},
	{'o', "output", OPT_STR, &path, "FILE|DIR",
	 "Write to FILE, not to standard output. A DIR, which is there or whose name ends with / or .data: as "
	 "--save, and print nothing.",
	 0, 0},
	{0, "save", OPT_STR, &save_dir, "DIR",
	 "Also keep the intervals in the trace directory DIR, which kron report, info and view show.",
	 0, 0},
	{0, "serve", OPT_STR, &port, "PORT",
	 "Also draw the intervals in a browser of this machine, as they come, at the address that standard error "
	 "says: see IN A BROWSER. 0 takes a port that is free.",
	 0, 0},
	{'q', "quiet", OPT_FLAG, &quiet, NULL, "Print no notes.", 0, 0},
	OPT_END,
};

static const struct opt_command command = {
	.name = "monitor",
	.operands = "[--] CMD [ARG]... | --pid PID | --board NAME",
	.summary = "Run CMD and show counters of it for each interval.",
	.opts = options,
	.stop_at_operand = true,
	.usage_status = OWN_FAILURE,
};

static struct monitor monitor;
static struct freezer freezer;
static struct monitor_board board;
static struct show show;
static struct temp folder;
static struct output out;
static struct save save;
static struct browser browser;
static const struct child *started_child; /* NULL: kron has started none */
static bool is_begun, is_shown;

/* ---- the command line ---- */

static int add_events(const char *list, struct err *err)
{
	char *copy = xstrdup(list), *rest = copy, *word;
	int code = 0;

	/* a glob keeps its text: the monitor points into it */
	while (!code && (word = strsep(&rest, ",")))
		code = monitor_add_event(&monitor, xstrdup(word), err);
	xfree(copy);
	return code;
}

/* Those that may be counted: who has not asked for them is not refused. */
static void add_defaults(void)
{
	static const char *const all[] = {"task-clock", "page-faults", "context-switches",
					  "migrations"};
	struct err err;

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct counters tried = {0};

		if (!counters_open(&tried, counter_find(all[i]), 0, &err))
			monitor_add_event(&monitor, all[i], &err);
		else if (!quiet)
			fprintf(stderr, "kron: %s\n", err.msg);
		counters_close(&tried);
	}
	monitor_add_event(&monitor, "idle", &err);
}

static bool take_time(const char *text, uint64_t least, uint64_t *ns)
{
	return !text || (duration_parse(text, ns) && *ns >= least);
}

static int take_output(struct err *err)
{
	if (!path || !cmd_names_folder(path))
		return 0;
	if (save_dir)
		return err_set(err, EINVAL, "-o %s and --save %s: one directory, not two", path,
			       save_dir);
	if (draws || json)
		return err_set(
			err, EINVAL,
			"-o %s is a directory, and gets no lines: --save %s keeps the intervals "
			"there beside %s",
			path, path, draws ? "--draw" : "--json");
	save_dir = path;
	path = NULL;
	is_silent = true;
	return 0;
}

static int take_options(struct err *err)
{
	int code = take_output(err);

	if (code)
		return code;
	monitor.every_ns = EVERY_DEFAULT;
	if (draws && json)
		return err_set(err, EINVAL, "--draw or --json, not both");
	if (!take_time(every, EVERY_MIN, &monitor.every_ns))
		return err_set(err, EINVAL,
			       "--every: '%s' is not a time like 100ms or 2s, of 1ms at least",
			       every);
	if (!take_time(lasting, 1, &monitor.for_ns))
		return err_set(err, EINVAL, "--for: '%s' is not a time like 5s or 500ms", lasting);
	for (size_t i = 0; i < events.n && !code; i++)
		code = add_events(events.v[i], err);
	for (size_t i = 0; i < variables.n && !code; i++)
		code = monitor_add_variable(&monitor, variables.v[i], err);
	for (size_t i = 0; i < locks.n && !code; i++)
		code = monitor_add_lock(&monitor, locks.v[i], err);
	for (size_t i = 0; i < ranges.n && !code; i++)
		code = monitor_add_range(&monitor, ranges.v[i], err);
	if (code)
		return code;
	if (board_name && (events.n || variables.n || locks.n || ranges.n || libraries.n ||
			   pid_lists.n || freezes))
		return err_set(
			err, EINVAL,
			"--board shows the board's own counters: -e, --var, --lock, --range, -L, --pid and --freeze "
			"belong to programs");
	if (board_name)
		return monitor_board_open(&board, board_name, err);
	if (!events.n && !variables.n && !locks.n && !ranges.n)
		add_defaults();
	if (libraries.n && !ranges.n && (monitor.probed.v.n || !monitor_wants_calls(&monitor)))
		return err_set(
			err, EINVAL,
			"-L belongs to -e calls alone and to --range; other events name "
			"their library themselves, like addr:libz:deflate or returns:libz:*");
	if (monitor_wants_signals(&monitor) && monitor_wants_probes(&monitor))
		return err_set(
			err, EINVAL,
			"-e %s: not with %s, whose probes may be traps themselves and would count",
			monitor_wants_signals(&monitor),
			ranges.n             ? "--range"
			: monitor.probed.v.n ? monitor.probed.v.v[0].name
					     : "-e calls");
	code = monitor_settle_calls(&monitor, err);
	if (code)
		return code;
	if (ranges.n && pid_lists.n)
		return err_set(
			err, EINVAL,
			"--range is for a program that kron starts: of one that runs nobody knows "
			"what it did before");
	if (freezes && freezer_refusal())
		return err_set(err, EPERM, "--freeze: %s", freezer_refusal());
	return monitor_check(&monitor, err);
}

static int check_pid(pid_t pid, struct err *err)
{
	if (kill(pid, 0) && errno == ESRCH)
		return err_set(err, ESRCH, "--pid: there is no process %d", pid);
	if (process_is_kernels(pid))
		return err_set(err, EBUSY, "--pid: " PROCESS_IS_KERNELS, pid);
	if (process_status_number(pid, 0, "Tgid", 10) != (uint64_t)pid)
		return err_set(err, ESRCH, "--pid: %d is the number of a thread, not of a process",
			       pid);
	return 0;
}

static int take_pids(struct pids *p, struct err *err)
{
	int code = pids_take(p, &pid_lists, err);

	if (!code && p->v.n > PIDS_MAX)
		code = err_set(err, EINVAL, "--pid: %d processes at most", PIDS_MAX);
	for (size_t i = 0; i < p->v.n && !code; i++)
		code = check_pid(p->v.v[i], err);
	return code;
}

/* ---- what is said ---- */

/* Who has read enough closes the pipe.  What runs already is left then; what was started here goes on. */
static void end_unread(void)
{
	const bool is_only_output = show.table.out == stdout && !save_dir && !port;

	if ((pid_lists.n || board_name) && is_only_output && ferror(stdout))
		kill(getpid(), SIGTERM);
}

/* A name that is wrong is told at once, and at the end, when it is certain. */
static void on_row(void *ctx, const struct monitor_row *row)
{
	(void)ctx;
	if (record_ended_early())
		return;
	if (!quiet && !row->from_ns && !show.is_live)
		notes_on_variables(&monitor, ", so far");
	if (!row->from_ns)
		save_start(&save, monitor.start_ns);
	save_row(&save, row);
	browser_row(&browser, row);
	show_row(&show, row);
	end_unread();
}

static const char *how_it_ended(char *text, size_t size)
{
	const struct child *c = started_child;

	if (!c || !c->ended)
		snprintf(text, size, "running");
	else if (WIFSIGNALED(c->status))
		snprintf(text, size, "signal %d", WTERMSIG(c->status));
	else
		snprintf(text, size, "exited %d", WEXITSTATUS(c->status));
	return text;
}

static int finish(void)
{
	struct monitor_summary s;
	char how[32];
	struct err err;
	int status = 0;

	if (is_shown)
		return 0;
	is_shown = true;
	monitor_stop(&monitor);
	monitor_summary(&monitor, &s);
	show_totals(&show, &s, monitor.totals);
	if (!quiet)
		notes_say(&monitor, &s);
	freezer_end(&freezer);
	browser_end(&browser, &s, monitor.totals, how_it_ended(how, sizeof(how)));
	if (save_end(&save, &s, how, &err))
		status = cmd_fail(&command, OWN_FAILURE, "%s", err.msg);
	if (!path)
		return cmd_finish(&command, status);
	is_begun = false;
	return output_end(&out, &err) ? cmd_fail(&command, OWN_FAILURE, "%s", err.msg) : status;
}

/* ---- a program that kron starts ---- */

static void on_end(void *ctx)
{
	(void)ctx;
	monitor_stop(&monitor);
}

/* Of what runs. */
static int begin_rows(pid_t pid, struct err *err)
{
	int code = browser_start(&browser, err);

	return code ? code : monitor_start(&monitor, pid, err);
}

static int start_monitor(pid_t pid, struct err *err)
{
	int code = freezes ? freezer_add(&freezer, pid, err) : 0;

	/* it has ended already, and there is nothing to stop */
	if (code == -ESRCH)
		code = 0;
	return code ? code : begin_rows(pid, err);
}

static int hand_on(const struct child *child)
{
	const int sig = !child->ended                ? child->signal
			: WIFSIGNALED(child->status) ? WTERMSIG(child->status)
						     : 0;

	if (!sig)
		return WEXITSTATUS(child->status);
	child_raise(sig);
	return 128 + sig;
}

static int run_plain(char **argv)
{
	struct program program;
	struct child child;
	struct err err;
	int code = program_find(&program, argv[0], getenv("PATH"), &err);

	if (code)
		return cmd_fail(&command, code == -ENOENT ? NOT_FOUND : NOT_EXECUTABLE, "%s",
				err.msg);
	child_prepare(&child);
	child_needs_reader();
	child.on_end = on_end;
	if (monitor_open_program(&monitor, NULL, NULL, &err))
		return cmd_fail(&command, OWN_FAILURE, "%s", err.msg);
	code = child_start_program(&child, program.path, program.needs_shell, argv, environ);
	if (code)
		return cmd_fail(&command, NOT_EXECUTABLE, "cannot execute %s: %s", argv[0],
				strerror(-code));
	if (start_monitor(child.pid, &err))
		cmd_fail(&command, 0, "%s", err.msg);
	started_child = &child;
	child_wait(&child);
	code = finish();
	started_child = NULL;
	program_free(&program);
	return code ? code : hand_on(&child);
}

static struct record_counting counting;

static void add_range_probes(void)
{
	static const char *all[] = {"*"};
	const struct opt_list every_one = {.v = all, .n = 1},
			      *l = libraries.n ? &libraries : &every_one;

	for (size_t i = 0; i < l->n; i++) {
		*vec_push(&counting.specs) = xasprintf("%s:*%%accesses lines", l->v[i]);
		*vec_push(&counting.names) = "--range";
	}
	monitor_ranges_setup(&monitor.ranges, &counting.pages);
}

static void starts(struct collector *c, struct child *child)
{
	static const struct plan_watcher watcher = {.ctx = &monitor, .tell = monitor_plan_tell};
	struct err err;

	child->on_end = on_end;
	started_child = child;
	if (ranges.n)
		monitor_ranges_begin(&monitor.ranges, &c->drain);
	if (monitor_open_program(&monitor, &c->seg, &c->modules, &err))
		cmd_fail(&command, 0, "%s", err.msg);
	server_set_watcher(&c->server, &watcher);
}

static void started(struct child *child)
{
	struct err err;

	if (start_monitor(child->pid, &err))
		cmd_fail(&command, 0, "%s", err.msg);
}

static void say_missing(const struct collector_summary *s)
{
	if (!counting.specs.n || quiet)
		return;
	if (s->lost && ranges.n)
		fprintf(stderr,
			"kron: %llu loads and stores are not counted: no memory for their counters\n",
			(unsigned long long)s->lost);
	if (s->refused)
		fprintf(stderr,
			"kron: %llu instructions are not counted: kron cannot place a probe there\n",
			(unsigned long long)s->refused);
}

static int at_end(struct collector *c, const struct collector_summary *s)
{
	int code = finish();

	(void)c;
	say_missing(s);
	calls_end(&monitor.calls);
	temp_close(&folder);
	return code;
}

/* ---- processes that run ---- */

static bool are_all_over(struct pollfd *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (p[i].fd >= 0)
			return false;
	return true;
}

/* Until they have ended, the time is over, or a signal came. */
static void wait_for(const pid_t *pids, size_t n)
{
	const uint64_t end = clock_ns(CLOCK_MONOTONIC) + monitor.for_ns;
	struct pollfd p[PIDS_MAX + 1];

	for (size_t i = 0; i < n; i++) {
		p[i] = (struct pollfd){.fd = (int)syscall(SYS_pidfd_open, pids[i], 0),
				       .events = POLLIN};
		if (p[i].fd < 0 && errno != ESRCH)
			cmd_fail(&command, 0, "--pid: cannot wait for process %d: %s", pids[i],
				 strerror(errno));
	}
	p[n] = (struct pollfd){.fd = child_open_signals_of_end(), .events = POLLIN};
	while ((!n || !are_all_over(p, n)) && !p[n].revents) {
		const uint64_t now = clock_ns(CLOCK_MONOTONIC), left = end > now ? end - now : 0;
		const struct timespec ts = {(time_t)(left / 1000000000u),
					    (long)(left % 1000000000u)};

		if (!ppoll(p, n + 1, monitor.for_ns ? &ts : NULL, NULL))
			break;
		for (size_t i = 0; i < n; i++)
			if (p[i].fd >= 0 && p[i].revents) {
				close(p[i].fd);
				p[i].fd = -1;
			}
	}
	for (size_t i = 0; i <= n; i++)
		if (p[i].fd >= 0)
			close(p[i].fd);
}

/* All stand for a moment: who starts a thread meanwhile would be counted twice, or not at all. */
static int open_processes(const pid_t *pids, size_t n, struct collector *c, struct err *err)
{
	struct freeze z;
	int code = 0;

	if (freezer_refusal())
		return err_set(err, EPERM, "--pid: %s", freezer_refusal());
	for (size_t i = 0; i < n && !code; i++)
		code = freezer_add(&freezer, pids[i], err);
	if (!code)
		code = freezer_stop(&freezer, &z, err);
	if (code)
		return code;
	code = monitor_open_processes(&monitor, pids, n, c ? &c->seg : NULL, c ? &c->modules : NULL,
				      err);
	freezer_go(&freezer, &z);
	return code;
}

static int run_pids(void)
{
	struct child unused;
	struct pids p;
	struct err err;

	if (take_pids(&p, &err))
		return cmd_fail(&command, OWN_FAILURE, "%s", err.msg);
	child_prepare(&unused); /* signals, and as many descriptors as there may be */
	child_needs_reader();
	if (open_processes(p.v.v, p.v.n, NULL, &err) || begin_rows(p.v.v[0], &err)) {
		freezer_end(&freezer);
		return cmd_fail(&command, OWN_FAILURE, "%s", err.msg);
	}
	wait_for(p.v.v, p.v.n);
	vec_free(&p.v);
	return finish();
}

/* ---- those with probes ---- */

static int attached(struct collector *c, struct err *err)
{
	struct pids p;
	int code = take_pids(&p, err);

	code = code ? code : open_processes(p.v.v, p.v.n, c, err);
	code = code ? code : begin_rows(p.v.v[0], err);
	vec_free(&p.v);
	return code;
}

/* The last interval ends here; nobody of ours is to hold a thread that is to be let go. */
static void leaves(void)
{
	monitor_stop(&monitor);
	freezer_end(&freezer);
}

static int run_counting(char **argv)
{
	struct err err;
	char *dir;
	int status;

	if (cmd_temp_folder(&folder, &command, &err))
		return cmd_fail(&command, OWN_FAILURE, "%s", err.msg);
	dir = xasprintf("%s/trace", folder.path);
	counting.command = &command;
	counting.dir = dir;
	for (size_t i = 0; i < monitor.calls.nglobs; i++)
		*vec_push(&counting.only) = monitor.calls.globs[i];
	if (ranges.n)
		add_range_probes();
	probed_specs(&monitor.probed, &counting.specs, &counting.names);
	if (!counting.specs.n)
		counting.libraries = libraries;
	counting.notes = monitor.probed.v.n;
	counting.quiet = quiet;
	counting.pids = pid_lists;
	counting.lasting = lasting;
	counting.starts = starts;
	counting.started = started;
	counting.attached = attached;
	counting.leaves = leaves;
	counting.at_end = at_end;
	status = record_count(&counting, argv);
	temp_close(&folder);
	xfree(dir);
	return status;
}

static int run_board(void)
{
	struct child unused;
	struct err err;

	child_prepare(&unused); /* signals */
	child_needs_reader();
	monitor_begin_board(&monitor);
	if (begin_rows(0, &err))
		return cmd_fail(&command, OWN_FAILURE, "%s", err.msg);
	wait_for(NULL, 0);
	return finish();
}

/* ---- all together ---- */

/* The command line; of what runs already the options that say what it is. */
static char *words_of_subject(char **argv)
{
	char **words = xcalloc(2 * pid_lists.n + 3, sizeof(*words)), *line;
	size_t n = 0;

	if (board_name) {
		words[n++] = "--board";
		words[n++] = (char *)board_name;
	}
	for (size_t i = 0; i < pid_lists.n; i++) {
		words[n++] = "--pid";
		words[n++] = (char *)pid_lists.v[i];
	}
	line = cmd_quoted(n ? words : argv);
	xfree(words);
	return line;
}

/* Where the intervals go beside the lines. */
static int open_sinks(char **argv, struct err *err)
{
	struct save_subject what = {.of = board_name    ? "board"
					  : pid_lists.n ? "processes"
							: "program",
				    .freezes = freezes,
				    .every_ns = monitor.every_ns};
	char *words = words_of_subject(argv);
	int code = 0;

	what.command = words;
	if (port)
		code = browser_begin(&browser, port, &monitor.columns, &what, err);
	if (!code && save_dir)
		code = save_begin(&save, save_dir, &monitor.columns, &what, err);
	xfree(words);
	return code;
}

/* Of what cannot be started nothing is saved, and what is in the directory stays. */
static int look_for_program(char **argv, struct err *err)
{
	struct program program;
	int code;

	if (!*argv)
		return 0;
	code = program_find(&program, argv[0], getenv("PATH"), err);
	if (code)
		return code == -ENOENT ? NOT_FOUND : NOT_EXECUTABLE;
	program_free(&program);
	return 0;
}

/* Columns have their types before there is a value. */
static void guess_types(char **argv)
{
	struct program program;
	struct err err;
	char exe[32];

	if (pid_lists.n) {
		snprintf(exe, sizeof(exe), "/proc/%d/exe", atoi(pid_lists.v[0]));
		monitor_variables_guess(&monitor.variables, exe);
	} else if (*argv && !program_find(&program, argv[0], getenv("PATH"), &err)) {
		monitor_variables_guess(&monitor.variables, program.path);
		program_free(&program);
	}
}

static int run(char **argv)
{
	struct err err;
	int status = save_dir ? look_for_program(argv, &err) : 0;

	if (status)
		return cmd_fail(&command, status, "%s", err.msg);
	monitor.board = board_name ? &board : NULL;
	if (variables.n)
		guess_types(argv);
	monitor_prepare(&monitor);
	show = (struct show){.table = {.out = is_silent ? NULL
					      : path    ? output_stream(&out)
							: stdout,
				       .json = json,
				       .freezes = freezes,
				       .of_board = board_name,
				       .columns = &monitor.columns},
			     .draws = draws};
	show_begin(&show);
	monitor.on_row = on_row;
	if ((freezes || pid_lists.n) && freezer_start(&freezer, &err))
		return cmd_fail(&command, OWN_FAILURE, "%s", err.msg);
	monitor.freezer = freezes ? &freezer : NULL;
	/* after the freezer is there, which would keep the directory's lock, and the port */
	if (open_sinks(argv, &err))
		return cmd_fail(&command, OWN_FAILURE, "%s", err.msg);
	if (board_name)
		return run_board();
	if (monitor_wants_probes(&monitor))
		return run_counting(argv);
	return pid_lists.n ? run_pids() : run_plain(argv);
}

int cmd_monitor(int argc, char **argv)
{
	int status, first = cmd_parse(&command, argc, argv, &status);
	struct err err;

	if (!first)
		return status;
	guard_install(OWN_FAILURE);
	vec_set_exit_status(OWN_FAILURE);
	if (!pid_lists.n && !board_name && first == argc)
		return cmd_fail(
			&command, OWN_FAILURE,
			"no command given; usage: kron monitor [OPTION]... [--] CMD [ARG]..., "
			"--pid PID or --board NAME");
	if ((pid_lists.n || board_name) && first < argc)
		return cmd_fail(&command, OWN_FAILURE, "%s: it takes no command",
				board_name ? "--board watches a board"
					   : "--pid watches a process that runs");
	if (take_options(&err) || (path && output_begin(&out, path, OUTPUT_STREAM, &err)))
		return cmd_fail(&command, OWN_FAILURE, "%s (`kron monitor --help` shows the usage)",
				err.msg);
	is_begun = path;
	status = run(argv + first);
	freezer_end(&freezer);
	if (is_begun)
		output_drop(&out);
	browser_close(&browser);
	save_drop(&save); /* it has ended, unless nothing was watched */
	show_end(&show);
	monitor_free(&monitor);
	return status;
}
