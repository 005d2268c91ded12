/* SPDX-License-Identifier: MIT */
/*
 * serve.c - see serve.h.
 *
 * Whatever a connection says that makes no sense ends it, with one line, and nothing else: another sender never
 * notices, and what was acknowledged stays.
 */
#define _GNU_SOURCE
#include "collect/cable/serve.h"

#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <poll.h>
#include <stdarg.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"

#define HELLO_NS 10000000000ull /* to say who it is */
#define QUIET_NS 30000000000ull /* a sender says something each second */
#define QUIET_ALONE_NS \
	10000000000ull /* ... and its next link waits until this one lets go of the node */
#define CONNS_MAX 4096
#define CONN_FDS 2   /* a connection, and its node's directory */
#define OTHER_FDS 32 /* of the process */
#define DEAF_NS 100000000ull
#define READ_MOST (1u << 20) /* of one connection before the next has its turn */
#define BUFFER (CABLE_DATA_MAX + sizeof(struct cable_head))

static uint64_t quiet_until(const struct cable_server *s)
{
	return clock_ns(CLOCK_MONOTONIC) + (s->shares ? QUIET_ALONE_NS : QUIET_NS);
}

static void say(const struct cable_server *s, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
static void say(const struct cable_server *s, const char *fmt, ...)
{
	va_list ap;

	if (!s->words)
		return;
	fputs("kron collect: ", s->words);
	va_start(ap, fmt);
	vfprintf(s->words, fmt, ap);
	va_end(ap);
	fputc('\n', s->words);
	fflush(s->words);
}

static const char *name_of(const struct cable_conn *c)
{
	return c->node ? c->node->name : c->peer;
}

void cable_conn_end(struct cable_server *s, struct cable_conn *c, const char *why)
{
	if (c->state == CABLE_ENDED)
		return;
	c->state = CABLE_ENDED;
	if (c->node && c->node->conn == c) {
		c->node->conn = NULL;
		cable_node_close(c->node);
	}
	if (!why)
		return;
	s->refused++;
	say(s, "%s: connection ended: %s", name_of(c), why);
}

/* ---- what goes ---- */

static void send_frame(struct cable_server *s, struct cable_conn *c, enum cable_type type,
		       const void *v, size_t n)
{
	struct cable_head h = {.magic = CABLE_MAGIC, .type = (uint8_t)type, .nbytes = (uint32_t)n};

	if (c->nout + sizeof(h) + n > sizeof(c->out)) {
		cable_conn_end(s, c, "it does not take what it asks for");
		return;
	}
	memcpy(c->out + c->nout, &h, sizeof(h));
	memcpy(c->out + c->nout + sizeof(h), v, n);
	c->nout += sizeof(h) + n;
}

/* One acknowledgement is enough for all that has come since the last. */
static void put_ack(struct cable_server *s, struct cable_conn *c)
{
	if (!c->wants_ack || c->state != CABLE_OPEN ||
	    c->nout + sizeof(struct cable_head) + sizeof(c->node->has) > sizeof(c->out) / 2)
		return;
	c->wants_ack = false;
	send_frame(s, c, CABLE_ACK, &c->node->has, sizeof(c->node->has));
}

static void flush_out(struct cable_server *s, struct cable_conn *c)
{
	ssize_t n;

	put_ack(s, c);
	if (!c->nout || c->fd < 0)
		return;
	n = send(c->fd, c->out, c->nout, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		cable_conn_end(s, c, strerror(errno));
	} else if (n > 0) {
		c->nout -= (size_t)n;
		memmove(c->out, c->out + n, c->nout);
	}
}

static void refuse(struct cable_server *s, struct cable_conn *c, const char *why)
{
	send_frame(s, c, CABLE_REFUSED, why, strlen(why));
	flush_out(s, c);
	cable_conn_end(s, c, why);
}

/* ---- what comes ---- */

static bool has_token(const struct cable_server *s, const struct cable_conn *c,
		      const struct cable_hello *h)
{
	uint8_t expected[CABLE_ANSWER];

	if (!s->token.n)
		return true;
	cable_answer(expected, &s->token, CABLE_SENDER, c->nonce, h->nonce, h->id);
	return cable_same(expected, h->answer, CABLE_ANSWER);
}

static void take_hello(struct cable_server *s, struct cable_conn *c, const struct cable_hello *h)
{
	struct cable_welcome w = {0};
	struct cable_conn *before;
	struct cable_node *node;
	char text[CABLE_TEXT_MAX];
	struct err err;

	if (h->version != CABLE_VERSION) {
		snprintf(text, sizeof(text),
			 "the sender speaks version %" PRIu32 " of the protocol, this collector %u",
			 h->version, CABLE_VERSION);
		refuse(s, c, text);
		return;
	}
	if (!has_token(s, c, h)) {
		refuse(s, c, "the sender does not have the collector's token");
		return;
	}
	if (!cable_is_name(h->name)) {
		refuse(s, c, "the sender's name is none of a directory");
		return;
	}
	node = cable_node_of(s, h, &err);
	if (!node && s->was_locked) { /* it tries again */
		cable_conn_end(s, c, err.msg);
		return;
	}
	if (!node) {
		snprintf(text, sizeof(text), "%.500s", err.msg);
		refuse(s, c, text);
		return;
	}
	c->node = node;
	before = node->conn;
	node->conn = c;
	if (before) /* its sender has given the old link up */
		cable_conn_end(s, before, "its sender has come by another one");
	c->state = CABLE_OPEN;
	c->in = xrealloc(c->in, sizeof(struct cable_head) + CABLE_DATA_MAX);
	c->until_ns = quiet_until(s);
	cable_answer(w.answer, &s->token, CABLE_COLLECTOR, h->nonce, c->nonce, h->id);
	memcpy(w.boot, s->boot, sizeof(w.boot));
	w.has = c->node->has;
	send_frame(s, c, CABLE_WELCOME, &w, sizeof(w));
	if (!s->quiet)
		say(s, "%s: %s from %s", name_of(c),
		    c->node->has.v[CABLE_SESSION] ? "taken up again" : "begins", c->peer);
}

static void take_data(struct cable_server *s, struct cable_conn *c, const struct cable_head *h,
		      const uint8_t *v)
{
	int ret = cable_node_append(s, c->node, h->file, h->offset, v, h->nbytes);

	c->wants_ack = true;
	if (ret == -ERANGE)
		cable_conn_end(s, c, "it leaves something out");
	else if (ret)
		refuse(s, c, strerror(-ret));
}

static void take_ping(struct cable_server *s, struct cable_conn *c, const struct cable_ping *p)
{
	struct cable_pong pong = {.number = p->number};

	pong.came_ns = clock_ns(CLOCK_MONOTONIC);
	put_ack(s, c);
	pong.went_ns = clock_ns(CLOCK_MONOTONIC);
	send_frame(s, c, CABLE_PONG, &pong, sizeof(pong));
	flush_out(s, c);
}

static void take_done(struct cable_server *s, struct cable_conn *c, const struct cable_sizes *all)
{
	uint64_t bytes = 0;

	if (memcmp(all, &c->node->has, sizeof(*all))) {
		cable_conn_end(s, c, "it says that all was sent, and it was not");
		return;
	}
	for (size_t i = 0; i < CABLE_FILES; i++)
		bytes += all->v[i];
	c->node->done = true;
	send_frame(s, c, CABLE_DONE, all, sizeof(*all));
	flush_out(s, c);
	if (!s->quiet)
		say(s, "%s: complete, %.1f MB", name_of(c), (double)bytes / 1e6);
}

static void take_frame(struct cable_server *s, struct cable_conn *c)
{
	/* copies: the buffer has no alignment to speak of */
	struct cable_head h;
	const uint8_t *v = c->in + sizeof(h);
	struct cable_sizes sizes;
	struct cable_hello hello;
	struct cable_ping ping;

	memcpy(&h, c->in, sizeof(h));
	if (c->state == CABLE_WAITS && h.type == CABLE_HELLO) {
		memcpy(&hello, v, sizeof(hello));
		take_hello(s, c, &hello);
	} else if (c->state == CABLE_OPEN && h.type == CABLE_DATA) {
		take_data(s, c, &h, v);
	} else if (c->state == CABLE_OPEN && h.type == CABLE_PING) {
		memcpy(&ping, v, sizeof(ping));
		take_ping(s, c, &ping);
	} else if (c->state == CABLE_OPEN && h.type == CABLE_DONE) {
		memcpy(&sizes, v, sizeof(sizes));
		take_done(s, c, &sizes);
	} else {
		cable_conn_end(s, c, "a frame came out of turn");
	}
}

/* How many bytes the frame that has begun wants; 0: it is refused. */
static size_t wanted(struct cable_server *s, struct cable_conn *c)
{
	struct cable_head h;
	const char *why;

	if (c->nin < sizeof(h))
		return sizeof(h);
	memcpy(&h, c->in, sizeof(h));
	why = cable_check(&h);
	if (!why && c->state == CABLE_WAITS && h.type != CABLE_HELLO)
		why = "a frame came out of turn";
	if (why)
		cable_conn_end(s, c, why);
	return why ? 0 : sizeof(h) + h.nbytes;
}

void cable_conn_take(struct cable_server *s, struct cable_conn *c, const uint8_t *v, size_t n)
{
	while (c->state != CABLE_ENDED) {
		size_t want = wanted(s, c), part;

		if (!want)
			return;
		if (c->nin == want) { /* a head alone is not a frame: each has a rest */
			take_frame(s, c);
			c->nin = 0;
			continue;
		}
		if (!n)
			return;
		part = want - c->nin < n ? want - c->nin : n;
		memcpy(c->in + c->nin, v, part);
		c->nin += part;
		v += part;
		n -= part;
	}
}

/* ---- connections ---- */

struct cable_conn *cable_conn_new(struct cable_server *s, int fd, const char *peer)
{
	struct cable_conn *c = xcalloc(1, sizeof(*c));
	struct cable_challenge ch = {.version = CABLE_VERSION, .needs_token = s->token.n != 0};

	c->fd = fd;
	c->in = xmalloc(sizeof(struct cable_head) +
			sizeof(struct cable_hello)); /* no more until then */
	c->until_ns = clock_ns(CLOCK_MONOTONIC) + HELLO_NS;
	snprintf(c->peer, sizeof(c->peer), "%s", peer);
	if (getrandom(c->nonce, sizeof(c->nonce), 0) != sizeof(c->nonce))
		cable_conn_end(s, c, "the kernel gives no random numbers");
	memcpy(ch.nonce, c->nonce, sizeof(c->nonce));
	send_frame(s, c, CABLE_CHALLENGE, &ch, sizeof(ch));
	*vec_push(&s->conns) = c;
	return c;
}

void cable_conn_free(struct cable_server *s, struct cable_conn *c)
{
	cable_conn_end(s, c, NULL);
	for (size_t i = 0; i < s->conns.n; i++)
		if (s->conns.v[i] == c)
			s->conns.v[i] = s->conns.v[--s->conns.n];
	if (c->fd >= 0)
		close(c->fd);
	xfree(c->in);
	xfree(c);
}

/* As many as there are descriptors for: the soft limit is for programs that select(2). */
static size_t most_connections(void)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r))
		return 1;
	r.rlim_cur = r.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &r) && getrlimit(RLIMIT_NOFILE, &r))
		return 1;
	if (r.rlim_cur < OTHER_FDS + CONN_FDS)
		return 1;
	return r.rlim_cur > CONN_FDS * CONNS_MAX + OTHER_FDS ? CONNS_MAX
							     : (r.rlim_cur - OTHER_FDS) / CONN_FDS;
}

/* Who connects and says nothing keeps no one else away: the oldest of them goes. */
static bool make_room(struct cable_server *s)
{
	struct cable_conn *oldest = NULL;

	vec_for(&s->conns, c)
		if ((*c)->state == CABLE_WAITS && (!oldest || (*c)->until_ns < oldest->until_ns))
			oldest = *c;
	if (!oldest)
		return false;
	cable_conn_end(s, oldest, "it does not say who it is, and others come");
	cable_conn_free(s, oldest);
	return true;
}

static void accept_one(struct cable_server *s, int listener, size_t most)
{
	struct sockaddr_storage a;
	socklen_t size = sizeof(a);
	int fd = accept4(listener, (void *)&a, &size, SOCK_CLOEXEC | SOCK_NONBLOCK);
	char host[64] = "", port[16] = "", peer[96] = "a local process";

	if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS))
		s->deaf_until_ns = clock_ns(CLOCK_MONOTONIC) + DEAF_NS; /* it would spin */
	if (fd < 0)
		return;
	if (s->conns.n >= most && !make_room(s)) {
		close(fd);
		return;
	}
	if (a.ss_family != AF_UNIX && !getnameinfo((void *)&a, size, host, sizeof(host), port,
						   sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV))
		snprintf(peer, sizeof(peer), "%s port %s", host, port);
	cable_conn_new(s, fd, peer);
}

static void read_from(struct cable_server *s, struct cable_conn *c)
{
	size_t most = READ_MOST;

	while (c->state != CABLE_ENDED && most) {
		ssize_t n = recv(c->fd, s->buffer, BUFFER < most ? BUFFER : most, MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0) {
			bool as_it_should = c->node && c->node->done;

			cable_conn_end(s, c,
				       as_it_should ? NULL
				       : n          ? strerror(errno)
				       : c->nin     ? "it was cut in the middle of a frame"
				       : c->node    ? "its sender has gone before all was sent"
						    : "it said nothing");
			return;
		}
		if (c->state == CABLE_OPEN) /* who has not said who it is gets no more time */
			c->until_ns = quiet_until(s);
		cable_conn_take(s, c, s->buffer, (size_t)n);
		most -= (size_t)n;
	}
}

static void look_at(struct cable_server *s, struct cable_conn *c, short events, uint64_t now)
{
	bool waits = c->state == CABLE_WAITS;

	if (events & (POLLIN | POLLHUP | POLLERR))
		read_from(s, c);
	else if (now > c->until_ns)
		cable_conn_end(
			s, c, waits ? "it does not say who it is" : "it has said nothing for 30 s");
	if (c->state != CABLE_ENDED)
		flush_out(s, c);
}

int cable_server_run(struct cable_server *s, int listener, volatile int *stop, struct err *err)
{
	const size_t most = most_connections();
	VEC(struct pollfd) p = {0};
	int ret = 0;

	s->buffer = xmalloc(BUFFER);
	while (!*stop && !ret && (listener >= 0 || s->conns.n)) {
		bool is_deaf;
		uint64_t now;
		size_t n;

		p.n = 0;
		vec_for(&s->conns, c)
			*vec_push(&p) = (struct pollfd){
				.fd = (*c)->fd,
				.events = (short)(POLLIN |
						  ((*c)->nout || (*c)->wants_ack ? POLLOUT : 0))};
		is_deaf = clock_ns(CLOCK_MONOTONIC) < s->deaf_until_ns;
		*vec_push(&p) = (struct pollfd){.fd = is_deaf ? -1 : listener, .events = POLLIN};
		n = p.n - 1;
		if (poll(p.v, p.n, is_deaf ? DEAF_NS / 1000000 : 500) < 0 && errno != EINTR)
			ret = err_set(err, errno, "poll: %s", strerror(errno));
		now = clock_ns(CLOCK_MONOTONIC);
		/* from the last one on: those that go are replaced by later ones */
		for (size_t i = n; i-- > 0 && !ret;)
			look_at(s, s->conns.v[i], p.v[i].revents, now);
		for (size_t i = s->conns.n; i-- > 0;)
			if (s->conns.v[i]->state == CABLE_ENDED)
				cable_conn_free(s, s->conns.v[i]);
		if (p.v[n].revents & POLLIN)
			accept_one(s, listener, most);
	}
	vec_free(&p);
	xfree(s->buffer);
	return ret;
}
