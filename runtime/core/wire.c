/* SPDX-License-Identifier: MIT */
/*
 * wire.c - asks the collector one question over a connection of its own.
 *
 * Every descriptor is close-on-exec from birth and closed when the question is settled.
 * Signals are blocked by the caller, so that no handler can leave in the middle and no fork
 * in a handler inherits a descriptor.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include "runtime/core/rt.h"
#include "runtime/sys/sys.h"
#include "runtime/sys/mini.h"

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

/* A connection to the collector and to nobody else. */
static int ask_connect(struct ucred *peer)
{
	long sock = sys3(__NR_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	long ret;
	int ms;

	if (sock < 0)
		return (int)sock;
	set_patience(sock, CONNECT_MS);
	ret = connect_to_name(sock);
	/* -EAGAIN: there is somebody, who has enough to do. */
	for (ms = CONNECT_MS; ret == -EAGAIN && ms < PATIENCE_MS && rt_collector_lives();
	     ms += CONNECT_MS)
		ret = connect_to_name(sock);
	if (ret == 0 && !is_collector((int)sock, peer))
		ret = -ECONNREFUSED; /* whoever that is, the collector is not there */
	if (ret < 0) {
		sys_close((int)sock);
		return (int)ret;
	}
	set_patience(sock, PATIENCE_MS);
	return (int)sock;
}

static int ask_send(int sock, const void *msg, size_t len)
{
	long ret;

	do {
		ret = sys6(__NR_sendto, sock, (long)msg, (long)len, MSG_NOSIGNAL, 0, 0);
	} while (ret == -EINTR);
	return ret < 0 ? (int)ret : 0;
}

bool rt_collector_may_answer(void)
{
	uint64_t mask = rt_signals_block();
	const uint32_t word = KRON_WIRE_MAGIC;
	struct ucred peer;
	int sock = ask_connect(&peer);

	if (sock >= 0) {
		ask_send(sock, &word, sizeof(word)); /* so that it sees that it is believed */
		sys_close(sock);
	}
	rt_signals_restore(mask);
	return sock >= 0 || sock == -EAGAIN;
}

static void fds_close(int fd[RT_ANSWER_FDS])
{
	int i;

	for (i = 0; i < RT_ANSWER_FDS; i++) {
		if (fd[i] >= 0)
			sys_close(fd[i]);
		fd[i] = -1;
	}
}

/* The descriptors of one message into fd[]; more than that are none of ours. */
static void fds_take(struct msghdr *msg, int fd[RT_ANSWER_FDS])
{
	struct cmsghdr *c = CMSG_FIRSTHDR(msg);
	const int *got;
	size_t n, i;

	if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
		return;
	got = (const int *)CMSG_DATA(c);
	n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	for (i = 0; i < n; i++) {
		if (i < RT_ANSWER_FDS && fd[i] < 0)
			fd[i] = got[i];
		else
			sys_close(got[i]);
	}
}

static int ask_receive(struct rt_answer *a)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(RT_ANSWER_FDS * sizeof(int))];
	} control;
	struct iovec iov = {.iov_base = &a->reply, .iov_len = sizeof(a->reply)};
	struct msghdr msg;
	long ret;

	mini_zero(&msg, sizeof(msg));
	msg.msg_iov = &iov;
	msg.msg_iovlen = 1;
	msg.msg_control = &control;
	msg.msg_controllen = sizeof(control);
	do {
		ret = sys3(__NR_recvmsg, a->sock, (long)&msg, MSG_CMSG_CLOEXEC);
	} while (ret == -EINTR);
	if (ret < 0)
		return (int)ret;
	fds_take(&msg, a->fd);
	if (ret != (long)sizeof(a->reply) || a->reply.magic != KRON_WIRE_MAGIC)
		return -EPROTO; /* also when it hung up: ret is 0 */
	return 0;
}

int rt_ask(struct rt_answer *a, const struct rt_question *q)
{
	struct kron_hello hello;
	struct ucred peer;
	int ret, i;

	for (i = 0; i < RT_ANSWER_FDS; i++)
		a->fd[i] = -1;
	a->sock = ask_connect(&peer);
	if (a->sock < 0)
		return a->sock;
	kron_rt.collector_pid = peer.pid;

	mini_zero(&hello, sizeof(hello));
	hello.magic = KRON_WIRE_MAGIC;
	hello.version = KRON_WIRE_VERSION;
	hello.kind = q->kind;
	mini_copy(hello.session, kron_rt_env.session, sizeof(hello.session));
	if (q->kind != KRON_HELLO_START) {
		hello.proc_uid = kron_rt.proc->uid;
		hello.proc_slot = kron_rt.proc->slot;
	}
	hello.thunk[KRON_THUNK_LANE] = (uint64_t)kron_rt_probe;
	hello.thunk[KRON_THUNK_EXACT] = (uint64_t)kron_rt_probe_exact;
	hello.payload_thunk[KRON_THUNK_LANE] = (uint64_t)kron_rt_payload;
	hello.payload_thunk[KRON_THUNK_EXACT] = (uint64_t)kron_rt_payload_exact;
	hello.hook_thunk = (uint64_t)kron_rt_hook_thunk;
	hello.resource_thunk = (uint64_t)kron_rt_payload_counters;
	hello.action_thunk = (uint64_t)kron_rt_action_thunk;
	hello.thunk[KRON_THUNK_LANE_CONSTANT] = (uint64_t)kron_rt_probe_constant;
	hello.payload_thunk[KRON_THUNK_LANE_CONSTANT] = (uint64_t)kron_rt_payload_constant;
#ifndef RT_STATIC /* where the collector must do without */
	hello.thunk[KRON_THUNK_DEVICE] = (uint64_t)kron_rt_probe_device;
	hello.payload_thunk[KRON_THUNK_DEVICE] = (uint64_t)kron_rt_probe_device;
#endif
	hello.counts = rt_counts_offset();
	hello.again = q->again;
	hello.range = q->range;
	hello.range_len = q->range_len;

	ret = ask_send(a->sock, &hello, sizeof(hello));
	while (ret == 0) {
		ret = ask_receive(a);
		if (ret == 0 && a->reply.kind == KRON_MSG_REPLY)
			return 0;
		if (ret == 0 && a->reply.kind != KRON_MSG_WORKING)
			ret = -EPROTO;
	}
	rt_ask_end(a, NULL);
	return ret;
}

void rt_tell(const struct rt_answer *a, const struct kron_result *result)
{
	ask_send(a->sock, result, sizeof(*result));
}

void rt_ask_end(struct rt_answer *a, const struct kron_result *result)
{
	if (result)
		rt_tell(a, result);
	fds_close(a->fd);
	sys_close(a->sock);
}
