/* SPDX-License-Identifier: MIT */
/*
 * serve_turns.c - who gets a thread when: the connections that wait, and those that ask.
 *
 *   WAITS ─┬─ its process asks already, or its class has all its threads: the next one's turn
 *          └─► ASKS: until the REPLY it counts against its class, until the RESULT against its user
 *
 * A process has one question at a time: its second one depends on what became of the first, and one
 * that asks without end takes one thread and no more, whoever it is.  (The runtime sends the next
 * question when it has sent the RESULT of the last one.)  Among processes the oldest question is
 * first.  Our own user's processes have threads that strangers never take.
 *
 * Lists are short, so each is looked through: a stranger's user has TURNS_USER waiting at most, and
 * any process TURNS_PROCESS.  All is done under the server's lock and nothing here waits, or writes.
 */
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "collect/attach/serve_impl.h"

#define TURNS_OWN 32u       /* being answered, of our own user's processes */
#define TURNS_STRANGERS 16u /* of all others */
#define TURNS_SAME 8u       /* of one other user */
#define TURNS_RESULTS 64u   /* threads of one other user, with those that wait for a RESULT */
#define TURNS_PROCESS 16u   /* waiting, of one process */
#define TURNS_USER 128u     /* waiting, of one other user */

/* ---- connections ---- */

bool connection_is_strangers(const struct connection *c)
{
	return c->peer.uid != c->server->uid;
}

static bool is_same_process(const struct connection *a, const struct connection *b)
{
	return a->peer.pid == b->peer.pid;
}

void connection_move(struct connection *c, enum connection_state state)
{
	TAILQ_REMOVE(&c->server->list[c->state], c, link);
	c->state = state;
	TAILQ_INSERT_TAIL(&c->server->list[state], c, link);
}

void connection_close(struct connection *c)
{
	struct server *s = c->server;

	TAILQ_REMOVE(&s->list[c->state], c, link);
	s->nconnections--;
	/* A process that is being started has it open for a moment, too, and events would go on. */
	epoll_ctl(s->epoll_fd, EPOLL_CTL_DEL, c->fd, NULL);
	close(c->fd);
	peer_close(&c->peer);
	pthread_cond_broadcast(&s->idle);
	xfree(c);
}

bool connection_is_too_many(const struct connection *c)
{
	unsigned process = 0, user = 0;
	const struct connection *o;

	TAILQ_FOREACH(o, &c->server->list[CONNECTION_WAITS], link)
	{
		process += is_same_process(o, c);
		user += o->peer.uid == c->peer.uid;
	}
	return process >= TURNS_PROCESS || (connection_is_strangers(c) && user >= TURNS_USER);
}

void connection_turn_away(struct connection *c)
{
	struct server *s = c->server;

	if (!s->turned_away++)
		s->turned_away_pid = c->peer.pid;
	else if (s->turned_away_pid != c->peer.pid)
		s->turned_away_pid = 0;
	connection_close(c);
}

/* ---- turns ---- */

static bool has_turn(const struct connection *c)
{
	unsigned own = 0, strangers = 0, same = 0, results = 0;
	const struct connection *o;

	TAILQ_FOREACH(o, &c->server->list[CONNECTION_ASKS], link)
	{
		bool same_user = o->peer.uid == c->peer.uid;

		if (is_same_process(o, c))
			return false;
		results += same_user;
		if (o->replied)
			continue;
		own += !connection_is_strangers(o);
		strangers += connection_is_strangers(o);
		same += same_user;
	}
	if (!connection_is_strangers(c))
		return own < TURNS_OWN;
	return strangers < TURNS_STRANGERS && same < TURNS_SAME && results < TURNS_RESULTS;
}

/* NULL: nobody's turn. */
static struct connection *next_turn(struct server *s)
{
	struct connection *c;

	if (s->stopping)
		return NULL;
	TAILQ_FOREACH(c, &s->list[CONNECTION_WAITS], link)
	if (has_turn(c))
		return c;
	return NULL;
}

bool turns_free_stranger(struct server *s)
{
	struct connection *c;

	TAILQ_FOREACH_REVERSE(c, &s->list[CONNECTION_WAITS], connections, link)
	{
		if (!connection_is_strangers(c))
			continue;
		connection_turn_away(c);
		return true;
	}
	return false;
}

/* ---- threads ---- */

static void *answering_thread(void *arg)
{
	struct connection *c = arg;
	struct server *s = c->server;

	while (c) {
		serve_answer(c);
		turns_note(s);
		pthread_mutex_lock(&s->lock);
		connection_close(c);
		c = next_turn(s);
		if (c)
			connection_move(c, CONNECTION_ASKS);
		pthread_mutex_unlock(&s->lock);
	}
	return NULL;
}

static bool start_thread(struct connection *c)
{
	pthread_attr_t attr;
	pthread_t thread;
	int code;

	connection_move(c, CONNECTION_ASKS);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	code = pthread_create(&thread, &attr, answering_thread, c);
	pthread_attr_destroy(&attr);
	return !code;
}

void turns_start(struct server *s)
{
	struct connection *c = next_turn(s);

	while (c && start_thread(c))
		c = next_turn(s);
	if (!c)
		return;
	/* Out of threads: the next tick tries again, or a thread that is done takes it. */
	TAILQ_REMOVE(&s->list[CONNECTION_ASKS], c, link);
	c->state = CONNECTION_WAITS;
	TAILQ_INSERT_HEAD(&s->list[CONNECTION_WAITS], c, link);
}

void turns_give_up(struct server *s, uint64_t before_ms)
{
	struct connection *c;

	while ((c = TAILQ_FIRST(&s->list[CONNECTION_WAITS])) && c->since_ms < before_ms &&
	       TAILQ_EMPTY(&s->list[CONNECTION_ASKS])) {
		s->given_up++;
		connection_close(c);
	}
}

/* ---- notes ---- */

void turns_note(struct server *s)
{
	uint64_t n, given_up;
	pid_t pid;

	pthread_mutex_lock(&s->lock);
	n = s->turned_away;
	pid = s->turned_away_pid;
	s->turned_away = 0;
	given_up = s->given_up;
	s->given_up = 0;
	pthread_mutex_unlock(&s->lock);
	if (n)
		server_note_many(s, pid > 0 ? pid : 0, "it asked for more plans than it waited for",
				 n);
	if (given_up)
		server_note_many(s, 0, "kron could not make a thread to answer it", given_up);
}
