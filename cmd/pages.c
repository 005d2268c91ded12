/* SPDX-License-Identifier: MIT */
/*
 * pages.c - kron pages: runs a program and counts how often each page of its memory is read and written.
 *
 *   kron pages ──fork──► kron record -p 'LIBRARY:FUNCTION%accesses pages' ──► program
 *       ▲                                 │
 *       └──────── trace directory, for this command only ◄┘
 *
 * Exit status: as that of kron record.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/guard.h"
#include "base/output.h"
#include "base/str.h"
#include "base/vec.h"
#include "cmd/cmd.h"
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

typedef VEC(char *) words;

static void add_probes(words *argv)
{
	static const char *all[] = {"*"};
	struct opt_list every = {.v = all, .n = 1};
	struct opt_list *f = functions.n ? &functions : &every,
			*l = libraries.n ? &libraries : &every;

	for (size_t i = 0; i < l->n; i++)
		for (size_t k = 0; k < f->n; k++) {
			*vec_push(argv) = xstrdup("-p");
			*vec_push(argv) = xasprintf("%s:%s%%accesses pages", l->v[i], f->v[k]);
		}
}

static int record(const char *dir, char **program)
{
	words argv = {0};

	*vec_push(&argv) = xstrdup("record");
	*vec_push(&argv) = xstrdup("-q");
	*vec_push(&argv) = xstrdup("--switches=no");
	*vec_push(&argv) = xstrdup("-o");
	*vec_push(&argv) = xstrdup(dir);
	add_probes(&argv);
	*vec_push(&argv) = xstrdup("--");
	for (; *program; program++)
		*vec_push(&argv) = *program;
	*vec_push(&argv) = NULL;
	return cmd_record((int)argv.n - 1, argv.v);
}

static volatile pid_t recorder;

/* What the kernel sends goes to all of a terminal's group: the recorder has it, too. */
static void pass_on(int sig, siginfo_t *info, void *context)
{
	(void)context;
	if (info->si_code <= 0)
		kill(recorder, sig);
}

/* The program may be ended by a signal, and kron record by the same one. */
static int run_recorder(const char *dir, char **program)
{
	static const int signals[] = {SIGTERM, SIGHUP, SIGINT, SIGQUIT};
	const struct sigaction pass = {.sa_sigaction = pass_on, .sa_flags = SA_SIGINFO};
	int status = 0;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid < 0)
		return -errno;
	if (!pid)
		exit(record(dir, program));
	recorder = pid;
	for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		sigaction(signals[i], &pass, NULL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	signal(SIGINT, SIG_DFL);
	signal(SIGQUIT, SIG_DFL);
	return status;
}

static int hand_on(int status)
{
	const struct rlimit none = {0, 0};

	if (!WIFSIGNALED(status))
		return WEXITSTATUS(status);
	setrlimit(RLIMIT_CORE, &none);
	signal(WTERMSIG(status), SIG_DFL);
	raise(WTERMSIG(status));
	return 128 + WTERMSIG(status);
}

/* ---- where it records ---- */

static char *make_directory(void)
{
	const char *tmp = getenv("TMPDIR");
	char *path = xasprintf("%s/kron-pages-XXXXXX", tmp && *tmp ? tmp : "/tmp");

	if (mkdtemp(path))
		return path;
	xfree(path);
	return NULL;
}

static void remove_files(const char *path)
{
	DIR *d = opendir(path);
	struct dirent *de;

	while (d && (de = readdir(d)))
		if (strcmp(de->d_name, ".") && strcmp(de->d_name, ".."))
			unlinkat(dirfd(d), de->d_name, 0);
	if (d)
		closedir(d);
	rmdir(path);
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

int cmd_pages(int argc, char **argv)
{
	int code, status, first = cmd_parse(&command, argc, argv, &status);
	static const unsigned widths[] = {11, 19, 0};
	char *dir, *trace;
	struct err err;

	if (!first)
		return status;
	guard_install(OWN_FAILURE);
	vec_set_exit_status(OWN_FAILURE);
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
	if (output && output_begin(&out, output, OUTPUT_STREAM, &err))
		return cmd_fail(&command, OWN_FAILURE, "%s", err.msg);
	is_begun = output;
	dir = make_directory();
	if (!dir)
		return cmd_fail(&command, OWN_FAILURE, "cannot make a directory to record in: %s",
				strerror(errno));
	trace = xasprintf("%s/trace", dir);
	status = run_recorder(trace, argv + first);
	code = 0;
	if (status < 0)
		code = cmd_fail(&command, OWN_FAILURE, "cannot start: %s", strerror(-status));
	else if (!access(trace, F_OK))
		code = report(trace);
	if (is_begun)
		output_drop(&out);
	remove_files(trace);
	rmdir(dir);
	xfree(trace);
	xfree(dir);
	return code ? code : hand_on(status);
}
