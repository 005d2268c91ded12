/* SPDX-License-Identifier: MIT */
/* collect.c - kron collect: the far end of the cable, see collect/cable/serve.h */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/boot.h"
#include "cmd/cmd.h"
#include "collect/cable/address.h"
#include "collect/cable/send.h"
#include "collect/cable/serve.h"
#include "collect/cable/ssh.h"

static const char *listen_at, *output = "kron.nodes", *token, *left;
static bool quiet, at_stdio;

static const struct opt options[] = {
	{'l', "listen", OPT_STR, &listen_at, "ADDRESS",
	 "Take senders at HOST:PORT (port 5993 without one), tcp://HOST:PORT or unix:PATH. Anything but "
	 "this host's loopback and Unix sockets needs a --token.",
	 0, 0},
	{0, "stdio", OPT_FLAG, &at_stdio, NULL,
	 "Take one sender at standard input and output, and end with it: `kron record -o ssh://HOST/DIR` has ssh "
	 "run this.",
	 0, 0},
	{'o', "output", OPT_STR, &output, "DIR",
	 "Write each node's trace to a directory in DIR (default kron.nodes), which every command that reads "
	 "traces takes as one trace. With --send: the address of the collector.",
	 0, 0},
	{0, "token", OPT_STR, &token, "FILE",
	 "Only senders with the same token are taken. The file is its owner's alone (mode 0600); the token "
	 "itself never goes over the wire.",
	 0, 0},
	{0, "send", OPT_STR, &left, "DIR",
	 "Listen to nobody: send what a recorder left in DIR when its link was dead at the end, or when it was "
	 "killed.",
	 0, 0},
	{'q', "quiet", OPT_FLAG, &quiet, NULL,
	 "Say only what went wrong, not which senders come and are complete.", 0, 0},
	OPT_END,
};

static const struct opt_command command = {
	.name = "collect",
	.operands = NULL,
	.summary =
		"Take the traces that `kron record -o tcp://HOST` sends from other machines, until Ctrl-C.",
	.opts = options,
};

static volatile int stop;

static void on_signal(int sig)
{
	stop = sig;
}

static void catch_signals(void)
{
	const struct sigaction action = {.sa_handler = on_signal};

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* a file size limit is an error of pwrite(2) */
}

/* Port 0 is one that the kernel chooses. */
static void say_where(int fd, const struct cable_address *a)
{
	struct sockaddr_storage at;
	socklen_t size = sizeof(at);
	char host[64], port[16];

	if (a->path[0] || getsockname(fd, (void *)&at, &size) ||
	    getnameinfo((void *)&at, size, host, sizeof(host), port, sizeof(port),
			NI_NUMERICHOST | NI_NUMERICSERV))
		fprintf(stderr, "kron collect: listening at %s; Ctrl-C ends it\n", a->text);
	else
		fprintf(stderr, "kron collect: listening at tcp://%s%s%s:%s; Ctrl-C ends it\n",
			strchr(host, ':') ? "[" : "", host, strchr(host, ':') ? "]" : "", port);
}

static size_t unfinished(const struct cable_server *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->nodes.n; i++)
		n += s->nodes.v[i]->conn && !s->nodes.v[i]->done;
	return n;
}

/* A descriptor, or -errno. */
static int begin_listening(const struct cable_server *s, const struct cable_address *a,
			   struct err *err)
{
	bool local;
	int fd = cable_listen(a, &local, err);

	if (fd < 0 || local || s->token.n)
		return fd;
	close(fd);
	return err_set(err, EPERM,
		       "other hosts reach %s: without --token FILE nobody is taken there", a->text);
}

static int serve(struct cable_server *s, const struct cable_address *a)
{
	struct err err;
	int fd = begin_listening(s, a, &err), code;

	if (fd < 0) {
		cable_server_unmake(s);
		return cmd_fail(&command, CMD_ERROR, "%s", err.msg);
	}
	catch_signals();
	if (!quiet)
		say_where(fd, a);
	code = cable_server_run(s, fd, &stop, &err);
	close(fd);
	if (a->path[0])
		unlink(a->path);
	if (code)
		return cmd_fail(&command, CMD_ERROR, "%s", err.msg);
	if (unfinished(s))
		fprintf(stderr,
			"kron collect: %zu senders were not done; another `kron collect -o %s` goes on "
			"with them\n",
			unfinished(s), output);
	return CMD_OK;
}

static int serve_stdio(struct cable_server *s)
{
	struct err err;
	int fd = cable_stdio(&err), code;

	if (fd < 0)
		return cmd_fail(&command, CMD_ERROR, "%s", err.msg);
	catch_signals();
	cable_conn_new(s, fd, "who runs this by ssh");
	code = cable_server_run(s, -1, &stop, &err);
	if (code)
		return cmd_fail(&command, CMD_ERROR, "%s", err.msg);
	if (!s->conns.n)
		cable_stdio_end();
	return s->refused ? CMD_ERROR : CMD_OK;
}

static int collect(void)
{
	struct cable_server s = {.words = stderr, .quiet = quiet, .shares = at_stdio};
	struct cable_address a;
	struct err err;
	int status;

	if (!at_stdio && cable_address_parse(&a, listen_at, true, &err))
		return cmd_fail(&command, CMD_USAGE, "%s", err.msg);
	if (token && cable_token_read(&s.token, token, &err))
		return cmd_fail(&command, CMD_ERROR, "%s", err.msg);
	if (cable_server_open(&s, output, &err))
		return cmd_fail(&command, CMD_ERROR, "%s", err.msg);
	snprintf(s.boot, sizeof(s.boot), "%s", boot_id());
	status = at_stdio ? serve_stdio(&s) : serve(&s, &a);
	cable_server_close(&s);
	return status;
}

static int send_left(void)
{
	struct cable_sender s;
	struct err err;

	if (cable_open(&s, output, token, "", left, &err) || cable_start(&s, &err) ||
	    cable_finish(&s, &err))
		return cmd_fail(&command, CMD_ERROR, "%s", err.msg);
	return CMD_OK;
}

int cmd_collect(int argc, char **argv)
{
	int status, first = cmd_parse(&command, argc, argv, &status);

	if (!first)
		return status;
	if (left && (listen_at || at_stdio || !cable_is_address(output)))
		return cmd_fail(&command, CMD_USAGE,
				"--send DIR needs the collector's address: -o tcp://HOST[:PORT], "
				"unix:PATH or ssh://HOST/DIR, and no --listen or --stdio");
	if (left)
		return send_left();
	if (at_stdio && listen_at)
		return cmd_fail(&command, CMD_USAGE, "--stdio takes no --listen");
	if (!listen_at && !at_stdio)
		return cmd_fail(&command, CMD_USAGE,
				"no address given: --listen HOST:PORT, or unix:PATH");
	return collect();
}
