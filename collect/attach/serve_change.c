/* SPDX-License-Identifier: MIT */
/* serve_change.c - see serve_change.h. */
#define _GNU_SOURCE
#include "collect/attach/serve_change.h"

#include <errno.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "collect/attach/serve_impl.h"
#include "collect/counts.h"
#include "collect/kernel/sockets.h"

int serve_change_make(struct answer *out, struct server *s, struct answerer *of, pid_t pid,
		      const struct question *as, uint32_t again, struct err *err)
{
	static const uint32_t nobody[] = {0};
	struct question q = *as;
	int code;

	q.pid = pid;
	q.pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	q.kind = KRON_HELLO_MODULES;
	q.changes = true;
	q.again = again;
	q.lineage = nobody;
	code = answer_make(of, &q, out, err);
	if (q.pidfd >= 0)
		close(q.pidfd);
	if (!code && out->counts && !kron_thunk_is_lane(s->thunk))
		code = err_set(
			err, ENOTSUP,
			"what counts on a board has its counter set up at the start: it cannot "
			"be added");
	else if (!code && out->counts)
		counts_make_room(s->seg);
	if (!code && out->calls_end)
		code = calls_make_room(s->seg, out->calls_end, err);
	if (code)
		answer_free(out);
	return code;
}

int serve_change_reply(const struct answer *a, int sock, struct err *err)
{
	const struct kron_reply reply = {.magic = KRON_WIRE_MAGIC,
					 .version = KRON_WIRE_VERSION,
					 .kind = KRON_MSG_REPLY,
					 .ncommands = a->ncommands,
					 .commands_size = a->size,
					 .flags = KRON_REPLY_CHANGE};

	if (!answer_is_current(a))
		return err_set(err, EAGAIN, "process %d has loaded or unloaded libraries", a->pid);
	socket_limit(sock, SERVE_STOPPED_S, SERVE_STOPPED_S);
	return socket_send(sock, &reply, sizeof(reply), &a->fd, 1)
		       ? err_set(err, EPIPE, "no answer reaches the process")
		       : 0;
}

static void explain(const struct answer *a, const struct kron_result *r, struct err *err)
{
	const struct module *m = r->group < a->groups.n ? a->groups.v[r->group].module : NULL;
	char why[200];

	serve_explain_result(r->code, r->detail, why, sizeof(why));
	err_set(err, EBUSY, "%s%s%s", m ? m->path : "", m ? ": " : "", why);
}

int serve_change_settle(const struct answer *a, int sock, uint32_t *applied, struct err *err)
{
	struct kron_result r;
	bool refused = false, meets_goroutine = false;

	for (uint32_t n = 0; n <= a->ncommands; n++) {
		if (serve_receive(sock, &r, sizeof(r)) || r.magic != KRON_WIRE_MAGIC)
			break;
		if (r.kind == KRON_RESULT_GROUP && !refused) {
			explain(a, &r, err);
			refused = true;
			meets_goroutine = r.code == KRON_RESULT_BUSY;
		}
		if (r.kind != KRON_RESULT_END)
			continue;
		*applied = r.groups_applied;
		if (r.code == KRON_RESULT_BUSY || r.flags & KRON_RESULT_AGAIN)
			return meets_goroutine ? -EAGAIN
					       : err_set(err, EAGAIN,
							 "process %d maps memory all the time: try "
							 "again",
							 a->pid);
		if (r.code != KRON_RESULT_OK)
			explain(a, &r, err);
		return refused || r.code != KRON_RESULT_OK ? -EBUSY : 0;
	}
	return err_set(err, EPROTO, "the runtime in the process does not answer");
}
