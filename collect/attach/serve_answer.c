/* SPDX-License-Identifier: MIT */
/*
 * serve_answer.c - one question of a process that may ask: what it gets, and what it made of it.
 *
 *   HELLO ─► plan ─► is the process still the one that asked? ─► REPLY ─► RESULT
 *
 * Whatever ends this before the RESULT leaves a note: no program goes untraced without a word.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/log.h"
#include "collect/counts.h"
#include "collect/pages/pages.h"
#include "collect/attach/serve_impl.h"
#include "collect/kernel/sockets.h"

#define LINEAGE_MAX 63
#define SEND_TIMEOUT_S 5
#define RESULT_TIMEOUT_S 60

/* ---- messages ---- */

int serve_receive(int fd, void *buf, size_t size)
{
	ssize_t n;

	do
		n = recv(fd, buf, size, MSG_TRUNC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	return n == (ssize_t)size ? 0 : -EPROTO;
}

static void set_working(struct connection *c, bool working)
{
	pthread_mutex_lock(&c->server->lock);
	c->working = working;
	pthread_mutex_unlock(&c->server->lock);
}

static bool is_about_modules(const struct connection *c)
{
	return c->hello.kind == KRON_HELLO_START || c->hello.kind == KRON_HELLO_MODULES;
}

/* What was added that the process is to ask for next; 0: nothing. */
static uint32_t next_added(struct connection *c)
{
	const struct added_probes *added = server_added(c->server);

	return added && is_about_modules(c) ? added->next(added->ctx, c->hello.more) : 0;
}

static int send_answer(struct connection *c, const struct answer *a)
{
	struct server *s = c->server;
	struct kron_reply reply = {
		.magic = KRON_WIRE_MAGIC,
		.version = KRON_WIRE_VERSION,
		.kind = KRON_MSG_REPLY,
		.ncommands = a->ncommands,
		.commands_size = a->size,
	};
	int fds[3];
	size_t n = 0;

	reply.more = (uint16_t)next_added(c);
	reply.flags = c->hello.more ? KRON_REPLY_CHANGE : 0;
	if (c->hello.kind == KRON_HELLO_START) {
		reply.segment_size = s->seg->size;
		reply.bus = s->seg->bus;
		reply.when_full = s->seg->when_full;
		reply.clock_every = s->seg->clock_every;
		reply.ticket = c->ticket;
		reply.flags = s->no_children ? KRON_REPLY_NO_CHILDREN : 0;
		reply.flags |= s->seg->own ? 0 : KRON_REPLY_CUTTABLE;
		fds[n++] = s->seg->fd;
		if (s->hardware_fd >= 0) {
			reply.flags |= KRON_REPLY_HARDWARE;
			fds[n++] = s->hardware_fd;
		}
		reply.flags |= a->small_stacks ? KRON_REPLY_SMALL_STACKS : 0;
	}
	if (a->fd >= 0)
		fds[n++] = a->fd;
	return socket_send(c->fd, &reply, sizeof(reply), fds, n);
}

int serve_reply(struct connection *c, const struct answer *a)
{
	pthread_mutex_lock(&c->server->lock);
	c->replied = true; /* and takes no more of what others wait for */
	turns_start(c->server);
	pthread_mutex_unlock(&c->server->lock);
	return send_answer(c, a);
}

/* ---- what became of it ---- */

void serve_explain_result(uint32_t problem, uint64_t detail, char *text, size_t size)
{
	int code = detail < 4096 ? (int)detail : 0;

	switch (problem) {
	case KRON_RESULT_WINDOW_TAKEN:
		snprintf(text, size, "the board's addresses are taken in it: %s", strerror(code));
		break;
	case KRON_RESULT_MAP_FAILED:
		snprintf(text, size, "trampolines could not be mapped: %s", strerror(code));
		break;
	case KRON_RESULT_OLD_BYTES:
		snprintf(text, size,
			 "code in memory is not what the file says (offset 0x%" PRIx64 ")", detail);
		break;
	case KRON_RESULT_PROTECT_FAILED:
		snprintf(text, size, "its code may not be changed: %s", strerror(code));
		break;
	case KRON_RESULT_NO_SLOT:
		snprintf(text, size, "the process table of the board is full");
		break;
	case KRON_RESULT_VERSION:
		snprintf(text, size, "libkron-rt.so is of another version than kron");
		break;
	case KRON_RESULT_NO_RSEQ:
		snprintf(
			text, size,
			"--bus device needs the rseq areas that glibc 2.35 and later register, and "
			"it has none");
		break;
	case KRON_RESULT_SHARED:
		snprintf(text, size, "there is a probe already (at 0x%" PRIx64 ")", detail);
		break;
	case KRON_RESULT_BUSY:
		snprintf(
			text, size,
			"a goroutine is always in the middle of what kron has to change: try again");
		break;
	case KRON_RESULT_BOARD:
		snprintf(text, size, "the board in shared memory is damaged");
		break;
	default:
		snprintf(text, size, "the runtime reports problem %u", problem);
	}
}

/* Groups that were refused, a message each, up to the end.  False: the process has ended, been
 * killed, or says what makes no sense. */
static bool receive_results(struct connection *c, struct answer *a, struct kron_result *r)
{
	for (uint32_t n = 0; n <= a->ncommands; n++) {
		if (serve_receive(c->fd, r, sizeof(*r)) || r->magic != KRON_WIRE_MAGIC)
			return false;
		if (r->kind == KRON_RESULT_END)
			return true;
		if (!answer_take_result(a, r))
			return false;
	}
	return false;
}

static void note_groups(struct connection *c, pid_t pid, const struct answer *a, bool asks_again)
{
	char why[200], text[sizeof(struct err)];

	for (size_t i = 0; i < a->groups.n; i++) {
		const struct answer_group *g = &a->groups.v[i];

		if (!g->module || g->code == KRON_RESULT_OK ||
		    (asks_again && answer_group_is_displaced(g)))
			continue;
		serve_explain_result(g->code, g->detail, why, sizeof(why));
		snprintf(text, sizeof(text), "%s: %s%s", g->module->path, why,
			 g->code == KRON_RESULT_OLD_BYTES && c->debugged
				 ? ": a debugger may have a breakpoint there"
				 : "");
		server_note_untraced(c->server, pid, g->module->path, text);
	}
}

/* What a process refuses is refused by its children, too: so nobody speaks for another. */
static bool is_process(const struct connection *c, uint32_t uid, uint32_t slot)
{
	const struct peer *p = &c->peer;

	return tasks_is_process(c->server->tasks, uid, slot, p->pid, p->its_pid);
}

bool serve_take_result(struct connection *c, struct answer *a, struct kron_result *out)
{
	const struct kron_hello *hello = &c->hello;
	struct server *s = c->server;
	pid_t pid = c->peer.pid;
	struct kron_result r;
	bool asks_again;
	char text[200];
	uint32_t uid;

	if (!receive_results(c, a, &r)) {
		if (hello->kind == KRON_HELLO_START)
			server_note_untraced(s, pid, NULL,
					     "it did not say what it made of its plan: it "
					     "was killed, perhaps");
		return false;
	}
	*out = r;
	log_debug("collect", "pid %d: %u modules patched, %u refused%s", pid, r.groups_applied,
		  r.groups_refused, r.flags & KRON_RESULT_AGAIN ? ", asks again" : "");
	asks_again = r.flags & KRON_RESULT_AGAIN;
	if (r.code != KRON_RESULT_OK) {
		serve_explain_result(r.code, r.detail, text, sizeof(text));
		server_note_untraced(s, pid, NULL, text);
	}
	note_groups(c, pid, a, asks_again);
	uid = hello->proc_uid;
	if (hello->kind == KRON_HELLO_START)
		uid = is_process(c, r.proc_uid, r.proc_slot) ? r.proc_uid : 0;
	answer_settle(c->answerer, a, uid, &r);
	if (hello->kind == KRON_HELLO_START)
		answer_known(s->answerer, pid, uid);
	if (hello->kind == KRON_HELLO_START && r.groups_applied) {
		pthread_mutex_lock(&s->lock);
		s->starts++;
		pthread_mutex_unlock(&s->lock);
	}
	return true;
}

/* ---- its turn ---- */

/* Is its RESULT there, and nobody has read it yet? */
static bool has_result(const struct connection *c)
{
	struct pollfd p = {.fd = c->fd, .events = POLLIN};

	return c->replied && poll(&p, 1, 0) > 0;
}

/* Our own user's processes wait for no stranger, who is none of their parents. */
static bool may_hold_up(const struct connection *older, const struct connection *c)
{
	return older->peer.uid == c->peer.uid || c->peer.uid != c->server->uid;
}

static bool is_unsettled(const struct connection *c)
{
	const struct connection *older;

	TAILQ_FOREACH(older, &c->server->list[CONNECTION_ASKS], link)
	if (older->number < c->number && may_hold_up(older, c) && has_result(older))
		return true;
	return false;
}

/*
 * What a process refused is not offered to it again, nor to its children, and what is new in a child
 * depends on what its parent was told.  So every RESULT that was sent before this question has to be
 * taken first: they are there already, and other threads read them.  (Its own questions come one
 * after the other: serve_turns.c.)
 */
static void wait_for_turn(struct connection *c)
{
	struct server *s = c->server;

	pthread_mutex_lock(&s->lock);
	while (!s->stopping && is_unsettled(c))
		pthread_cond_wait(&s->idle, &s->lock);
	pthread_mutex_unlock(&s->lock);
}

/* Nobody is there any more who could use an answer. */
static bool has_hung_up(const struct connection *c)
{
	struct pollfd p = {.fd = c->fd};

	return poll(&p, 1, 0) > 0 && p.revents & (POLLHUP | POLLERR);
}

/* ---- the question ---- */

/* Breakpoints and probes do not go together everywhere: who uses both should know. */
static void note_debugger(struct connection *c, pid_t pid, bool starts)
{
	struct server *s = c->server;
	pid_t tracer = process_tracer(pid);
	char *name;

	c->debugged = tracer;
	if (!tracer || !starts)
		return;
	name = process_thread_name(tracer, 0);
	pthread_mutex_lock(&s->lock);
	if (!s->debugged)
		s->debugged = xasprintf("process %d runs under %s (pid %d)", pid,
					name ? name : "a debugger", tracer);
	pthread_mutex_unlock(&s->lock);
	xfree(name);
}

int serve_make_answer(struct connection *c, struct answer *a, struct err *err)
{
	struct server *s = c->server;
	const struct kron_hello *h = &c->hello;
	struct question q = {
		.pid = c->peer.pid,
		.pidfd = c->peer.pidfd,
		.thunk = h->thunk[s->thunk],
		.hook_thunk = h->hook_thunk,
		.payload_thunk = h->payload_thunk[s->thunk],
		.resource_thunk = h->resource_thunk,
		.wide_thunk = kron_thunk_has_parts(s->thunk) ? h->wide_thunk : 0,
		.action_thunk = h->action_thunk,
		.memory_thunk = h->memory_thunk,
		.timed_thunk = s->thunk == KRON_THUNK_LANE_SPARSE ? h->timed_thunk : 0,
		.way = s->thunk,
		.counts = (int32_t)h->counts,
		.again = h->again,
		.kind = h->kind,
		.live = h->flags & KRON_HELLO_LIVE,
		.changes = h->more,
		.waits = h->more,
		.entry = h->live_entry,
		.range = h->range,
		.range_len = h->range_len,
	};
	uint32_t lineage[LINEAGE_MAX + 1];
	int code;

	if (h->kind != KRON_HELLO_START) {
		tasks_lineage(s->tasks, h->proc_uid, h->proc_slot, lineage, LINEAGE_MAX);
		q.lineage = lineage;
	}
	if (!q.live) /* else the tracer is ours */
		note_debugger(c, q.pid, h->kind == KRON_HELLO_START);
	code = answer_make(c->answerer, &q, a, err);
	set_working(c, false);
	if (!code && a->counts && kron_thunk_is_lane(s->thunk))
		counts_make_room(s->seg);
	if (!code && a->calls_end)
		code = calls_make_room(s->seg, a->calls_end, err);
	if (!code && !peer_is_there(q.pidfd))
		code = err_set(err, ESRCH, "it ended before its plan was ready");
	return code;
}

static bool is_about_exec(const struct connection *c)
{
	return c->hello.kind == KRON_HELLO_EXECUTES || c->hello.kind == KRON_HELLO_STAYS;
}

static void answer_exec(struct connection *c)
{
	struct server *s = c->server;
	struct kron_reply reply = {
		.magic = KRON_WIRE_MAGIC, .version = KRON_WIRE_VERSION, .kind = KRON_MSG_REPLY};

	if (s->on_exec)
		reply.flags = s->on_exec(s->on_exec_ctx, &c->peer, &c->hello);
	set_working(c, false);
	socket_send(c->fd, &reply, sizeof(reply), NULL, 0);
}

static const char *why_no_answer(const struct connection *c)
{
	const struct kron_hello *h = &c->hello;

	if (has_hung_up(c))
		return peer_is_there(c->peer.pidfd) ? "it did not wait for its plan"
						    : "it ended before its plan was ready";
	/* A child that borrows its parent's memory has the parent's slot. */
	if (h->kind != KRON_HELLO_START && !is_about_exec(c) &&
	    !is_process(c, h->proc_uid, h->proc_slot))
		return "it asked in the name of another process";
	return NULL;
}

static void hold_answerer(struct connection *c)
{
	const struct added_probes *added = server_added(c->server);

	c->answerer = c->server->answerer;
	if (c->hello.more)
		c->answerer = added && is_about_modules(c) ? added->hold(added->ctx, c->hello.more)
							   : NULL;
}

/* probes: that it has now. */
static void release_answerer(struct connection *c, uint64_t probes)
{
	const struct added_probes *added = server_added(c->server);

	if (c->hello.more)
		added->release(added->ctx, c->hello.more, probes);
}

/* The probe was taken out meanwhile. */
static void answer_nothing(struct connection *c)
{
	struct answer none = {.fd = -1};
	struct kron_result result;

	set_working(c, false);
	if (!serve_reply(c, &none))
		serve_receive(c->fd, &result, sizeof(result));
}

static void tell_first(struct connection *c)
{
	struct server *s = c->server;
	struct process_stat stat;
	bool first;

	pthread_mutex_lock(&s->lock);
	first = !s->has_begun;
	s->has_begun = true;
	pthread_mutex_unlock(&s->lock);
	if (first && s->on_first)
		s->on_first(s->on_first_ctx, &c->peer,
			    process_read_stat(c->peer.pid, 0, &stat) && stat.ppid == getpid());
}

static void tell_late(struct connection *c)
{
	const struct added_probes *added = server_added(c->server);

	if (added)
		added->late(added->ctx);
}

/* How many probes it has by this. */
static uint64_t finish_answer(struct connection *c, struct answer *a)
{
	struct kron_result result;

	if (serve_reply(c, a)) {
		server_note_untraced(c->server, c->peer.pid, NULL, "it did not wait for its plan");
		return 0;
	}
	return serve_take_result(c, a, &result) && !result.groups_refused ? a->probes : 0;
}

void serve_answer(struct connection *c)
{
	const bool starts = c->hello.kind == KRON_HELLO_START;
	struct server *s = c->server;
	pid_t pid = c->peer.pid;
	uint64_t probes = 0;
	const char *why;
	struct answer a;
	struct err err;
	int code;

	if (c->refused) {
		server_note_untraced(s, pid, NULL, c->refused);
		return;
	}
	socket_limit(c->fd, RESULT_TIMEOUT_S, SEND_TIMEOUT_S);
	wait_for_turn(c);
	why = why_no_answer(c);
	if (why)
		return server_note_untraced(s, pid, NULL, why);
	if (is_about_exec(c))
		return answer_exec(c);
	if (starts) {
		server_tell_watcher(s, pid, false);
		c->ticket = tasks_announce(s->tasks, pid, c->peer.its_pid);
	}
	hold_answerer(c);
	if (!c->answerer)
		return answer_nothing(c);
	code = serve_make_answer(c, &a, &err);
	if (!code && s->pages)
		pages_note_maps(s->pages, pid, c->ticket ? 0 : c->hello.proc_uid, c->ticket);
	if (!code && starts && !a.brings_runtime)
		tell_first(c);
	vec_for(&a.notes, n)
		server_note_untraced(s, pid, n->module, n->err.msg);
	if (code)
		server_note_untraced(s, pid, NULL, err.msg);
	else if (!a.brings_runtime) /* else that one asks for itself */
		probes = finish_answer(c, &a);
	if (starts && (code || !a.brings_runtime))
		server_tell_watcher(s, pid, true);
	release_answerer(c, probes);
	if (a.is_late)
		tell_late(c);
	answer_free(&a);
}
