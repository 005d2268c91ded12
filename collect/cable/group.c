/* SPDX-License-Identifier: MIT */
/* group.c - see group.h; group_socket.c knows where datagrams go. */
#define _GNU_SOURCE
#include "collect/cable/group.h"

#include <errno.h>
#include <nettle/hmac.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/vec.h"
#include "collect/cable/group_socket.h"

#define MS 1000000ull
#define HELLO_SOON_NS (100 * MS) /* while the group gathers */
#define HELLO_NS (1000 * MS)
#define GATHERS_NS (5000 * MS)
#define SILENT_NS (10000 * MS) /* a member that has not answered for so long is gone */
#define AGAIN_NS (20 * MS)     /* FIRED, to those that have not heard it */
#define TELL_NS (5000 * MS)    /* and to those that come so soon after it */
#define LINGER_NS (1000 * MS)  /* at the end of the recording */
#define MEMBERS_MAX 1024u
#define AT_ONCE 64u /* datagrams, before the rest has its turn */

#define MAGIC 0x5247434bu /* "KCGR" */

enum group_type { HELLO = 1, FIRED, HEARD };

struct message {
	uint32_t magic, type;
	uint8_t from[CABLE_ID], to[CABLE_ID]; /* to: zeros: nobody's number is known yet */
	uint64_t age_ns;                      /* FIRED */
	char node[CABLE_NAME];                /* FIRED: whose trigger */
	uint8_t mac[CABLE_ANSWER];
};
_Static_assert(sizeof(struct message) == 144, "little-endian, without holes");

struct member {
	uint8_t id[CABLE_ID];
	struct group_address at;
	uint64_t answered_ns;
	bool has_heard;
};

struct group {
	char name[CABLE_NAME], node[CABLE_NAME];
	struct cable_token token;
	struct group_socket socket;
	uint8_t id[CABLE_ID];
	pthread_t thread;
	int wake;

	/* of the thread */
	VEC(struct member) members;
	uint64_t begun_ns, hello_ns, again_ns; /* the latter two: when next */
	uint64_t fired_ns;                     /* what the others are told; 0: nothing */
	struct group_end end;

	/* of both sides */
	pthread_mutex_t lock;
	uint64_t own_ns, heard_ns;
	char who[CABLE_NAME];
	bool ends;
};

static const uint8_t nobody[CABLE_ID];

static uint64_t now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

/* ---- datagrams ---- */

static void sign(const struct group *g, const struct message *m, uint8_t out[CABLE_ANSWER])
{
	static const char prefix[] = "kron group 1";
	struct hmac_sha256_ctx ctx;

	hmac_sha256_set_key(&ctx, g->token.n, g->token.v);
	hmac_sha256_update(&ctx, sizeof(prefix), (const uint8_t *)prefix);
	hmac_sha256_update(&ctx, sizeof(g->name), (const uint8_t *)g->name);
	hmac_sha256_update(&ctx, offsetof(struct message, mac), (const uint8_t *)m);
	hmac_sha256_digest(&ctx, CABLE_ANSWER, out);
}

static struct message new_message(const struct group *g, enum group_type type, const uint8_t *to)
{
	struct message m = {.magic = MAGIC, .type = type};

	memcpy(m.from, g->id, CABLE_ID);
	memcpy(m.to, to, CABLE_ID);
	return m;
}

static void answer(const struct group *g, enum group_type type, const uint8_t *to,
		   const struct group_address *at)
{
	struct message m = new_message(g, type, to);

	sign(g, &m, m.mac);
	group_send(&g->socket, at, &m, sizeof(m));
}

static void say_hello(struct group *g)
{
	struct message m = new_message(g, HELLO, nobody);

	sign(g, &m, m.mac);
	group_send_all(&g->socket, &m, sizeof(m));
}

static void say_fired(const struct group *g, const struct member *to)
{
	struct message m = new_message(g, FIRED, to->id);

	memcpy(m.node, g->who, sizeof(m.node));
	m.age_ns = now_ns() - g->fired_ns;
	sign(g, &m, m.mac);
	group_send(&g->socket, &to->at, &m, sizeof(m));
}

/* ---- members ---- */

static struct member *member_of(struct group *g, const uint8_t *id)
{
	vec_for(&g->members, m)
		if (!memcmp(m->id, id, CABLE_ID))
			return m;
	return NULL;
}

/* It has named our number: true if it is new. */
static bool knows_us(struct group *g, const uint8_t *id, const struct group_address *at)
{
	struct member *m = member_of(g, id);
	bool is_new = !m;

	if (is_new && g->members.n == MEMBERS_MAX)
		return false;
	if (is_new) {
		m = vec_push(&g->members);
		/* the address is for good: who repeats this from elsewhere gets nothing */
		*m = (struct member){.at = *at};
		memcpy(m->id, id, CABLE_ID);
		g->end.met++;
	}
	m->answered_ns = now_ns();
	return is_new;
}

static void forget_silent(struct group *g, uint64_t now)
{
	for (size_t i = g->members.n; i-- > 0;)
		if (now > g->members.v[i].answered_ns + SILENT_NS)
			g->members.v[i] = g->members.v[--g->members.n];
}

/* ---- it has fired ---- */

static void fired(struct group *g, uint64_t at_ns, const char *who)
{
	if (g->fired_ns)
		return;
	memcpy(g->who, who, sizeof(g->who));
	g->fired_ns = at_ns;
	g->again_ns = 0;
}

static void take_fired(struct group *g, const struct message *m)
{
	uint64_t now = now_ns(), at = m->age_ns < now ? now - m->age_ns : 1;
	struct member *from = member_of(g, m->from);
	char who[CABLE_NAME] = "node";

	if (from)
		from->has_heard = true; /* it need not be told */
	if (cable_is_name(m->node))
		memcpy(who, m->node, sizeof(who));
	pthread_mutex_lock(&g->lock);
	if (!g->own_ns && !g->heard_ns) {
		fired(g, at > g->begun_ns ? at : g->begun_ns, who);
		g->heard_ns = g->fired_ns;
	}
	pthread_mutex_unlock(&g->lock);
}

static void take(struct group *g, const struct message *m, const struct group_address *at)
{
	bool to_us = !memcmp(m->to, g->id, CABLE_ID);
	struct member *from;

	if (m->type == HELLO && !memcmp(m->to, nobody, CABLE_ID)) {
		answer(g, HELLO, m->from, at);
	} else if (m->type == HELLO && to_us) {
		if (knows_us(g, m->from, at))
			answer(g, HELLO, m->from, at);
	} else if (m->type == FIRED && to_us) {
		answer(g, HEARD, m->from, at);
		take_fired(g, m);
	} else if (m->type == HEARD && to_us) {
		from = member_of(g, m->from);
		if (from)
			from->has_heard = true;
	}
}

static void take_all(struct group *g)
{
	uint8_t mac[CABLE_ANSWER];
	struct group_address at;
	struct message m;
	size_t n = AT_ONCE;

	while (n-- && group_receive(&g->socket, &at, &m, sizeof(m))) {
		if (at.is_whole && m.magic == MAGIC && memcmp(m.from, g->id, CABLE_ID)) {
			sign(g, &m, mac);
			if (cable_same(mac, m.mac, sizeof(mac)))
				take(g, &m, &at);
		}
	}
}

/* false: all that are known have heard it. */
static bool tell(struct group *g, uint64_t now)
{
	bool all = true;

	if (!g->fired_ns)
		return false;
	vec_for(&g->members, m) {
		all &= m->has_heard;
		if (!m->has_heard && now >= g->again_ns)
			say_fired(g, m);
	}
	if (now >= g->again_ns)
		g->again_ns = now + AGAIN_NS;
	return !all;
}

/* ---- the thread ---- */

static void greet(struct group *g, uint64_t now)
{
	if (now < g->hello_ns)
		return;
	group_socket_take_port(&g->socket);
	say_hello(g);
	forget_silent(g, now);
	g->hello_ns = now + (now < g->begun_ns + GATHERS_NS ? HELLO_SOON_NS : HELLO_NS);
}

static void *group_thread(void *arg)
{
	struct group *g = arg;
	uint64_t ended_ns = 0, until_ns = 0;

	for (;;) {
		uint64_t now = now_ns(), next, own;
		bool tells, ends;

		pthread_mutex_lock(&g->lock);
		own = g->own_ns;
		ends = g->ends;
		if (own)
			fired(g, own, g->node);
		pthread_mutex_unlock(&g->lock);
		ended_ns = ended_ns ? ended_ns : ends ? now : 0;
		until_ns = until_ns ? until_ns : g->fired_ns ? now + TELL_NS : 0;
		greet(g, now);
		tells = (!until_ns || now < until_ns) && tell(g, now);
		if (ends && (!tells || now > ended_ns + LINGER_NS))
			return NULL;
		next = tells && g->again_ns < g->hello_ns ? g->again_ns : g->hello_ns;
		group_wait(&g->socket, g->wake, next > now ? (int)((next - now) / MS) + 1 : 0);
		take_all(g);
	}
}

static void wake(struct group *g)
{
	uint64_t one = 1;

	if (write(g->wake, &one, sizeof(one)) != sizeof(one))
		return; /* it is awake */
}

/* ---- for the recorder ---- */

static int take_name(struct group *g, const char *text, struct err *err)
{
	size_t n = strcspn(text, "@");

	if (n < sizeof(g->name))
		memcpy(g->name, text, n);
	if (!cable_is_name(g->name) || (text[n] && !text[n + 1]))
		return err_set(
			err, EINVAL,
			"--trigger-group: %s is not a group: NAME, or NAME@HOST[:PORT],..., the name "
			"of letters, digits and ._-",
			text);
	return 0;
}

static int start(struct group *g, struct err *err)
{
	sigset_t all, before;
	int code;

	g->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (g->wake < 0)
		return err_set(err, errno, "eventfd: %s", strerror(errno));
	g->begun_ns = now_ns();
	pthread_mutex_init(&g->lock, NULL);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	code = pthread_create(&g->thread, NULL, group_thread, g);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return code ? err_set(err, code, "cannot start a thread: %s", strerror(code)) : 0;
}

int group_open(struct group **out, const char *text, const char *token_file, const char *node,
	       struct err *err)
{
	struct group *g = xcalloc(1, sizeof(*g));
	const char *at = strchr(text, '@');
	int ret = take_name(g, text, err);

	*out = NULL;
	g->socket = GROUP_SOCKET_NONE;
	g->wake = -1;
	snprintf(g->node, sizeof(g->node), "%s", node);
	if (!ret && at && !token_file)
		ret = err_set(
			err, EACCES,
			"--trigger-group: whoever reaches the port of %s could end the recording: "
			"--token FILE, the same for all of the group",
			at + 1);
	if (!ret && at)
		ret = cable_token_read(&g->token, token_file, err);
	if (!ret && getrandom(g->id, sizeof(g->id), 0) != sizeof(g->id))
		ret = err_set(err, EIO, "the kernel gives no random numbers");
	if (!ret)
		ret = at ? group_socket_udp(&g->socket, at + 1, err)
			 : group_socket_unix(&g->socket, g->name, g->id, err);
	if (!ret)
		ret = start(g, err);
	if (!ret) {
		*out = g;
		return 0;
	}
	if (g->wake >= 0)
		close(g->wake);
	group_socket_close(&g->socket);
	xfree(g);
	return ret;
}

struct group_end group_close(struct group *g)
{
	struct group_end end = {0};

	if (!g)
		return end;
	pthread_mutex_lock(&g->lock);
	g->ends = true;
	pthread_mutex_unlock(&g->lock);
	wake(g);
	pthread_join(g->thread, NULL);
	pthread_mutex_destroy(&g->lock);
	end = g->end;
	if (g->fired_ns)
		vec_for(&g->members, m)
			end.untold += !m->has_heard;
	group_socket_close(&g->socket);
	close(g->wake);
	vec_free(&g->members);
	xfree(g);
	return end;
}

void group_tell(struct group *g, uint64_t at_ns)
{
	pthread_mutex_lock(&g->lock);
	if (!g->own_ns && !g->heard_ns)
		g->own_ns = at_ns;
	pthread_mutex_unlock(&g->lock);
	wake(g);
}

uint64_t group_heard(struct group *g)
{
	uint64_t ns;

	pthread_mutex_lock(&g->lock);
	ns = g->heard_ns;
	pthread_mutex_unlock(&g->lock);
	return ns;
}

const char *group_who(const struct group *g)
{
	return g->who;
}
