/* SPDX-License-Identifier: MIT */
/* socket.c - see socket.h */
#include "runtime/memory/socket.h"

#include <asm/socket.h>
#include <linux/in.h>
#include <linux/in6.h>

#include "runtime/core/rt.h"
#include "runtime/sys/sys.h"
#include "runtime/sys/mini.h"

#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71
#endif

enum { TOLD = 256, INET = 2, INET6 = 10 };

struct name {
	union {
		uint16_t family;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	};
};

/* 0, or less than that: the kernel's error. */
static long get_option(int fd, int option, void *to, unsigned size)
{
	unsigned length = size;

	return sys5(__NR_getsockopt, fd, SOL_SOCKET, option, (long)to, (long)&length);
}

/* False: the kernel does not say.  0: it is no socket. */
static bool ask_number(int fd, uint64_t *number)
{
	long code;

	*number = 0;
	code = get_option(fd, SO_COOKIE, number, sizeof(*number));
	return !code || code == -ENOTSOCK || code == -EBADF;
}

static bool get_name(long call, int fd, uint8_t address[16], uint16_t *port)
{
	struct name name = {.family = 0};
	unsigned length = sizeof(name);

	if (sys3(call, fd, (long)&name, (long)&length))
		return false;
	if (name.family == INET) {
		mini_zero(address, 10);
		address[10] = address[11] = 0xff;
		mini_copy(address + 12, &name.v4.sin_addr, 4);
		*port = name.v4.sin_port;
	} else if (name.family == INET6) {
		mini_copy(address, &name.v6.sin6_addr, 16);
		*port = name.v6.sin6_port;
	}
	return name.family == INET || name.family == INET6;
}

static bool ask_endpoints(int fd, struct kron_endpoints *out)
{
	int protocol = 0;
	bool has_names;

	(void)get_option(fd, SO_PROTOCOL, &protocol, sizeof(protocol));
	(void)get_option(fd, SO_NETNS_COOKIE, out->network, sizeof(out->network));
	has_names = get_name(__NR_getsockname, fd, out->local, &out->local_port) &&
		    get_name(__NR_getpeername, fd, out->peer, &out->peer_port);
	out->protocol = (uint32_t)protocol;
	return has_names || protocol != IPPROTO_TCP;
}

bool rt_socket_number(int fd, uint64_t *out)
{
	bool is_asked = false;

	rt_busy_begin();
	if (!kron_rt.quiet)
		is_asked = ask_number(fd, out);
	rt_busy_end();
	return is_asked;
}

/* Threads that race for a place tell something twice. */
bool rt_socket_endpoints(int fd, struct kron_endpoints *out)
{
	static uint64_t told[TOLD];
	uint64_t number = 0;
	bool is_new = false;

	mini_zero(out, sizeof(*out));
	rt_busy_begin();
	if (!kron_rt.quiet)
		(void)ask_number(fd, &number);
	if (number && __atomic_load_n(&told[number % TOLD], __ATOMIC_RELAXED) != number) {
		is_new = ask_endpoints(fd, out);
		mini_copy(out->socket, &number, sizeof(number));
		if (is_new)
			__atomic_store_n(&told[number % TOLD], number, __ATOMIC_RELAXED);
	}
	rt_busy_end();
	return is_new;
}
