/* SPDX-License-Identifier: MIT */
/* group_socket.c - see group_socket.h. */
#define _GNU_SOURCE
#include "collect/cable/group_socket.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "collect/cable/address.h"

/* ---- one host ---- */

/* Whose it is decides who may speak. */
static int make_directory(const char *dir, struct err *err)
{
	struct stat st;

	if (mkdir(dir, 0700) && errno != EEXIST)
		return err_set(err, errno, "cannot make %s: %s", dir, strerror(errno));
	if (lstat(dir, &st)) /* its last member has just gone */
		return errno == ENOENT
			       ? -ENOENT
			       : err_set(err, errno, "cannot look at %s: %s", dir, strerror(errno));
	if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || st.st_mode & 077)
		return err_set(err, EPERM,
			       "%s is not ours alone: choose another name for the group", dir);
	return 0;
}

int group_socket_unix(struct group_socket *s, const char *name, const unsigned char *id,
		      struct err *err)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	int ret = -ENOENT;

	snprintf(s->dir, sizeof(s->dir), "/dev/shm/kron-group.%u.%.48s", geteuid(), name);
	snprintf(s->path, sizeof(s->path), "%s/%02x%02x%02x%02x", s->dir, id[0], id[1], id[2],
		 id[3]);
	s->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	memcpy(un.sun_path, s->path, sizeof(s->path));
	for (int i = 0; s->fd >= 0 && ret == -ENOENT && i < 100; i++) {
		ret = make_directory(s->dir, err);
		if (!ret && bind(s->fd, (void *)&un, sizeof(un)))
			ret = -errno;
		if (!ret) /* it may have gone in between, and another's come */
			ret = make_directory(s->dir, err);
		if (ret && ret != -ENOENT && ret != -EPERM)
			err_set(err, -ret, "cannot make %s: %s", s->path, strerror(-ret));
	}
	if (ret == -ENOENT)
		err_set(err, ENOENT, "cannot make %s", s->path);
	if (ret)
		s->path[0] = 0; /* nothing of ours is there */
	return ret;
}

/* A socket in the directory: another's that lives, or what a killed one left. */
static void send_path(const struct group_socket *s, const char *name, const void *v, size_t n)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};

	if ((size_t)snprintf(un.sun_path, sizeof(un.sun_path), "%s/%.16s", s->dir, name) >=
		    sizeof(un.sun_path) ||
	    !strcmp(un.sun_path, s->path))
		return;
	if (sendto(s->fd, v, n, MSG_DONTWAIT | MSG_NOSIGNAL, (void *)&un, sizeof(un)) < 0 &&
	    errno == ECONNREFUSED)
		unlink(un.sun_path);
}

static void send_directory(const struct group_socket *s, const void *v, size_t n)
{
	DIR *d = opendir(s->dir);
	const struct dirent *e;

	while (d && (e = readdir(d)))
		if (e->d_name[0] != '.')
			send_path(s, e->d_name, v, n);
	if (d)
		closedir(d);
}

/* ---- more hosts ---- */

static bool is_multicast(const struct sockaddr *a)
{
	const struct sockaddr_in6 *six = (const void *)a;
	const struct sockaddr_in *four = (const void *)a;

	return a->sa_family == AF_INET ? IN_MULTICAST(ntohl(four->sin_addr.s_addr))
				       : IN6_IS_ADDR_MULTICAST(&six->sin6_addr);
}

static int join(int fd, const struct sockaddr *a)
{
	const struct sockaddr_in6 *six = (const void *)a;
	const struct sockaddr_in *four = (const void *)a;
	struct ipv6_mreq m6 = {.ipv6mr_interface = 0};
	struct ip_mreq m4 = {.imr_interface.s_addr = INADDR_ANY};

	if (a->sa_family == AF_INET) {
		m4.imr_multiaddr = four->sin_addr;
		return setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &m4, sizeof(m4));
	}
	m6.ipv6mr_multiaddr = six->sin6_addr;
	return setsockopt(fd, IPPROTO_IPV6, IPV6_JOIN_GROUP, &m6, sizeof(m6));
}

/*
 * The same port at any address of ours; port 0: the kernel chooses.  shared: all who listen to a multicast address get
 * each datagram, and SO_REUSEPORT is for sockets of one user only.  Any other datagram goes to one of those who share
 * a port, and always to the same one, which may be its sender: so then one has the port.
 */
static int bind_port(int family, in_port_t port, bool shared)
{
	struct sockaddr_in6 six = {
		.sin6_family = AF_INET6, .sin6_port = port, .sin6_addr = IN6ADDR_ANY_INIT};
	struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = port};
	int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), on = 1;
	const void *a = family == AF_INET ? (const void *)&four : &six;
	socklen_t size = family == AF_INET ? sizeof(four) : sizeof(six);

	if (fd < 0)
		return -errno;
	if (shared)
		setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on));
	if (!bind(fd, a, size))
		return fd;
	on = -errno;
	close(fd);
	return on;
}

static in_port_t port_of(const struct group_address *a)
{
	const struct sockaddr_in6 *six = (const void *)&a->a;
	const struct sockaddr_in *four = (const void *)&a->a;

	return a->a.ss_family == AF_INET ? four->sin_port : six->sin6_port;
}

static int resolve(struct group_socket *s, const char *text, struct err *err)
{
	const struct addrinfo want = {.ai_socktype = SOCK_DGRAM,
				      .ai_family =
					      s->others.n ? s->others.v[0].a.ss_family : AF_UNSPEC};
	struct addrinfo *found = NULL;
	struct group_address *to;
	struct cable_address a;
	int ret = cable_address_parse(&a, text, true, err);

	if (ret)
		return ret;
	if (!a.host[0] || a.path[0])
		return err_set(err, EINVAL, "--trigger-group: %s is not a HOST[:PORT]", text);
	ret = getaddrinfo(a.host, a.port, &want, &found);
	if (ret)
		return err_set(err, EHOSTUNREACH, "--trigger-group: cannot find %s: %s", text,
			       gai_strerror(ret));
	to = vec_push(&s->others);
	*to = (struct group_address){.size = found->ai_addrlen};
	memcpy(&to->a, found->ai_addr, found->ai_addrlen);
	freeaddrinfo(found);
	if (port_of(to) != port_of(&s->others.v[0]))
		return err_set(err, EINVAL,
			       "--trigger-group: all of a group have one port, and %s has another",
			       text);
	return 0;
}

static int resolve_all(struct group_socket *s, const char *hosts, struct err *err)
{
	char text[300];
	int ret = 0;

	while (*hosts && !ret) {
		size_t n = strcspn(hosts, ",");

		snprintf(text, sizeof(text), "%.*s", n < sizeof(text) ? (int)n : 0, hosts);
		ret = resolve(s, text, err);
		hosts += n + (hosts[n] == ',');
	}
	return ret;
}

/* -EADDRINUSE: another has the port. */
static int bind_found(struct group_socket *s)
{
	bool shared = false;
	int ret = 0;

	vec_for(&s->others, o)
		shared |= is_multicast((void *)&o->a);
	s->found = bind_port(s->others.v[0].a.ss_family, port_of(&s->others.v[0]), shared);
	if (s->found < 0) {
		ret = s->found;
		s->found = -1;
		return shared && ret == -EADDRINUSE ? -EBUSY : ret;
	}
	vec_for(&s->others, o)
		if (!ret && is_multicast((void *)&o->a) && join(s->found, (void *)&o->a))
			ret = -errno;
	return ret;
}

void group_socket_take_port(struct group_socket *s)
{
	if (s->others.n && s->found < 0)
		bind_found(s);
}

int group_socket_udp(struct group_socket *s, const char *hosts, struct err *err)
{
	int ret = resolve_all(s, hosts, err);

	if (ret)
		return ret;
	s->fd = bind_port(s->others.v[0].a.ss_family, 0, false);
	ret = s->fd < 0 ? s->fd : bind_found(s);
	if (ret == -EADDRINUSE) /* another member on this host, who tells us */
		ret = 0;
	return ret ? err_set(err, -ret, "--trigger-group: cannot listen at port %u: %s",
			     ntohs(port_of(&s->others.v[0])), strerror(-ret))
		   : 0;
}

/* ---- both ---- */

void group_socket_close(struct group_socket *s)
{
	if (s->fd >= 0)
		close(s->fd);
	if (s->found >= 0)
		close(s->found);
	vec_free(&s->others);
	if (s->path[0]) {
		unlink(s->path);
		rmdir(s->dir); /* the last one does */
	}
	*s = GROUP_SOCKET_NONE;
}

void group_send(const struct group_socket *s, const struct group_address *to, const void *v,
		size_t n)
{
	if (sendto(s->fd, v, n, MSG_DONTWAIT | MSG_NOSIGNAL, (const void *)&to->a, to->size) < 0)
		return; /* it is said again */
}

void group_send_all(const struct group_socket *s, const void *v, size_t n)
{
	if (s->path[0])
		send_directory(s, v, n);
	for (size_t i = 0; i < s->others.n; i++)
		group_send(s, &s->others.v[i], v, n);
}

void group_wait(const struct group_socket *s, int wake, int ms)
{
	struct pollfd p[] = {{.fd = s->fd, .events = POLLIN},
			     {.fd = s->found, .events = POLLIN},
			     {.fd = wake, .events = POLLIN}};
	uint64_t n;

	poll(p, 3, ms);
	if (p[2].revents & POLLIN && read(wake, &n, sizeof(n)) != sizeof(n))
		return;
}

static bool receive(int fd, struct group_address *from, void *v, size_t n)
{
	ssize_t got;

	*from = (struct group_address){.size = sizeof(from->a)};
	do
		got = recvfrom(fd, v, n, MSG_DONTWAIT | MSG_TRUNC, (void *)&from->a, &from->size);
	while (got < 0 && errno == EINTR);
	from->is_whole = got == (ssize_t)n && from->size > sizeof(sa_family_t);
	return got >= 0;
}

bool group_receive(const struct group_socket *s, struct group_address *from, void *v, size_t n)
{
	return receive(s->fd, from, v, n) || (s->found >= 0 && receive(s->found, from, v, n));
}
