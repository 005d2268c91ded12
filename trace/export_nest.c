/* SPDX-License-Identifier: MIT */
/* export_nest.c - see export_nest.h. */
#include "trace/export_nest.h"

static uint64_t forward(struct export_nest *n, uint64_t tsc)
{
	if ((int64_t)(tsc - n->last) > 0)
		n->last = tsc;
	return n->last;
}

static void on_enter(void *ctx, const struct trace_event *e, uint32_t function, uint32_t depth)
{
	struct export_nest *n = ctx;

	(void)depth;
	*vec_push(&n->stack) = function;
	n->begin(n->ctx, function, forward(n, e->tsc), false);
}

static void on_leave(void *ctx, const struct trace_event *e, const struct pair_call *call)
{
	struct export_nest *n = ctx;
	uint64_t tsc = forward(n, call->exit_tsc);
	size_t i = n->stack.n, at;

	(void)e;
	while (i > 0 && n->stack.v[i - 1] != call->function)
		i--;
	if (!i)
		return;
	at = i - 1;
	for (i = n->stack.n; i-- > at + 1;)
		n->end(n->ctx, n->stack.v[i], tsc, NULL);
	n->end(n->ctx, call->function, tsc, call);
	for (i = at; i + 1 < n->stack.n; i++) {
		n->stack.v[i] = n->stack.v[i + 1];
		n->begin(n->ctx, n->stack.v[i], tsc, true);
	}
	n->stack.n--;
}

static void on_special(void *ctx, const struct trace_event *e)
{
	struct export_nest *n = ctx;
	struct trace_event at = *e;

	if (!n->special)
		return;
	at.tsc = forward(n, e->tsc);
	n->special(n->ctx, &at);
}

static uint32_t on_node(void *ctx, uint32_t caller, uint32_t function)
{
	struct export_nest *n = ctx;

	return n->node(n->ctx, caller, function);
}

static void on_user_event(void *ctx, const struct trace_event *e, const struct trace_user_event *u)
{
	struct export_nest *n = ctx;
	struct trace_event at = *e;

	if (!n->user_event)
		return;
	at.tsc = forward(n, e->tsc);
	n->user_event(n->ctx, &at, u);
}

void export_nest_open(struct export_nest *n)
{
	struct pair_sink sink = {.ctx = n,
				 .enter = on_enter,
				 .leave = on_leave,
				 .special = on_special,
				 .user_event = on_user_event,
				 .node = n->node ? on_node : NULL,
				 .want_recursive = n->want_recursive};

	n->pairs = pairs_open(n->t, &sink);
}

void export_nest_lane(struct export_nest *n, uint32_t lane)
{
	struct trace_cursor *cursor = trace_cursor_open(n->t, (int)lane);
	struct trace_event e;

	n->stack.n = 0;
	n->last = n->t->start_tsc;
	while (trace_cursor_next(cursor, &e)) {
		if (n->event)
			n->event(n->ctx, &e);
		pairs_feed(n->pairs, &e);
	}
	trace_cursor_close(cursor);
	pairs_finish_lane(n->pairs, lane);
}

void export_nest_close(struct export_nest *n)
{
	pairs_close(n->pairs);
	vec_free(&n->stack);
}

/* ---- a set ---- */

static size_t find_slot(const struct export_set *s, uint32_t number)
{
	size_t at = number * 2654435761u & (s->nslots - 1);

	while (s->slots[at] && s->slots[at] != (uint64_t)number + 1)
		at = (at + 1) & (s->nslots - 1);
	return at;
}

static void grow(struct export_set *s)
{
	struct export_set old = *s;

	s->nslots = old.nslots ? 2 * old.nslots : 256;
	s->slots = xcalloc(s->nslots, sizeof(*s->slots));
	for (size_t i = 0; i < old.nslots; i++)
		if (old.slots[i])
			s->slots[find_slot(s, (uint32_t)(old.slots[i] - 1))] = old.slots[i];
	xfree(old.slots);
}

bool export_set_add(struct export_set *s, uint32_t number)
{
	size_t at;

	if (2 * s->n >= s->nslots)
		grow(s);
	at = find_slot(s, number);
	if (s->slots[at])
		return false;
	s->slots[at] = (uint64_t)number + 1;
	s->n++;
	return true;
}

void export_set_free(struct export_set *s)
{
	xfree(s->slots);
}
