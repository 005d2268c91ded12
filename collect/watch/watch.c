/* SPDX-License-Identifier: MIT */
/*
 * watch.c - see watch.h; watch_impl.h says what the parts are.
 *
 * Each look takes what is new since the last one and older than a moment ago: so long may a thread
 * be between reading the clock and its store.  Of each lane only samples that the trigger may want
 * are taken out, and those are merged by time.  A sample that comes later than the moment is fed
 * when it comes.
 *
 * What is waited for (A without B) is over when its time is, but only if B does not lie in a
 * thread's hands: it may have read the clock for it and lost the processor.  So its lane must show
 * a later sample, or the thread be seen asleep, or have run since (is_over()).  Until then
 * everything waits, 100 ms at most.
 *
 * What goes over the emulated board (bus exact) comes as whole chunks from its memory, on the
 * board's own clock, some of it delayed by a FIFO that is emptied at the board's pace.
 */
#define _GNU_SOURCE
#include "collect/watch/watch_impl.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "collect/fetch.h"
#include "collect/kernel/process_maps.h"
#include "trace/names.h"

#define MOMENT_NS 200000u
#define FIFO_NS 2000000u    /* a full FIFO takes the board less */
#define ACROSS_NS 10000000u /* so late may a sample be for what is waited for across threads */
#define DOUBT_NS 100000000u
#define RAN_NS 50000u    /* more than the rest of a probe takes */
#define RATE_NS 1000000u /* over less the clock's rate is not known well enough */

/* ---- opening ---- */

static const char *label_of(const struct watch_options *o)
{
	return o->label ? o->label : "--trigger";
}

int watch_check(const struct watch_options *o, struct err *err)
{
	struct window_finder f;
	struct trigger *g;
	int ret;

	if (!o->trigger)
		return 0;
	ret = trigger_parse(&g, label_of(o), o->trigger, err);
	if (ret)
		return ret;
	trigger_free(g);
	ret = window_finder_init(&f, o->pre, o->post, err);
	window_finder_free(&f);
	return ret;
}

/* ---- the clock of the samples ---- */

static void take_time(const struct watch *w, struct time_point *t)
{
	if (w->board)
		board_time_point(w->board, t);
	else
		time_point_take(t);
}

uint64_t watch_clock(const struct watch *w)
{
	struct time_point now;

	if (!w->board)
		return __builtin_ia32_rdtsc();
	board_time_point(w->board, &now);
	return now.tsc;
}

static uint64_t ticks(const struct watch *w, uint64_t ns)
{
	return (uint64_t)((double)ns * w->finder.hz / 1e9);
}

/*
 * Its rate is the better known the longer it runs: again when that is a quarter longer.  false: it is
 * not known yet, and what that makes of a trigger's times would be over at once.
 */
static bool work_out_rate(struct watch *w, uint64_t now, bool last)
{
	struct time_point t;

	if (now - w->start.tsc < (w->rate_tsc - w->start.tsc) / 4 * 5)
		return true;
	take_time(w, &t);
	if (t.mono_ns <= w->start.mono_ns || (t.mono_ns < w->start.mono_ns + RATE_NS && !last))
		return w->rate_tsc != w->start.tsc;
	w->rate_tsc = t.tsc;
	w->finder.hz = tsc_hz(&w->start, &t);
	trigger_set_rate(w->trigger, w->finder.hz);
	return true;
}

struct watch *watch_open(const struct watch_options *o, struct drain *d)
{
	struct watch *w = xcalloc(1, sizeof(*w));

	w->d = d;
	w->board = d->fetch ? d->fetch->board : NULL;
	trace_writer_keep_names(d->journal->w);
	w->pool = xcalloc(d->seg->chunks_max + 1ul, sizeof(*w->pool));
	w->by_key = xcalloc(WATCH_HASH, sizeof(*w->by_key));
	w->room = xmalloc(KRON_CHUNK_SIZE);
	w->losses = xcalloc(KRON_PROCS_MAX, sizeof(*w->losses));
	take_time(w, &w->start);
	w->rate_tsc = w->start.tsc;
	w->label = label_of(o);
	w->text = o->trigger;
	w->is_ring = o->fired != NULL;
	w->on_fire = o->fired;
	w->on_fire_ctx = o->fired_ctx;
	if (trigger_parse(&w->trigger, w->label, w->text, NULL) ||
	    window_finder_init(&w->finder, o->pre, o->post, NULL))
		abort(); /* watch_check() let it pass */
	if (o->at_end)
		trigger_fire_at_end(w->trigger);
	w->group = o->group;
	w->by_thread_name = trigger_names_threads(w->trigger);
	w->finder.hz = 1e9; /* until it is known better */
	return w;
}

/* ---- names ---- */

static void take_names(void *ctx, const struct trace_names *names)
{
	struct watch *w = ctx;

	trigger_bind_names(w->trigger, names);
	w->njumps = names->jumps.n;
	xfree(w->jumps);
	w->jumps = xcalloc(w->njumps + 1ul, sizeof(*w->jumps));
	for (size_t j = 0; j < w->njumps; j++)
		w->jumps[j] = names->jumps.v[j].function;
}

/* Not of a module whose lines are just being written, or it would be done again and again. */
static void learn_names(struct watch *w)
{
	struct journal *j = w->d->journal;

	journal_lock(j);
	trace_writer_show_names(j->w, &w->names_seen, take_names, w);
	journal_unlock(j);
}

/* ---- it fires ---- */

/* Of two clocks, the one that the age is taken from is read first: whoever is kept from running between the two is late,
 * and what led to it stays before it. */
static void tell_group(struct watch *w, uint64_t tsc)
{
	uint64_t now = watch_clock(w);
	double age = now > tsc ? (double)(now - tsc) / w->finder.hz * 1e9 : 0;

	group_tell(w->group, clock_ns(CLOCK_MONOTONIC) - (uint64_t)age);
}

static void fire(struct watch *w, struct watch_fired fired)
{
	if (w->is_ring) {
		w->on_fire(w->on_fire_ctx, fired.since, fired.at);
		return;
	}
	if (w->group && !fired.by_group)
		tell_group(w, fired.at);
	w->horizon = watch_horizon(w, fired.by_time ? fired.since : fired.at);
	w->fired = fired;
	w->heap.n = 0;
	watch_window_begin(w);
}

/* One of the others has: here it fires at the same moment, as far as that is known. */
static void ask_group(struct watch *w)
{
	uint64_t at_ns = w->group && !w->fired.at ? group_heard(w->group) : 0, now, age;

	if (!at_ns)
		return;
	age = ticks(w, clock_ns(CLOCK_MONOTONIC) - at_ns);
	now = watch_clock(w);
	fire(w, (struct watch_fired){.at = now > w->start.tsc + age ? now - age : w->start.tsc + 1,
				     .by_group = true});
}

static void feed(struct watch *w, const struct trace_event *e, uint8_t bits)
{
	struct watch_fired fired = {.at = e->tsc, .lane = e->lane, .s = e->s};

	fired.s.event = trace_stored_event(e);
	if (trigger_feed(w->trigger, e, bits) != TRIGGER_FIRES)
		return;
	fired.since = trigger_fired_since(w->trigger, &fired.at);
	fire(w, fired);
}

static void feed_late(struct watch *w, const struct trace_event *e)
{
	struct trigger_wants wants = trigger_wants(w->trigger, e->lane);
	uint8_t bits = w->fired.at ? 0 : trigger_test(w->trigger, &wants, e);

	if (bits)
		feed(w, e, bits);
}

/* ---- lanes by time ---- */

/* As readers merge: by time, then in the order that lanes have in a trace. */
static bool comes_before(const struct watch *w, uint32_t a, uint32_t b)
{
	const struct watch_lane *x = &w->lanes.v[a], *y = &w->lanes.v[b];

	return x->order != y->order ? x->order < y->order : x->key < y->key;
}

static void sift_down(struct watch *w, size_t i)
{
	uint32_t lane = w->heap.v[i];

	for (;;) {
		size_t child = 2 * i + 1;

		if (child >= w->heap.n)
			break;
		if (child + 1 < w->heap.n &&
		    comes_before(w, w->heap.v[child + 1], w->heap.v[child]))
			child++;
		if (!comes_before(w, w->heap.v[child], lane))
			break;
		w->heap.v[i] = w->heap.v[child];
		i = child;
	}
	w->heap.v[i] = lane;
}

static void push(struct watch *w, uint32_t lane)
{
	size_t i = w->heap.n;

	*vec_push(&w->heap) = lane;
	for (; i && comes_before(w, lane, w->heap.v[(i - 1) / 2]); i = (i - 1) / 2)
		w->heap.v[i] = w->heap.v[(i - 1) / 2];
	w->heap.v[i] = lane;
}

/* heap[0] was fed. */
static void go_on(struct watch *w, uint64_t until)
{
	uint32_t lane = w->heap.v[0];

	watch_lane_consume(w, lane);
	if (!watch_lane_advance(w, lane, until))
		w->heap.v[0] = w->heap.v[--w->heap.n];
	if (w->heap.n)
		sift_down(w, 0);
}

/* Which have something to look at; of the others, those that are gone for good go. */
static void look_at_lanes(struct watch *w, uint64_t until)
{
	size_t kept = 0;

	w->heap.n = 0;
	for (size_t i = 0; i < w->open.n; i++) {
		uint32_t lane = w->open.v[i];

		if (watch_lane_advance(w, lane, until))
			push(w, lane);
		if (w->lanes.v[lane].here) {
			w->open.v[kept++] = lane;
			continue;
		}
		w->lanes.v[lane].is_open = false;
		watch_lane_retire(w, lane);
	}
	w->open.n = kept;
}

/* ---- what is waited for ---- */

enum verdict { IS_OVER, IS_NONE, IS_UNSURE, NOT_YET, LOOK_AGAIN, SOMETHING_CAME };

/*
 * Nothing is seen of the thread since, or a place of it is empty: may it be in the middle of a
 * probe?  Asleep it is in none, but in a handler on top of one; and after 50 us it has left it.
 */
static bool has_moved_on(struct watch_lane *l, uint64_t at, bool has_holes)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC), ran;
	struct process_stat st;

	if (!l->pid || l->dead || !process_read_stat(l->pid, (pid_t)l->l.tid, &st) ||
	    !process_thread_ran(l->pid, (pid_t)l->l.tid, &ran))
		return true;
	if (l->doubt_at != at) {
		l->doubt_at = at;
		l->doubt_ns = now;
		l->doubt_ran = ran;
	}
	if (now > l->doubt_ns + DOUBT_NS)
		return true;
	return !has_holes && (st.state != 'R' || ran > l->doubt_ran + RAN_NS);
}

static enum verdict is_over_across(const struct watch *w, const struct trigger_due *due, bool last)
{
	if (!last && !w->board && watch_clock(w) <= due->at + ticks(w, ACROSS_NS))
		return NOT_YET;
	return watch_losses_gap_any(w, due->at) || watch_losses_pending_any(w, due->since)
		       ? IS_UNSURE
		       : IS_OVER;
}

/* Its time is over, and everything before has been fed: did it not come, or is it not here yet? */
static enum verdict is_over(struct watch *w, const struct trigger_due *due, bool last)
{
	bool has_holes = watch_lane_has_holes(w, due->lane);
	struct watch_lane *l = &w->lanes.v[due->lane];
	uint64_t ended, seen = l->seen;

	if (trigger_is_across(w->trigger))
		return is_over_across(w, due, last);
	ended = tasks_when_ended(w->d->tasks, l->l.proc_uid);
	if (ended && ended < due->at)
		return IS_NONE; /* nothing was there any more that could be late */
	if (watch_losses_gap(w, due->lane, due->at))
		return IS_UNSURE;
	if (w->board || (!has_holes && (l->has_next || l->sure > due->at)))
		return IS_OVER;
	if (!last && !has_moved_on(l, due->at, has_holes))
		return NOT_YET;
	if (!last && !l->has_next && watch_lane_advance(w, due->lane, due->at + 1)) {
		push(w, due->lane);
		return SOMETHING_CAME;
	}
	if (l->seen != seen)
		return LOOK_AGAIN; /* it may have ended the waiting */
	if (!l->has_next && l->sure <= due->at &&
	    watch_losses_pending(w, l->slot, l->l.proc_uid, l->sure))
		return IS_UNSURE;
	return IS_OVER;
}

/* What is over before t.  false: it has fired, or what is next is not to be fed yet. */
static bool let_time_pass(struct watch *w, uint64_t t, bool last)
{
	struct trigger_due due;

	while (trigger_due(w->trigger, t, &due)) {
		switch (is_over(w, &due, last)) {
		case IS_OVER:
			trigger_settle(w->trigger, true);
			fire(w, (struct watch_fired){.at = due.at,
						     .by_time = true,
						     .lane = due.lane,
						     .since = due.since});
			return false;
		case IS_NONE:
			trigger_settle(w->trigger, false);
			break;
		case IS_UNSURE:
			trigger_lost(w->trigger, due.lane);
			break;
		case LOOK_AGAIN:
			break;
		case SOMETHING_CAME:
			return true;
		case NOT_YET:
			w->decided = due.at;
			return false;
		}
	}
	return true;
}

/* ---- the watch ---- */

static void feed_next(struct watch *w, uint64_t until)
{
	const struct watch_lane *l = &w->lanes.v[w->heap.v[0]];

	if (l->is_loss && w->board)
		trigger_lost_any(w->trigger);
	else if (l->is_loss)
		trigger_lost(w->trigger, w->heap.v[0]);
	if (l->is_loss)
		watch_losses_tell(w, l);
	if (l->bits)
		feed(w, &l->e, l->bits);
	if (!w->fired.at)
		go_on(w, until);
}

/* All that is new, by time, until it fires. */
static void feed_all(struct watch *w, uint64_t until, bool last)
{
	uint64_t now = last ? watch_clock(w) : until;

	w->decided = now;
	look_at_lanes(w, until);
	while (!w->fired.at) {
		uint64_t next = w->heap.n ? w->lanes.v[w->heap.v[0]].order : now;

		if (!let_time_pass(w, next, last))
			return;
		if (w->heap.n && w->lanes.v[w->heap.v[0]].order <= next)
			feed_next(w, until);
		else if (!w->heap.n && !trigger_due(w->trigger, now, &(struct trigger_due){0}))
			return;
	}
}

/*
 * The recorder may be away for long between fetching and here, and what a thread does meanwhile has
 * not come yet.
 */
static void look(struct watch *w, bool last)
{
	uint64_t now = w->board && !last ? w->fetched : watch_clock(w);
	uint64_t until;

	if (w->done || !now || !work_out_rate(w, now, last))
		return;
	until = last ? UINT64_MAX : now - ticks(w, w->board ? FIFO_NS : MOMENT_NS);
	w->round++;
	watch_losses_notice(w);
	learn_names(w);
	if (!w->board)
		watch_chunks_meet(w);
	watch_lanes_fill(w, feed_late);
	ask_group(w);
	if (!w->fired.at)
		feed_all(w, until, last);
	if (w->fired.at)
		look_at_lanes(w, until);
	if (!w->is_ring && (last || (w->fired.at && watch_window_is_closed(w, until))))
		watch_window_finish(w);
}

/* ---- as a sink ---- */

static struct watch *watch_of(const struct sink *s)
{
	return (struct watch *)((uintptr_t)s - offsetof(struct watch, sink));
}

static uint32_t take(struct sink *s, const struct sink_chunk *c)
{
	struct watch *w = watch_of(s);

	if (c->owner.task)
		c->owner.task->cut_off += c->head.holes;
	tasks_name_thread(w->d->tasks, &c->owner);
	watch_take(w, c->chunk, &c->head, NULL, c->samples, &c->owner);
	return 1;
}

static int take_bytes(struct sink *s, const struct trace_chunk *head, const void *bytes,
		      uint32_t samples, const struct chunk_owner *o)
{
	struct watch *w = watch_of(s);

	tasks_name_thread(w->d->tasks, o);
	watch_take(w, WATCH_NO_POOL, head, bytes, samples, o);
	return 0;
}

static enum sink_advice advise(const struct sink *s, uint32_t chunk, bool full, uint32_t *samples)
{
	return watch_advise(watch_of(s), chunk, full, samples);
}

static void lost_somewhere(struct sink *s)
{
	trigger_lost_any(watch_of(s)->trigger);
}

static void fetched(struct sink *s, uint64_t tsc)
{
	watch_of(s)->fetched = tsc;
}

static void look_at_news(struct sink *s, bool last)
{
	look(watch_of(s), last);
}

/* What is not needed goes. */
static void settle(struct sink *s)
{
	struct watch *w = watch_of(s);

	if (!w->done)
		watch_chunks_settle(w);
}

static uint32_t patience(const struct sink *s, uint32_t ms)
{
	const struct watch *w = watch_of(s);
	uint64_t until = w->done || w->fired.at ? UINT64_MAX : trigger_until(w->trigger), now, left;

	if (until == UINT64_MAX)
		return ms;
	now = watch_clock(w);
	left = until > now ? (uint64_t)((double)(until - now) / w->finder.hz * 1e3) : 0;
	return left + 1 < ms ? (uint32_t)left + 1 : ms;
}

struct sink *watch_sink(struct watch *w)
{
	static const struct sink_ops ops = {
		.take = take,
		.take_bytes = take_bytes,
		.advise = advise,
		.lost = lost_somewhere,
		.fetched = fetched,
		.look = look_at_news,
		.settle = settle,
		.patience = patience,
	};

	w->sink.ops = &ops;
	return &w->sink;
}

/* ---- what came of it ---- */

uint64_t watch_fired_tsc(const struct watch *w)
{
	return w->fired.at;
}

bool watch_is_over(const struct watch *w)
{
	return w && __atomic_load_n(&w->done, __ATOMIC_RELAXED);
}

uint64_t watch_outside(const struct watch *w)
{
	return w->outside;
}

const char *watch_fired_by(const struct watch *w)
{
	return w->fired.by_group ? group_who(w->group) : NULL;
}

/* What threads were called while they ran is not kept. */
const char *watch_unknown_name(const struct watch *w)
{
	return trigger_unknown_name(w->trigger, false);
}

static void bind_names(void *trigger, const struct trace_names *names)
{
	trigger_bind_names(trigger, names);
}

/* One of its own for any thread: the watch's belongs to the drain thread.  NULL: there is none. */
static struct trigger *bind_another(const struct watch *w)
{
	struct journal *j = w->d->journal;
	struct trigger *t;
	uint64_t seen = 0;

	if (trigger_parse(&t, w->label, w->text, NULL))
		return NULL;
	journal_lock(j);
	trace_writer_show_names(j->w, &seen, bind_names, t);
	journal_unlock(j);
	return t;
}

bool watch_waits_for(const struct watch *w, const uint32_t *functions, size_t n)
{
	struct trigger *t = bind_another(w);
	bool waits = false;

	for (size_t i = 0; t && i < n && !waits; i++)
		waits = trigger_waits_for(t, functions[i]);
	trigger_free(t);
	return waits;
}

bool watch_unknown_yet(const struct watch *w, char *name, size_t size)
{
	struct trigger *t = bind_another(w);
	const char *unknown;

	if (!t)
		return false;
	unknown = trigger_unknown_name(t, false);
	if (unknown)
		snprintf(name, size, "%s", unknown);
	trigger_free(t);
	return unknown;
}

const char *watch_label(const struct watch *w)
{
	return w->label;
}

void watch_set_limit(void *watch, uint64_t ticks)
{
	trigger_set_limit(((struct watch *)watch)->trigger, ticks);
}

uint64_t watch_unsure(const struct watch *w)
{
	return trigger_unsure(w->trigger);
}

void watch_close(struct watch *w)
{
	if (!w)
		return;
	watch_chunks_free(w);
	watch_lanes_free(w);
	trigger_free(w->trigger);
	window_finder_free(&w->finder);
	xfree(w->losses);
	xfree(w->jumps);
	xfree(w);
}
