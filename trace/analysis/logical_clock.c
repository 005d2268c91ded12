/* SPDX-License-Identifier: MIT */
/* logical_clock.c - see logical_clock.h. */
#define _GNU_SOURCE
#include "trace/analysis/logical_clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "trace/analysis/interval_names.h"
#include "trace/messages/mpi.h"
#include "trace/messages/net.h"

#define SLOWER 0.01    /* times that were moved come back by this much of the time that goes by */
#define STRETCHES 10.0 /* what comes before is stretched by one part of so many */
#define LEAST_TICKS 64 /* from a sending to its reception */
#define EDGE_TICKS 16  /* what rounding may not spoil */
#define MOST_TICKS 0x1p60
#define SECOND 1000000000u /* about, in ticks: anything that is long */

/* A sending and its reception stand next to each other: 2n and 2n + 1. */
struct event {
	uint64_t time;
	int64_t moved;
	size_t jump; /* in `order`: the one of its node that the move is from */
	uint32_t node;
	bool is_done;
};

struct work {
	const struct trace *t;
	struct interval_info info;
	struct logical_clock *out;
	uint32_t *clock; /* by node: whose clock it has.  Its moves are those of that node. */
	VEC(struct event) v;
	size_t *order;   /* of v: by node and time */
	size_t *first;   /* in `order`, by node; one more at the end */
	size_t *at;      /* likewise: the next one to be done */
	size_t *known;   /* likewise: what receptions before it depend on is done */
	uint32_t *waits; /* nodes that may go on */
	size_t nwaits;
	bool *is_waiting; /* by node */
};

static bool is_reception(size_t i)
{
	return i & 1;
}

/* ---- messages ---- */

static void take(struct work *w, uint32_t from_lane, uint32_t to_lane, uint64_t sent, int64_t ticks)
{
	const uint32_t from = w->clock[w->t->lanes[from_lane].node];
	const uint32_t to = w->clock[w->t->lanes[to_lane].node];

	if (from == to)
		return;
	*vec_push(&w->v) = (struct event){.time = sent, .node = from};
	*vec_push(&w->v) = (struct event){.time = sent + (uint64_t)ticks, .node = to};
	w->out->messages++;
	w->out->reversed += ticks < 0;
	if (ticks < 0 && 0 - (uint64_t)ticks > w->out->most_reversed)
		w->out->most_reversed = 0 - (uint64_t)ticks;
}

static void on_interval(void *arg, size_t def, int row, const struct interval *i)
{
	struct work *w = arg;

	(void)row;
	if (w->info.defs.v[def].class == 4)
		take(w, i->source, i->end_source, (uint64_t)i->begin, i->ticks);
}

static void on_message(void *arg, const struct message *m)
{
	if (m->received)
		take(arg, m->from, m->to, m->sent, (int64_t)(m->received - m->sent));
}

/* -ENODATA: the trace has none of that pack. */
static int take_pack(struct work *w, const char *pack, struct err *err)
{
	const struct message_sink sink = {.arg = w, .message = on_message};
	const enum message_kind kind = strcmp(pack, LOGICAL_CLOCK_MPI) ? MESSAGE_TCP : MESSAGE_MPI;

	if (!messages_has_kind(w->t, kind))
		return err_set(err, ENODATA, "%s has no messages of %s (record -P %s%s)", w->t->dir,
			       message_kinds[kind], pack,
			       kind == MESSAGE_MPI ? ", with Open MPI 4" : "");
	if (kind == MESSAGE_MPI)
		mpi_read(w->t, &sink, NULL, NULL);
	else
		net_read(w->t, &sink, NULL);
	return 0;
}

static int find_messages(struct work *w, const char *file, struct err *err)
{
	int ret;

	if (!strcmp(file, LOGICAL_CLOCK_MPI) || !strcmp(file, LOGICAL_CLOCK_NET))
		return take_pack(w, file, err);
	ret = interval_info_open(&w->info, w->t, file, err);

	if (!ret)
		ret = interval_info_check_messages(&w->info, file, err);
	if (!ret)
		w->out->alone = intervals_of_trace(&w->info, w->t, on_interval, w);
	return ret;
}

/* ---- the order of what depends on each other ---- */

static int by_place(const void *a, const void *b, void *ctx)
{
	const struct event *v = ctx;
	const size_t i = *(const size_t *)a, k = *(const size_t *)b;

	if (v[i].node != v[k].node)
		return v[i].node < v[k].node ? -1 : 1;
	if (v[i].time != v[k].time)
		return v[i].time < v[k].time ? -1 : 1;
	return is_reception(i) != is_reception(k) ? (int)is_reception(i) - (int)is_reception(k)
						  : (i > k) - (i < k);
}

static void arrange(struct work *w)
{
	const size_t nodes = w->out->nodes;

	w->order = xcalloc(w->v.n + 1, sizeof(*w->order));
	for (size_t i = 0; i < w->v.n; i++)
		w->order[i] = i;
	if (w->v.n)
		qsort_r(w->order, w->v.n, sizeof(*w->order), by_place, w->v.v);
	w->first = xcalloc(nodes + 1, sizeof(*w->first));
	w->at = xcalloc(nodes + 1, sizeof(*w->at));
	w->known = xcalloc(nodes + 1, sizeof(*w->known));
	w->waits = xcalloc(nodes + 1, sizeof(*w->waits));
	w->is_waiting = xcalloc(nodes + 1, sizeof(*w->is_waiting));
	for (size_t i = 0, node = 0; node <= nodes; node++) {
		while (i < w->v.n && w->v.v[w->order[i]].node < node)
			i++;
		w->first[node] = w->at[node] = w->known[node] = i;
	}
}

/* A damaged trace has times of any size. */
static uint64_t whole(double ticks)
{
	return ticks < MOST_TICKS ? (uint64_t)ticks : (uint64_t)MOST_TICKS;
}

/* By how much a reception is to be moved at least. */
static int64_t least_move(const struct event *sent, const struct event *e)
{
	const double far = (double)(int64_t)(sent->time - e->time) + (double)sent->moved;

	if (far > MOST_TICKS || far < -MOST_TICKS)
		return 0;
	return (int64_t)(sent->time - e->time) + sent->moved + LEAST_TICKS;
}

/* What is left of a move of so many ticks when so much time has gone by. */
static int64_t left_of(int64_t moved, uint64_t since)
{
	const double left = (double)moved - (double)since * SLOWER;

	return left > 0 ? (int64_t)left : 0;
}

static struct event *event_at(const struct work *w, size_t place)
{
	return &w->v.v[w->order[place]];
}

/* The move that an event has from the last jump on its node. */
static int64_t inherited(const struct work *w, size_t place)
{
	const struct event *e = event_at(w, place), *jump;

	if (place == w->first[e->node])
		return 0;
	jump = event_at(w, event_at(w, place - 1)->jump);
	return left_of(jump->moved, e->time - jump->time);
}

static void let_go_on(struct work *w, uint32_t node)
{
	if (w->is_waiting[node])
		return;
	w->is_waiting[node] = true;
	w->waits[w->nwaits++] = node;
}

/* By how much this event's time has to be moved; a reception whose sending is not done does not ask. */
static int64_t wanted(const struct work *w, size_t place)
{
	const size_t i = w->order[place];
	const struct event *sent = &w->v.v[i & ~(size_t)1];

	return is_reception(i) && sent->is_done ? least_move(sent, &w->v.v[i]) : 0;
}

/* After the last one of the same time. */
static size_t end_of_moment(const struct work *w, size_t place)
{
	const struct event *e = event_at(w, place);
	size_t end = place + 1;

	while (end < w->first[e->node + 1] && event_at(w, end)->time == e->time)
		end++;
	return end;
}

/* Those of one time are moved together: a time has one place on the line. */
static void do_next(struct work *w, uint32_t node)
{
	const size_t begin = w->at[node], end = end_of_moment(w, begin);
	int64_t moved = inherited(w, begin);
	size_t jump = begin == w->first[node] ? begin : event_at(w, begin - 1)->jump;

	for (size_t place = begin; place < end; place++) {
		const int64_t least = wanted(w, place);

		if (least > moved) {
			moved = least;
			jump = begin;
		}
	}
	for (size_t place = begin; place < end; place++) {
		struct event *e = event_at(w, place);

		e->moved = moved;
		e->jump = jump;
		e->is_done = true;
		if (!is_reception(w->order[place]))
			let_go_on(w, e[1].node);
	}
	w->at[node] = end;
	if ((uint64_t)moved > w->out->most[node])
		w->out->most[node] = (uint64_t)moved;
}

/* Is there a next one of this node, and is what it depends on done? */
static bool can_go_on(const struct work *w, uint32_t node)
{
	const size_t place = w->at[node], end = w->first[node + 1];
	size_t *known = &w->known[node];

	if (place == end)
		return false;
	for (*known = *known < place ? place : *known; *known < end; ++*known) {
		const size_t i = w->order[*known];

		if (w->v.v[i].time != event_at(w, place)->time)
			break;
		if (is_reception(i) && !w->v.v[i - 1].is_done)
			return false;
	}
	return true;
}

/* The earliest of those that wait for each other goes on all the same; false: all is done. */
static bool break_circle(struct work *w)
{
	uint32_t found = UINT32_MAX;

	for (uint32_t node = 0; node < w->out->nodes; node++) {
		if (w->at[node] == w->first[node + 1])
			continue;
		if (found == UINT32_MAX ||
		    w->v.v[w->order[w->at[node]]].time < w->v.v[w->order[w->at[found]]].time)
			found = node;
	}
	if (found == UINT32_MAX)
		return false;
	do_next(w, found);
	let_go_on(w, found);
	return true;
}

static bool is_reversed(const struct event *sent)
{
	const struct event *e = sent + 1;

	return (int64_t)(sent->time + (uint64_t)sent->moved - e->time - (uint64_t)e->moved) > 0;
}

static void move_all(struct work *w)
{
	for (uint32_t node = 0; node < w->out->nodes; node++)
		let_go_on(w, node);
	do {
		while (w->nwaits) {
			const uint32_t node = w->waits[--w->nwaits];

			w->is_waiting[node] = false;
			while (can_go_on(w, node))
				do_next(w, node);
		}
	} while (break_circle(w));
	for (size_t i = 0; i < w->v.n; i += 2)
		w->out->circles += is_reversed(&w->v.v[i]);
}

/* ---- the lines that follow ---- */

/* From a moved time on, back to its own. */
static void come_back(struct timeline *l, uint64_t time, int64_t moved, uint64_t until)
{
	const uint64_t own = time + whole((double)moved / SLOWER) + 1;

	if (moved && own < until)
		timeline_add(l, own, own);
}

/* before: the event before it; from: the jump before it.  NULL: there is none. */
static void draw_jump(struct timeline *l, const struct event *before, const struct event *from,
		      const struct event *e, int64_t had)
{
	const uint64_t stretch = whole(STRETCHES * (double)(e->moved - had));
	const uint64_t edge = e->time > EDGE_TICKS ? EDGE_TICKS : 0;
	uint64_t begin = e->time > stretch ? e->time - stretch : 0, end = e->time - edge;
	int64_t then;

	if (before && begin < before->time + EDGE_TICKS)
		begin = before->time + EDGE_TICKS;
	if (begin >= end) { /* no room */
		begin = before ? before->time : e->time - edge;
		end = e->time;
	}
	then = from ? left_of(from->moved, begin - from->time) : 0;
	if (from)
		come_back(l, from->time, from->moved, begin);
	if (!l->v.n && begin > SECOND) /* and before that no other */
		timeline_add(l, begin - SECOND, begin - SECOND);
	timeline_add(l, begin, begin + (uint64_t)then);
	timeline_add(l, end, end + (uint64_t)e->moved);
}

static void draw(const struct work *w, uint32_t node, struct timeline *l)
{
	const struct event *before = NULL, *from = NULL;

	for (size_t i = w->first[node]; i < w->first[node + 1]; i++) {
		const struct event *e = event_at(w, i);

		if (e->jump == i && e->moved) {
			draw_jump(l, before, from, e, inherited(w, i));
			from = e;
		}
		before = e;
	}
	if (!from)
		return;
	come_back(l, from->time, from->moved, UINT64_MAX);
	timeline_add(l, l->v.v[l->v.n - 1].from + SECOND, l->v.v[l->v.n - 1].to + SECOND);
	timeline_end(l, 1);
}

int logical_clock_find(struct logical_clock *out, const struct trace *t, const char *file,
		       struct err *err)
{
	struct work w = {.t = t, .out = out};
	int ret;

	*out = (struct logical_clock){.nodes = trace_nodes(t)};
	out->moves = xcalloc(out->nodes + 1, sizeof(*out->moves));
	out->most = xcalloc(out->nodes + 1, sizeof(*out->most));
	w.clock = xcalloc(out->nodes + 1, sizeof(*w.clock));
	for (uint32_t node = 0; node < out->nodes; node++)
		w.clock[node] = trace_node_clock(t, node);
	ret = find_messages(&w, file, err);
	if (!ret) {
		arrange(&w);
		move_all(&w);
		for (uint32_t node = 0; node < out->nodes; node++)
			draw(&w, w.clock[node], &out->moves[node]);
		for (uint32_t node = 0; node < out->nodes; node++)
			out->most[node] = out->most[w.clock[node]];
	}
	interval_info_free(&w.info);
	vec_free(&w.v);
	xfree(w.clock);
	xfree(w.order);
	xfree(w.first);
	xfree(w.at);
	xfree(w.known);
	xfree(w.waits);
	xfree(w.is_waiting);
	return ret;
}

void logical_clock_free(struct logical_clock *l)
{
	for (size_t i = 0; l->moves && i < l->nodes; i++)
		timeline_free(&l->moves[i]);
	xfree(l->moves);
	xfree(l->most);
}
