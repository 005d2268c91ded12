/* SPDX-License-Identifier: MIT */
/* child.c - see child.h */
#define _GNU_SOURCE
#include "cmd/record/child.h"
#include "base/clock.h"
#include "base/vec.h"
#include "cmd/record/inherited.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define GRACE_MS 1000

static void signals_of_end(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGHUP);
	sigaddset(set, SIGQUIT);
}

static void signals_of_interest(sigset_t *set)
{
	signals_of_end(set);
	sigaddset(set, SIGCHLD);
}

int child_open_signals_of_end(void)
{
	sigset_t set;

	signals_of_end(&set);
	return signalfd(-1, &set, SFD_CLOEXEC);
}

/* The soft limit is for programs that select(2); what we need depends on all that we trace. */
static void raise_descriptors(void)
{
	struct rlimit all;

	getrlimit(RLIMIT_NOFILE, &all);
	all.rlim_cur = all.rlim_max;
	setrlimit(RLIMIT_NOFILE, &all);
}

/*
 * An inherited SIG_IGN of SIGCHLD would take the exit status away.  A file size limit and a reader of our messages who is
 * gone are errors of write(2) to us, no death; nor is who asks for a snapshot where there is no flight recorder.
 */
static const struct {
	int sig;
	void (*handler)(int);
} own_actions[] = {{SIGCHLD, SIG_DFL}, {SIGXFSZ, SIG_IGN}, {SIGPIPE, SIG_IGN}, {SIGUSR2, SIG_IGN}};

void child_prepare(struct child *c)
{
	sigset_t set;

	memset(c, 0, sizeof(*c));
	signals_of_interest(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
	for (size_t i = 0; i < sizeof(own_actions) / sizeof(own_actions[0]); i++)
		signal(own_actions[i].sig, own_actions[i].handler);
	raise_descriptors();
}

static void reap(pid_t pid)
{
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

/*
 * vfork(): the copy of our page tables that fork() makes is a good part of what starting a
 * short-lived program costs.  The child shares our memory until execve: it makes system calls
 * and nothing else.
 */
int child_start(struct child *c, const char *path, char *const *argv, char *const *envp)
{
	volatile int failed = 0;
	pid_t pid;

	inherited_take_timers();
	pid = vfork();
	if (pid < 0) {
		failed = errno;
		inherited_return_timers();
		return -failed;
	}
	if (pid == 0) {
		inherited_give();
		execve(path, argv, envp);
		failed = errno;
		_exit(127);
	}
	if (failed) {
		inherited_return_timers();
		reap(pid);
		return -failed;
	}
	c->pid = pid;
	return 0;
}

static char **shell_argv(char *path, char **argv)
{
	size_t n = 0;
	char **v;

	while (argv[n])
		n++;
	v = xcalloc(n + 2, sizeof(*v));
	v[0] = "sh";
	v[1] = path;
	for (size_t i = 1; i < n; i++)
		v[i + 1] = argv[i];
	return v;
}

int child_start_program(struct child *c, char *path, bool needs_shell, char **argv,
			char *const *envp)
{
	int code;

	if (!needs_shell)
		return child_start(c, path, argv, envp);
	argv = shell_argv(path, argv);
	code = child_start(c, "/bin/sh", argv, envp);
	xfree(argv);
	return code;
}

int child_start_seized(struct child *c, const char *path, char *const *argv, char *const *envp,
		       void (*seize)(void *ctx, pid_t pid), void *ctx)
{
	int go[2], failed[2], code = 0;
	char byte = 0;

	if (pipe2(go, O_CLOEXEC))
		return -errno;
	if (pipe2(failed, O_CLOEXEC)) {
		code = -errno;
		close(go[0]);
		close(go[1]);
		return code;
	}
	inherited_take_timers();
	c->pid = fork();
	if (c->pid == 0) {
		close(go[1]);
		if (read(go[0], &byte, 1) != 1)
			_exit(127);
		inherited_give();
		execve(path, argv, envp);
		code = errno;
		if (write(failed[1], &code, sizeof(code)) != sizeof(code))
			_exit(127);
		_exit(127);
	}
	close(go[0]);
	close(failed[1]);
	if (c->pid < 0) {
		code = errno;
	} else {
		seize(ctx, c->pid);
		if (write(go[1], &byte, 1) != 1 ||
		    read(failed[0], &code, sizeof(code)) != sizeof(code))
			code = 0;
		if (code)
			reap(c->pid);
	}
	if (code)
		inherited_return_timers();
	close(go[1]);
	close(failed[0]);
	return -code;
}

static void look_for_end(struct child *c)
{
	siginfo_t info = {.si_pid = 0};
	pid_t r;

	if (c->on_end && !waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOHANG | WNOWAIT) &&
	    info.si_pid)
		c->on_end(c->on_end_ctx);
	do
		r = wait4(c->pid, &c->status, WNOHANG, &c->usage);
	while (r < 0 && errno == EINTR);
	c->ended = r == c->pid;
}

/* From a terminal, and to the program's process group as well as to ours? */
static bool is_for_the_program_too(const struct child *c, const siginfo_t *info)
{
	return info->si_code == SI_KERNEL && getpgid(c->pid) == getpgrp();
}

void child_wait(struct child *c)
{
	int64_t deadline = 0;
	sigset_t set;

	signals_of_interest(&set);
	for (look_for_end(c); !c->ended; look_for_end(c)) {
		int64_t left = c->signal ? deadline - (int64_t)clock_ms(CLOCK_MONOTONIC) : 1000;
		struct timespec ts = {.tv_sec = left / 1000, .tv_nsec = left % 1000 * 1000000};
		siginfo_t info;
		int sig;

		if (c->signal && left <= 0)
			return;
		sig = sigtimedwait(&set, &info, c->signal ? &ts : NULL);
		if (sig <= 0 || sig == SIGCHLD || is_for_the_program_too(c, &info))
			continue;
		kill(c->pid, sig);
		if (!c->signal) {
			c->signal = sig;
			deadline = (int64_t)clock_ms(CLOCK_MONOTONIC) + GRACE_MS;
		}
	}
}

void child_raise(int sig)
{
	struct sigaction plain = {.sa_handler = SIG_DFL};
	struct rlimit none = {0, 0};
	sigset_t set;

	setrlimit(RLIMIT_CORE, &none);
	sigaction(sig, &plain, NULL);
	sigemptyset(&set);
	sigaddset(&set, sig);
	kill(getpid(), sig);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

/* ---- the end ---- */

uint64_t child_cpu_ns(const struct child *child)
{
	const struct rusage *r = &child->usage;

	if (!child->ended)
		return 0;
	return (uint64_t)(r->ru_utime.tv_sec + r->ru_stime.tv_sec) * 1000000000u +
	       (uint64_t)(r->ru_utime.tv_usec + r->ru_stime.tv_usec) * 1000u;
}

void child_describe_end(const struct child *child, char *text, size_t size)
{
	if (!child->ended)
		snprintf(text, size, "running");
	else if (WIFSIGNALED(child->status))
		snprintf(text, size, "signal %d", WTERMSIG(child->status));
	else
		snprintf(text, size, "exited %d", WEXITSTATUS(child->status));
}

int child_hand_on(const struct child *child)
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
