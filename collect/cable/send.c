/* SPDX-License-Identifier: MIT */
/* send.c - see send.h. */
#define _GNU_SOURCE
#include "collect/cable/send.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/vec.h"
#include "collect/cable/whole.h"

#define MS 1000000ull
#define SEND_MS 15000 /* a frame that is not taken for so long: the link is broken */
#define SILENT_NS (20000 * MS)
#define ROUND_MS 10 /* how often the files are looked at */
#define PINGS 8     /* exchanges in a round, of which the best counts */
#define PING_EVERY_NS (1000 * MS)
#define RETRY_MS 200 /* and more while links are made and the collector takes nothing */
#define RETRY_MOST_MS 1600
#define SLICE_MS 100

static uint64_t now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

static void fail(struct cable_sender *s, const struct err *why)
{
	pthread_mutex_lock(&s->lock);
	if (!s->failed)
		s->why = *why;
	s->failed = true;
	pthread_cond_broadcast(&s->moved);
	pthread_mutex_unlock(&s->lock);
}

static void break_link(struct cable_sender *s)
{
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
	s->said_done = false;
	s->ping.left = 0;
	s->breaks++;
}

/* The recording has ended, and the collector has taken nothing more for long. */
static bool is_late(struct cable_sender *s)
{
	uint64_t since;

	pthread_mutex_lock(&s->lock);
	since = s->hurry_ns;
	pthread_mutex_unlock(&s->lock);
	if (!since)
		return false;
	return now_ns() > (s->moved_ns > since ? s->moved_ns : since) + s->patience_ns;
}

/* ---- frames ---- */

/* Until there is room to send: 0, or -ETIMEDOUT. */
static int wait_room(struct cable_sender *s)
{
	struct pollfd p = {.fd = s->fd, .events = POLLOUT};

	for (unsigned ms = 0; ms < SEND_MS && !is_late(s); ms += SLICE_MS)
		if (poll(&p, 1, SLICE_MS) > 0)
			return 0;
	return -ETIMEDOUT;
}

static int send_all(struct cable_sender *s, const void *v, size_t n, int flags)
{
	const char *at = v;
	int ret = 0;

	while (n && !ret) {
		ssize_t did = send(s->fd, at, n, MSG_NOSIGNAL | flags);

		if (did < 0 && errno == EAGAIN) {
			ret = wait_room(s);
		} else if (did < 0 && errno != EINTR) {
			ret = -errno;
		} else if (did > 0) {
			at += did;
			n -= (size_t)did;
		}
	}
	return ret;
}

static int send_frame(struct cable_sender *s, enum cable_type type, const void *v, size_t n)
{
	struct cable_head h = {.magic = CABLE_MAGIC, .type = (uint8_t)type, .nbytes = (uint32_t)n};
	int ret = send_all(s, &h, sizeof(h), MSG_MORE);

	return ret ? ret : send_all(s, v, n, 0);
}

static int send_piece(struct cable_sender *s, unsigned file, uint32_t n)
{
	struct cable_head h = {.magic = CABLE_MAGIC,
			       .type = CABLE_DATA,
			       .file = (uint8_t)file,
			       .nbytes = n,
			       .offset = s->sent.v[file]};
	off_t at = (off_t)s->sent.v[file];
	int ret = send_all(s, &h, sizeof(h), MSG_MORE);

	while (!ret && n) {
		ssize_t did = sendfile(s->fd, s->files[file], &at, n);

		if (did < 0 && errno == EAGAIN)
			ret = wait_room(s);
		else if (did < 0 && errno != EINTR)
			ret = -errno;
		else if (!did)
			ret = -EIO;
		else if (did > 0)
			n -= (uint32_t)did;
	}
	if (!ret)
		s->sent.v[file] = (uint64_t)at;
	return ret;
}

/* 1: a whole frame is in s->in; 0: not yet; or -errno. */
static int read_frame(struct cable_sender *s, struct cable_head *h)
{
	for (;;) {
		size_t want = sizeof(*h);
		ssize_t n;

		if (s->nin >= sizeof(*h)) {
			memcpy(h, s->in, sizeof(*h));
			if (cable_check(h) || h->type == CABLE_DATA || h->type == CABLE_HELLO)
				return -EPROTO;
			want += h->nbytes;
			if (s->nin == want) {
				s->nin = 0;
				return 1;
			}
		}
		n = recv(s->fd, s->in + s->nin, want - s->nin, MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN ? 0 : -errno;
		if (!n)
			return -ECONNRESET;
		s->nin += (size_t)n;
		s->heard_ns = now_ns();
	}
}

static int wait_frame(struct cable_sender *s, struct cable_head *h, int ms)
{
	uint64_t until = now_ns() + (uint64_t)ms * MS;
	int ret;

	while (!(ret = read_frame(s, h))) {
		struct pollfd p = {.fd = s->fd, .events = POLLIN};

		if (now_ns() > until || is_late(s))
			return -ETIMEDOUT;
		poll(&p, 1, SLICE_MS);
	}
	return ret;
}

/* ---- the link is made ---- */

/* What the collector says in words, which a terminal may show. */
static int refused(struct cable_sender *s, const struct cable_head *h, struct err *err)
{
	char *text = (char *)s->in + sizeof(*h);

	for (uint32_t i = 0; i < h->nbytes; i++)
		if (text[i] < ' ' || text[i] > '~')
			text[i] = '?';
	return err_set(err, ECONNREFUSED, "the collector at %s refuses: %.*s", s->to.text,
		       (int)h->nbytes, text);
}

static int no_collector(struct cable_sender *s, int code, struct err *err)
{
	if (code == -EPROTO)
		return err_set(err, EPROTO, "what answers at %s is not a kron collect", s->to.text);
	return err_set(err, -code, "the collector at %s does not answer: %s", s->to.text,
		       strerror(-code));
}

#define SSH_MS 60000 /* until it has logged in there */

static int greet(struct cable_sender *s, struct cable_welcome *w, struct err *err)
{
	struct cable_hello hello = {.version = CABLE_VERSION};
	uint8_t expected[CABLE_ANSWER];
	struct cable_challenge ch;
	struct cable_head h;
	int ret = wait_frame(s, &h, cable_address_is_ssh(&s->to) ? SSH_MS : 5000);

	if (ret < 0)
		return no_collector(s, ret, err);
	if (h.type != CABLE_CHALLENGE)
		return no_collector(s, -EPROTO, err);
	memcpy(&ch, s->in + sizeof(h), sizeof(ch));
	if (ch.version != CABLE_VERSION)
		return err_set(err, EPROTO,
			       "the collector at %s speaks version %" PRIu32
			       " of the protocol, this kron %u",
			       s->to.text, ch.version, CABLE_VERSION);
	if (ch.needs_token && !s->token.n)
		return err_set(err, EACCES,
			       "the collector at %s wants a token: name its file with --token",
			       s->to.text);
	memcpy(hello.id, s->id, CABLE_ID);
	memcpy(hello.name, s->name, CABLE_NAME);
	if (getrandom(hello.nonce, sizeof(hello.nonce), 0) != sizeof(hello.nonce))
		return err_set(err, EIO, "the kernel gives no random numbers");
	cable_answer(hello.answer, &s->token, CABLE_SENDER, ch.nonce, hello.nonce, s->id);
	ret = send_frame(s, CABLE_HELLO, &hello, sizeof(hello));
	if (!ret)
		ret = wait_frame(s, &h, 5000);
	if (ret < 0)
		return no_collector(s, ret, err);
	if (h.type == CABLE_REFUSED)
		return refused(s, &h, err);
	if (h.type != CABLE_WELCOME)
		return no_collector(s, -EPROTO, err);
	memcpy(w, s->in + sizeof(h), sizeof(*w));
	cable_answer(expected, &s->token, CABLE_COLLECTOR, hello.nonce, ch.nonce, s->id);
	/* who has no token of ours is not to get the trace: the answer of one without is over an empty key */
	if (s->token.n && !cable_same(expected, w->answer, CABLE_ANSWER))
		return err_set(err, EACCES, "the collector at %s does not have the token",
			       s->to.text);
	return 0;
}

static void note_acked(struct cable_sender *s, const struct cable_sizes *has)
{
	pthread_mutex_lock(&s->lock);
	for (unsigned i = CABLE_CLOCK + 1; i < CABLE_FILES; i++) /* each link adds to the clock */
		if (has->v[i] > s->acked.v[i]) {
			s->moved_ns = now_ns();
			s->retry_ms = RETRY_MS;
		}
	s->acked = *has;
	pthread_cond_broadcast(&s->moved);
	pthread_mutex_unlock(&s->lock);
}

/* Whose clock the lines of the table are of. */
static void put_reference(struct cable_sender *s, const char *boot)
{
	int fd = s->files[CABLE_CLOCK];
	char line[CABLE_BOOT + 16];
	int n = snprintf(line, sizeof(line), "reference\t%.*s\n", CABLE_BOOT - 1, boot);

	if (fd >= 0 && write(fd, line, (size_t)n) != n)
		return; /* without it the table says nothing */
}

/* A boot ID, as Linux writes it, or nothing. */
static bool is_boot(const char *boot)
{
	return !boot[CABLE_BOOT - 1] && !boot[strspn(boot, "0123456789abcdef-")];
}

/* 0, or -errno: *final says whether it makes sense to try again. */
static int connect_once(struct cable_sender *s, bool *final, struct err *err)
{
	struct cable_welcome w = {0};
	bool local;
	int ret;

	*final = false;
	s->nin = 0;
	s->fd = cable_connect(&s->to, &local, err);
	if (s->fd < 0)
		return s->fd;
	if (!local && !s->token.n) {
		ret = err_set(
			err, EACCES,
			"%s is another host's or another user's: without --token FILE nothing is "
			"sent there",
			s->to.text);
		*final = true;
	} else {
		ret = greet(s, &w, err);
		*final = ret == -ECONNREFUSED || ret == -EACCES;
		if (!ret && !is_boot(w.boot))
			ret = no_collector(s, -EPROTO, err);
	}
	for (unsigned i = 0; !ret && i < CABLE_FILES; i++)
		if (w.has.v[i] < s->punched.v[i] ||
		    (s->files[i] >= 0 && w.has.v[i] < s->acked.v[i])) {
			ret = err_set(
				err, ESTALE,
				"the collector at %s does not have what was taken before: start it "
				"with the -o that has it",
				s->to.text);
			*final = true;
		}
	if (ret) {
		close(s->fd);
		s->fd = -1;
		return ret;
	}
	s->sent = w.has;
	s->heard_ns = now_ns();
	s->ping.next_ns = 0;
	note_acked(s, &w.has);
	memcpy(s->boot, w.boot, sizeof(s->boot));
	put_reference(s, s->boot);
	return 0;
}

/* ---- clocks ---- */

static int send_ping(struct cable_sender *s)
{
	struct cable_ping p = {.number = ++s->ping.number};

	s->ping.mono_ns = now_ns();
	s->ping.tsc = clock_tsc();
	return send_frame(s, CABLE_PING, &p, sizeof(p));
}

static int begin_pings(struct cable_sender *s)
{
	s->ping.left = PINGS;
	s->ping.best_error_ns = UINT64_MAX;
	s->ping.next_ns = now_ns() + PING_EVERY_NS;
	return send_ping(s);
}

/* tsc, both clocks when it was read, and by how much that may be wrong: half of what the way there and back took. */
static void put_clock(struct cable_sender *s)
{
	char line[128];
	int n = snprintf(line, sizeof(line), "%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\n",
			 s->ping.best_tsc, s->ping.best_mono_ns, s->ping.best_ns,
			 s->ping.best_error_ns);

	if (s->ping.best_error_ns == UINT64_MAX || s->files[CABLE_CLOCK] < 0)
		return;
	if (write(s->files[CABLE_CLOCK], line, (size_t)n) != n)
		return; /* one reading less */
}

/* The clock is read before the counter, and after it: so the way there and back took no longer than it says, even if
 * this thread stood still between the two. */
static int take_pong(struct cable_sender *s, const struct cable_pong *p)
{
	uint64_t tsc = clock_tsc(), mono = now_ns();
	uint64_t way_ns = mono - s->ping.mono_ns, there_ns = p->went_ns - p->came_ns;

	if (p->number != s->ping.number || !s->ping.left)
		return 0;
	if (way_ns >= there_ns && (way_ns - there_ns) / 2 + 1 < s->ping.best_error_ns) {
		s->ping.best_error_ns = (way_ns - there_ns) / 2 + 1;
		s->ping.best_tsc = s->ping.tsc + (tsc - s->ping.tsc) / 2;
		s->ping.best_mono_ns = s->ping.mono_ns + way_ns / 2;
		s->ping.best_ns = p->came_ns + there_ns / 2;
	}
	if (--s->ping.left)
		return send_ping(s);
	put_clock(s);
	return 0;
}

/* ---- the files ---- */

static int open_file(struct cable_sender *s, unsigned file)
{
	char path[sizeof(s->spool) + 32];

	snprintf(path, sizeof(path), "%s/%s", s->spool, cable_files[file]);
	if (file == CABLE_CLOCK)
		return open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	return open(path, (file == CABLE_SAMPLES ? O_RDWR : O_RDONLY) | O_CLOEXEC);
}

static uint64_t size_of(struct cable_sender *s, unsigned file)
{
	struct stat st;

	if (s->files[file] < 0)
		s->files[file] = open_file(s, file);
	return s->files[file] >= 0 && !fstat(s->files[file], &st) ? (uint64_t)st.st_size : 0;
}

/* The session is looked at first and sent last: it never says more than what is there.  The samples are looked at
 * before the tables that say what they mean. */
static void look_at_sizes(struct cable_sender *s, bool ending, struct cable_sizes *all)
{
	for (unsigned i = CABLE_FILES; i-- > 0;) {
		all->v[i] = size_of(s, i);
		if (!ending && all->v[i] > s->whole.v[i])
			all->v[i] = s->whole.v[i] =
				cable_whole(i, s->files[i], s->whole.v[i], all->v[i]);
	}
}

/* What the collector has need not be kept: its pages, not the file's length. */
static void give_back(struct cable_sender *s)
{
	uint64_t to, from = s->punched.v[CABLE_SAMPLES];

	pthread_mutex_lock(&s->lock);
	to = s->acked.v[CABLE_SAMPLES] & ~(uint64_t)4095;
	pthread_mutex_unlock(&s->lock);
	if (to < from + (1u << 20) || s->files[CABLE_SAMPLES] < 0)
		return;
	if (!fallocate(s->files[CABLE_SAMPLES], FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		       (off_t)from, (off_t)(to - from)))
		s->punched.v[CABLE_SAMPLES] = to;
}

static int take_words(struct cable_sender *s, struct err *err)
{
	struct cable_head h;
	struct cable_sizes sizes;
	struct cable_pong pong;
	int ret;

	while ((ret = read_frame(s, &h)) > 0) {
		if (h.type == CABLE_ACK || h.type == CABLE_DONE) {
			memcpy(&sizes, s->in + sizeof(h), sizeof(sizes));
			for (unsigned i = 0; i < CABLE_FILES; i++)
				if (sizes.v[i] > s->sent.v[i])
					return -EPROTO;
			note_acked(s, &sizes);
			s->has_done |= h.type == CABLE_DONE && s->said_done;
		} else if (h.type == CABLE_PONG) {
			memcpy(&pong, s->in + sizeof(h), sizeof(pong));
			ret = take_pong(s, &pong);
			if (ret)
				return ret;
		} else if (h.type == CABLE_REFUSED) { /* it cannot write, say */
			return refused(s, &h, err);
		} else {
			return -EPROTO;
		}
	}
	return ret;
}

/* What is new, of all files; *idle: there was nothing. */
static int send_news(struct cable_sender *s, bool ending, bool *idle, struct err *err)
{
	struct cable_sizes all;
	int ret = 0;

	look_at_sizes(s, ending, &all);
	*idle = true;
	for (unsigned i = 0; i < CABLE_FILES && !ret; i++) {
		while (s->sent.v[i] < all.v[i] && !ret) {
			uint64_t left = all.v[i] - s->sent.v[i];

			*idle = false;
			ret = send_piece(s, i,
					 left < CABLE_DATA_MAX ? (uint32_t)left : CABLE_DATA_MAX);
			if (!ret)
				ret = take_words(s, err);
			give_back(s);
		}
	}
	return ret;
}

static int round_of_link(struct cable_sender *s, bool ending, bool *idle, struct err *err)
{
	int ret = send_news(s, ending, idle, err);

	if (!ret)
		ret = take_words(s, err);
	if (!ret && !s->ping.left && now_ns() >= s->ping.next_ns && !s->said_done)
		ret = begin_pings(s);
	if (!ret && ending && *idle && !s->ping.left && !s->said_done) {
		ret = send_frame(s, CABLE_DONE, &s->sent, sizeof(s->sent));
		s->said_done = !ret;
	}
	if (!ret && now_ns() > s->heard_ns + SILENT_NS)
		ret = -ETIMEDOUT;
	return ret;
}

static bool is_ending(struct cable_sender *s, bool *failed)
{
	bool ending;

	pthread_mutex_lock(&s->lock);
	ending = s->ending;
	*failed = s->failed;
	pthread_mutex_unlock(&s->lock);
	return ending;
}

/* The link was made, and is broken. */
static void give_link_up(struct cable_sender *s, int why, struct err *err)
{
	/* its last words say more than the error of a send(2) */
	if (why != -ECONNREFUSED && take_words(s, err) != -ECONNREFUSED)
		err_set(err, -why, "the link to %s is broken: %s", s->to.text, strerror(-why));
	break_link(s);
	poll(NULL, 0, (int)s->retry_ms);
	s->retry_ms = 2 * s->retry_ms < RETRY_MOST_MS ? 2 * s->retry_ms : RETRY_MOST_MS;
}

static void try_again(struct cable_sender *s, struct err *err)
{
	struct err why;
	bool final;

	if (!connect_once(s, &final, &why))
		return;
	*err = why;
	if (final)
		fail(s, err);
	poll(NULL, 0, RETRY_MS);
}

static void *send_thread(void *arg)
{
	struct cable_sender *s = arg;
	bool ended_pings = false, idle, failed, ending;
	struct err err;
	int ret;

	err_set(&err, ETIMEDOUT, "the collector at %s takes nothing", s->to.text);
	for (;;) {
		ending = is_ending(s, &failed);
		if (failed || s->has_done)
			return NULL;
		if (is_late(s)) {
			fail(s, &err);
			continue;
		}
		if (s->fd < 0) {
			try_again(s, &err);
			continue;
		}
		if (ending && !ended_pings) { /* once more at the end */
			s->ping.next_ns = 0;
			ended_pings = true;
		}
		ret = round_of_link(s, ending, &idle, &err);
		if (ret) {
			give_link_up(s, ret, &err);
		} else if (idle) {
			struct pollfd p = {.fd = s->fd, .events = POLLIN};

			poll(&p, 1, ROUND_MS);
		}
	}
}

/* ---- for the recorder ---- */

static int make_spool(struct cable_sender *s, struct err *err)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(s->spool, sizeof(s->spool), "/dev/shm/cable-kron.XXXXXX");
	if (mkdtemp(s->spool))
		return 0;
	snprintf(s->spool, sizeof(s->spool), "%.200s/cable-kron.XXXXXX",
		 tmp && *tmp ? tmp : "/tmp");
	if (mkdtemp(s->spool))
		return 0;
	return err_set(err, errno, "cannot make a directory for what is to be sent: %s",
		       strerror(errno));
}

#define ID_FILE "cable-session"

/* The session's number stands beside the spool's files: who sends what is left must know it. */
static int keep_id(struct cable_sender *s, bool read_it, struct err *err)
{
	char path[sizeof(s->spool) + 32];
	int fd, ret = 0;

	snprintf(path, sizeof(path), "%s/" ID_FILE, s->spool);
	fd = open(path, (read_it ? O_RDONLY : O_WRONLY | O_CREAT | O_EXCL) | O_CLOEXEC, 0600);
	if (fd < 0 && read_it)
		return err_set(err, errno, "%s is not a directory that kron record left to be sent",
			       s->spool);
	if (fd < 0 ||
	    (read_it ? read(fd, s->id, CABLE_ID) : write(fd, s->id, CABLE_ID)) != CABLE_ID)
		ret = err_set(err, fd < 0 ? errno : EIO, "cannot %s %s", read_it ? "read" : "write",
			      path);
	if (fd >= 0)
		close(fd);
	return ret;
}

/* What was given back before: the rest is of use to nobody but the collector that has that. */
static void find_given_back(struct cable_sender *s)
{
	int fd = open_file(s, CABLE_SAMPLES);
	off_t data = fd >= 0 ? lseek(fd, 0, SEEK_DATA) : 0;

	if (data < 0 && errno == ENXIO)
		data = lseek(fd, 0, SEEK_END) & ~(off_t)4095;
	s->punched.v[CABLE_SAMPLES] = data > 0 ? (uint64_t)data : 0;
	if (fd >= 0)
		close(fd);
}

static void remove_spool(struct cable_sender *s)
{
	static const char *const others[] = {ID_FILE, "lock"};
	char path[sizeof(s->spool) + 32];

	for (unsigned i = 0; i < CABLE_FILES; i++) {
		snprintf(path, sizeof(path), "%s/%s", s->spool, cable_files[i]);
		unlink(path);
	}
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", s->spool, others[i]);
		unlink(path);
	}
	rmdir(s->spool);
}

static void take_name(struct cable_sender *s, const char *name)
{
	size_t n = 0;

	for (; *name && n < CABLE_NAME - 1; name++) {
		char c[CABLE_NAME] = {'a', *name};

		s->name[n++] = cable_is_name(c) ? *name : '_';
	}
	if (!cable_is_name(s->name))
		snprintf(s->name, sizeof(s->name), "node");
}

/* A variable of the environment: "256K", "1M", "30". */
static uint64_t number_of(const char *variable, uint64_t fallback)
{
	const char *text = getenv(variable);
	char *end;
	uint64_t n = text && *text >= '1' && *text <= '9' ? strtoull(text, &end, 10) : 0;

	if (!n || n > UINT32_MAX)
		return fallback;
	return *end == 'K' ? n << 10 : *end == 'M' ? n << 20 : *end == 'G' ? n << 30 : n;
}

int cable_open(struct cable_sender *s, const char *address, const char *token_file,
	       const char *name, const char *resend, struct err *err)
{
	bool final;
	int ret;

	*s = (struct cable_sender){.fd = -1};
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->moved, NULL);
	for (unsigned i = 0; i < CABLE_FILES; i++)
		s->files[i] = -1;
	ret = cable_address_parse(&s->to, address, false, err);
	if (!ret && token_file)
		ret = cable_token_read(&s->token, token_file, err);
	if (ret)
		return ret;
	take_name(s, name);
	s->room = number_of("KRON_CABLE_SPOOL", CABLE_SPOOL);
	s->patience_ns = number_of("KRON_CABLE_PATIENCE", CABLE_PATIENCE_S) * 1000 * MS;
	s->retry_ms = RETRY_MS;
	s->resends = resend;
	if (resend) {
		snprintf(s->spool, sizeof(s->spool), "%s", resend);
		ret = keep_id(s, true, err);
		find_given_back(s);
	} else if (getrandom(s->id, sizeof(s->id), 0) != sizeof(s->id)) {
		ret = err_set(err, EIO, "the kernel gives no random numbers");
	}
	if (!ret)
		ret = connect_once(s, &final, err);
	if (!ret && !resend)
		ret = make_spool(s, err);
	return ret;
}

int cable_start(struct cable_sender *s, struct err *err)
{
	sigset_t all, before;
	int code;

	if (!s->resends && keep_id(s, false, err))
		return -EIO;
	s->files[CABLE_CLOCK] = open_file(s, CABLE_CLOCK);
	put_reference(s, s->boot);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	code = pthread_create(&s->thread, NULL, send_thread, s);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	s->started = !code;
	return code ? err_set(err, code, "cannot start a thread: %s", strerror(code)) : 0;
}

int cable_gate(void *sender)
{
	struct cable_sender *s = sender;
	char path[sizeof(s->spool) + 32];
	struct stat st;
	int ret = 0;

	snprintf(path, sizeof(path), "%s/samples", s->spool);
	if (stat(path, &st))
		return 0;
	pthread_mutex_lock(&s->lock);
	while (!s->failed && (uint64_t)st.st_size > s->acked.v[CABLE_SAMPLES] + s->room)
		pthread_cond_wait(&s->moved, &s->lock);
	if (s->failed)
		ret = -ECONNABORTED;
	pthread_mutex_unlock(&s->lock);
	return ret;
}

static void close_all(struct cable_sender *s)
{
	for (unsigned i = 0; i < CABLE_FILES; i++)
		if (s->files[i] >= 0)
			close(s->files[i]);
	if (s->fd >= 0)
		close(s->fd);
	pthread_cond_destroy(&s->moved);
	pthread_mutex_destroy(&s->lock);
}

static void hurry(struct cable_sender *s)
{
	if (!s->hurry_ns)
		s->hurry_ns = now_ns();
}

void cable_hurry(struct cable_sender *s)
{
	pthread_mutex_lock(&s->lock);
	hurry(s);
	pthread_mutex_unlock(&s->lock);
}

int cable_finish(struct cable_sender *s, struct err *err)
{
	int ret = 0;

	pthread_mutex_lock(&s->lock);
	s->ending = true;
	hurry(s);
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->thread, NULL);
	if (s->has_done)
		remove_spool(s);
	else
		ret = err_set(
			err, ECONNABORTED,
			"%s; what the collector does not have is in %s: `kron collect --send %s -o "
			"%s` sends it",
			s->why.msg, s->spool, s->spool, s->to.text);
	close_all(s);
	return ret;
}

void cable_abandon(struct cable_sender *s)
{
	struct err err = {.msg = "nothing was recorded"};

	if (s->started) {
		fail(s, &err);
		pthread_join(s->thread, NULL);
	}
	remove_spool(s);
	close_all(s);
}
