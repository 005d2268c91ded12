/* SPDX-License-Identifier: MIT */
/* sockets.c - see sockets.h */
#define _GNU_SOURCE
#include "collect/http/sockets.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BACKLOG 16
#define TRIES 20 /* ports that are free of one address and not of the other */

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

static socklen_t loopback(int which, unsigned port, union address *a)
{
	memset(a, 0, sizeof(*a));
	if (which == SOCKETS_V4) {
		a->v4.sin_family = AF_INET;
		a->v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		a->v4.sin_port = htons((uint16_t)port);
		return sizeof(a->v4);
	}
	a->v6.sin6_family = AF_INET6;
	a->v6.sin6_addr = in6addr_loopback;
	a->v6.sin6_port = htons((uint16_t)port);
	return sizeof(a->v6);
}

/* The descriptor or -errno.  That an ended server's connections linger keeps nobody from its port. */
static int listen_at(int which, unsigned port)
{
	const int one = 1;
	union address a;
	const socklen_t size = loopback(which, port, &a);
	int code, fd = socket(a.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (which == SOCKETS_V6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one));
	if (!bind(fd, &a.any, size) && !listen(fd, BACKLOG))
		return fd;
	code = -errno;
	close(fd);
	return code;
}

static unsigned port_of(int fd)
{
	union address a;
	socklen_t size = sizeof(a);

	if (getsockname(fd, &a.any, &size))
		return 0;
	return ntohs(a.any.sa_family == AF_INET ? a.v4.sin_port : a.v6.sin6_port);
}

static bool has_no_such_address(int code)
{
	return code == -EAFNOSUPPORT || code == -EADDRNOTAVAIL || code == -EPROTONOSUPPORT;
}

static int try_port(struct http_sockets *s, unsigned port)
{
	int code = -EADDRNOTAVAIL;

	s->port = port;
	for (int i = 0; i < SOCKETS_N; i++) {
		s->fd[i] = listen_at(i, s->port);
		if (s->fd[i] >= 0) {
			s->port = port_of(s->fd[i]);
			code = 0;
		} else if (!has_no_such_address(s->fd[i])) {
			code = s->fd[i];
			s->fd[i] = -1;
			http_sockets_close(s);
			return code;
		}
	}
	return code;
}

int http_sockets_open(struct http_sockets *s, unsigned port, struct err *err)
{
	int code;

	for (int i = 0; i < TRIES; i++) {
		*s = (struct http_sockets){.fd = {-1, -1}};
		code = try_port(s, port);
		if (code != -EADDRINUSE || port)
			break;
	}
	if (!code)
		return 0;
	if (code == -EADDRINUSE)
		return err_set(err, EADDRINUSE,
			       "port %u of this machine is in use; 0 takes one that is free", port);
	return err_set(err, -code, "cannot listen on port %u of this machine: %s", port,
		       strerror(-code));
}

void http_sockets_close(struct http_sockets *s)
{
	for (int i = 0; i < SOCKETS_N; i++) {
		if (s->fd[i] >= 0)
			close(s->fd[i]);
		s->fd[i] = -1;
	}
}
