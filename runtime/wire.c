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
#include "runtime/rt.h"
#include "runtime/sys.h"
#include "runtime/mini.h"

#define PATIENCE_SECONDS 5 /* for each message; a collector at work says so more often */

static int ask_connect(void)
{
	struct sockaddr_un addr;
	struct timeval patience = {.tv_sec = PATIENCE_SECONDS, .tv_usec = 0};
	long sock = sys3(__NR_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	long ret;

	if (sock < 0)
		return (int)sock;
	sys5(__NR_setsockopt, sock, SOL_SOCKET, SO_RCVTIMEO, (long)&patience, sizeof(patience));
	sys5(__NR_setsockopt, sock, SOL_SOCKET, SO_SNDTIMEO, (long)&patience, sizeof(patience));
	addr.sun_family = AF_UNIX;
	addr.sun_path[0] = '\0';
	mini_copy(addr.sun_path + 1, kron_rt_env.name, kron_rt_env.name_len);
	ret = sys3(__NR_connect, sock, (long)&addr,
		   (long)(offsetof(struct sockaddr_un, sun_path) + 1 + kron_rt_env.name_len));
	if (ret < 0) {
		sys_close((int)sock);
		return (int)ret;
	}
	return (int)sock;
}

/* As our pid namespace sees it; 0 when it does not. */
static void note_collector_pid(int sock)
{
	struct ucred cred;
	uint32_t len = sizeof(cred);

	if (sys5(__NR_getsockopt, sock, SOL_SOCKET, SO_PEERCRED, (long)&cred, (long)&len) == 0)
		kron_rt.collector_pid = cred.pid;
}

bool rt_collector_answers(void)
{
	uint64_t mask = rt_signals_block();
	int sock = ask_connect();

	if (sock >= 0)
		sys_close(sock);
	rt_signals_restore(mask);
	return sock >= 0;
}

static int ask_send(int sock, const void *msg, size_t len)
{
	long ret;

	do {
		ret = sys6(__NR_sendto, sock, (long)msg, (long)len, MSG_NOSIGNAL, 0, 0);
	} while (ret == -EINTR);
	return ret < 0 ? (int)ret : 0;
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
	int ret, i;

	for (i = 0; i < RT_ANSWER_FDS; i++)
		a->fd[i] = -1;
	a->sock = ask_connect();
	if (a->sock < 0)
		return a->sock;
	note_collector_pid(a->sock);

	mini_zero(&hello, sizeof(hello));
	hello.magic = KRON_WIRE_MAGIC;
	hello.version = KRON_WIRE_VERSION;
	hello.kind = q->kind;
	hello.pid = sys_getpid();
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
