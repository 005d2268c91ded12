/* SPDX-License-Identifier: MIT */
/*
 * collector.c - the way to the collector, and whether there is one.
 *
 *   wake      a futex in the segment
 *   connect   its socket, to ask it something (ask.c); who listens there must be it (trust.c)
 *   gone?     its pid, and where that cannot be seen, its socket.  Once gone it stays gone
 */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include "runtime/core/rt.h"
#include "runtime/sys/signals.h"
#include "runtime/sys/sys.h"
#include "runtime/sys/mini.h"

/* ---- wake ---- */

void rt_collector_wake(void)
{
	/* Release: what it is to look at; partner: the drain's and the growing thread's load. */
	__atomic_fetch_add(&kron_rt.ctl->wake_collector, 1, __ATOMIC_RELEASE);
	if (!kron_rt.quiet)
		sys3(__NR_futex, (long)&kron_rt.ctl->wake_collector, FUTEX_WAKE, INT_MAX);
}

/* ---- connect ---- */

/* To be heard at all: a stranger's backlog holds nobody up. */
#define CONNECT_MS 40
/* For the collector's own backlog, and for each message; when it is at work it says so more often. */
#define PATIENCE_MS 5000

static void set_patience(long sock, long ms)
{
	struct timeval t = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};

	sys5(__NR_setsockopt, sock, SOL_SOCKET, SO_RCVTIMEO, (long)&t, sizeof(t));
	sys5(__NR_setsockopt, sock, SOL_SOCKET, SO_SNDTIMEO, (long)&t, sizeof(t));
}

static long connect_to_name(long sock)
{
	struct sockaddr_un addr;

	addr.sun_family = AF_UNIX;
	addr.sun_path[0] = '\0';
	mini_copy(addr.sun_path + 1, kron_rt_env.name, kron_rt_env.name_len);
	return sys3(__NR_connect, sock, (long)&addr,
		    (long)(offsetof(struct sockaddr_un, sun_path) + 1 + kron_rt_env.name_len));
}

/* peer->pid is 0 where our pid namespace does not see it. */
static bool is_collector(int sock, struct ucred *peer)
{
	uint32_t len = sizeof(*peer);

	return sys5(__NR_getsockopt, sock, SOL_SOCKET, SO_PEERCRED, (long)peer, (long)&len) == 0 &&
	       rt_peer_is_trusted(sock, peer);
}

/* -EAGAIN: there is somebody, who has enough to do. */
static long connect_in_time(long sock)
{
	long ret;
	int ms;

	set_patience(sock, CONNECT_MS);
	ret = connect_to_name(sock);
	for (ms = CONNECT_MS; ret == -EAGAIN && ms < PATIENCE_MS && rt_collector_lives();
	     ms += CONNECT_MS)
		ret = connect_to_name(sock);
	return ret;
}

/* flags: SOCK_NONBLOCK: not for who has no time just now. */
static int connect_as(int flags, struct ucred *peer)
{
	long sock = sys3(__NR_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0);
	long ret;

	if (sock < 0)
		return (int)sock;
	ret = flags & SOCK_NONBLOCK ? connect_to_name(sock) : connect_in_time(sock);
	if (ret == 0 && !is_collector((int)sock, peer))
		ret = -ECONNREFUSED; /* whoever that is, the collector is not there */
	if (ret < 0) {
		sys_close((int)sock);
		return (int)ret;
	}
	set_patience(sock, PATIENCE_MS);
	return (int)sock;
}

int rt_collector_connect(struct ucred *peer)
{
	return connect_as(0, peer);
}

int rt_collector_send(int sock, const void *msg, size_t len)
{
	long ret;

	do {
		ret = sys6(__NR_sendto, sock, (long)msg, (long)len, MSG_NOSIGNAL, 0, 0);
	} while (ret == -EINTR);
	return ret < 0 ? (int)ret : 0;
}

/* ---- gone? ---- */

/* Our parent is in another pid namespace, so the number that we have from it may mean nothing here. */
static bool is_from_elsewhere(void)
{
	return sys0(__NR_getppid) == 0;
}

/*
 * False: nobody listens on its socket, or another one does.  Who has no time may be anybody, and is nobody
 * where the collector's number is known to mean something; whoever has a question for it waits, once.
 */
static bool may_answer(void)
{
	uint64_t mask = rt_signals_block();
	const uint32_t word = KRON_WIRE_MAGIC;
	struct ucred peer;
	int sock = connect_as(SOCK_NONBLOCK, &peer);

	if (sock >= 0) {
		/* so that it sees that it is believed */
		rt_collector_send(sock, &word, sizeof(word));
		sys_close(sock);
	}
	rt_signals_restore(mask);
	return sock >= 0 || (sock == -EAGAIN && is_from_elsewhere());
}

bool rt_collector_is_gone(void)
{
	int32_t pid = kron_rt.collector_pid;

	if (kron_rt.orphan)
		return true;
	/* The first process of a new namespace, before it has claimed a slot: see claim. */
	if (pid > 0 && sys_getpid() == 1) {
		kron_rt.collector_pid = 0;
		pid = 0;
	}
	/* EPERM (we changed user) means that it lives.  In another pid namespace than our parent's
	 * (unshare -fp) its number means nothing, so it has the last word itself. */
	if (pid > 0 && sys2(__NR_kill, pid, 0) == -ESRCH && !may_answer())
		kron_rt.orphan = true;
	return kron_rt.orphan;
}
