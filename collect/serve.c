/* SPDX-License-Identifier: MIT */
/*
 * serve.c - see serve.h.
 *
 * Whoever connects must know the session's token, and is the process that its socket's
 * credentials name, whatever it says.  It can make us plan a file that it has loaded, and no
 * more than that.
 */
#define _GNU_SOURCE
#include "collect/serve.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "collect/counts.h"

#define LINEAGE_MAX 63
#define TICK_MS 1000
#define HELLO_TIMEOUT_S 5
#define RESULT_TIMEOUT_S 60
#ifndef PID_FS_MAGIC
#define PID_FS_MAGIC 0x50494446
#endif

struct connection {
	struct connection *next;
	struct server *server;
	int fd;
	bool working;  /* wants WORKING messages; under the server's lock */
	pid_t pid;     /* that asks; 0: has not said HELLO; under the server's lock */
	bool replied;  /* a RESULT is to come; likewise */
	bool debugged; /* it ran under a debugger when it asked */
};

/* ---- notes ---- */

void server_note_untraced(struct server *s, pid_t pid, const char *module, const char *reason)
{
	char text[16];
	const char *fields[] = {"U", text, reason};

	untraced_add(&s->untraced, module, reason);
	snprintf(text, sizeof(text), "%d", pid);
	journal_line(s->journal, "tasks", fields, 3);
	log_info("collect", "pid %d: %s", pid, reason);
}

/* ---- one question ---- */

static int receive(int fd, void *buf, size_t size)
{
	ssize_t n;

	do
		n = recv(fd, buf, size, 0);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	return n == (ssize_t)size ? 0 : -EPROTO;
}

static void set_timeout(int fd, int seconds)
{
	struct timeval tv = {.tv_sec = seconds};

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv));
}

static bool is_hello_of_session(const struct server *s, const struct kron_hello *h)
{
	return h->magic == KRON_WIRE_MAGIC && h->version == KRON_WIRE_VERSION &&
	       !memcmp(h->session, s->session, sizeof(h->session)) && h->kind >= KRON_HELLO_START &&
	       h->kind <= KRON_HELLO_WRITES;
}

static pid_t peer_pid(int fd)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) ? 0 : cred.pid;
}

static int send_reply(int sock, const struct kron_reply *reply, const int *fds, size_t nfds)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(3 * sizeof(int))];
	} control;
	struct iovec iov = {.iov_base = (void *)reply, .iov_len = sizeof(*reply)};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	struct cmsghdr *c;
	ssize_t n;

	if (nfds) {
		memset(&control, 0, sizeof(control));
		msg.msg_control = control.bytes;
		msg.msg_controllen = CMSG_SPACE(nfds * sizeof(int));
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(nfds * sizeof(int));
		memcpy(CMSG_DATA(c), fds, nfds * sizeof(int));
	}
	do
		n = sendmsg(sock, &msg, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

static void set_working(struct connection *c, bool working)
{
	pthread_mutex_lock(&c->server->lock);
	c->working = working;
	pthread_mutex_unlock(&c->server->lock);
}

static int send_answer(struct connection *c, uint32_t kind, const struct answer *a)
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

	if (kind == KRON_HELLO_START) {
		reply.segment_size = s->seg->size;
		reply.flags = s->no_children ? KRON_REPLY_NO_CHILDREN : 0;
		fds[n++] = s->seg->fd;
		if (s->device_fd >= 0) {
			reply.flags |= KRON_REPLY_DEVICE;
			fds[n++] = s->device_fd;
		}
		reply.flags |= a->small_stacks ? KRON_REPLY_SMALL_STACKS : 0;
	}
	if (a->fd >= 0)
		fds[n++] = a->fd;
	return send_reply(c->fd, &reply, fds, n);
}

static int reply(struct connection *c, uint32_t kind, const struct answer *a)
{
	pthread_mutex_lock(&c->server->lock);
	c->replied = true;
	pthread_mutex_unlock(&c->server->lock);
	return send_answer(c, kind, a);
}

static void explain_result(uint32_t problem, uint64_t detail, char *text, size_t size)
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
	set_timeout(c->fd, RESULT_TIMEOUT_S);
	for (uint32_t n = 0; n <= a->ncommands; n++) {
		if (receive(c->fd, r, sizeof(*r)) || r->magic != KRON_WIRE_MAGIC)
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
		explain_result(g->code, g->detail, why, sizeof(why));
		snprintf(text, sizeof(text), "%s: %s%s", g->module->path, why,
			 g->code == KRON_RESULT_OLD_BYTES && c->debugged
				 ? ": a debugger may have a breakpoint there"
				 : "");
		server_note_untraced(c->server, pid, g->module->path, text);
	}
}

static void take_result(struct connection *c, pid_t pid, const struct kron_hello *hello,
			struct answer *a)
{
	struct server *s = c->server;
	struct kron_result r;
	bool asks_again;
	char text[200];
	uint32_t uid;

	if (!receive_results(c, a, &r))
		return;
	log_debug("collect", "pid %d: %u modules patched, %u refused%s", pid, r.groups_applied,
		  r.groups_refused, r.flags & KRON_RESULT_AGAIN ? ", asks again" : "");
	asks_again = r.flags & KRON_RESULT_AGAIN;
	if (r.code != KRON_RESULT_OK) {
		explain_result(r.code, r.detail, text, sizeof(text));
		server_note_untraced(s, pid, NULL, text);
	}
	note_groups(c, pid, a, asks_again);
	uid = hello->kind == KRON_HELLO_START ? r.proc_uid : hello->proc_uid;
	answer_settle(s->answerer, a, uid, &r);
	if (hello->kind == KRON_HELLO_START)
		answer_known(s->answerer, pid, uid);
	if (hello->kind == KRON_HELLO_START && r.groups_applied) {
		pthread_mutex_lock(&s->lock);
		s->starts++;
		pthread_mutex_unlock(&s->lock);
	}
}

/* With --no-children only the first program counts, and what it executes in its own place. */
static bool is_wanted(struct server *s, pid_t pid)
{
	bool wanted;

	pthread_mutex_lock(&s->lock);
	if (!s->first_pid)
		s->first_pid = pid;
	wanted = !s->no_children || pid == s->first_pid;
	pthread_mutex_unlock(&s->lock);
	return wanted;
}

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

static void answer_question(struct connection *c, pid_t pid, const struct kron_hello *h)
{
	struct server *s = c->server;
	struct question q = {
		.pid = pid,
		.thunk = h->thunk[s->thunk],
		.hook_thunk = h->hook_thunk,
		.payload_thunk = h->payload_thunk[s->thunk],
		.resource_thunk = h->resource_thunk,
		.action_thunk = h->action_thunk,
		.way = s->thunk,
		.counts = (int32_t)h->counts,
		.again = h->again,
		.kind = h->kind,
		.range = h->range,
		.range_len = h->range_len,
	};
	uint32_t lineage[LINEAGE_MAX + 1];
	struct answer a;
	struct err err;
	int code;

	if (h->kind != KRON_HELLO_START) {
		tasks_lineage(s->tasks, h->proc_uid, h->proc_slot, lineage, LINEAGE_MAX);
		q.lineage = lineage;
	}
	note_debugger(c, pid, h->kind == KRON_HELLO_START);
	set_working(c, true);
	code = answer_make(s->answerer, &q, &a, &err);
	set_working(c, false);
	if (!code && a.counts && kron_thunk_is_lane(s->thunk))
		counts_make_room(s->seg);
	vec_for(&a.notes, n)
		server_note_untraced(s, pid, n->module, n->err.msg);
	if (code)
		server_note_untraced(s, pid, NULL, err.msg);
	else if (!a.brings_runtime && !reply(c, h->kind, &a))
		take_result(c, pid, h, &a);
	answer_free(&a);
}

/* Is its RESULT there, and nobody has read it yet? */
static bool has_result(const struct connection *c)
{
	struct pollfd p = {.fd = c->fd, .events = POLLIN};

	return c->replied && poll(&p, 1, 0) > 0;
}

/* Newer connections stand in front. */
static bool is_unsettled(const struct connection *c)
{
	for (const struct connection *older = c->next; older; older = older->next)
		if (older->pid == c->pid || has_result(older))
			return true;
	return false;
}

/*
 * What a process refused is not offered to it again, nor to its children, and what is new in a child
 * depends on what its parent was told.  So every RESULT that was sent before this question has to be
 * taken first: they are there already, and other threads read them.
 */
static void wait_for_turn(struct connection *c, pid_t pid)
{
	struct server *s = c->server;

	pthread_mutex_lock(&s->lock);
	c->pid = pid;
	while (!s->stopping && is_unsettled(c))
		pthread_cond_wait(&s->idle, &s->lock);
	pthread_mutex_unlock(&s->lock);
}

static void *connection_thread(void *arg)
{
	struct connection *c = arg, **p;
	struct server *s = c->server;
	struct kron_hello h;
	pid_t pid = peer_pid(c->fd);

	set_timeout(c->fd, HELLO_TIMEOUT_S);
	if (!receive(c->fd, &h, sizeof(h)) && is_hello_of_session(s, &h)) {
		if (pid <= 0) {
			server_note_untraced(s, h.pid, NULL,
					     "it runs where its /proc cannot be seen");
		} else if (is_wanted(s, pid)) {
			wait_for_turn(c, pid);
			if (h.kind == KRON_HELLO_START)
				tasks_announce(s->tasks, pid, h.pid);
			answer_question(c, pid, &h);
		}
	}
	pthread_mutex_lock(&s->lock);
	for (p = &s->connections; *p != c; p = &(*p)->next)
		;
	*p = c->next;
	close(c->fd);
	__atomic_fetch_sub(&s->nconnections, 1, __ATOMIC_RELAXED);
	pthread_cond_broadcast(&s->idle);
	pthread_mutex_unlock(&s->lock);
	xfree(c);
	return NULL;
}

/* ---- the listener ---- */

static void add_connection(struct server *s, int fd)
{
	struct connection *c = xcalloc(1, sizeof(*c));
	pthread_attr_t attr;
	pthread_t thread;
	int code;

	c->server = s;
	c->fd = fd;
	pthread_mutex_lock(&s->lock);
	c->next = s->connections;
	s->connections = c;
	__atomic_fetch_add(&s->nconnections, 1, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&s->lock);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	code = pthread_create(&thread, &attr, connection_thread, c);
	pthread_attr_destroy(&attr);
	if (code) /* out of threads: do it here, late is better than never */
		connection_thread(c);
}

static void tick(struct server *s)
{
	struct kron_reply msg = {
		.magic = KRON_WIRE_MAGIC, .version = KRON_WIRE_VERSION, .kind = KRON_MSG_WORKING};

	pthread_mutex_lock(&s->lock);
	for (struct connection *c = s->connections; c; c = c->next)
		if (c->working)
			send(c->fd, &msg, sizeof(msg), MSG_NOSIGNAL | MSG_DONTWAIT);
	pthread_mutex_unlock(&s->lock);
}

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static void *serve_thread(void *arg)
{
	struct server *s = arg;
	uint64_t next_tick = now_ms() + TICK_MS;

	pthread_setname_np(pthread_self(), "kron-serve");
	for (;;) {
		struct pollfd p[3] = {{.fd = s->wake_fd, .events = POLLIN},
				      {.fd = tasks_ends_fd(s->tasks), .events = POLLIN},
				      {.fd = s->fd, .events = POLLIN}};
		bool full =
			__atomic_load_n(&s->nconnections, __ATOMIC_RELAXED) >= SERVE_CONNECTIONS;
		uint64_t now = now_ms();
		int fd;

		if (now >= next_tick) {
			tick(s);
			next_tick = now + TICK_MS;
		}
		if (poll(p, full ? 2 : 3, full ? 5 : (int)(next_tick - now)) < 0 && errno != EINTR)
			break;
		if (p[0].revents)
			break;
		if (p[1].revents)
			tasks_note_ends(s->tasks);
		if (full || !(p[2].revents & POLLIN))
			continue;
		fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC);
		if (fd >= 0)
			add_connection(s, fd);
		else if (errno == EMFILE || errno == ENFILE)
			poll(p, 1, 10);
	}
	return NULL;
}

/* A number that is this process's for ever, and no other's; 0: the kernel has none (before 6.9). */
static uint64_t own_identity(void)
{
	int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	struct statfs fs;
	struct stat st;
	bool known = fd >= 0 && !fstatfs(fd, &fs) && fs.f_type == PID_FS_MAGIC && !fstat(fd, &st);

	if (fd >= 0)
		close(fd);
	return known ? st.st_ino : 0;
}

static int listen_somewhere(struct server *s, struct err *err)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	uint64_t random;
	socklen_t len;

	s->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s->fd < 0 || getrandom(&random, sizeof(random), 0) != sizeof(random))
		return err_set(err, errno, "cannot make a socket: %s", strerror(errno));
	snprintf(s->name, sizeof(s->name), KRON_SOCKET_PREFIX "%016" PRIx64 "-%016" PRIx64,
		 own_identity(), random);
	memcpy(addr.sun_path + 1, s->name, strlen(s->name));
	len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(s->name));
	if (bind(s->fd, (struct sockaddr *)&addr, len) || listen(s->fd, 1024))
		return err_set(err, errno, "cannot listen on a socket: %s", strerror(errno));
	return 0;
}

int server_start(struct server *s, struct err *err)
{
	int code;

	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->idle, NULL);
	untraced_init(&s->untraced);
	memcpy(s->session, s->seg->ctl->session, sizeof(s->session));
	s->wake_fd = eventfd(0, EFD_CLOEXEC);
	if (s->wake_fd < 0)
		return err_set(err, errno, "cannot make an eventfd: %s", strerror(errno));
	code = listen_somewhere(s, err);
	if (code)
		return code;
	code = pthread_create(&s->thread, NULL, serve_thread, s);
	if (code)
		return err_set(err, code, "cannot start a thread: %s", strerror(code));
	s->running = true;
	return 0;
}

bool server_stop(struct server *s)
{
	uint64_t one = 1;
	struct timespec until;
	bool all_ended;
	int code = 0;

	if (!s->running)
		return true;
	if (write(s->wake_fd, &one, sizeof(one)) < 0)
		log_error("collect", "cannot wake the server: %s", strerror(errno));
	pthread_join(s->thread, NULL);
	s->running = false;
	close(s->fd);
	s->fd = -1;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec++;
	pthread_mutex_lock(&s->lock);
	s->stopping = true;
	pthread_cond_broadcast(&s->idle);
	/* The peers get an end of file, and run on untraced. */
	for (struct connection *c = s->connections; c; c = c->next)
		shutdown(c->fd, SHUT_RDWR);
	while (s->nconnections && !code)
		code = pthread_cond_timedwait(&s->idle, &s->lock, &until);
	all_ended = !s->nconnections;
	pthread_mutex_unlock(&s->lock);
	return all_ended;
}

void server_free(struct server *s)
{
	if (s->fd >= 0)
		close(s->fd);
	if (s->wake_fd >= 0)
		close(s->wake_fd);
	untraced_free(&s->untraced);
	xfree(s->debugged);
}
