/* SPDX-License-Identifier: MIT */
/*
 * net_calls.c - puts the samples of a call together.
 *
 *   TCP_socket ends={6,..}  TCP_recv socket=17  TCP_flags flags=2  ...  TCP_recv_end n=512
 *
 * A call in a signal's handler is there before the one that it has interrupted ends.
 */
#include <string.h>

#include "trace/messages/net_impl.h"
#include "trace/value.h"

/* The names of probes/packs/net.probe; at the end of a call stands its name and _end. */
static const struct kind {
	const char *name;
	bool is_receive;
} kinds[] = {{"TCP_send", false},  {"TCP_sendto", false},  {"TCP_sendmsg", false},
	     {"TCP_write", false}, {"TCP_writev", false},  {"TCP_sendfile", false},
	     {"TCP_recv", true},   {"TCP_recvfrom", true}, {"TCP_recvmsg", true},
	     {"TCP_read", true},   {"TCP_readv", true}};
enum { NKINDS = sizeof(kinds) / sizeof(*kinds) };

enum {
	ROLE_BEGIN,
	ROLE_END = ROLE_BEGIN + NKINDS,
	ROLE_FLAGS = ROLE_END + NKINDS,
	ROLE_EMPTY,
	ROLE_SOCKET,
	ROLE_CONNECT,
	ROLE_ACCEPTED,
	ROLE_UNTOLD,
	ROLE_WAIT,
	ROLE_WAIT_END,
	ROLE_NONE
};
static const char *const others[] = {"TCP_flags",    "TCP_empty",  "TCP_socket", "TCP_connect",
				     "TCP_accepted", "TCP_untold", "TCP_wait",   "TCP_wait_end"};
_Static_assert(sizeof(others) / sizeof(*others) == ROLE_NONE - ROLE_FLAGS, "a name for each role");
enum { DEPTH = 4 };

struct open_call {
	struct net_call c;
	unsigned kind;
};
struct lane {
	struct open_call v[DEPTH];
	unsigned n;
	uint64_t wait_begin, wait_end; /* of the last one that is not told yet; end 0: it goes on */
};

struct calls {
	const struct trace *t;
	const struct net_calls_sink *sink;
	struct index events; /* numbers of user events */
	VEC(uint8_t) roles;  /* by index */
	struct lane *lanes;
};

static uint8_t role_of(const char *name)
{
	for (unsigned i = 0; i < NKINDS; i++) {
		const size_t n = strlen(kinds[i].name);

		if (strncmp(name, kinds[i].name, n) != 0)
			continue;
		if (!name[n])
			return (uint8_t)(ROLE_BEGIN + i);
		if (!strcmp(name + n, "_end"))
			return (uint8_t)(ROLE_END + i);
	}
	for (unsigned i = ROLE_FLAGS; i < ROLE_NONE; i++)
		if (!strcmp(name, others[i - ROLE_FLAGS]))
			return (uint8_t)i;
	return ROLE_NONE;
}

bool net_has(const struct trace *t)
{
	for (size_t i = 0; i < t->nuser_events; i++)
		if (role_of(t->user_events[i].name) != ROLE_NONE)
			return true;
	return false;
}

static void give_out(struct calls *x, struct lane *l)
{
	x->sink->on_call(x->sink->arg, &l->v[--l->n].c);
}

static void begin(struct calls *x, const struct trace_event *e, unsigned kind, struct value v)
{
	struct lane *l = &x->lanes[e->lane];

	if (l->n == DEPTH) { /* what never came back */
		const struct open_call first = l->v[0];

		memmove(l->v, l->v + 1, (DEPTH - 1) * sizeof(*l->v));
		l->v[DEPTH - 1] = first;
		give_out(x, l);
	}
	l->v[l->n] = (struct open_call){.kind = kind,
					.c = {.socket = v.number,
					      .lane = e->lane,
					      .is_receive = kinds[kind].is_receive,
					      .is_asked = value_is_number(v),
					      .is_nested = l->n > 0,
					      .is_shown = !x->t->filter ||
							  x->t->filter->passes(x->t->filter, e),
					      .begin = e->tsc,
					      .earliest = e->in.lo,
					      .end = UINT64_MAX,
					      .latest = UINT64_MAX}};
	if (kinds[kind].is_receive && v.number && l->wait_end) {
		l->v[l->n].c.wait_begin = l->wait_begin;
		l->v[l->n].c.wait_end = l->wait_end;
		l->wait_begin = l->wait_end = 0;
	}
	l->n++;
}

static void end(struct calls *x, const struct trace_event *e, unsigned kind, struct value v)
{
	struct lane *l = &x->lanes[e->lane];
	unsigned i = l->n;
	struct net_call *c;

	while (i && l->v[i - 1].kind != kind)
		i--;
	if (!i) {
		x->sink->on_unstarted(x->sink->arg);
		return;
	}
	while (l->n > i)
		give_out(x, l);
	c = &l->v[i - 1].c;
	c->n = (int64_t)v.number;
	c->end = e->tsc;
	c->latest = e->in.hi;
	give_out(x, l);
}

/* What is unusual of the innermost call. */
static void part(struct calls *x, const struct trace_event *e, uint8_t role)
{
	struct lane *l = &x->lanes[e->lane];

	if (l->n && role == ROLE_FLAGS)
		l->v[l->n - 1].c.is_aside = true;
	else if (l->n)
		l->v[l->n - 1].c.is_empty = true;
}

static void wait_for(struct calls *x, const struct trace_event *e, bool is_end)
{
	struct lane *l = &x->lanes[e->lane];

	if (is_end && l->wait_begin && !l->wait_end)
		l->wait_end = e->tsc;
	if (is_end)
		return;
	l->wait_begin = e->tsc;
	l->wait_end = 0;
}

static void endpoints(struct calls *x, const struct trace_event *e, struct value v)
{
	struct kron_endpoints ends;

	if (!v.memory || v.memory->is_unreadable || v.memory->length < sizeof(ends))
		return;
	memcpy(&ends, v.memory->text, sizeof(ends));
	x->sink->on_endpoints(x->sink->arg, e->lane, &ends);
}

static void feed(struct calls *x, const struct trace_event *e)
{
	const struct trace_user_event *u =
		e->s.event < KRON_EVENT_SPECIAL ? trace_user_event_of(x->t, e->s.event) : NULL;
	const uint32_t at = u ? index_find(&x->events, u->n) : INDEX_NONE;
	const uint8_t role = at == INDEX_NONE ? ROLE_NONE : x->roles.v[at];
	struct value v;

	if (role == ROLE_NONE)
		return;
	v = value_of(u, e);
	if (role < ROLE_END)
		begin(x, e, role - ROLE_BEGIN, v);
	else if (role < ROLE_FLAGS)
		end(x, e, role - ROLE_END, v);
	else if (role == ROLE_FLAGS || role == ROLE_EMPTY)
		part(x, e, role);
	else if (role == ROLE_SOCKET)
		endpoints(x, e, v);
	else if (role == ROLE_WAIT || role == ROLE_WAIT_END)
		wait_for(x, e, role == ROLE_WAIT_END);
	else if (value_is_number(v) && v.number && role == ROLE_UNTOLD)
		x->sink->on_untold(x->sink->arg, e->lane, e->in.lo, v.number);
	else if (value_is_number(v) && v.number)
		x->sink->on_begin(x->sink->arg, e->lane, v.number);
}

static void finish(struct calls *x)
{
	for (size_t i = 0; i < x->t->nlanes; i++)
		while (x->lanes[i].n)
			give_out(x, &x->lanes[i]);
	xfree(x->lanes);
	vec_free(&x->roles);
	index_free(&x->events);
}

void net_calls_read(const struct trace *t, const struct net_calls_sink *sink)
{
	struct calls x = {.t = t, .sink = sink};
	struct trace all = *t; /* the filter does not leave bytes out of streams, but messages */
	struct trace_cursor *c;
	struct trace_event e;

	if (!net_has(t))
		return;
	x.lanes = xcalloc(t->nlanes + 1, sizeof(*x.lanes));
	for (size_t i = 0; i < t->nuser_events; i++) {
		const uint8_t role = role_of(t->user_events[i].name);

		if (role == ROLE_NONE)
			continue;
		index_of(&x.events, t->user_events[i].n);
		*vec_push(&x.roles) = role;
	}
	all.filter = NULL;
	c = trace_cursor_open(&all, -1);
	while (trace_cursor_next(c, &e))
		feed(&x, &e);
	trace_cursor_close(c);
	finish(&x);
}
