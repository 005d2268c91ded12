/* SPDX-License-Identifier: MIT */
/* control.c - see control.h. */
#define _GNU_SOURCE
#include "collect/changes/control.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "board/bus/asking.h"
#include "board/bus/object.h"
#include "collect/drain.h"
#include "collect/flight/flight.h"
#include "collect/kernel/sockets.h"

#define BACKLOG 8
#define LIMIT_S 5 /* within which a client has sent its question */
#define TRIES 3u

/* ---- the recorder ---- */

static int list(struct changes *c, bool json, struct kron_control_answer *out, struct err *err)
{
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);

	if (!f)
		return err_set(err, errno, "cannot make the list: %s", strerror(errno));
	changes_list(c, json, f);
	fclose(f);
	if (n < sizeof(out->text))
		memcpy(out->text, text, n + 1);
	free(text);
	return n < sizeof(out->text) ? 0 : err_set(err, E2BIG, "the list has too many probes");
}

static int check_flight(const struct control *c, struct err *err)
{
	if (c->flight)
		return 0;
	return err_set(err, ENOTSUP, "this kron record has no --flight: there is no ring to keep");
}

/* The answer is its directory. */
static int snapshot(struct control *c, char *why, struct kron_control_answer *out, struct err *err)
{
	struct flight_taken taken;
	int code = check_flight(c, err);

	if (code)
		return code;
	for (char *p = why; *p; p++)
		if ((unsigned char)*p < ' ')
			*p = ' ';
	code = flight_snapshot(c->flight, *why ? why : "kron snapshot", &taken, err);
	if (!code)
		snprintf(out->text, sizeof(out->text), "%s\n", taken.path);
	return code;
}

static void do_question(struct control *c, struct kron_control_question *q,
			struct kron_control_answer *out)
{
	struct err err = {{0}};

	q->text[sizeof(q->text) - 1] = 0;
	if (q->version != KRON_CONTROL_VERSION)
		out->code = err_set(&err, EPROTO, "this kron record is of another version");
	else if (q->verb == KRON_CONTROL_ADD)
		out->code = changes_add(&c->changes, q->text, &err);
	else if (q->verb == KRON_CONTROL_REMOVE)
		out->code = changes_remove(&c->changes, q->text, &err);
	else if (q->verb == KRON_CONTROL_WAKE || q->verb == KRON_CONTROL_SLEEP)
		out->code = changes_turn_functions(&c->changes, q->text,
						   q->verb == KRON_CONTROL_WAKE, &err);
	else if (q->verb == KRON_CONTROL_SNAPSHOT)
		out->code = snapshot(c, q->text, out, &err);
	else if (q->verb == KRON_CONTROL_FLIGHT)
		out->code = check_flight(c, &err);
	else
		out->code = list(&c->changes, q->verb == KRON_CONTROL_LIST_JSON, out, &err);
	if (err.msg[0])
		snprintf(out->text, sizeof(out->text), "%s%s", err.msg, out->code ? "" : "\n");
}

static void send_answer(struct control *c, int fd, struct kron_control_question *q)
{
	struct kron_control_answer *answer = xcalloc(1, sizeof(*answer));

	do_question(c, q, answer);
	send(fd, answer, offsetof(struct kron_control_answer, text) + strlen(answer->text) + 1,
	     MSG_NOSIGNAL);
	xfree(answer);
}

/* Root and our user may ask. */
static bool may_ask(int fd, struct ucred *peer)
{
	socklen_t len = sizeof(*peer);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, peer, &len) &&
	       (!peer->uid || peer->uid == geteuid());
}

/* Who connects and says nothing holds up others for a while, but not the recording's end. */
static bool has_asked(struct control *c, int fd)
{
	struct pollfd p[] = {{.fd = fd, .events = POLLIN}, {.fd = c->wake_fd, .events = POLLIN}};

	return poll(p, 2, LIMIT_S * 1000) > 0 && p[0].revents;
}

static void serve_one(struct control *c, int fd)
{
	struct kron_control_question q;
	struct ucred peer;

	socket_limit(fd, LIMIT_S, LIMIT_S);
	if (!may_ask(fd, &peer) || !has_asked(c, fd) ||
	    recv(fd, &q, sizeof(q), 0) != (ssize_t)sizeof(q))
		return;
	if (q.verb == KRON_CONTROL_PAGES)
		drain_answer_pages(c->drain, fd, &q, peer.pid);
	else
		send_answer(c, fd, &q);
}

static void *control_thread(void *arg)
{
	struct control *c = arg;
	struct pollfd p[] = {{.fd = c->fd, .events = POLLIN}, {.fd = c->wake_fd, .events = POLLIN}};

	pthread_setname_np(pthread_self(), "kron-control");
	while (poll(p, 2, -1) >= 0 || errno == EINTR) {
		int fd;

		if (p[1].revents)
			break;
		fd = accept4(c->fd, NULL, NULL, SOCK_CLOEXEC);
		if (fd < 0)
			continue;
		serve_one(c, fd);
		close(fd);
	}
	return NULL;
}

/* Somebody asks for the first time. */
static void begin(void *ctx)
{
	struct control *c = ctx;

	pthread_mutex_lock(&c->lock);
	if (!c->stopped) {
		c->wake_fd = eventfd(0, EFD_CLOEXEC);
		c->running =
			c->wake_fd >= 0 && !pthread_create(&c->thread, NULL, control_thread, c);
		if (!c->running) { /* whoever asks is told that nobody answers */
			log_error("collect", "cannot answer `kron ctl probe`");
			close(c->fd);
			c->fd = -1;
		}
	}
	pthread_mutex_unlock(&c->lock);
}

int control_start(struct control *c, uint64_t recording, struct err *err)
{
	struct server_guest guest = {.comes = begin, .ctx = c};
	struct sockaddr_un a;
	socklen_t len = asking_address(&a, recording);
	int code = 0;

	pthread_mutex_init(&c->lock, NULL);
	c->wake_fd = -1;
	c->fd = guest.fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (c->fd < 0 || bind(c->fd, (struct sockaddr *)&a, len) || listen(c->fd, BACKLOG))
		code = errno;
	else
		code = -server_watch_guest(c->changes.server, &guest);
	if (!code)
		return 0;
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
	return err_set(err, code, "cannot listen for `kron ctl probe`: %s", strerror(code));
}

static bool stop_running(struct control *c)
{
	bool running;

	pthread_mutex_lock(&c->lock);
	c->stopped = true;
	running = c->running;
	c->running = false;
	pthread_mutex_unlock(&c->lock);
	return running;
}

void control_stop(struct control *c)
{
	const uint64_t one = 1;

	changes_stop(&c->changes);
	server_forget_guest(c->changes.server);
	if (stop_running(c) && write(c->wake_fd, &one, sizeof(one)) == sizeof(one))
		pthread_join(c->thread, NULL);
	if (c->fd >= 0)
		close(c->fd);
	if (c->wake_fd >= 0)
		close(c->wake_fd);
	c->fd = c->wake_fd = -1;
}

/* ---- kron ctl ---- */

static int connect_to(uint64_t recording, pid_t pid, struct err *err)
{
	const int fd = asking_connect(recording, pid);

	if (fd == -ECONNREFUSED)
		return err_set(
			err, ECONNREFUSED,
			"this kron record does not answer: it still starts, or ends, or lives in "
			"another network namespace");
	return fd < 0 ? err_set(err, -fd, "cannot ask the kron record: %s", strerror(-fd)) : fd;
}

/* 0, or -errno.  -EAGAIN: the recorder let us go before it had read the question. */
static int ask_once(uint64_t recording, pid_t pid, const struct kron_control_question *q,
		    struct kron_control_answer *out, struct err *err)
{
	const int fd = connect_to(recording, pid, err);
	ssize_t n;
	bool is_unread;

	if (fd < 0)
		return fd;
	if (!object_is_recorder(fd, pid)) {
		close(fd);
		return err_set(err, EPERM, "another process has taken this kron record's place");
	}
	memset(out, 0, sizeof(*out));
	n = send(fd, q, sizeof(*q), MSG_NOSIGNAL);
	if (n == (ssize_t)sizeof(*q))
		n = recv(fd, out, sizeof(*out) - 1, 0);
	/* EPIPE: it had gone before we asked. */
	is_unread = n < 0 && (errno == EPIPE || errno == ECONNRESET);
	close(fd);
	if (n > (ssize_t)offsetof(struct kron_control_answer, text))
		return 0;
	return err_set(err, is_unread ? EAGAIN : EPIPE, "the kron record has ended meanwhile");
}

int control_ask(uint64_t recording, pid_t pid, enum kron_control_verb verb, const char *text,
		struct kron_control_answer *out, struct err *err)
{
	struct kron_control_question q = {.version = KRON_CONTROL_VERSION, .verb = verb};
	int code = -EAGAIN;

	if (strlen(text) >= sizeof(q.text))
		return err_set(err, E2BIG, "that has more than %u bytes", KRON_CONTROL_TEXT - 1);
	strcpy(q.text, text);
	/* The recorder waits LIMIT_S for the question; we may have stood still for longer. */
	for (unsigned tries = 0; tries < TRIES && code == -EAGAIN; tries++)
		code = ask_once(recording, pid, &q, out, err);
	return code;
}
