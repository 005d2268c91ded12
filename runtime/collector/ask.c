/* SPDX-License-Identifier: MIT */
/*
 * ask.c - asks the collector one question over a connection of its own.
 *
 * Every descriptor is close-on-exec from birth and closed when the question is settled.
 * Signals are blocked by the caller, so that no handler can leave in the middle and no fork
 * in a handler inherits a descriptor.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/socket.h>
#include "runtime/core/rt.h"
#include "runtime/core/thread.h"
#include "runtime/sys/sys.h"
#include "runtime/sys/mini.h"

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

static void answer_clear(struct rt_answer *a)
{
	for (int i = 0; i < RT_ANSWER_FDS; i++)
		a->fd[i] = -1;
	a->goroutines = NULL;
	a->ngoroutines = 0;
}

int rt_ask_take(struct rt_answer *a, int sock)
{
	a->sock = sock;
	answer_clear(a);
	return ask_receive(a);
}

int rt_ask(struct rt_answer *a, const struct rt_question *q)
{
	struct kron_hello hello;
	struct ucred peer;
	int ret;

	answer_clear(a);
	a->sock = rt_collector_connect(&peer);
	if (a->sock < 0)
		return a->sock;
	kron_rt.collector_pid = peer.pid;

	mini_zero(&hello, sizeof(hello));
	hello.magic = KRON_WIRE_MAGIC;
	hello.version = KRON_WIRE_VERSION;
	hello.kind = q->kind;
	hello.flags = rt_hello_flags();
	mini_copy(hello.session, kron_rt_env.session, sizeof(hello.session));
	if (q->kind != KRON_HELLO_START) {
		hello.proc_uid = kron_rt.proc->uid;
		hello.proc_slot = kron_rt.proc->slot;
	}
	rt_thread_thunks(&hello);
	hello.thunk[KRON_THUNK_EXACT] = (uint64_t)kron_rt_probe_exact;
	hello.payload_thunk[KRON_THUNK_EXACT] = (uint64_t)kron_rt_payload_exact;
	hello.hook_thunk = (uint64_t)kron_rt_hook_thunk;
	hello.resource_thunk = (uint64_t)kron_rt_payload_counters;
	hello.wide_thunk = (uint64_t)kron_rt_wide;
	hello.action_thunk = (uint64_t)kron_rt_action_thunk;
	hello.memory_thunk = (uint64_t)kron_rt_memory;
	hello.live_entry = rt_live_entry();
	hello.again = q->again;
	hello.more = q->more;
	hello.range = q->range;
	hello.range_len = q->range_len;

	ret = rt_collector_send(a->sock, &hello, sizeof(hello));
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
	rt_collector_send(a->sock, result, sizeof(*result));
}

void rt_ask_end(struct rt_answer *a, const struct kron_result *result)
{
	if (result)
		rt_tell(a, result);
	fds_close(a->fd);
	sys_close(a->sock);
}
