/* SPDX-License-Identifier: MIT */
/*
 * ssh.c - see ssh.h.
 *
 *   cable_ssh()   ─► socket ─► ssh HOST kron collect --stdio -o DIR
 *   cable_stdio() ◄─ socket ◄─ thread ◄─ standard input
 *
 * ssh is nobody's child, for whoever waits for children here does not expect it; and has a session of its own, so
 * Ctrl-C does not reach it before the trace's end has gone over.  Without a terminal it cannot ask for a password.
 * It ends with our end of the socket.
 */
#define _GNU_SOURCE
#include "collect/cable/ssh.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/vec.h"

#define PIECE 65536u

/* ---- the sender's end ---- */

/* For the shell there: in quotes, whatever it has. */
static char *command_of(const struct cable_address *a)
{
	char *quoted = xmalloc(4 * strlen(a->dir) + 1), *to = quoted, *command;

	for (const char *c = a->dir; *c; c++)
		to += *c == '\'' ? sprintf(to, "'\\''") : sprintf(to, "%c", *c);
	*to = 0;
	command = xasprintf("exec kron collect --stdio -q -o '%s'", quoted);
	xfree(quoted);
	return command;
}

/* In the child of a process with threads.  tell: there it says why it cannot. */
static void run(int fd, int tell, char *const argv[])
{
	sigset_t none;
	int code;

	fd = fcntl(fd, F_DUPFD_CLOEXEC, 3); /* it may be what it is to become */
	tell = fcntl(tell, F_DUPFD_CLOEXEC, 3);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	setsid();
	if (dup2(fd, 0) == 0 && dup2(fd, 1) == 1)
		execvp(argv[0], argv);
	code = errno;
	_exit(write(tell, &code, sizeof(code)) == sizeof(code) ? 127 : 126);
}

/* 0: it runs. */
static int what_is_told(int fd)
{
	int code = 0;
	ssize_t n;

	while ((n = read(fd, &code, sizeof(code))) < 0 && errno == EINTR)
		;
	return n == sizeof(code) ? -code : 0;
}

static int start(int fd, char *const argv[])
{
	int tell[2], code = 0;
	pid_t pid;

	if (pipe2(tell, O_CLOEXEC))
		return -errno;
	pid = fork();
	if (!pid) {
		pid = fork();
		if (!pid)
			run(fd, tell[1], argv);
		_exit(pid < 0);
	}
	if (pid < 0)
		code = -errno;
	close(tell[1]);
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	if (!code)
		code = what_is_told(tell[0]);
	close(tell[0]);
	return code;
}

int cable_ssh(const struct cable_address *a, struct err *err)
{
	const char *own = getenv("KRON_SSH");
	char *command = command_of(a);
	char *argv[8] = {(char *)(own && *own ? own : "ssh")};
	size_t n = 1;
	int pair[2], code;

	if (a->port[0]) {
		argv[n++] = (char *)"-p";
		argv[n++] = (char *)a->port;
	}
	argv[n++] = (char *)"--";
	argv[n++] = (char *)a->host;
	argv[n++] = command;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair)) {
		xfree(command);
		return err_set(err, errno, "cannot make a socket: %s", strerror(errno));
	}
	code = start(pair[1], argv);
	xfree(command);
	close(pair[1]);
	if (!code && fcntl(pair[0], F_SETFL, O_NONBLOCK))
		code = -errno;
	if (!code)
		return pair[0];
	close(pair[0]);
	return err_set(err, -code, "cannot run %s: %s", argv[0], strerror(-code));
}

/* ---- the collector's end ---- */

static bool put(int fd, const uint8_t *v, size_t n)
{
	while (n) {
		ssize_t put = write(fd, v, n);

		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0)
			return false;
		v += put;
		n -= (size_t)put;
	}
	return true;
}

static void pump(int from, int to)
{
	uint8_t *piece = xmalloc(PIECE);
	ssize_t n;

	while ((n = read(from, piece, PIECE)) > 0 || (n < 0 && errno == EINTR))
		if (n > 0 && !put(to, piece, (size_t)n))
			break;
	xfree(piece);
}

static int inner;
static pthread_t outward;

static void *pump_in(void *arg)
{
	(void)arg;
	pump(0, inner);
	shutdown(inner, SHUT_WR);
	return NULL;
}

static void *pump_out(void *arg)
{
	(void)arg;
	pump(inner, 1);
	shutdown(inner, SHUT_RDWR); /* nobody hears us any more */
	return NULL;
}

int cable_stdio(struct err *err)
{
	pthread_t inward;
	int pair[2], code;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return err_set(err, errno, "cannot make a socket: %s", strerror(errno));
	inner = pair[1];
	fcntl(pair[0], F_SETFL, O_NONBLOCK);
	code = pthread_create(&outward, NULL, pump_out, NULL);
	if (!code)
		code = pthread_create(&inward, NULL, pump_in, NULL);
	if (code)
		return err_set(err, code, "cannot make a thread: %s", strerror(code));
	pthread_detach(inward);
	return pair[0];
}

void cable_stdio_end(void)
{
	pthread_join(outward, NULL);
}
