/* SPDX-License-Identifier: MIT */
/* cmd.c - what all commands share: reading options, saying errors, paging, leaving. */
#define _GNU_SOURCE
#include "cmd/cmd.h"
#include "cmd/record/inherited.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "base/vec.h"

static pid_t pager_pid;

int cmd_fail(const struct opt_command *c, int status, const char *fmt, ...)
{
	va_list ap;

	fflush(stdout);
	fprintf(stderr, "kron %s: ", c->name);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	return status;
}

/* What scripts of this project ask a command about its table. */
static bool print_generated(const struct opt_command *c, const char *word)
{
	if (!strcmp(word, "--help-man"))
		opt_man(c, stdout);
	else if (!strcmp(word, "--help-words"))
		opt_words(c, stdout);
	else
		return false;
	return true;
}

int cmd_parse(const struct opt_command *c, int argc, char **argv, int *status)
{
	struct err err;
	int first;

	if (argc == 2 && print_generated(c, argv[1])) {
		*status = cmd_finish(c, CMD_OK);
		return 0;
	}
	first = opt_parse(c, argc, argv, &err);
	if (first > 0)
		return first;
	if (first == 0) {
		opt_help(c, stdout);
		*status = cmd_finish(c, CMD_OK);
		return 0;
	}
	*status = cmd_fail(c, c->usage_status ? c->usage_status : CMD_USAGE,
			   "%s (`kron %s --help` shows the usage)", err.msg, c->name);
	return 0;
}

bool cmd_names_folder(const char *name)
{
	static const char suffix[] = ".data";
	const size_t n = strlen(name);
	struct stat st;

	if (!stat(name, &st))
		return S_ISDIR(st.st_mode);
	return (n && name[n - 1] == '/') ||
	       (n >= strlen(suffix) && !strcmp(name + n - strlen(suffix), suffix));
}

int cmd_temp_folder(struct temp *t, const struct opt_command *c, struct err *err)
{
	const char *tmp = getenv("TMPDIR");
	char *where = xasprintf("%s/", tmp && *tmp ? tmp : "/tmp");
	char *name = xasprintf("kron-%s", c->name);
	int code;

	temp_clean(where, name);
	code = temp_make(t, where, name, TEMP_FOLDER, 0700);
	if (code)
		err_set(err, -code, "cannot make a folder in %s: %s; TMPDIR can name another place",
			where, strerror(-code));
	xfree(name);
	xfree(where);
	return code;
}

static void run_pager(const char *pager, int in)
{
	dup2(in, STDIN_FILENO);
	close(in);
	inherited_give();
	signal(SIGINT, SIG_IGN); /* ^C ends kron; the pager still shows what came */
	setenv("LESS", "FRSX", 0);
	execl("/bin/sh", "sh", "-c", pager, (char *)NULL);
	_exit(127);
}

/* status when it has ended; one that the shell cannot run, as the shell has said, showed nothing. */
static int await_pager(int status)
{
	int end = 0;

	while (waitpid(pager_pid, &end, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(end) && WEXITSTATUS(end) > 125 ? CMD_ERROR : status;
}

/* Its reader has seen enough: that ends the command, and is not a failure.  ^C ends it, too, but not the
 * pager, which has the terminal until it ends. */
static void on_end(int sig)
{
	int status;

	close(STDOUT_FILENO);
	status = await_pager(CMD_OK);
	if (sig == SIGPIPE)
		_exit(status);
	signal(sig, SIG_DFL);
	raise(sig); /* is blocked here, and comes when this returns */
}

/* NULL: none.  less asks questions on a terminal that cannot place its cursor. */
static const char *choose_pager(void)
{
	const char *pager = getenv("KRON_PAGER"), *term = getenv("TERM");

	if (!pager)
		pager = getenv("PAGER");
	if (!pager && term && strcmp(term, "dumb") && !access("/usr/bin/less", X_OK))
		pager = "less";
	return pager && *pager && strcmp(pager, "cat") ? pager : NULL;
}

void cmd_pager(bool want)
{
	const char *pager = choose_pager();
	int ends[2];

	if (!want || !pager || !isatty(STDOUT_FILENO) || pipe2(ends, O_CLOEXEC))
		return;
	fflush(stdout);
	pager_pid = fork();
	if (pager_pid == 0)
		run_pager(pager, ends[0]);
	if (pager_pid > 0) {
		dup2(ends[1], STDOUT_FILENO);
		signal(SIGPIPE, on_end);
		signal(SIGINT, on_end);
	} else {
		pager_pid = 0;
	}
	close(ends[0]);
	close(ends[1]);
}

int cmd_finish(const struct opt_command *c, int status)
{
	bool failed = ferror(stdout) || fflush(stdout);
	int code = errno;

	if (pager_pid) {
		fclose(stdout);
		return await_pager(status);
	}
	if (failed && code != EPIPE)
		return cmd_fail(c, CMD_ERROR, "cannot write the output: %s", strerror(code));
	return status;
}

char *cmd_quoted(char *const *argv)
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
