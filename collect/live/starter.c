/* SPDX-License-Identifier: MIT */
/*
 * starter.c - see starter.h.
 *
 * A process may ask about its own threads only.  The program that it executes may have more rights than it
 * (AT_SECURE).  Such a program runs untraced, because it must not depend on a board that others write to.
 */
#define _GNU_SOURCE
#include "collect/live/starter.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/socket.h>
#include <unistd.h>

#include "collect/kernel/pidns.h"
#include "collect/kernel/process_maps.h"

#define LET_GO_S 5
#define SEIZE_TRIES 4u

struct start {
	TAILQ_ENTRY(start) link;
	struct starter *starter;
	pid_t pid;
	struct surgeon surgeon;
	bool stands; /* the program was executed, and stands in front of its first instruction */
	bool failed; /* the process has said that its execve failed */
};

/* ---- may it be traced, and change nothing by that? ---- */

/* Root gets its capabilities back by execve(2), but not under a tracer that may not give them. */
static bool would_lose_rights(pid_t pid)
{
	return !process_may_trace_others() && !process_status_number(pid, 0, "Uid", 10) &&
	       process_status_number(pid, 0, "CapPrm", 16) !=
		       process_status_number(pid, 0, "CapBnd", 16);
}

/* The thread of the process that calls itself so, as we see it; 0: there is none. */
static pid_t find_thread(const struct peer *p, pid_t its_tid)
{
	pid_t found = 0;
	struct dirent *e;
	char path[64];
	DIR *d;

	if (its_tid == p->its_pid)
		return p->pid;
	snprintf(path, sizeof(path), "/proc/%d/task", p->pid);
	d = opendir(path);
	while (d && !found && (e = readdir(d))) {
		pid_t tid = atoi(e->d_name), inner = tid > 0 ? pidns_inner_of(tid) : 0;

		if (tid > 0 && (inner ? inner : tid) == its_tid)
			found = tid;
	}
	if (d)
		closedir(d);
	return found;
}

/* The kernel has given it more rights than who executed it has, or does not say. */
static bool is_secure(pid_t pid)
{
	bool found = false, secure = true;
	char path[64];
	Elf64_auxv_t v;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/auxv", pid);
	f = fopen(path, "re");
	while (f && !found && fread(&v, sizeof(v), 1, f) == 1)
		if (v.a_type == AT_SECURE) {
			found = true;
			secure = v.a_un.a_val;
		}
	if (f)
		fclose(f);
	return secure;
}

/* ---- one program ---- */

static void end(struct start *a)
{
	struct starter *s = a->starter;

	surgeon_end(&a->surgeon);
	pthread_mutex_lock(&s->lock);
	TAILQ_REMOVE(&s->awaited, a, link);
	pthread_cond_broadcast(&s->ended);
	pthread_mutex_unlock(&s->lock);
	server_release(s->server);
	xfree(a);
}

static void join_added(struct start *a)
{
	const struct added_probes *added = server_added(a->starter->server);

	if (added)
		added->join(added->ctx, a->pid);
}

static int attach(struct start *a, struct err *err)
{
	struct starter *s = a->starter;
	struct live_process l = {.pid = a->pid,
				 .pidfd = -1,
				 .starts = true,
				 .is_child = true,
				 .children = true,
				 .leaves = s->leaves};
	int code;

	if (is_secure(a->pid))
		code = err_set(err, EPERM, "it is set-id, or has capabilities");
	else
		code = live_process_attach(&l, &a->surgeon, s->server, s->entry, err);
	live_process_close(&l);
	if (code)
		surgeon_release(&a->surgeon);
	else
		join_added(a);
	return code;
}

static void *follow(void *arg)
{
	struct start *a = arg;
	struct err err;
	int code = surgeon_await_exec(&a->surgeon, &err);
	bool failed;

	pthread_mutex_lock(&a->starter->lock);
	a->stands = true;
	failed = a->failed || code == -ESRCH;
	if (code && a->starter->stopping)
		err_set(&err, ECANCELED, "the recording ended before its plan was ready");
	pthread_mutex_unlock(&a->starter->lock);
	if (!code)
		code = attach(a, &err);
	if (code && !failed)
		server_note_untraced(a->starter->server, a->pid, NULL, err.msg);
	end(a);
	return NULL;
}

static bool start_thread(struct start *a)
{
	pthread_attr_t attr;
	pthread_t thread;
	int code;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	code = pthread_create(&thread, &attr, follow, a);
	pthread_attr_destroy(&attr);
	return !code;
}

static struct start *find(struct starter *s, pid_t pid)
{
	struct start *a;

	TAILQ_FOREACH(a, &s->awaited, link)
	if (a->pid == pid)
		return a;
	return NULL;
}

/* Only static programs need what is refused here, unless all are attached to. */
static int check(const struct starter *s, pid_t pid, struct err *err)
{
	const char *subject = s->leaves ? "it" : "it is static, and";
	pid_t tracer;

	threads_await_krons(pid); /* it may change probes in what executed the program */
	/* one of ours may have come back meanwhile: seize() waits for it once more */
	tracer = process_tracer(pid);
	if (threads_is_krons(tracer))
		tracer = 0;
	if (tracer && s->leaves)
		return err_set(err, EBUSY, "another process traces it");
	if (tracer)
		return err_set(err, EBUSY, "it is static, and another process traces it");
	if (would_lose_rights(pid))
		return err_set(err, EPERM,
			       "%s would not get the capabilities that it has without kron",
			       subject);
	return 0;
}

static int seize_once(struct starter *s, struct start *a, pid_t tid, struct err *err)
{
	int code = surgeon_spawn(&a->surgeon, s->kron, err);

	if (code)
		return code;
	code = surgeon_seize(&a->surgeon, tid, err);
	if (code)
		surgeon_end(&a->surgeon);
	return code;
}

/* -EACCES: Yama wants the process to allow it first (PR_SET_PTRACER). */
static int seize(struct starter *s, struct start *a, pid_t tid, bool asks_again, struct err *err)
{
	int code = check(s, a->pid, err);

	if (!code && !tid)
		code = err_set(err, EINVAL, "it asked for a thread that is not its own");
	if (code)
		return code;
	code = seize_once(s, a, tid, err);
	/* one of ours that changes probes may have been faster */
	for (unsigned i = 1; i < SEIZE_TRIES && code == -EPERM; i++) {
		threads_await_krons(a->pid);
		code = seize_once(s, a, tid, err);
	}
	return code == -EPERM && process_yama_scope() == 1 && !asks_again ? -EACCES : code;
}

/* Questions are answered by other threads than the one that makes it ready. */
static bool is_ready(struct starter *s)
{
	bool ready;

	pthread_mutex_lock(&s->lock);
	ready = s->entry;
	pthread_mutex_unlock(&s->lock);
	return ready;
}

/* They come into a program that is attached to a moment after its first instruction. */
static bool has_added(struct starter *s)
{
	const struct added_probes *added = server_added(s->server);

	return added && added->next(added->ctx, 0);
}

static uint32_t await_program(struct starter *s, const struct peer *p, const struct kron_hello *h)
{
	struct start *a;
	struct err err;
	int code;

	if (!is_ready(s))
		return 0;
	if (h->again & KRON_AGAIN_LOADS && has_added(s))
		return KRON_REPLY_LOADS;
	a = xcalloc(1, sizeof(*a));
	a->starter = s;
	a->pid = p->pid;
	code = seize(s, a, find_thread(p, (pid_t)h->range), h->again & 1, &err);
	if (code) {
		xfree(a);
		if (code != -EACCES)
			server_note_untraced(s->server, p->pid, NULL, err.msg);
		return code == -EACCES ? KRON_REPLY_ALLOW : 0;
	}
	server_hold(s->server);
	pthread_mutex_lock(&s->lock);
	TAILQ_INSERT_TAIL(&s->awaited, a, link);
	if (s->stopping)
		shutdown(a->surgeon.sock, SHUT_RDWR);
	pthread_mutex_unlock(&s->lock);
	if (start_thread(a))
		return KRON_REPLY_AWAITED;
	server_note_untraced(s->server, p->pid, NULL, "kron could not make a thread to await it");
	end(a);
	return 0;
}

/* Tells the surgeon to release the program; the thread of this start waits for the answer. */
static void let_go(struct starter *s, pid_t pid)
{
	struct timespec until;
	struct start *a;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += LET_GO_S;
	pthread_mutex_lock(&s->lock);
	a = find(s, pid);
	if (a) {
		a->failed = true;
		surgeon_release(&a->surgeon);
	}
	while (find(s, pid) && !pthread_cond_timedwait(&s->ended, &s->lock, &until))
		;
	pthread_mutex_unlock(&s->lock);
}

uint32_t starter_on_exec(void *ctx, const struct peer *p, const struct kron_hello *h)
{
	struct starter *s = ctx;

	if (h->kind == KRON_HELLO_EXECUTES)
		return await_program(s, p, h);
	let_go(s, p->pid);
	return 0;
}

/* ---- all ---- */

void starter_start(struct starter *s, struct server *server, const char *kron, char *entry)
{
	pthread_mutex_lock(&s->lock);
	s->server = server;
	s->kron = kron;
	s->entry = entry;
	pthread_mutex_unlock(&s->lock);
}

void starter_wait(struct starter *s)
{
	struct timespec until;
	int code = 0;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += LET_GO_S;
	pthread_mutex_lock(&s->lock);
	while (!TAILQ_EMPTY(&s->awaited) && !code)
		code = pthread_cond_timedwait(&s->ended, &s->lock, &until);
	pthread_mutex_unlock(&s->lock);
}

void starter_stop(struct starter *s)
{
	struct start *a;

	pthread_mutex_lock(&s->lock);
	s->stopping = true;
	TAILQ_FOREACH(a, &s->awaited, link)
	if (!a->stands)
		shutdown(a->surgeon.sock, SHUT_RDWR);
	pthread_mutex_unlock(&s->lock);
}
