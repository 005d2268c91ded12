/* SPDX-License-Identifier: MIT */
/* serve_live.c - see serve_live.h. */
#define _GNU_SOURCE
#include "collect/attach/serve_live.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "collect/attach/serve_impl.h"
#include "collect/kernel/pidns.h"
#include "collect/kernel/process_maps.h"
#include "collect/kernel/sockets.h"
#include "collect/pages/pages.h"

struct live_answer {
	struct connection c; /* in no list: nobody waits for it */
	struct answer a;
};

int serve_live_prepare(struct live_answer **out, struct server *s, pid_t pid,
		       const struct kron_hello *hello, struct err *err)
{
	struct live_answer *l = xcalloc(1, sizeof(*l));
	struct connection *c = &l->c;
	pid_t inner = pidns_inner_of(pid);
	int code;

	c->server = s;
	c->answerer = s->answerer;
	c->fd = -1;
	c->hello = *hello;
	c->peer = (struct peer){.pid = pid,
				.its_pid = inner ? inner : pid,
				.pidfd = (int)syscall(SYS_pidfd_open, pid, 0)};
	process_uid(pid, &c->peer.uid);
	server_tell_watcher(s, pid, false);
	c->ticket = tasks_announce(s->tasks, pid, c->peer.its_pid);
	code = serve_make_answer(c, &l->a, err);
	/* before it runs, as in serve_answer() */
	if (!code && s->pages)
		pages_note_maps(s->pages, pid, 0, c->ticket);
	vec_for(&l->a.notes, n)
		server_note_untraced(s, pid, n->module, n->err.msg);
	if (!code && l->a.fd < 0)
		code = err_set(err, ENOENT, "nothing in process %d can be traced", pid);
	if (code)
		serve_live_free(l);
	else
		*out = l;
	return code;
}

int serve_live_file(const struct live_answer *l, uint64_t *number)
{
	*number = l->a.number;
	return l->a.fd;
}

uint64_t serve_live_probes(const struct live_answer *l)
{
	return l->a.probes;
}

bool serve_live_go(const struct live_answer *l, uint64_t *lo, uint64_t *hi)
{
	return answer_find_preempt(&l->a, lo, hi);
}

bool serve_live_is_current(const struct live_answer *l)
{
	return answer_is_current(&l->a);
}

int serve_live_reply(struct live_answer *l, int fd)
{
	l->c.fd = fd;
	socket_limit(fd, SERVE_STOPPED_S, SERVE_STOPPED_S);
	return serve_reply(&l->c, &l->a);
}

int serve_live_settle(struct live_answer *l, struct err *err)
{
	struct kron_result r;

	if (!serve_take_result(&l->c, &l->a, &r))
		return err_set(err, EPROTO, "the runtime in process %d does not answer",
			       l->c.peer.pid);
	if (r.code != KRON_RESULT_OK)
		return err_set(err, EIO, "process %d cannot be traced: the notes say why",
			       l->c.peer.pid);
	if (r.flags & KRON_RESULT_AGAIN)
		return err_set(
			err, EAGAIN,
			"process %d maps memory so fast that no room stays free beside its code",
			l->c.peer.pid);
	if (!r.groups_applied)
		return err_set(err, EIO, "nothing in process %d could be traced", l->c.peer.pid);
	return 0;
}

void serve_live_free(struct live_answer *l)
{
	if (!l)
		return;
	server_tell_watcher(l->c.server, l->c.peer.pid, true);
	peer_close(&l->c.peer);
	answer_free(&l->a);
	xfree(l);
}
