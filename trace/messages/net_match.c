/* SPDX-License-Identifier: MIT */
/*
 * net_match.c - which sockets are a connection, and which receives have got what a send has sent.
 *
 *   sends      0 ├── a ──┤─ b ─┤────── c ──────┤      bytes of one socket's sends
 *   receives   0 ├─ p ─┤── q ──┤─ r ─┤── s ──┤        of the other one's receives:  a by p and q, b by q and r, c not whole yet
 */
#include <stdlib.h>
#include <string.h>

#include "trace/messages/net_impl.h"

enum { TCP = 6 };

/* ---- pairs ---- */

/* The same for both sockets of a connection. */
struct key {
	uint8_t end[2][18];        /* address and port, the lower one first */
	uint32_t host, network[2]; /* of loopback addresses */
};
struct socket_key {
	struct key key;
	struct net_socket *s;
	bool is_upper; /* its own address is the second one */
};

static bool is_loopback(const uint8_t a[16])
{
	static const uint8_t v4[12] = {[10] = 0xff, [11] = 0xff}, v6[16] = {[15] = 1};

	return (!memcmp(a, v4, sizeof(v4)) && a[12] == 127) || !memcmp(a, v6, sizeof(v6));
}

static struct socket_key key_of(struct net_socket *s)
{
	struct socket_key k = {.s = s};
	uint8_t own[18], peer[18];

	memcpy(own, s->ends.local, 16);
	memcpy(own + 16, &s->ends.local_port, 2);
	memcpy(peer, s->ends.peer, 16);
	memcpy(peer + 16, &s->ends.peer_port, 2);
	k.is_upper = memcmp(own, peer, sizeof(own)) > 0;
	memcpy(k.key.end[k.is_upper], own, sizeof(own));
	memcpy(k.key.end[!k.is_upper], peer, sizeof(peer));
	if (is_loopback(s->ends.local) || is_loopback(s->ends.peer)) {
		k.key.host = s->host;
		memcpy(k.key.network, s->ends.network, sizeof(k.key.network));
	}
	return k;
}

static int by_key(const void *a, const void *b)
{
	const struct socket_key *x = a, *y = b;
	const int order = memcmp(&x->key, &y->key, sizeof(x->key));

	return order ? order : (int)x->is_upper - (int)y->is_upper;
}

/* ---- fates ---- */

static void count(struct net_match *m, struct net_stream *s, int way)
{
	uint64_t *to = way == NET_SENDS ? m->counts->sends : m->counts->receives;

	vec_for(&s->parts, p)
		*(p->n == NET_UNKNOWN ? &m->counts->unfinished : &to[p->fate]) += p->is_shown;
}

static void give_up(struct net_stream *s, enum net_fate fate)
{
	vec_for(&s->parts, p)
		p->fate = fate;
}

/* All of the socket's. */
static void leave(struct net_match *m, struct net_socket *s, enum net_fate fate)
{
	for (int way = 0; way < 2; way++) {
		give_up(&s->ways[way], fate);
		count(m, &s->ways[way], way);
	}
}

/* ---- one direction ---- */

struct way {
	struct net_match *m;
	struct net_stream *sends, *receives;
	uint32_t connection;
	size_t at; /* the first receive that may have got something of the next send */
};

static uint64_t end_of(const struct net_part *p)
{
	return p->offset + p->span;
}

static bool is_placed(const struct net_part *p)
{
	return p->offset != NET_UNKNOWN;
}

/* A receive has stood still, or its thread before it, until it was sent what it got first. */
static void tell_wait(struct way *w, const struct net_part *send, const struct net_part *receive)
{
	const bool is_before =
		send->begin > receive->wait_begin && send->begin <= receive->wait_end;

	if (receive->is_shown)
		message_tell_wait(w->m->sink,
				  &(struct message_wait){
					  .who = receive->lane,
					  .by = send->lane,
					  .since = is_before ? receive->wait_begin : receive->begin,
					  .until = send->begin < receive->end ? send->begin
									      : receive->end,
					  .why = MESSAGE_LATE_SENDER});
}

static void give_out(struct way *w, const struct net_part *send, const struct net_part *first,
		     const struct net_part *last)
{
	if (first->offset >= send->offset)
		tell_wait(w, send, first);
	if (!send->is_shown)
		return;
	w->m->counts->messages++;
	w->m->sink->message(w->m->sink->arg, &(struct message){.kind = MESSAGE_TCP,
							       .from = send->lane,
							       .to = last->lane,
							       .from_rank = MESSAGE_NO_RANK,
							       .to_rank = MESSAGE_NO_RANK,
							       .comm = w->connection,
							       .offset = send->offset,
							       .bytes = send->n,
							       .sent = send->begin,
							       .posted = first->begin,
							       .received = last->end});
}

/* What has become of the send, as far as the receives know that have got some of it. */
static enum net_fate fate_of(struct way *w, struct net_part *send)
{
	const struct net_stream *r = w->receives;
	size_t i = w->at;

	while (i < r->parts.n && is_placed(&r->parts.v[i]) &&
	       end_of(&r->parts.v[i]) <= send->offset)
		i++;
	w->at = i;
	if (send->is_unordered)
		return NET_UNORDERED;
	for (; i < r->parts.n && is_placed(&r->parts.v[i]) && r->parts.v[i].offset < end_of(send);
	     i++)
		if (r->parts.v[i].is_unordered)
			return NET_UNORDERED;
	if (end_of(send) > r->total)
		return r->is_untold ? NET_UNTOLD : NET_UNREAD;
	return NET_MATCHED;
}

static void take(struct way *w, struct net_part *send)
{
	struct net_part *v = w->receives->parts.v, *first = NULL, *last = NULL;

	send->fate = is_placed(send) ? fate_of(w, send) : NET_UNTOLD;
	if (!is_placed(send))
		return;
	for (size_t i = w->at;
	     i < w->receives->parts.n && is_placed(&v[i]) && v[i].offset < end_of(send); i++) {
		first = first ? first : &v[i];
		last = &v[i];
		/* of several sends it has got what the worst one says */
		if (send->fate != NET_MATCHED)
			last->fate = send->fate;
	}
	if (send->fate == NET_MATCHED && last)
		give_out(w, send, first, last);
}

static bool is_whole(const struct net_stream *sends, const struct net_stream *receives)
{
	if (sends->is_untold)
		return true;
	return receives->total == sends->total ||
	       (receives->total < sends->total && (!receives->has_ended || receives->is_untold));
}

static void one_way(struct net_match *m, struct net_socket *from, struct net_socket *to)
{
	struct way w = {.m = m,
			.sends = &from->ways[NET_SENDS],
			.receives = &to->ways[NET_RECEIVES],
			.connection = (uint32_t)m->counts->connections};

	if (is_whole(w.sends, w.receives)) {
		vec_for(&w.receives->parts, p)
			p->fate = !is_placed(p) || end_of(p) > w.sends->total ? NET_UNTOLD
				  : p->is_unordered                           ? NET_UNORDERED
									      : NET_MATCHED;
		vec_for(&w.sends->parts, p)
			take(&w, p);
	} else {
		give_up(w.sends, NET_DIFFERING);
		give_up(w.receives, NET_DIFFERING);
	}
	count(m, w.sends, NET_SENDS);
	count(m, w.receives, NET_RECEIVES);
}

/* ---- all ---- */

/* Sockets whose addresses are the same pair. */
static void pair(struct net_match *m, const struct socket_key *k, size_t n)
{
	const bool is_pair = n == 2 && k[0].is_upper != k[1].is_upper;
	const bool has_lost = is_pair && (k[0].s->has_lost || k[1].s->has_lost);
	const bool is_begun = is_pair && k[0].s->is_begun && k[1].s->is_begun;

	if (is_pair && is_begun && !has_lost) {
		one_way(m, k[0].s, k[1].s);
		one_way(m, k[1].s, k[0].s);
		m->counts->connections++;
		return;
	}
	for (size_t i = 0; i < n; i++)
		leave(m, k[i].s,
		      has_lost || k[i].s->has_lost   ? NET_LOST
		      : n > 1 && !is_pair            ? NET_REUSED
		      : is_pair || !k[i].s->is_begun ? NET_BEFORE
						     : NET_ALONE);
}

void net_match(struct net_match *m, struct net_socket *sockets, size_t n)
{
	struct socket_key *keys = xcalloc(n + 1, sizeof(*keys));
	size_t nkeys = 0;

	for (size_t i = 0; i < n; i++) {
		struct net_socket *s = &sockets[i];

		if (s->has_ends && s->ends.protocol != TCP) {
			m->counts->other += s->nshown;
			continue;
		}
		m->counts->peeks += s->naside;
		if (!s->has_ends)
			leave(m, s, s->has_lost ? NET_LOST : NET_NO_ADDRESS);
		else if (s->is_doubtful)
			leave(m, s, NET_REUSED);
		else
			keys[nkeys++] = key_of(s);
	}
	if (nkeys)
		qsort(keys, nkeys, sizeof(*keys), by_key);
	for (size_t i = 0, end; i < nkeys; i = end) {
		end = i + 1;
		while (end < nkeys && !memcmp(&keys[i].key, &keys[end].key, sizeof(keys[i].key)))
			end++;
		pair(m, &keys[i], end - i);
	}
	xfree(keys);
}
