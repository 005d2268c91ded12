/* SPDX-License-Identifier: MIT */
/* net.c - see net.h: the calls of each socket. */
#include "trace/messages/net.h"

#include <string.h>

#include "trace/messages/net_impl.h"

struct net {
	const struct trace *t;
	struct net_counts *counts;
	struct index numbers, keys;     /* the kernel's; with the host */
	VEC(struct net_socket) sockets; /* by index of the second */
};

static struct net_socket *socket_of(struct net *x, uint32_t lane, uint64_t number)
{
	const struct trace_lane *l = &x->t->lanes[lane];
	const struct trace_proc *p = trace_proc_of(x->t, l->proc_uid);
	const uint32_t host = trace_nodes(x->t) ? trace_node_clock(x->t, l->node) : 0;
	const uint32_t at =
		index_of(&x->keys, (uint64_t)host << 32 | index_of(&x->numbers, number));
	struct net_socket *s;

	if (at == x->sockets.n)
		*vec_push(&x->sockets) = (struct net_socket){.host = host, .number = number};
	s = &x->sockets.v[at];
	s->has_lost = s->has_lost || !p || p->lost || p->cut_off;
	return s;
}

static void on_call(void *arg, const struct net_call *c)
{
	struct net *x = arg;
	struct net_socket *s;

	x->counts->unasked += !c->is_asked && c->is_shown;
	if (!c->socket || !c->is_asked)
		return;
	s = socket_of(x, c->lane, c->socket);
	s->ncalls++;
	s->nshown += c->is_shown;
	s->naside += c->is_shown && c->is_aside;
	if (!c->is_aside)
		net_stream_add(&s->ways[c->is_receive ? NET_RECEIVES : NET_SENDS], c);
}

static void on_endpoints(void *arg, uint32_t lane, const struct kron_endpoints *ends)
{
	struct net *x = arg;
	struct net_socket *s =
		socket_of(x, lane, (uint64_t)ends->socket[1] << 32 | ends->socket[0]);

	s->is_doubtful =
		s->is_doubtful || (s->has_ends && memcmp(&s->ends, ends, sizeof(*ends)) != 0);
	s->has_ends = true;
	s->ends = *ends;
}

/* What has been transferred before is of another connection, or of none. */
static void on_begin(void *arg, uint32_t lane, uint64_t number)
{
	struct net_socket *s = socket_of(arg, lane, number);

	s->is_begun = s->is_begun || !s->ncalls;
}

static void on_untold(void *arg, uint32_t lane, uint64_t since, uint64_t number)
{
	struct net_socket *s = socket_of(arg, lane, number);
	struct net_call c = {.lane = lane,
			     .is_shown = true,
			     .begin = since,
			     .earliest = since,
			     .end = UINT64_MAX,
			     .latest = UINT64_MAX};

	net_stream_add(&s->ways[NET_SENDS], &c);
	c.is_receive = true;
	net_stream_add(&s->ways[NET_RECEIVES], &c);
}

static void on_unstarted(void *arg)
{
	struct net *x = arg;

	x->counts->unstarted++;
}

void net_read(const struct trace *t, const struct message_sink *sink, struct net_counts *counts)
{
	struct net_counts unwanted = {0};
	struct net x = {.t = t, .counts = counts ? counts : &unwanted};
	struct net_match m = {t, sink, x.counts};

	*x.counts = (struct net_counts){0};
	net_calls_read(t, &(struct net_calls_sink){&x, on_call, on_endpoints, on_begin, on_untold,
						   on_unstarted});
	vec_for(&x.sockets, s)
		for (int way = 0; way < 2; way++)
			net_stream_settle(&s->ways[way]);
	net_match(&m, x.sockets.v, x.sockets.n);
	vec_for(&x.sockets, s)
		for (int way = 0; way < 2; way++)
			vec_free(&s->ways[way].parts);
	vec_free(&x.sockets);
	index_free(&x.numbers);
	index_free(&x.keys);
}
