/* SPDX-License-Identifier: MIT */
/*
 * serve.c - see serve.h.  doc/SECURITY.md says who may ask, and what each side proves.
 *
 *   accept ─► SILENT ──HELLO──► WAITS ──► ASKS: a thread, serve_answer.c
 *               │                 └── too many of its process ──► closed, and a note
 *               └── too long, too many of its user or process ──► closed
 *
 * One thread accepts, hears HELLOs, and ticks.  It waits for nobody: a connection that says nothing
 * is an entry in a list, and those of other users are few.  What may take long is for the threads that
 * answer: notes, too, which wait for the trace's files.  Whoever asks must know the session's token,
 * and be of our own user or belong to the recording (peers.c).  It can make us plan a file that
 * it has loaded, and no more than that.
 */
#define _GNU_SOURCE
#include "collect/attach/serve.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "collect/attach/serve_impl.h"
#include "collect/starts.h"

#define TICK_MS 1000
#define HELLO_MS 5000
#define EVENTS 32
#define BACKLOG 1024
/* A start waits for whoever is before it, and a flood fills the backlog at once. */
#define BACKLOG_FLOODED 128
#define FLOOD 500u /* connections in a second that were none of a start */
#define ACCEPTS 64 /* at most between two looks at those that are there */
#ifndef PID_FS_MAGIC
#define PID_FS_MAGIC 0x50494446
#endif

/* ---- notes ---- */

static void write_note(struct server *s, pid_t pid, const char *reason)
{
	const struct trace_untraced_line line = {.pid = pid, .reason = reason};

	journal_put(s->journal, trace_writer_untraced, &line);
}

static void note_times(struct server *s, pid_t pid, const char *module, const char *reason,
		       uint64_t times)
{
	untraced_add_times(&s->untraced, module, reason, times);
	if (journal_has_room(s->journal, pid))
		write_note(s, pid, reason);
	log_info("collect", "pid %d: %s", pid, reason);
}

void server_note_many(struct server *s, pid_t pid, const char *reason, uint64_t n)
{
	note_times(s, pid, NULL, reason, n);
}

/* At the end, when nobody can ask for more of them. */
static void note_once(void *ctx, pid_t pid, const char *reason, uint64_t n)
{
	struct server *s = ctx;

	untraced_add_times(&s->untraced, NULL, reason, n);
	write_note(s, pid, reason);
}

void server_note_untraced(struct server *s, pid_t pid, const char *module, const char *reason)
{
	note_times(s, pid, module, reason, 1);
}

/* ---- probes that were added ---- */

void server_set_added(struct server *s, const struct added_probes *added)
{
	pthread_mutex_lock(&s->lock);
	s->added = added;
	pthread_mutex_unlock(&s->lock);
}

void server_set_watcher(struct server *s, const struct plan_watcher *watcher)
{
	pthread_mutex_lock(&s->lock);
	s->watcher = watcher;
	pthread_mutex_unlock(&s->lock);
}

void server_tell_watcher(struct server *s, pid_t pid, bool goes_on)
{
	const struct plan_watcher *w;

	pthread_mutex_lock(&s->lock);
	w = s->watcher;
	pthread_mutex_unlock(&s->lock);
	if (w)
		w->tell(w->ctx, pid, goes_on);
}

const struct added_probes *server_added(struct server *s)
{
	const struct added_probes *added;

	pthread_mutex_lock(&s->lock);
	added = s->added;
	pthread_mutex_unlock(&s->lock);
	return added;
}

/* ---- a guest ---- */

int server_watch_guest(struct server *s, const struct server_guest *guest)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = &s->guest};
	int code;

	pthread_mutex_lock(&s->lock);
	s->guest = *guest;
	code = epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, guest->fd, &ev) ? -errno : 0;
	if (code) /* its descriptor may soon be another's */
		s->guest.comes = NULL;
	pthread_mutex_unlock(&s->lock);
	return code;
}

static struct server_guest take_guest(struct server *s)
{
	struct server_guest guest;

	pthread_mutex_lock(&s->lock);
	guest = s->guest;
	if (guest.comes)
		epoll_ctl(s->epoll_fd, EPOLL_CTL_DEL, guest.fd, NULL);
	s->guest.comes = NULL;
	pthread_mutex_unlock(&s->lock);
	return guest;
}

static void meet_guest(struct server *s)
{
	const struct server_guest guest = take_guest(s);

	if (guest.comes)
		guest.comes(guest.ctx);
}

void server_forget_guest(struct server *s)
{
	take_guest(s);
}

/* ---- connections ---- */

/* The silent connections of a user other than ours. */
struct silence {
	uid_t uid;
	unsigned n;
};

static struct silence *silence_of(struct silence *all, unsigned *n, uid_t uid)
{
	for (unsigned i = 0; i < *n; i++)
		if (all[i].uid == uid)
			return &all[i];
	if (*n == SERVE_SILENT) /* make_room() lets no more come */
		return &all[0];
	all[*n] = (struct silence){.uid = uid};
	return &all[(*n)++];
}

/* How many a process has, and the oldest of them. */
static unsigned count_silent(struct server *s, const struct peer *p, struct connection **oldest)
{
	struct connection *c;
	unsigned n = 0;

	TAILQ_FOREACH(c, &s->list[CONNECTION_SILENT], link)
	{
		if (c->peer.pid != p->pid || c->peer.uid != p->uid)
			continue;
		if (!n++)
			*oldest = c;
	}
	return n;
}

/* Of the user who has most, the process that has most. */
static struct connection *oldest_of_most(struct server *s, uid_t uid)
{
	struct connection *c, *victim = NULL, *oldest = NULL;
	unsigned most = 0;

	TAILQ_FOREACH(c, &s->list[CONNECTION_SILENT], link)
	{
		unsigned n = c->peer.uid == uid ? count_silent(s, &c->peer, &oldest) : 0;

		if (n > most) {
			most = n;
			victim = oldest;
		}
	}
	return victim;
}

/* Which silent one of a stranger's has to go; NULL: no stranger has any. */
static struct connection *find_victim(struct server *s)
{
	struct silence all[SERVE_SILENT];
	const struct silence *most = NULL;
	struct connection *c;
	unsigned n = 0;

	TAILQ_FOREACH(c, &s->list[CONNECTION_SILENT], link)
	if (connection_is_strangers(c))
		silence_of(all, &n, c->peer.uid)->n++;
	for (unsigned i = 0; i < n; i++)
		if (!most || all[i].n > most->n)
			most = &all[i];
	return most ? oldest_of_most(s, most->uid) : NULL;
}

static void make_room(struct server *s)
{
	unsigned strangers = 0;
	struct connection *c;

	TAILQ_FOREACH(c, &s->list[CONNECTION_SILENT], link)
	strangers += connection_is_strangers(c);
	if (strangers >= SERVE_SILENT)
		connection_close(find_victim(s));
}

/* One that connects without end costs no more than this, and holds nobody up.  What it has not said
 * needs no note: a program of the recording that was about to start is in the table of starts. */
static bool has_enough(const struct connection *c)
{
	struct connection *oldest;

	return c->peer.pid > 0 && (count_silent(c->server, &c->peer, &oldest) >= SERVE_SILENT / 2 ||
				   connection_is_too_many(c));
}

/* Counts a connection that was not a program's start: many of them are a flood. */
static void count_useless(struct server *s)
{
	if (++s->useless == FLOOD && !s->flooded) {
		s->flooded = true;
		listen(s->fd, BACKLOG_FLOODED);
	}
}

static void look_at_flood(struct server *s)
{
	if (s->flooded && s->useless < FLOOD) {
		s->flooded = false;
		listen(s->fd, BACKLOG);
	}
	s->useless = 0;
}

static void add_connection(struct server *s, int fd)
{
	struct connection *c = xcalloc(1, sizeof(*c));
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = c};

	c->server = s;
	c->fd = fd;
	c->since_ms = clock_ms(CLOCK_MONOTONIC_COARSE);
	peer_of_socket(&c->peer, fd);
	pthread_mutex_lock(&s->lock);
	if (connection_is_strangers(c))
		make_room(s);
	c->number = ++s->last_number;
	TAILQ_INSERT_TAIL(&s->list[CONNECTION_SILENT], c, link);
	s->nconnections++;
	if (has_enough(c) || epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, fd, &ev)) {
		connection_close(c);
		count_useless(s);
	}
	pthread_mutex_unlock(&s->lock);
}

/* ---- HELLO ---- */

static bool has_token(const struct server *s, const struct kron_hello *h, size_t n)
{
	return n >= offsetof(struct kron_hello, proc_uid) && h->magic == KRON_WIRE_MAGIC &&
	       !memcmp(h->session, s->session, sizeof(h->session));
}

/* With --no-children only the first process is traced, whatever programs it executes. */
static bool is_wanted(struct server *s, pid_t pid)
{
	if (!s->first_pid)
		s->first_pid = pid;
	return !s->no_children || pid == s->first_pid;
}

/* A board with a name, whose file its owner could truncate, and hardware are for our own user only. */
static const char *what_is_ours_alone(const struct server *s)
{
	if (!s->seg->own)
		return "it is another user's, and a board with a name is one user's: without "
		       "--board it could be traced";
	if (s->hardware_fd >= 0)
		return "it is another user's, and the hardware is yours alone";
	return NULL;
}

/* NULL: it may ask. */
static const char *why_not(struct connection *c)
{
	struct server *s = c->server;

	if (c->peer.pid <= 0)
		return "it runs where its /proc cannot be seen";
	if (!peer_identify(&c->peer, c->fd))
		return "it ended before its plan was ready";
	if (!connection_is_strangers(c))
		return NULL;
	if (!peer_belongs(&s->users, &c->peer, s->tasks))
		return "it is another user's, knows the recording, and no process of the recording "
		       "has started it";
	return what_is_ours_alone(s);
}

/* What to do with it: true, it is to have a thread, for its answer or for the note that it gets none. */
static bool hear(struct connection *c)
{
	struct server *s = c->server;
	ssize_t n = recv(c->fd, &c->hello, sizeof(c->hello), MSG_DONTWAIT | MSG_TRUNC);

	if (n <= 0 || !has_token(s, &c->hello, (size_t)n))
		return false;
	if (c->hello.version != KRON_WIRE_VERSION || n != sizeof(c->hello))
		c->refused = "the libkron-rt.so in it is of another version than kron";
	else if (c->hello.kind < KRON_HELLO_START || c->hello.kind > KRON_HELLO_STAYS)
		return false;
	else
		c->refused = why_not(c);
	if (c->hello.kind == KRON_HELLO_START)
		starts_arrived(s->seg, c->peer.its_pid);
	return c->refused || is_wanted(s, c->peer.pid);
}

/* Does it hang up because it cannot verify in its user namespace who we are (runtime/collector/trust.c)? */
static bool mistrusts(struct connection *c)
{
	if (connection_is_strangers(c) || c->peer.pid <= 0 || !peer_is_in_other_users(&c->peer))
		return false;
	c->refused = "it runs in a user namespace in which kron's user is not to be told from "
		     "others";
	return true;
}

static void take_event(struct connection *c)
{
	struct server *s = c->server;
	char byte;
	bool hung_up = !recv(c->fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK);
	bool stays = hung_up ? mistrusts(c) : hear(c);

	epoll_ctl(s->epoll_fd, EPOLL_CTL_DEL, c->fd, NULL);
	pthread_mutex_lock(&s->lock);
	if (!stays) {
		connection_close(c);
		count_useless(s);
	} else if (connection_is_too_many(c)) {
		connection_turn_away(c);
		count_useless(s);
	} else {
		c->working = !c->refused;
		connection_move(c, CONNECTION_WAITS);
		turns_start(s);
	}
	pthread_mutex_unlock(&s->lock);
}

/* ---- the listener ---- */

/* Who waits learns that work goes on, and who says nothing for long is disconnected. */
static void tick(struct server *s, uint64_t now)
{
	struct kron_reply msg = {
		.magic = KRON_WIRE_MAGIC, .version = KRON_WIRE_VERSION, .kind = KRON_MSG_WORKING};
	struct connection *c;

	pthread_mutex_lock(&s->lock);
	for (int state = CONNECTION_WAITS; state <= CONNECTION_ASKS; state++)
		TAILQ_FOREACH(c, &s->list[state], link)
	if (c->working)
		send(c->fd, &msg, sizeof(msg), MSG_NOSIGNAL | MSG_DONTWAIT);
	while ((c = TAILQ_FIRST(&s->list[CONNECTION_SILENT])) && now - c->since_ms > HELLO_MS)
		connection_close(c);
	turns_start(s);
	turns_give_up(s, now - TICK_MS);
	pthread_mutex_unlock(&s->lock);
}

/* No descriptor is left: closes a stranger's connection, or waits a moment for ours to end. */
static void free_descriptors(struct server *s)
{
	struct pollfd p = {.fd = s->wake_fd, .events = POLLIN};
	struct connection *victim;
	bool freed = false;

	pthread_mutex_lock(&s->lock);
	victim = find_victim(s);
	if (victim)
		connection_close(victim);
	else
		freed = turns_free_stranger(s);
	pthread_mutex_unlock(&s->lock);
	if (!victim && !freed)
		poll(&p, 1, 10);
}

static void accept_some(struct server *s)
{
	for (int i = 0; i < ACCEPTS; i++) {
		int fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC);

		if (fd >= 0)
			add_connection(s, fd);
		else if (errno == EMFILE || errno == ENFILE)
			return free_descriptors(s);
		else
			return;
	}
}

/* Those that are there before those that come.  False: it is over. */
static bool take_events(struct server *s, const struct epoll_event *ev, int n)
{
	bool listener = false;

	for (int i = 0; i < n; i++) {
		if (ev[i].data.ptr == &s->wake_fd)
			return false;
		if (ev[i].data.ptr == &s->fd)
			listener = true;
		else if (ev[i].data.ptr == &s->tasks)
			tasks_note_ends(s->tasks);
		else if (ev[i].data.ptr == &s->guest)
			meet_guest(s);
		else
			take_event(ev[i].data.ptr);
	}
	if (listener)
		accept_some(s);
	return true;
}

static void *serve_thread(void *arg)
{
	struct server *s = arg;
	uint64_t next_tick = clock_ms(CLOCK_MONOTONIC_COARSE) + TICK_MS, now;
	struct epoll_event ev[EVENTS];
	int n;

	pthread_setname_np(pthread_self(), "kron-serve");
	for (;;) {
		now = clock_ms(CLOCK_MONOTONIC_COARSE);
		if (now >= next_tick) {
			tick(s, now);
			look_at_flood(s);
			next_tick = now + TICK_MS;
		}
		n = epoll_wait(s->epoll_fd, ev, EVENTS, (int)(next_tick - now));
		if (n < 0 && errno != EINTR)
			break;
		if (!take_events(s, ev, n))
			break;
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
	uint32_t random;
	socklen_t len;

	s->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s->fd < 0 || getrandom(&random, sizeof(random), 0) != sizeof(random))
		return err_set(err, errno, "cannot make a socket: %s", strerror(errno));
	snprintf(s->name, sizeof(s->name), KRON_SOCKET_PREFIX "%016" PRIx64 "-%08" PRIx32 "%08x",
		 own_identity(), random, (unsigned)getpid());
	memcpy(addr.sun_path + 1, s->name, strlen(s->name));
	len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(s->name));
	if (bind(s->fd, (struct sockaddr *)&addr, len) || listen(s->fd, BACKLOG))
		return err_set(err, errno, "cannot listen on a socket: %s", strerror(errno));
	return 0;
}

static int watch_descriptors(struct server *s, struct err *err)
{
	struct epoll_event listener = {.events = EPOLLIN, .data.ptr = &s->fd};
	struct epoll_event wake = {.events = EPOLLIN, .data.ptr = &s->wake_fd};
	struct epoll_event ends = {.events = EPOLLIN, .data.ptr = &s->tasks};
	int ends_fd = tasks_ends_fd(s->tasks);

	s->wake_fd = eventfd(0, EFD_CLOEXEC);
	s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (s->wake_fd < 0 || s->epoll_fd < 0 ||
	    epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, s->fd, &listener) ||
	    epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, s->wake_fd, &wake) ||
	    (ends_fd >= 0 && epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, ends_fd, &ends)))
		return err_set(err, errno, "cannot watch a socket: %s", strerror(errno));
	return 0;
}

int server_start(struct server *s, struct err *err)
{
	int code;

	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->idle, NULL);
	for (int state = 0; state < CONNECTION_STATES; state++)
		TAILQ_INIT(&s->list[state]);
	untraced_init(&s->untraced);
	memcpy(s->session, s->seg->ctl->session, sizeof(s->session));
	s->uid = geteuid();
	code = listen_somewhere(s, err);
	if (!code)
		code = watch_descriptors(s, err);
	if (code)
		return code;
	code = pthread_create(&s->thread, NULL, serve_thread, s);
	if (code)
		return err_set(err, code, "cannot start a thread: %s", strerror(code));
	s->running = true;
	return 0;
}

/* The peers get an end of file, and run on untraced.  How many had asked and had no thread? */
static unsigned hang_up(struct server *s)
{
	struct connection *c;
	unsigned n = 0;

	while ((c = TAILQ_FIRST(&s->list[CONNECTION_SILENT])))
		connection_close(c);
	for (; (c = TAILQ_FIRST(&s->list[CONNECTION_WAITS])); n++)
		connection_close(c);
	TAILQ_FOREACH(c, &s->list[CONNECTION_ASKS], link)
	shutdown(c->fd, SHUT_RDWR);
	return n;
}

/* From now on nobody connects, and nobody else gets the name as long as we live. */
static void refuse_connections(struct server *s)
{
	int fd;

	shutdown(s->fd, SHUT_RDWR);
	while ((fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC)) >= 0)
		close(fd);
}

bool server_stop(struct server *s)
{
	uint64_t one = 1;
	struct timespec until;
	unsigned waited;
	bool all_ended;
	int code = 0;

	if (!s->running)
		return true;
	if (write(s->wake_fd, &one, sizeof(one)) < 0)
		log_error("collect", "cannot wake the server: %s", strerror(errno));
	pthread_join(s->thread, NULL);
	s->running = false;
	refuse_connections(s);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec++;
	pthread_mutex_lock(&s->lock);
	s->stopping = true;
	pthread_cond_broadcast(&s->idle);
	waited = hang_up(s);
	while (s->nconnections && !code)
		code = pthread_cond_timedwait(&s->idle, &s->lock, &until);
	all_ended = !s->nconnections;
	pthread_mutex_unlock(&s->lock);
	turns_note(s);
	if (waited)
		server_note_many(s, 0, "the recording ended before its plan was ready", waited);
	starts_finish(s->seg, note_once, s);
	return all_ended;
}

static bool answers_one_of(const struct server *s, uint64_t last)
{
	const struct connection *c;

	TAILQ_FOREACH(c, &s->list[CONNECTION_ASKS], link)
	if (c->number <= last)
		return true;
	return false;
}

bool server_wait_answered(struct server *s, unsigned seconds)
{
	struct timespec until;
	bool done;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += seconds;
	pthread_mutex_lock(&s->lock);
	const uint64_t last = s->last_number;
	while (answers_one_of(s, last) &&
	       pthread_cond_timedwait(&s->idle, &s->lock, &until) != ETIMEDOUT)
		;
	done = !answers_one_of(s, last);
	pthread_mutex_unlock(&s->lock);
	return done;
}

void server_hold(struct server *s)
{
	pthread_mutex_lock(&s->lock);
	s->nconnections++;
	pthread_mutex_unlock(&s->lock);
}

void server_release(struct server *s)
{
	pthread_mutex_lock(&s->lock);
	s->nconnections--;
	pthread_cond_broadcast(&s->idle);
	pthread_mutex_unlock(&s->lock);
}

void server_free(struct server *s)
{
	if (s->fd >= 0)
		close(s->fd);
	if (s->wake_fd >= 0)
		close(s->wake_fd);
	if (s->epoll_fd >= 0)
		close(s->epoll_fd);
	vec_free(&s->users.known);
	untraced_free(&s->untraced);
	xfree(s->debugged);
}
