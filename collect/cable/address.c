/* SPDX-License-Identifier: MIT */
/* address.c - see address.h. */
#define _GNU_SOURCE
#include "collect/cable/address.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "collect/cable/frames.h"
#include "collect/cable/ssh.h"

#define TCP "tcp://"
#define UNIX "unix:"
#define SSH "ssh://"
#define FORMS "tcp://HOST[:PORT], unix:PATH or ssh://[USER@]HOST[:PORT]/DIR"
#define CONNECT_MS 5000
#define RETRY_MS 20

bool cable_is_address(const char *text)
{
	return !strncmp(text, TCP, strlen(TCP)) || !strncmp(text, UNIX, strlen(UNIX)) ||
	       !strncmp(text, SSH, strlen(SSH));
}

static int take_path(struct cable_address *a, const char *path, struct err *err)
{
	if (!*path || strlen(path) >= sizeof(a->path))
		return err_set(err, EINVAL, "the path of a Unix socket has 1 to %zu bytes: %s",
			       sizeof(a->path) - 1, a->text);
	memcpy(a->path, path, strlen(path) + 1);
	return 0;
}

/* HOST, HOST:PORT, :PORT, [HOST]:PORT */
static int take_host(struct cable_address *a, const char *text, struct err *err)
{
	const char *host = text, *end = strrchr(text, ':'), *port = CABLE_PORT;

	if (*text == '[') {
		host = text + 1;
		end = strchr(text, ']');
		if (!end || (end[1] && end[1] != ':'))
			return err_set(err, EINVAL, "%s is not an address: tcp://[HOST]:PORT",
				       a->text);
		if (end[1])
			port = end + 2;
	} else if (end) {
		port = end + 1;
	} else {
		end = text + strlen(text);
	}
	if ((size_t)(end - host) >= sizeof(a->host) || !*port || strlen(port) > 5 ||
	    port[strspn(port, "0123456789")] || strtoul(port, NULL, 10) > UINT16_MAX)
		return err_set(err, EINVAL, "%s is not an address: " FORMS, a->text);
	memcpy(a->host, host, (size_t)(end - host));
	snprintf(a->port, sizeof(a->port), "%s", port);
	return 0;
}

/*
 * As git has it: /DIR is absolute, /~/DIR is in the home there.  What begins with a dash would be an option of
 * ssh's.
 */
static int take_ssh(struct cable_address *a, const char *text, struct err *err)
{
	const char *at = text + strcspn(text, "@/"), *host = *at == '@' ? at + 1 : text;
	const size_t user = (size_t)(host - text), len = strcspn(host, "/");
	const char *dir = host + len;
	char name[sizeof(a->host)];
	int code;

	if (len >= sizeof(name) || user + len >= sizeof(a->host))
		return err_set(err, EINVAL, "the address is too long: %s", a->text);
	memcpy(name, host, len);
	name[len] = 0;
	code = take_host(a, name, err);
	if (code)
		return code;
	if (!strchr(name[0] == '[' ? strchr(name, ']') : name, ':'))
		a->port[0] = 0; /* ssh knows */
	if (!a->host[0] || *text == '-' || a->host[0] == '-' || !*dir || !dir[1])
		return err_set(err, EINVAL, "%s is not an address: " FORMS, a->text);
	memmove(a->host + user, a->host, strlen(a->host) + 1);
	memcpy(a->host, text, user);
	if (!strncmp(dir, "/~/", 3))
		dir += 3;
	else if (!strncmp(dir, "/~", 2))
		return err_set(err, EINVAL, "a directory in the home there is /~/DIR: %s", a->text);
	if (!*dir || strlen(dir) >= sizeof(a->dir))
		return err_set(err, EINVAL, "the directory has 1 to %zu bytes: %s",
			       sizeof(a->dir) - 1, a->text);
	memcpy(a->dir, dir, strlen(dir) + 1);
	return 0;
}

int cable_address_parse(struct cable_address *a, const char *text, bool bare, struct err *err)
{
	*a = (struct cable_address){0};
	if (strlen(text) >= sizeof(a->text))
		return err_set(err, EINVAL, "the address is too long");
	memcpy(a->text, text, strlen(text) + 1);
	if (!strncmp(text, UNIX, strlen(UNIX)))
		return take_path(a, text + strlen(UNIX), err);
	if (!strncmp(text, TCP, strlen(TCP)))
		return take_host(a, text + strlen(TCP), err);
	if (!strncmp(text, SSH, strlen(SSH)))
		return take_ssh(a, text + strlen(SSH), err);
	if (bare && !strstr(text, "//"))
		return take_host(a, text, err);
	return err_set(err, EINVAL, "%s is not an address: " FORMS, text);
}

static bool is_loopback(const struct sockaddr *a)
{
	const struct sockaddr_in6 *six = (const void *)a;
	const struct sockaddr_in *four = (const void *)a;

	if (a->sa_family == AF_INET)
		return ntohl(four->sin_addr.s_addr) >> 24 == 127;
	return a->sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&six->sin6_addr);
}

static void set_options(int fd)
{
	int on = 1, ms = 15000;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof(ms));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
}

/* Whoever may make files where the path leads can listen there: is it us, or root? */
static bool is_trusted(int fd)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) &&
	       (!peer.uid || peer.uid == geteuid());
}

/* EAGAIN: many others connect now. */
static int connect_unix(int fd, const struct sockaddr_un *un)
{
	int ret = connect(fd, (const void *)un, sizeof(*un));

	for (int ms = 0; ret && errno == EAGAIN && ms < CONNECT_MS; ms += RETRY_MS) {
		poll(NULL, 0, RETRY_MS);
		ret = connect(fd, (const void *)un, sizeof(*un));
	}
	return ret;
}

static int unix_socket(const struct cable_address *a, bool listens, bool *local, struct err *err)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int failed = fd < 0;
	mode_t mask;

	memcpy(un.sun_path, a->path, sizeof(a->path));
	if (!failed && listens) {
		struct stat st;

		/* what a collector left that was killed */
		if (!lstat(a->path, &st) && S_ISSOCK(st.st_mode) &&
		    connect(fd, (void *)&un, sizeof(un)) && errno == ECONNREFUSED)
			unlink(a->path);
		close(fd);
		fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		mask = umask(0177); /* its owner's alone */
		failed = fd < 0 || bind(fd, (void *)&un, sizeof(un)) || listen(fd, 64);
		umask(mask);
	} else if (!failed) {
		failed = connect_unix(fd, &un);
		*local = !failed && is_trusted(fd);
	}
	if (!failed)
		return fd;
	failed = errno;
	if (fd >= 0)
		close(fd);
	return err_set(err, failed, "cannot %s %s: %s", listens ? "listen at" : "connect to",
		       a->text, strerror(failed));
}

static int connect_within(int fd, const struct addrinfo *i)
{
	struct pollfd p = {.fd = fd, .events = POLLOUT};
	socklen_t size = sizeof(int);
	int error = 0;

	if (!connect(fd, i->ai_addr, i->ai_addrlen))
		return 0;
	if (errno != EINPROGRESS)
		return -errno;
	if (poll(&p, 1, CONNECT_MS) <= 0)
		return -ETIMEDOUT;
	getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
	return -error;
}

static int listen_on(int fd, const struct addrinfo *i)
{
	int on = 1;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, i->ai_addr, i->ai_addrlen) || listen(fd, 64))
		return -errno;
	return 0;
}

static int tcp_socket(const struct cable_address *a, bool listens, bool *local, struct err *err)
{
	const struct addrinfo want = {.ai_socktype = SOCK_STREAM,
				      .ai_flags = listens ? AI_PASSIVE : AI_ADDRCONFIG};
	struct addrinfo *found = NULL;
	int fd = -1, ret = getaddrinfo(a->host[0] ? a->host : NULL, a->port, &want, &found);

	if (ret)
		return err_set(err, EHOSTUNREACH, "cannot find the host of %s: %s", a->text,
			       gai_strerror(ret));
	ret = -EHOSTUNREACH;
	for (const struct addrinfo *i = found; i && fd < 0; i = i->ai_next) {
		fd = socket(i->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		if (fd < 0)
			continue;
		*local = is_loopback(i->ai_addr);
		ret = listens ? listen_on(fd, i) : connect_within(fd, i);
		if (ret) {
			close(fd);
			fd = -1;
		}
	}
	freeaddrinfo(found);
	if (fd < 0)
		return err_set(err, -ret, "cannot %s %s: %s", listens ? "listen at" : "connect to",
			       a->text, strerror(-ret));
	set_options(fd);
	return fd;
}

int cable_connect(const struct cable_address *a, bool *local, struct err *err)
{
	*local = true; /* of ssh, too: it knows who is there */
	if (cable_address_is_ssh(a))
		return cable_ssh(a, err);
	return a->path[0] ? unix_socket(a, false, local, err) : tcp_socket(a, false, local, err);
}

int cable_listen(const struct cable_address *a, bool *local, struct err *err)
{
	*local = true;
	if (cable_address_is_ssh(a))
		return err_set(err, EINVAL, "nobody can listen at %s", a->text);
	return a->path[0] ? unix_socket(a, true, local, err) : tcp_socket(a, true, local, err);
}
