/* SPDX-License-Identifier: MIT */
/*
 * server.c - see server.h
 *
 *   READING ──a request──► WRITING ──all is sent──► LEAVING ──the client has gone, or 1 s──► closed
 *      │                  STREAMING ──the end─────►
 *      └─5 s─► closed
 *
 * LEAVING reads what still comes: closed over unread bytes, a socket would take back what was sent.
 */
#define _GNU_SOURCE
#include "collect/http/server.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"

#define SECOND 1000000000ull
#define READING_NS (5 * SECOND)  /* a request, from the first byte to the last */
#define WRITING_NS (20 * SECOND) /* an answer */
#define STALLED_NS (20 * SECOND) /* a stream that takes nothing */
#define LEAVING_NS (SECOND)
#define ENDING_NS (SECOND / 5) /* all of them, when the monitor ends */
#define DEAF_NS (SECOND / 10)
#define FAVOUR 19 /* nice(2): the program and the monitor come first */
#define SEND_BUFFER (256 << 10)
#define UNASKED_MAX (64u << 10) /* bytes that a client sends after its request */

enum state { READING, WRITING, STREAMING, LEAVING };

struct http_client {
	int fd;
	enum state state;
	uint64_t since_ns;
	uint64_t until_ns; /* 0: as long as it likes */
	char in[HTTP_REQUEST_MAX];
	size_t nin, unasked;
	http_bytes out;
	size_t sent;
	uint64_t place;    /* in the stream */
	bool is_over;      /* the stream */
	bool has_finished; /* its side: nothing comes any more */
	bool is_closed;
};

/* ---- clients ---- */

static void close_client(struct http_client *c)
{
	if (c->is_closed)
		return;
	close(c->fd);
	vec_free(&c->out);
	c->is_closed = true;
}

static void sweep(struct http_server *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->clients.n; i++) {
		if (s->clients.v[i]->is_closed)
			xfree(s->clients.v[i]);
		else
			s->clients.v[n++] = s->clients.v[i];
	}
	s->clients.n = n;
}

static bool has_pending(const struct http_client *c)
{
	return c->sent < c->out.n;
}

static void leave(struct http_client *c)
{
	shutdown(c->fd, SHUT_WR);
	c->state = LEAVING;
	c->until_ns = clock_ns(CLOCK_MONOTONIC) + LEAVING_NS;
}

static size_t streams(const struct http_server *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->clients.n; i++)
		n += s->clients.v[i]->state == STREAMING && !s->clients.v[i]->is_closed;
	return n;
}

/* ---- answers ---- */

static void put(http_bytes *out, const char *s)
{
	vec_add(out, s, strlen(s));
}

static const char *words_of(int status)
{
	switch (status) {
	case HTTP_OK:
		return "OK";
	case HTTP_FORBIDDEN:
		return "Forbidden";
	case HTTP_NOT_FOUND:
		return "Not Found";
	case HTTP_NOT_ALLOWED:
		return "Method Not Allowed";
	case HTTP_TOO_LARGE:
		return "Request Header Fields Too Large";
	case HTTP_BUSY:
		return "Service Unavailable";
	default:
		return "Bad Request";
	}
}

/* size -1: until the connection ends */
static void put_head(http_bytes *out, int status, const char *type, const char *policy, long size)
{
	char *head =
		xasprintf("HTTP/1.1 %d %s\r\n"
			  "Content-Type: %s\r\n"
			  "Content-Security-Policy: %s; frame-ancestors 'none'\r\n"
			  "Cache-Control: no-store\r\n"
			  "Connection: close\r\n"
			  "Cross-Origin-Resource-Policy: same-origin\r\n"
			  "Referrer-Policy: no-referrer\r\n"
			  "X-Content-Type-Options: nosniff\r\n"
			  "X-Frame-Options: DENY\r\n",
			  status, words_of(status), type, policy ? policy : "default-src 'none'");

	put(out, head);
	xfree(head);
	if (status == HTTP_NOT_ALLOWED)
		put(out, "Allow: GET\r\n");
	if (size >= 0) {
		head = xasprintf("Content-Length: %ld\r\n", size);
		put(out, head);
		xfree(head);
	}
	put(out, "\r\n");
}

static void refuse(struct http_client *c, int status)
{
	const char *words = status == HTTP_BUSY ? "kron: too many pages are open: close one\n"
			    : status == HTTP_FORBIDDEN ? "kron: the Host is not this server's\n"
			    : status == HTTP_NOT_FOUND ? "kron: there is nothing here\n"
						       : "kron: this is no request for a page\n";

	put_head(&c->out, status, "text/plain; charset=utf-8", NULL, (long)strlen(words));
	put(&c->out, words);
}

/* ---- who may ask for what ---- */

static bool is_own_host(const struct http_server *s, struct http_text host)
{
	static const char *const names[] = {"127.0.0.1", "localhost", "[::1]"};
	char own[32];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(own, sizeof(own), "%s:%u", names[i], s->sockets.port);
		if (http_text_is_name(host, own) ||
		    /* the port that browsers leave out */
		    (s->sockets.port == 80 && http_text_is_name(host, names[i])))
			return true;
	}
	return false;
}

/* "/TOKEN/name"; as long for each token that is wrong. */
static bool take_token(const struct http_server *s, struct http_text *path)
{
	const size_t n = HTTP_TOKEN - 1;
	unsigned char differs = 0;

	if (path->n < n + 2 || path->s[n + 1] != '/')
		return false;
	for (size_t i = 0; i < n; i++)
		differs |= (unsigned char)(path->s[1 + i] ^ s->token[i]);
	path->s += n + 2;
	path->n -= n + 2;
	return !differs;
}

static void feed(struct http_server *s, struct http_client *c)
{
	if (c->state != STREAMING || has_pending(c) || c->is_over)
		return;
	c->out.n = c->sent = 0;
	c->is_over = s->next(s->ctx, &c->place, &c->out);
	c->until_ns = has_pending(c) ? clock_ns(CLOCK_MONOTONIC) + STALLED_NS : 0;
}

static void answer(struct http_server *s, struct http_client *c, const struct http_request *r,
		   int status)
{
	struct http_text path = r->path;

	c->state = WRITING;
	c->until_ns = clock_ns(CLOCK_MONOTONIC) + WRITING_NS;
	if (status == HTTP_OK && !is_own_host(s, r->host))
		status = HTTP_FORBIDDEN;
	if (status == HTTP_OK && !take_token(s, &path))
		status = HTTP_NOT_FOUND;
	if (status != HTTP_OK) {
		refuse(c, status);
	} else if (http_text_is(path, s->page->name)) {
		put_head(&c->out, HTTP_OK, s->page->type, s->page->policy, (long)s->page->size);
		vec_add(&c->out, (const char *)s->page->bytes, s->page->size);
	} else if (!http_text_is(path, s->stream)) {
		refuse(c, HTTP_NOT_FOUND);
	} else if (streams(s) >= HTTP_STREAMS) {
		refuse(c, HTTP_BUSY);
	} else {
		c->state = STREAMING;
		put_head(&c->out, HTTP_OK, "text/event-stream; charset=utf-8", NULL, -1);
	}
}

/* ---- bytes in and out ---- */

/* What comes after a request is of no interest; a client that ends its side has gone. */
static void discard(struct http_client *c)
{
	char bytes[4096];
	ssize_t n;

	while ((n = recv(c->fd, bytes, sizeof(bytes), 0)) > 0) {
		c->unasked += (size_t)n;
		if (c->unasked > UNASKED_MAX) {
			close_client(c);
			return;
		}
	}
	c->has_finished = n == 0;
	if (n == 0 ? c->state != WRITING : errno != EAGAIN && errno != EINTR)
		close_client(c);
}

static void receive(struct http_server *s, struct http_client *c)
{
	struct http_request r;
	ssize_t n;
	int status;

	if (c->state != READING) {
		discard(c);
		return;
	}
	n = recv(c->fd, c->in + c->nin, sizeof(c->in) - c->nin, 0);
	if (n <= 0) {
		if (n == 0 || (errno != EAGAIN && errno != EINTR))
			close_client(c);
		return;
	}
	c->nin += (size_t)n;
	status = http_request_parse(c->in, c->nin, &r);
	if (status != HTTP_MORE)
		answer(s, c, &r, status);
}

static void send_some(struct http_server *s, struct http_client *c)
{
	while (!c->is_closed) {
		ssize_t n;

		feed(s, c);
		if (!has_pending(c))
			break;
		n = send(c->fd, c->out.v + c->sent, c->out.n - c->sent, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			if (errno != EAGAIN)
				close_client(c);
			return;
		}
		c->sent += (size_t)n;
		if (c->state == STREAMING)
			c->until_ns = clock_ns(CLOCK_MONOTONIC) + STALLED_NS;
	}
	if (!c->is_closed && (c->state == WRITING || (c->state == STREAMING && c->is_over)))
		leave(c);
}

/* ---- letting them in ---- */

static struct http_client *oldest(const struct http_server *s, enum state state)
{
	struct http_client *found = NULL;

	for (size_t i = 0; i < s->clients.n; i++) {
		struct http_client *c = s->clients.v[i];

		if (!c->is_closed && c->state == state && (!found || c->since_ns < found->since_ns))
			found = c;
	}
	return found;
}

/* Streams are fewer than clients, so there is always one. */
static void make_room(struct http_server *s)
{
	struct http_client *c;

	if (s->clients.n < HTTP_CLIENTS)
		return;
	c = oldest(s, LEAVING);
	c = c ? c : oldest(s, READING);
	c = c ? c : oldest(s, WRITING);
	if (c)
		close_client(c);
	sweep(s);
}

static void let_in(struct http_server *s, int listener)
{
	const int one = 1, room = SEND_BUFFER;
	struct http_client *c;

	for (unsigned i = 0; i < HTTP_CLIENTS; i++) {
		const uint64_t now = clock_ns(CLOCK_MONOTONIC);
		const int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd < 0) {
			if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
				s->deaf_until_ns = now + DEAF_NS;
			return;
		}
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
		make_room(s);
		c = xcalloc(1, sizeof(*c));
		*c = (struct http_client){
			.fd = fd, .state = READING, .since_ns = now, .until_ns = now + READING_NS};
		*vec_push(&s->clients) = c;
		receive(s, c);
		if (!c->is_closed)
			send_some(s, c);
	}
}

/* ---- the thread ---- */

enum { WAKE, LISTENERS, CLIENTS = LISTENERS + SOCKETS_N };

static uint64_t prepare(const struct http_server *s, struct pollfd *p, uint64_t now, bool ends)
{
	const bool is_deaf = ends || s->deaf_until_ns > now;
	uint64_t until = is_deaf && !ends ? s->deaf_until_ns : UINT64_MAX;

	p[WAKE] = (struct pollfd){.fd = ends ? -1 : s->wake, .events = POLLIN};
	for (int i = 0; i < SOCKETS_N; i++)
		p[LISTENERS + i] =
			(struct pollfd){.fd = is_deaf ? -1 : s->sockets.fd[i], .events = POLLIN};
	for (size_t i = 0; i < s->clients.n; i++) {
		const struct http_client *c = s->clients.v[i];

		p[CLIENTS + i] = (struct pollfd){.fd = c->fd,
						 .events = (short)((c->has_finished ? 0 : POLLIN) |
								   (has_pending(c) ? POLLOUT : 0))};
		if (c->until_ns && c->until_ns < until)
			until = c->until_ns;
	}
	return until;
}

static void serve_clients(struct http_server *s, const struct pollfd *p, size_t n)
{
	const uint64_t now = clock_ns(CLOCK_MONOTONIC);

	for (size_t i = 0; i < n; i++) {
		struct http_client *c = s->clients.v[i];

		if (p[CLIENTS + i].revents)
			receive(s, c);
		if (!c->is_closed)
			send_some(s, c);
		if (!c->is_closed && c->until_ns && c->until_ns <= now)
			close_client(c);
	}
	sweep(s);
}

static void wait_and_serve(struct http_server *s, uint64_t latest, bool ends)
{
	struct pollfd p[CLIENTS + HTTP_CLIENTS];
	const uint64_t now = clock_ns(CLOCK_MONOTONIC);
	const size_t n = s->clients.n;
	uint64_t until = prepare(s, p, now, ends), woken;
	struct timespec ts;

	until = until < latest ? until : latest;
	until = until > now ? until - now : 0;
	ts = (struct timespec){(time_t)(until / SECOND), (long)(until % SECOND)};
	ppoll(p, CLIENTS + n, until > 3600 * SECOND ? NULL : &ts, NULL);
	if (p[WAKE].revents && read(s->wake, &woken, sizeof(woken)) > 0)
		s->gather(s->ctx);
	serve_clients(s, p, n);
	for (int i = 0; i < SOCKETS_N; i++)
		if (p[LISTENERS + i].revents)
			let_in(s, s->sockets.fd[i]);
	sweep(s);
}

static bool is_anybody_left(const struct http_server *s)
{
	for (size_t i = 0; i < s->clients.n; i++)
		if (s->clients.v[i]->state != READING && s->clients.v[i]->state != LEAVING)
			return true;
	return false;
}

static void *run(void *ctx)
{
	struct http_server *s = ctx;
	uint64_t latest;

	setpriority(PRIO_PROCESS, (id_t)gettid(), FAVOUR);
	while (!__atomic_load_n(&s->ends, __ATOMIC_ACQUIRE))
		wait_and_serve(s, UINT64_MAX, false);
	latest = clock_ns(CLOCK_MONOTONIC) + ENDING_NS;
	s->gather(s->ctx);
	for (int i = 0; i < SOCKETS_N; i++)
		if (s->sockets.fd[i] >= 0)
			let_in(s, s->sockets.fd[i]);
	for (size_t i = 0; i < s->clients.n; i++)
		if (!s->clients.v[i]->is_closed)
			send_some(s, s->clients.v[i]);
	sweep(s);
	while (is_anybody_left(s) && clock_ns(CLOCK_MONOTONIC) < latest)
		wait_and_serve(s, latest, true);
	return NULL;
}

/* ---- begin and end ---- */

static int make_token(char *out)
{
	unsigned char bytes[(HTTP_TOKEN - 1) / 2];

	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return -EIO;
	for (size_t i = 0; i < sizeof(bytes); i++)
		snprintf(out + 2 * i, 3, "%02x", bytes[i]);
	return 0;
}

int http_open(struct http_server *s, unsigned port, struct err *err)
{
	int code = http_sockets_open(&s->sockets, port, err);

	if (code)
		return code;
	code = make_token(s->token);
	if (!code) {
		s->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		code = s->wake < 0 ? -errno : 0;
	}
	if (!code)
		return 0;
	http_sockets_close(&s->sockets);
	return err_set(err, -code, "cannot make a server: %s", strerror(-code));
}

const char *http_url(const struct http_server *s, char *text, size_t size)
{
	snprintf(text, size, "http://%s:%u/%s/%s",
		 s->sockets.fd[SOCKETS_V4] >= 0 ? "127.0.0.1" : "[::1]", s->sockets.port, s->token,
		 s->page->name);
	return text;
}

int http_start(struct http_server *s, struct err *err)
{
	sigset_t all, old;
	int code;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	code = pthread_create(&s->thread, NULL, run, s);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (code)
		return err_set(err, code, "cannot start a thread: %s", strerror(code));
	s->is_running = true;
	return 0;
}

void http_wake(struct http_server *s)
{
	const uint64_t one = 1;

	/* full: it has been woken often enough */
	if (write(s->wake, &one, sizeof(one)) < 0)
		return;
}

void http_end(struct http_server *s)
{
	__atomic_store_n(&s->ends, true, __ATOMIC_RELEASE);
	if (s->is_running) {
		http_wake(s);
		pthread_join(s->thread, NULL);
	}
	s->is_running = false;
	for (size_t i = 0; i < s->clients.n; i++)
		close_client(s->clients.v[i]);
	sweep(s);
	vec_free(&s->clients);
	http_sockets_close(&s->sockets);
	close(s->wake);
}
