/* SPDX-License-Identifier: MIT */
/*
 * tracks.c - see tracks.h.
 *
 *   glance  has the thread more than one stack at all?  Mostly not, and that is it
 *   look    is everything on one track, in order?  If not: which calls end earlier than pairs.c says
 *           so (struct late)?
 *   learn   these end in time.  What is still open above a call that goes on, or ends, is a stack
 *           that needs a track of its own: the call with which it begins is a root.  So does one
 *           whose time is none of the call's on which it lies.  Again, until nothing new is found:
 *           mostly once, to see that.
 *   show    the same calls once more, and both are known
 *
 * Calls are told by the number of the event that began them, for each pass sees the same events.
 */
#define _GNU_SOURCE
#include "trace/analysis/tracks.h"

#include <stdlib.h>

#include "base/vec.h"
#include "base/search.h"

#define NONE PAIR_NO_NODE
#define SAME_STACK 65536u /* roots so near to each other are on the same stack */
#define HOMES 256u
#define LEARN_MOST 16 /* passes */

enum mode { LOOK, LEARN, SHOW };

struct late {
	uint64_t entry, exit; /* events */
	struct track_call c;  /* how it ends */
	uint32_t slot;        /* of the open call; NONE: not begun, or over */
};

struct slot { /* an open call */
	struct track_call c;
	uint64_t entry;
	uint32_t place; /* in the stack of its track */
	uint32_t below; /* slot there, NONE: it is the first */
	uint32_t next_free;
	bool is_open, has_ended; /* ended: but pairs.c does not know it yet */
};

struct track {
	VEC(uint32_t) stack; /* slots */
	uint32_t home;       /* stack pointer of the last root */
};

struct plan {                  /* of a lane */
	VEC(struct late) late; /* by exit, then the innermost first */
	VEC(uint32_t) by_entry;
	VEC(uint64_t) roots; /* sorted */
	bool is_there;
};

struct track_plans {
	struct plan *v; /* by lane */
	size_t n;
};

struct lane_tracks {
	VEC(struct track) tracks;
	VEC(uint32_t) vacant;
	uint32_t *homes; /* by stack: a track that was last there, + 1 */
	struct plan *f;
	size_t late_at, entry_at, root_at;
	uint64_t events;
};

struct tracks {
	const struct trace *t;
	struct track_sink sink;
	struct track_plans *own; /* or those of the sink */
	enum mode mode;
	struct pairs *pairs;
	struct lane_tracks *lanes;
	VEC(struct slot) slots;
	uint32_t free_slot; /* index + 1 */
	uint32_t newest;
	const struct trace_event *event;
	bool is_complicated; /* LOOK: not on one track, or not in order */
	bool has_learnt;
};

/* ---- tracks ---- */

static struct lane_tracks *lane_of(struct tracks *x, uint32_t lane)
{
	struct lane_tracks *l = &x->lanes[lane];

	if (!l->tracks.n)
		vec_push(&l->tracks);
	return l;
}

static uint32_t *home_of(struct lane_tracks *l, uint32_t sp)
{
	if (!l->homes)
		l->homes = xcalloc(HOMES, sizeof(*l->homes));
	return &l->homes[sp / SAME_STACK % HOMES];
}

static bool is_vacant(const struct lane_tracks *l, uint32_t track)
{
	return track && track < l->tracks.n && !l->tracks.v[track].stack.n;
}

/* A track for a root at sp: the one of the same stack, if it is vacant, any other, a new one. */
static uint32_t take_track(struct lane_tracks *l, uint32_t sp)
{
	uint32_t *home = home_of(l, sp), track = *home - 1;

	if (!*home || !is_vacant(l, track) ||
	    l->tracks.v[track].home / SAME_STACK != sp / SAME_STACK) {
		track = NONE;
		while (l->vacant.n && track == NONE) {
			track = l->vacant.v[--l->vacant.n];
			if (!is_vacant(l, track)) /* taken as somebody's home */
				track = NONE;
		}
	}
	if (track == NONE) {
		track = (uint32_t)l->tracks.n;
		vec_push(&l->tracks);
	}
	l->tracks.v[track].home = sp;
	*home = track + 1;
	return track;
}

static void put(struct tracks *x, struct lane_tracks *l, uint32_t slot, uint32_t track)
{
	struct slot *s = &x->slots.v[slot];
	struct track *k = &l->tracks.v[track];

	s->c.track = track;
	s->c.level = s->place = (uint32_t)k->stack.n;
	s->below = k->stack.n ? k->stack.v[k->stack.n - 1] : NONE;
	*vec_push(&k->stack) = slot;
}

static uint32_t top_of(const struct track *k)
{
	return k->stack.n ? k->stack.v[k->stack.n - 1] : NONE;
}

static void take_off(struct tracks *x, struct lane_tracks *l, uint32_t slot)
{
	uint32_t track = x->slots.v[slot].c.track;

	l->tracks.v[track].stack.n--;
	if (track && !l->tracks.v[track].stack.n)
		*vec_push(&l->vacant) = track;
}

/* ---- what does not nest ---- */

static void end_call(struct tracks *x, struct slot *s, const struct trace_event *e)
{
	s->has_ended = true;
	if (x->sink.end)
		x->sink.end(x->sink.ctx, e, &s->c);
}

static void add_root(struct tracks *x, struct lane_tracks *l, uint32_t slot)
{
	*vec_push(&l->f->roots) = x->slots.v[slot].entry;
	x->has_learnt = true;
}

/* Learning, what lies above `slot` on its track is another stack, with a track of its own. */
static void move_above(struct tracks *x, struct lane_tracks *l, uint32_t slot)
{
	const struct slot *s = &x->slots.v[slot];
	uint32_t from = s->c.track, first = s->place + 1, n = (uint32_t)l->tracks.v[from].stack.n;
	uint32_t root = l->tracks.v[from].stack.v[first];
	uint32_t to = take_track(l, 0);

	add_root(x, l, root);
	for (uint32_t i = first; i < n; i++)
		put(x, l, l->tracks.v[from].stack.v[i], to);
	l->tracks.v[from].stack.n = first;
}

/* Nothing lies above slot on its track when this returns. */
static void clear_above(struct tracks *x, struct lane_tracks *l, uint32_t slot)
{
	uint32_t track = x->slots.v[slot].c.track, top = top_of(&l->tracks.v[track]);

	if (top == slot)
		return;
	if (x->mode == LEARN) {
		move_above(x, l, slot);
		return;
	}
	/* LOOK: it has seen enough.  SHOW: of a lane that was not read beforehand to its end. */
	x->is_complicated = true;
	for (; top != slot; top = top_of(&l->tracks.v[track])) {
		struct slot *s = &x->slots.v[top];

		s->c.inferred = true;
		s->c.exit_tsc = x->event ? x->event->tsc : s->c.entry_tsc;
		s->c.exit = x->event ? x->event->in : s->c.entry;
		take_off(x, l, top);
		end_call(x, s, x->event);
	}
}

/* ---- foresight ---- */

static int by_exit(const void *a, const void *b)
{
	const struct late *x = a, *y = b;

	if (x->exit != y->exit)
		return x->exit < y->exit ? -1 : 1;
	return x->entry > y->entry ? -1 : x->entry < y->entry;
}

static int by_entry(const void *a, const void *b, void *ctx)
{
	const struct late *v = ctx;
	uint64_t x = v[*(const uint32_t *)a].entry, y = v[*(const uint32_t *)b].entry;

	return x < y ? -1 : x > y;
}

static void sort_late(struct plan *f)
{
	if (!f->late.n)
		return;
	qsort(f->late.v, f->late.n, sizeof(*f->late.v), by_exit);
	for (uint32_t i = 0; i < f->late.n; i++)
		*vec_push(&f->by_entry) = i;
	qsort_r(f->by_entry.v, f->by_entry.n, sizeof(uint32_t), by_entry, f->late.v);
}

static void free_plan(struct plan *f)
{
	vec_free(&f->late);
	vec_free(&f->by_entry);
	vec_free(&f->roots);
}

struct track_plans *track_plans_open(const struct trace *t)
{
	struct track_plans *p = xcalloc(1, sizeof(*p));

	p->v = xcalloc(t->nlanes, sizeof(*p->v));
	p->n = t->nlanes;
	return p;
}

void track_plans_close(struct track_plans *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->n; i++)
		free_plan(&p->v[i]);
	xfree(p->v);
	xfree(p);
}

static void lane_free(struct lane_tracks *l)
{
	struct plan *f = l->f;

	vec_for(&l->tracks, k)
		vec_free(&k->stack);
	vec_free(&l->tracks);
	vec_free(&l->vacant);
	xfree(l->homes);
	*l = (struct lane_tracks){.f = f};
	vec_for(&f->late, late)
		late->slot = NONE;
}

/* One pass over a lane; what is known of it comes in and goes out. */
static bool pass(const struct trace *t, struct track_plans *plans, uint32_t lane, enum mode mode)
{
	struct tracks *x = tracks_open(t, &(struct track_sink){.plans = plans});
	bool found;

	x->mode = mode;
	tracks_lane(x, lane);
	found = mode == LOOK ? x->is_complicated : x->has_learnt;
	tracks_close(x);
	return found;
}

static bool has_stacks(const struct trace *t, uint32_t lane)
{
	struct trace_cursor *cursor = trace_cursor_open(t, (int)lane);
	struct pairs *pairs = pairs_open(t, &(struct pair_sink){.ctx = NULL});
	bool found = false;
	struct trace_event e;

	while (!found && trace_cursor_next(cursor, &e)) {
		pairs_feed(pairs, &e);
		found = pairs_strands(pairs, lane) > 1;
	}
	trace_cursor_close(cursor);
	pairs_close(pairs);
	return found;
}

static void foresee(const struct trace *t, struct track_plans *plans, uint32_t lane)
{
	struct plan *f = &plans->v[lane];

	f->is_there = true;
	if (!has_stacks(t, lane) || !pass(t, plans, lane, LOOK))
		return;
	sort_late(f);
	for (int i = 0; i < LEARN_MOST && pass(t, plans, lane, LEARN); i++)
		qsort(f->roots.v, f->roots.n, sizeof(uint64_t), compare_uint64);
}

/* Of the call that event `entry` began; NULL: it ends when pairs.c says so. */
static struct late *find_late(struct plan *f, uint64_t entry)
{
	size_t lo = partition_point(i, f->by_entry.n, f->late.v[f->by_entry.v[i]].entry < entry);
	struct late *l;

	l = lo < f->by_entry.n ? &f->late.v[f->by_entry.v[lo]] : NULL;
	return l && l->entry == entry ? l : NULL;
}

/* In the middle of a lane: what is open, or over, is not to come. */
static void catch_up(struct tracks *x, uint32_t lane, struct lane_tracks *l)
{
	struct plan *f = l->f;

	while (l->root_at < f->roots.n && f->roots.v[l->root_at] < l->events)
		l->root_at++;
	while (l->entry_at < f->by_entry.n &&
	       f->late.v[f->by_entry.v[l->entry_at]].entry < l->events)
		l->entry_at++;
	while (l->late_at < f->late.n && f->late.v[l->late_at].exit < l->events)
		l->late_at++;
	for (uint32_t i = 0; i < x->slots.n; i++) {
		const struct slot *s = &x->slots.v[i];
		struct late *late = s->is_open && s->c.lane == lane ? find_late(f, s->entry) : NULL;

		if (late)
			late->slot = i;
	}
}

static void look_ahead(struct tracks *x, uint32_t lane, struct lane_tracks *l)
{
	if (x->mode != SHOW || l->f->is_there ||
	    (x->sink.lazy && pairs_strands(x->pairs, lane) < 2))
		return;
	foresee(x->t, x->sink.plans, lane);
	catch_up(x, lane, l);
}

/* ---- calls ---- */

static uint32_t new_slot(struct tracks *x)
{
	uint32_t at = x->free_slot - 1;

	if (x->free_slot) {
		x->free_slot = x->slots.v[at].next_free;
	} else {
		at = (uint32_t)x->slots.n;
		vec_push(&x->slots);
	}
	x->slots.v[at] = (struct slot){.is_open = true};
	return at;
}

/* The call of this event begins a stack whose calls interleave with those below. */
static bool is_root(struct lane_tracks *l)
{
	if (l->root_at == l->f->roots.n || l->f->roots.v[l->root_at] != l->events)
		return false;
	l->root_at++;
	return true;
}

static void note_late(struct lane_tracks *l, uint32_t slot)
{
	struct plan *f = l->f;

	if (l->entry_at == f->by_entry.n ||
	    f->late.v[f->by_entry.v[l->entry_at]].entry != l->events)
		return;
	f->late.v[f->by_entry.v[l->entry_at++]].slot = slot;
}

static uint32_t choose_track(struct tracks *x, struct lane_tracks *l, uint32_t below)
{
	uint32_t sp = x->event->s.payload, track;

	if (is_root(l))
		return take_track(l, sp);
	if (below == NONE)
		return l->tracks.v[0].stack.n ? take_track(l, sp) : 0;
	if (!x->slots.v[below].has_ended)
		clear_above(x, l, below);
	track = x->slots.v[below].c.track;
	/* what lay below is over, and so is its track */
	return is_vacant(l, track) ? take_track(l, sp) : track;
}

static uint32_t on_node(void *ctx, uint32_t caller, uint32_t function)
{
	struct tracks *x = ctx;
	uint32_t lane = x->event->lane, slot = new_slot(x), below, track;
	struct lane_tracks *l = lane_of(x, lane);
	struct slot *s = &x->slots.v[slot];

	s->c.lane = lane;
	s->c.function = function;
	s->c.entry_tsc = x->event->tsc;
	s->c.entry = x->event->in;
	s->entry = l->events;
	look_ahead(x, lane, l);
	note_late(l, slot);
	below = pairs_below(x->pairs, lane);
	track = choose_track(x, l, below);
	s = &x->slots.v[slot];
	put(x, l, slot, track);
	if (x->sink.node)
		s->c.node = x->sink.node(
			x->sink.ctx, caller == NONE ? NONE : x->slots.v[caller].c.node, function);
	x->newest = slot;
	return slot;
}

static void on_enter(void *ctx, const struct trace_event *e, uint32_t function, uint32_t depth)
{
	struct tracks *x = ctx;
	struct slot *s = &x->slots.v[x->newest];

	(void)function;
	s->c.depth = depth;
	if (x->sink.begin)
		x->sink.begin(x->sink.ctx, e, &s->c);
}

static void take_end(struct track_call *c, const struct pair_call *call)
{
	c->exit_tsc = call->exit_tsc;
	c->exit = call->exit;
	c->inferred = call->inferred;
	c->open = call->open;
	c->spans_loss = call->spans_loss;
	c->jumped = call->jumped;
	c->at_least = call->at_least;
}

static void keep_late(struct tracks *x, struct lane_tracks *l, const struct slot *s,
		      const struct pair_call *call)
{
	struct late *late = vec_push(&l->f->late);

	late->entry = s->entry;
	late->exit = call->ended;
	late->slot = NONE;
	take_end(&late->c, call);
	x->is_complicated = true;
}

static void on_leave(void *ctx, const struct trace_event *e, const struct pair_call *call)
{
	struct tracks *x = ctx;
	struct slot *s = &x->slots.v[call->node];
	struct lane_tracks *l = lane_of(x, call->lane);

	if (x->mode == LOOK && call->ended < l->events)
		keep_late(x, l, s, call);
	if (s->below != NONE && s->below != call->within) {
		if (x->mode == LEARN)
			add_root(x, l, call->node);
		x->is_complicated = true;
	}
	if (!s->has_ended) {
		clear_above(x, l, call->node);
		s = &x->slots.v[call->node];
		take_end(&s->c, call);
		take_off(x, l, call->node);
		end_call(x, s, e);
	}
	if (x->sink.leave)
		x->sink.leave(x->sink.ctx, e, call, &s->c);
	s->is_open = false;
	s->next_free = x->free_slot;
	x->free_slot = call->node + 1;
}

/* Of what runs. */
static uint32_t running_track(const struct tracks *x, uint32_t lane)
{
	uint32_t top = pairs_top(x->pairs, lane);

	return top == NONE ? 0 : x->slots.v[top].c.track;
}

static void on_user_event(void *ctx, const struct trace_event *e, const struct trace_user_event *u)
{
	struct tracks *x = ctx;

	x->sink.user_event(x->sink.ctx, e, u, running_track(x, e->lane));
}

static void on_orphan(void *ctx, const struct trace_event *e, uint32_t function)
{
	struct tracks *x = ctx;

	x->sink.orphan_exit(x->sink.ctx, e, function);
}

static void on_special(void *ctx, const struct trace_event *e)
{
	struct tracks *x = ctx;

	x->sink.special(x->sink.ctx, e);
}

/* ---- the outside ---- */

struct tracks *tracks_open(const struct trace *t, const struct track_sink *sink)
{
	struct tracks *x = xcalloc(1, sizeof(*x));
	struct pair_sink of_pairs = {.ctx = x,
				     .enter = on_enter,
				     .leave = on_leave,
				     .node = on_node,
				     .orphan_exit = sink->orphan_exit ? on_orphan : NULL,
				     .special = sink->special ? on_special : NULL,
				     .user_event = sink->user_event ? on_user_event : NULL,
				     .want_recursive = sink->want_recursive};

	x->t = t;
	x->sink = *sink;
	if (!sink->plans)
		x->sink.plans = x->own = track_plans_open(t);
	x->mode = SHOW;
	x->pairs = pairs_open(t, &of_pairs);
	x->lanes = xcalloc(t->nlanes, sizeof(*x->lanes));
	for (size_t i = 0; i < t->nlanes; i++)
		x->lanes[i].f = &x->sink.plans->v[i];
	return x;
}

/* Calls that end with this event, before what it begins. */
static void end_late(struct tracks *x, struct lane_tracks *l, const struct trace_event *e)
{
	for (; l->late_at < l->f->late.n && l->f->late.v[l->late_at].exit <= l->events;
	     l->late_at++) {
		const struct late *late = &l->f->late.v[l->late_at];
		struct slot *s;

		if (late->slot == NONE || x->slots.v[late->slot].has_ended)
			continue;
		clear_above(x, l, late->slot);
		s = &x->slots.v[late->slot];
		s->c.exit_tsc = late->c.exit_tsc;
		s->c.exit = late->c.exit;
		s->c.inferred = late->c.inferred;
		s->c.open = late->c.open;
		s->c.spans_loss = late->c.spans_loss;
		s->c.jumped = late->c.jumped;
		s->c.at_least = late->c.at_least;
		take_off(x, l, late->slot);
		end_call(x, s, e);
	}
}

void tracks_feed(struct tracks *x, const struct trace_event *e)
{
	struct lane_tracks *l = lane_of(x, e->lane);

	x->event = e;
	if (!l->events++ && !x->sink.lazy)
		look_ahead(x, e->lane, l);
	end_late(x, l, e);
	pairs_feed(x->pairs, e);
}

uint64_t tracks_lane_end(struct tracks *x, uint32_t lane)
{
	return pairs_lane_end(x->pairs, lane);
}

void tracks_finish_lane(struct tracks *x, uint32_t lane)
{
	x->event = NULL;
	pairs_finish_lane(x->pairs, lane);
	lane_free(&x->lanes[lane]);
}

void tracks_lane(struct tracks *x, uint32_t lane)
{
	struct trace_cursor *cursor = trace_cursor_open(x->t, (int)lane);
	struct trace_event e;

	while (trace_cursor_next(cursor, &e))
		tracks_feed(x, &e);
	trace_cursor_close(cursor);
	tracks_finish_lane(x, lane);
}

uint32_t tracks_top(const struct tracks *x, uint32_t lane)
{
	uint32_t top = pairs_top(x->pairs, lane);

	return top == NONE ? NONE : x->slots.v[top].c.node;
}

bool tracks_is_cut(const struct tracks *x, const struct trace_event *entry, uint64_t tsc)
{
	return pairs_is_cut(x->pairs, entry, tsc);
}

const struct pair_counts *tracks_counts(const struct tracks *x)
{
	return pairs_counts(x->pairs);
}

void tracks_close(struct tracks *x)
{
	if (!x)
		return;
	for (size_t i = 0; i < x->t->nlanes; i++)
		lane_free(&x->lanes[i]);
	track_plans_close(x->own);
	pairs_close(x->pairs);
	vec_free(&x->slots);
	xfree(x->lanes);
	xfree(x);
}
