/* SPDX-License-Identifier: MIT */
/*
 * surgeon.c - see surgeon.h.
 *
 *   recorder                surgeon
 *   FILE + fd ------------>           any time
 *   SEIZE ----------------->           of a thread that waits
 *          <--------------- DONE      now it may execute its program; RELEASE: it does not
 *          <--------------- DONE      it stands in front of it: ATTACH, or RELEASE
 *   ATTACH --------------->           stops the process
 *          <--------------- READY + socket of the runtime
 *   GO or DROP ----------->           the runtime runs
 *          <--------------- RAN
 *   GO or DROP ----------->           the threads go on
 *          <--------------- DONE
 *   CHANGE --------------->           the same for a process that the runtime is in
 *   DETACH --------------->
 *          <--------------- DONE
 *   REMAINS -------------->           what an ended recording has left in a process goes
 *          <--------------- DONE
 *
 * Where an answer is awaited, the end of the socket is a DROP.
 */
#define _GNU_SOURCE
#include "collect/live/surgeon.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "collect/kernel/process_maps.h"
#include "collect/kernel/scheduler.h"
#include "collect/kernel/sockets.h"
#include "collect/live/remains.h"

#define PATIENCE_MS 500
#define AWAIT_MS 10000 /* who has said so executes its program within this */

enum message_kind {
	FILE_MADE = 1,
	SEIZE,
	RELEASE,
	ATTACH,
	CHANGE,
	READY,
	GO,
	DROP,
	RAN,
	DONE,
	DETACH,
	REMAINS
};

struct message {
	uint32_t kind; /* enum message_kind */
	int32_t code;
	uint64_t number; /* FILE_MADE: of the file; DONE: how long it stood still */
	union {
		struct surgeon_job job;
		struct err err;
	};
};

/* ---- both ---- */

static int send_message(int sock, const struct message *m, int fd)
{
	return socket_send(sock, m, sizeof(*m), &fd, fd >= 0) ? -EPIPE : 0;
}

/* *fd: what came with it, -1 if nothing did. */
static int receive_message(int sock, struct message *m, int *fd)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = {.iov_base = m, .iov_len = sizeof(*m)};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control.bytes,
			     .msg_controllen = sizeof(control.bytes)};
	struct cmsghdr *c;
	ssize_t n;

	*fd = -1;
	do
		n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n != (ssize_t)sizeof(*m))
		return -EPIPE;
	c = CMSG_FIRSTHDR(&msg);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
		memcpy(fd, CMSG_DATA(c), sizeof(*fd));
	return 0;
}

/* ---- the surgeon ---- */

struct table { /* all that the surgeon has in hand */
	int sock;
	struct live_files files;
	VEC(struct operation) attached;
	struct live_threads
		starting; /* the program that stands in front of its first instruction */
};

static void take_file(struct table *t, uint64_t number, int fd)
{
	*vec_push(&t->files.v) = (struct live_file){.number = number, .fd = fd};
}

/* Files that have come already; what the recorder wants next stays where it is. */
static void take_files(void *ctx)
{
	struct table *t = ctx;
	struct message m;
	int fd;

	while (recv(t->sock, &m, sizeof(m), MSG_PEEK | MSG_DONTWAIT) == (ssize_t)sizeof(m) &&
	       m.kind == FILE_MADE && !receive_message(t->sock, &m, &fd))
		take_file(t, m.number, fd);
}

/* Waits for a message.  False: the recorder is stopped itself, and the process must not wait for that. */
static bool is_at_work(const struct table *t)
{
	struct pollfd p = {.fd = t->sock, .events = POLLIN};
	struct process_stat st;

	while (!poll(&p, 1, PATIENCE_MS))
		if (process_read_stat(getppid(), 0, &st) && st.state == 'T')
			return false;
	return true;
}

/*
 * The next message that is not a file's.  -EPIPE: there is none, the recorder has gone; -ECANCELED: it was
 * stopped while somebody stands still.
 */
static int next_message(struct table *t, struct message *m, bool stands_still)
{
	int fd;

	while (!stands_still || is_at_work(t)) {
		if (receive_message(t->sock, m, &fd))
			return -EPIPE;
		if (m->kind != FILE_MADE)
			return 0;
		take_file(t, m->number, fd);
	}
	return -ECANCELED;
}

/* What it wanted last may still lie in the socket. */
static bool recorder_has_gone(const struct table *t)
{
	struct pollfd p = {.fd = t->sock, .events = POLLIN};

	return poll(&p, 1, 0) > 0 && p.revents & POLLHUP;
}

/* While nothing has been done: the recorder has gone, or says so. */
static bool is_unwanted(void *ctx)
{
	struct table *t = ctx;
	struct message m;

	take_files(t);
	return recorder_has_gone(t) ||
	       (recv(t->sock, &m, sizeof(m), MSG_PEEK | MSG_DONTWAIT) == (ssize_t)sizeof(m) &&
		m.kind == DROP);
}

static int await_word(struct table *t, struct err *err)
{
	struct message m;
	const int code = next_message(t, &m, true);

	if (code)
		return err_set(err, -code, "%s",
			       code == -EPIPE ? "the recorder has gone"
					      : "kron was stopped while the program waited for it");
	return m.kind == GO ? 0 : err_set(err, ECANCELED, "the recorder does not want it");
}

static int ask_for_answer(void *ctx, int sock, struct err *err)
{
	struct table *t = ctx;
	const struct message ready = {.kind = READY};

	if (send_message(t->sock, &ready, sock))
		return err_set(err, EPIPE, "the recorder has gone");
	return await_word(t, err);
}

static int ask_to_settle(void *ctx, struct err *err)
{
	struct table *t = ctx;
	const struct message ran = {.kind = RAN};

	if (send_message(t->sock, &ran, -1))
		return err_set(err, EPIPE, "the recorder has gone");
	return await_word(t, err);
}

static void say_done(struct table *t, int code, const struct err *err, uint64_t stood_ns)
{
	struct message m = {.kind = DONE, .code = code, .number = stood_ns};

	if (code)
		m.err = *err;
	send_message(t->sock, &m, -1);
}

static void attach(struct table *t, const struct surgeon_job *job)
{
	const struct operation_steps steps = {t, ask_for_answer, ask_to_settle};
	struct operation o = {.pid = job->pid,
			      .started = job->started,
			      .session = job->session,
			      .implant = job->implant,
			      .go_lo = job->go_lo,
			      .go_hi = job->go_hi,
			      .starts = job->starts,
			      .children = job->children,
			      .leaves = job->leaves,
			      .stays = job->stays,
			      .unwanted = is_unwanted,
			      .ctx = t,
			      .files = &t->files};
	struct err err;
	int code;

	if (job->starts && !t->starting.v.n)
		code = err_set(&err, ECANCELED, "kron was stopped while the program waited for it");
	else if (job->starts)
		code = operation_begin(&o, &t->starting, job->entry, &steps, &err);
	else
		code = operation_attach(&o, job->entry, &steps, &err);

	if (!code && !job->stays && !job->is_child)
		*vec_push(&t->attached) = o;
	say_done(t, code, &err, o.stood_ns);
}

static void change(struct table *t, const struct surgeon_job *job)
{
	const struct operation_steps steps = {t, ask_for_answer, ask_to_settle};
	struct operation o = {.pid = job->pid,
			      .started = job->started,
			      .session = job->session,
			      .go_lo = job->go_lo,
			      .go_hi = job->go_hi,
			      .unwanted = is_unwanted,
			      .ctx = t};
	struct err err;
	const int code = operation_change(&o, job->implant.entry, &steps, &err);

	say_done(t, code, &err, o.stood_ns);
}

static int detach_last(struct table *t, size_t i, uint64_t *stood_ns, struct err *err)
{
	struct operation *o = &t->attached.v[i];
	int code = operation_detach(o, err);

	*stood_ns = o->stood_ns;
	*o = t->attached.v[--t->attached.n];
	return code;
}

static void detach(struct table *t, pid_t pid)
{
	uint64_t stood_ns = 0;
	struct err err;
	int code = 0;

	for (size_t i = 0; i < t->attached.n; i++) {
		if (t->attached.v[i].pid != pid)
			continue;
		code = detach_last(t, i, &stood_ns, &err);
		break;
	}
	say_done(t, code, &err, stood_ns);
}

static void take_out_remains(struct table *t, pid_t pid)
{
	uint64_t stood_ns = 0;
	struct err err;
	int code = remains_take_out(pid, &stood_ns, &err);

	say_done(t, code, &err, stood_ns);
}

/* Takes what the recorder says meanwhile.  False: the program is no longer to be awaited. */
static bool still_wanted(struct table *t)
{
	struct message m;
	int fd;

	if (receive_message(t->sock, &m, &fd))
		return false;
	if (m.kind != FILE_MADE)
		return m.kind != RELEASE;
	take_file(t, m.number, fd);
	return true;
}

static int await_exec(struct table *t, struct err *err)
{
	const uint64_t deadline = clock_ms(CLOCK_MONOTONIC) + AWAIT_MS;
	struct pollfd p[] = {{.fd = t->sock, .events = POLLIN}, {.fd = -1, .events = POLLIN}};
	enum live_exec seen = LIVE_EXEC_NOT_YET;
	struct signalfd_siginfo info;
	bool wanted = true;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	p[1].fd = signalfd(-1, &set, SFD_CLOEXEC);
	while (wanted && (seen = threads_look_for_exec(&t->starting)) == LIVE_EXEC_NOT_YET) {
		if (poll(p, 2, AWAIT_MS / 10) < 0 && errno != EINTR)
			break;
		if (p[1].revents && read(p[1].fd, &info, sizeof(info)) < 0)
			break;
		if (p[0].revents)
			wanted = still_wanted(t);
		wanted = wanted && clock_ms(CLOCK_MONOTONIC) < deadline;
	}
	close(p[1].fd);
	if (seen == LIVE_EXEC_DONE)
		return threads_stand(&t->starting, err);
	if (seen == LIVE_EXEC_NOT_YET)
		threads_let_go(&t->starting);
	vec_free(&t->starting.v);
	return err_set(err, seen == LIVE_EXEC_GONE ? ESRCH : ECANCELED,
		       seen == LIVE_EXEC_GONE ? "it has ended" : "it did not execute its program");
}

/* Without its recorder the thread executes the program at once, and that could see that it is traced. */
static void seize(struct table *t, pid_t tid)
{
	struct err err;
	int code = recorder_has_gone(t) ? err_set(&err, ECANCELED, "the recorder has gone")
					: threads_seize_child(&t->starting, tid, &err);

	say_done(t, code, &err, 0);
	if (code)
		return;
	code = await_exec(t, &err);
	say_done(t, code, &err, 0);
}

static void operate(int sock)
{
	struct table t = {.sock = sock, .files = {.take_more = take_files, .ctx = &t}};
	struct message m;
	uint64_t stood;
	struct err err;

	for (;;) {
		const bool stands_still = t.starting.v.n;

		if (next_message(&t, &m, stands_still)) {
			if (!stands_still)
				break;
			threads_go(&t.starting);
			continue;
		}
		if (m.kind == SEIZE)
			seize(&t, m.job.pid);
		else if (m.kind == RELEASE && t.starting.v.n)
			threads_go(&t.starting);
		else if (m.kind == ATTACH)
			attach(&t, &m.job);
		else if (m.kind == CHANGE)
			change(&t, &m.job);
		else if (m.kind == DETACH)
			detach(&t, m.job.pid);
		else if (m.kind == REMAINS)
			take_out_remains(&t, m.job.pid);
	}
	while (t.attached.n)
		if (detach_last(&t, t.attached.n - 1, &stood, &err))
			fprintf(stderr, "kron: %s\n", err.msg);
}

/* The recorder may have begun: its sockets and files are to end with it. */
static void close_others(int sock)
{
	if (sock > STDERR_FILENO + 1)
		syscall(SYS_close_range, STDERR_FILENO + 1, sock - 1, 0);
	syscall(SYS_close_range, sock + 1, ~0u, 0);
}

int surgeon_start(struct surgeon *s, struct err *err)
{
	sigset_t all, old;
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return err_set(err, errno, "cannot make a socket: %s", strerror(errno));
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &old);
	s->pid = fork();
	if (!s->pid) {
		setsid(); /* no kill of the recorder's group, no terminal */
		prctl(PR_SET_NAME, "kron-surgeon");
		close_others(ends[0]);
		/* Programs stand meanwhile.  Those that are executed, of which fifty may begin at once, would take the
		 * processors from the threads that they wait for. */
		scheduler_come_first();
		operate(ends[0]);
		_exit(0);
	}
	sigprocmask(SIG_SETMASK, &old, NULL);
	close(ends[0]);
	s->sock = ends[1];
	s->interrupt = -1;
	if (s->pid < 0) {
		close(ends[1]);
		return err_set(err, errno, "cannot start a process: %s", strerror(errno));
	}
	return 0;
}

/* ---- one that is executed, because its recorder has threads by now ---- */

#define SPAWNED_FD 3

int surgeon_main(void)
{
	prctl(PR_SET_NAME, "kron-surgeon");
	fcntl(SPAWNED_FD, F_SETFD, FD_CLOEXEC);
	operate(SPAWNED_FD);
	return 0;
}

static int spawn(pid_t *pid, const char *kron, int sock)
{
	char name[] = "kron-surgeon", option[] = "--operate";
	char *argv[] = {name, option, NULL};
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	sigset_t all;
	int code;

	sigfillset(&all);
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_adddup2(&files, sock, SPAWNED_FD);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setsigmask(&attr, &all);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSID);
	code = posix_spawn(pid, kron, &files, &attr, argv, environ);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&files);
	return code;
}

int surgeon_spawn(struct surgeon *s, const char *kron, struct err *err)
{
	int ends[2], code;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return err_set(err, errno, "cannot make a socket: %s", strerror(errno));
	code = spawn(&s->pid, kron, ends[0]);
	close(ends[0]);
	s->sock = ends[1];
	s->interrupt = -1;
	if (!code)
		return 0;
	close(ends[1]);
	s->pid = 0;
	return err_set(err, code, "cannot start a process: %s", strerror(code));
}

/* ---- the recorder ---- */

void surgeon_end(struct surgeon *s)
{
	if (s->pid <= 0)
		return;
	close(s->sock);
	while (waitpid(s->pid, NULL, 0) < 0 && errno == EINTR)
		;
	s->pid = 0;
}

void surgeon_take_file(void *surgeon, uint64_t number, int fd)
{
	const struct surgeon *s = surgeon;
	const struct message m = {.kind = FILE_MADE, .number = number};

	send_message(s->sock, &m, fd);
}

static int lost(struct err *err)
{
	return err_set(err, EPIPE, "the process that attaches for kron was killed");
}

static void say(struct surgeon *s, int code)
{
	const struct message m = {.kind = code ? DROP : GO};

	send_message(s->sock, &m, -1);
}

static int take_done(struct surgeon *s, struct message *m, int own, uint64_t *stood_ns,
		     struct err *err)
{
	int fd;

	while (m->kind != DONE)
		if (receive_message(s->sock, m, &fd))
			return lost(err);
	*stood_ns = m->number > *stood_ns ? m->number : *stood_ns;
	if (own)
		return own; /* the recorder's own error says more */
	if (m->code)
		*err = m->err;
	return m->code;
}

/* True: it has been told to give up; if it has begun by now it asks, and finds that in the socket. */
static bool await_reply(const struct surgeon *s)
{
	struct pollfd p[] = {{.fd = s->sock, .events = POLLIN},
			     {.fd = s->interrupt, .events = POLLIN}};
	const struct message drop = {.kind = DROP};

	while (!p[0].revents && !p[1].revents)
		if (poll(p, 2, -1) < 0 && errno != EINTR)
			return false;
	return !p[0].revents && !send_message(s->sock, &drop, -1);
}

static int operate_on(struct surgeon *s, enum message_kind kind, const struct surgeon_job *job,
		      const struct operation_steps *steps, uint64_t *stood_ns, struct err *err)
{
	struct message m = {.kind = kind, .job = *job};
	int fd, code = 0;

	if (send_message(s->sock, &m, -1))
		return lost(err);
	if (await_reply(s))
		code = err_set(err, ECANCELED,
			       "process %d was not recorded: a signal came while kron waited for a "
			       "moment to attach to it",
			       job->pid);
	if (receive_message(s->sock, &m, &fd))
		return lost(err);
	if (code && fd >= 0)
		close(fd);
	if (!code && m.kind == READY) {
		code = steps->answer(steps->ctx, fd, err);
		say(s, code);
		if (receive_message(s->sock, &m, &fd))
			return lost(err);
	}
	if (m.kind == RAN) {
		code = steps->settle(steps->ctx, err);
		say(s, code);
	}
	return take_done(s, &m, code, stood_ns, err);
}

int surgeon_attach(struct surgeon *s, const struct surgeon_job *job,
		   const struct operation_steps *steps, uint64_t *stood_ns, struct err *err)
{
	return operate_on(s, ATTACH, job, steps, stood_ns, err);
}

int surgeon_change(struct surgeon *s, const struct surgeon_job *job,
		   const struct operation_steps *steps, uint64_t *stood_ns, struct err *err)
{
	return operate_on(s, CHANGE, job, steps, stood_ns, err);
}

int surgeon_seize(struct surgeon *s, pid_t pid, struct err *err)
{
	struct message m = {.kind = SEIZE, .job = {.pid = pid}};
	uint64_t stood_ns = 0;

	if (send_message(s->sock, &m, -1))
		return lost(err);
	m.kind = 0;
	return take_done(s, &m, 0, &stood_ns, err);
}

int surgeon_await_exec(struct surgeon *s, struct err *err)
{
	struct message m = {0};
	uint64_t stood_ns = 0;

	return take_done(s, &m, 0, &stood_ns, err);
}

void surgeon_release(struct surgeon *s)
{
	const struct message m = {.kind = RELEASE};

	send_message(s->sock, &m, -1);
}

static int order(struct surgeon *s, enum message_kind kind, pid_t pid, uint64_t *stood_ns,
		 struct err *err)
{
	struct message m = {.kind = kind, .job = {.pid = pid}};

	if (send_message(s->sock, &m, -1))
		return lost(err);
	m.kind = 0;
	return take_done(s, &m, 0, stood_ns, err);
}

int surgeon_detach(struct surgeon *s, pid_t pid, uint64_t *stood_ns, struct err *err)
{
	return order(s, DETACH, pid, stood_ns, err);
}

int surgeon_take_out_remains(struct surgeon *s, pid_t pid, uint64_t *stood_ns, struct err *err)
{
	return order(s, REMAINS, pid, stood_ns, err);
}
