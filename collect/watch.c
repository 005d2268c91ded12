/* SPDX-License-Identifier: MIT */
/*
 * watch.c - see watch.h.
 *
 * Each look takes the samples that are new since the last one and older than a moment ago, from
 * all chunks, sorts them by time and feeds the trigger.  A thread that was interrupted between
 * reading the clock and its store may bring a sample later than that; it is fed when it comes.
 *
 * What goes over the emulated board (bus exact) comes as whole chunks from its memory, on the
 * board's own clock, some of it delayed by a FIFO that is emptied at the board's pace.
 */
#define _GNU_SOURCE
#include "collect/watch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "collect/calibrate.h"
#include "collect/drain.h"
#include "collect/fetch.h"
#include "collect/process_maps.h"

#define MOMENT_NS 200000u
#define FIFO_NS 2000000u /* a full FIFO takes the board less */

/* How far into a chunk we have looked. */
struct place {
	uint64_t seq;
	uint32_t at, cpu; /* at: bytes */
};

struct held {
	struct trace_chunk head;
	struct place place;
	uint64_t last; /* time of its last sample */
	uint8_t *bytes;
};

/* Of the lane with the same index: whom to ask for its thread's name. */
struct name_source {
	pid_t pid; /* 0: nobody */
	uint64_t round;
};

/* One that is new. */
struct news {
	struct trace_event e;
	uint64_t order; /* as found: in the order of its thread */
};

struct watch {
	struct drain *d;
	const struct board *board; /* NULL: lanes */
	char *dir;
	struct trigger *trigger;
	struct window_finder finder;
	bool done; /* the window is in the trace: nothing more is kept */
	uint64_t fired_tsc, outside;

	VEC(struct held) held;
	struct place *pool; /* by chunk number */

	VEC(struct trace_lane) lanes; /* their names are ours */
	VEC(struct name_source) sources;
	bool by_thread_name;
	uint64_t round;
	VEC(struct trace_proc) procs;
	VEC(struct news) news;

	struct trace *tables; /* as far as it is written; lanes and procs are ours */
	struct trace_lane *own_lanes;
	struct trace_proc *own_procs;
	size_t nown_lanes, nown_procs;
	uint64_t tables_at; /* journal_tables() when they were read */
	bool must_bind;
	struct time_point start;
};

/* ---- opening ---- */

int watch_check(const struct watch_options *o, struct err *err)
{
	struct window_finder f;
	struct trigger *g;
	int ret;

	if (!o->trigger)
		return 0;
	ret = trigger_parse(&g, "--trigger", o->trigger, err);
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

static uint64_t read_clock(const struct watch *w)
{
	struct time_point now;

	if (!w->board)
		return __builtin_ia32_rdtsc();
	board_time_point(w->board, &now);
	return now.tsc;
}

struct watch *watch_open(const struct watch_options *o, const char *dir, struct drain *d)
{
	struct watch *w = xcalloc(1, sizeof(*w));

	w->d = d;
	w->board = d->fetch ? d->fetch->machine.board : NULL;
	w->dir = xstrdup(dir);
	w->pool = xcalloc(d->seg->chunks_max + 1ul, sizeof(*w->pool));
	w->must_bind = true;
	take_time(w, &w->start);
	if (trigger_parse(&w->trigger, "--trigger", o->trigger, NULL) ||
	    window_finder_init(&w->finder, o->pre, o->post, NULL))
		abort(); /* watch_check() let it pass */
	w->by_thread_name = trigger_names_threads(w->trigger);
	w->finder.hz = 1e9; /* until it is known better */
	return w;
}

/* ---- names ---- */

static void close_tables(struct watch *w)
{
	if (!w->tables)
		return;
	w->tables->lanes = w->own_lanes, w->tables->nlanes = w->nown_lanes;
	w->tables->procs = w->own_procs, w->tables->nprocs = w->nown_procs;
	trace_close(w->tables);
	w->tables = NULL;
}

static void read_tables(struct watch *w)
{
	uint64_t at = journal_tables(w->d->journal);
	struct trace *t;
	struct err err;

	if (w->tables && at == w->tables_at)
		return;
	journal_flush(w->d->journal);
	if (trace_open(&t, w->dir, &err)) {
		log_warn("collect", "the trigger knows no names: %s", err.msg);
		return;
	}
	close_tables(w);
	w->tables = t;
	w->tables_at = at;
	w->own_lanes = t->lanes, w->nown_lanes = t->nlanes;
	w->own_procs = t->procs, w->nown_procs = t->nprocs;
	w->must_bind = true;
}

static void bind_names(struct watch *w)
{
	struct time_point now;

	read_tables(w);
	if (!w->must_bind || !w->tables)
		return;
	w->tables->lanes = w->lanes.v, w->tables->nlanes = w->lanes.n;
	w->tables->procs = w->procs.v, w->tables->nprocs = w->procs.n;
	take_time(w, &now);
	w->tables->tsc_hz = w->finder.hz = tsc_hz(&w->start, &now);
	trigger_bind(w->trigger, w->tables);
	w->must_bind = false;
}

static void add_proc(struct watch *w, const struct chunk_owner *o)
{
	size_t i = w->procs.n;

	for (size_t k = 0; k < w->procs.n; k++)
		if (w->procs.v[k].uid == o->uid)
			return;
	vec_push(&w->procs);
	for (; i > 0 && w->procs.v[i - 1].uid > o->uid; i--)
		w->procs.v[i] = w->procs.v[i - 1];
	w->procs.v[i] = (struct trace_proc){
		.uid = o->uid,
		.pid = o->task ? o->task->pid : -1,
		.exe = xstrdup(o->task && o->task->exe ? o->task->exe : ""),
	};
}

static uint32_t new_lane(struct watch *w, const struct chunk_owner *o)
{
	struct trace_lane *l = vec_push(&w->lanes);

	l->proc_uid = o->uid;
	l->tid = (uint32_t)o->tid;
	l->name = xstrdup("");
	vec_push(&w->sources);
	add_proc(w, o);
	w->must_bind = true;
	return (uint32_t)w->lanes.n - 1;
}

static uint32_t lane_of(struct watch *w, const struct chunk_owner *o)
{
	size_t i = w->lanes.n;

	while (i > 0 &&
	       (w->lanes.v[i - 1].proc_uid != o->uid || w->lanes.v[i - 1].tid != (uint32_t)o->tid))
		i--;
	i = i ? i - 1 : new_lane(w, o);
	if (o->task && !o->task->foreign)
		w->sources.v[i].pid = o->task->pid;
	return (uint32_t)i;
}

/*
 * A thread's name is what it is called when its samples are looked at, so it is asked for in each
 * look that has new ones.  Of one that has ended, the last name stays.
 */
static void ask_name(struct watch *w, uint32_t lane)
{
	struct name_source *s = &w->sources.v[lane];
	struct trace_lane *l = &w->lanes.v[lane];
	char *name;

	if (!w->by_thread_name || !s->pid || s->round == w->round)
		return;
	s->round = w->round;
	name = process_thread_name(s->pid, (pid_t)l->tid);
	if (!name || !strcmp(name, l->name)) {
		xfree(name);
		return;
	}
	xfree((char *)(uintptr_t)l->name);
	l->name = name;
	w->must_bind = true;
}

/* ---- what is new ---- */

/* In a lane all have one size, whatever a program may write there.  0: it is cut off. */
static uint32_t size_at(const struct watch *w, const uint8_t *bytes, uint32_t at, uint32_t end)
{
	const struct kron_sample *s = (const void *)(bytes + at);
	uint32_t size = KRON_SAMPLE_SIZE;

	if (end - at < size)
		return 0;
	if (w->board &&
	    (s->head >> KRON_HEAD_TYPE_SHIFT & KRON_HEAD_TYPE_MASK) == KRON_HEAD_TYPE_RESOURCE)
		size = KRON_RESOURCE_SIZE;
	return end - at < size ? 0 : size;
}

/*
 * From where we were up to `until`, or to a slot that is still empty; with `holes` those are
 * passed over: nobody will fill them any more.
 */
static void gather(struct watch *w, struct place *p, const uint8_t *bytes, uint32_t end,
		   uint64_t until, bool holes, uint32_t lane)
{
	for (uint32_t size; (size = size_at(w, bytes, p->at, end)) != 0; p->at += size) {
		const struct kron_sample *one = (const void *)(bytes + p->at);
		struct news *news;
		uint64_t tsc;

		/* Acquire: the head is stored last; partner: the thunk's store of it. */
		if (!__atomic_load_n(&one->head, __ATOMIC_ACQUIRE)) {
			if (holes)
				continue;
			return;
		}
		tsc = kron_sample_time_near(one, w->start.tsc);
		if (tsc >= until)
			return;
		if (one->event == KRON_EVENT_CPU)
			p->cpu = one->payload;
		if (one->event >= KRON_EVENT_SPECIAL)
			continue;
		if (w->board)
			p->cpu = one->head >> KRON_HEAD_CPU_SHIFT;
		ask_name(w, lane);
		news = vec_push(&w->news);
		news->e = (struct trace_event){.tsc = tsc, .lane = lane, .cpu = p->cpu, .s = *one};
		news->order = w->news.n;
	}
}

static void gather_held(struct watch *w, uint64_t until)
{
	vec_for(&w->held, h) {
		struct chunk_owner o = {.uid = h->head.proc_uid, .tid = (pid_t)h->head.tid};

		if (h->place.at < h->head.nbytes)
			gather(w, &h->place, h->bytes, h->head.nbytes, until, true, lane_of(w, &o));
	}
}

static void gather_pool(struct watch *w, uint64_t until)
{
	struct segment *seg = w->d->seg;
	uint32_t ready = segment_ready(seg);

	for (uint32_t i = 0; i < ready; i++) {
		uint64_t word = __atomic_load_n(&seg->states[i], __ATOMIC_ACQUIRE);
		const struct kron_chunk *c = segment_chunk(seg, i);
		unsigned state = kron_chunk_word_state(word);
		struct chunk_owner o;
		uint64_t seq;

		if (state != KRON_CHUNK_OWNED && state != KRON_CHUNK_FULL)
			continue;
		seq = __atomic_load_n(&c->seq, __ATOMIC_ACQUIRE);
		if (!seq)
			continue;
		if (w->pool[i].seq != seq)
			w->pool[i] = (struct place){.seq = seq};
		tasks_of_chunk(w->d->tasks, word, false, &o);
		gather(w, &w->pool[i], (const void *)(c + 1), KRON_CHUNK_SAMPLES * KRON_SAMPLE_SIZE,
		       until, false, lane_of(w, &o));
	}
}

static int by_time(const void *a, const void *b)
{
	const struct news *x = a, *y = b;

	if (x->e.tsc != y->e.tsc)
		return x->e.tsc < y->e.tsc ? -1 : 1;
	return (x->order > y->order) - (x->order < y->order);
}

static void feed(struct watch *w)
{
	if (w->news.n)
		qsort(w->news.v, w->news.n, sizeof(*w->news.v), by_time);
	vec_for(&w->news, n) {
		/* one window: what comes behind it is nobody's business any more */
		bool fires = w->tables && !w->finder.fired && trigger_feed(w->trigger, &n->e);

		if (fires)
			w->fired_tsc = n->e.tsc;
		window_finder_see(&w->finder, n->e.tsc, fires);
	}
	w->news.n = 0;
}

/* ---- what is held ---- */

static uint32_t count_samples(const struct watch *w, const uint8_t *bytes, uint32_t from,
			      uint32_t to)
{
	uint32_t n = 0;

	for (uint32_t size; (size = size_at(w, bytes, from, to)) != 0; from += size) {
		const struct kron_sample *s = (const void *)(bytes + from);

		n += s->head && s->event < KRON_EVENT_SPECIAL;
	}
	return n;
}

/* From here on it is not held any more. */
static void let_go(struct watch *w, struct held *h, uint32_t written)
{
	w->outside += count_samples(w, h->bytes, 0, h->head.nbytes) - written;
	xfree(h->bytes);
}

/* Chunks all of which lies before any window to come. */
static void forget_old(struct watch *w, uint64_t now)
{
	uint64_t horizon = w->finder.fired ? w->finder.found.v[0].from
					   : window_finder_horizon(&w->finder, now);
	size_t kept = 0;

	for (size_t i = 0; i < w->held.n; i++) {
		struct held *h = &w->held.v[i];

		if (h->last < horizon && h->place.at >= h->head.nbytes)
			let_go(w, h, 0);
		else
			w->held.v[kept++] = *h;
	}
	w->held.n = kept;
}

/*
 * A chunk of a lane begins with a record of its CPU.  One that is cut in front gets one that says
 * where its first sample was taken.
 */
static void put_cpu_record(struct kron_sample *s, uint32_t first)
{
	uint32_t cpu = s[first].head >> KRON_HEAD_CPU_SHIFT;

	for (uint32_t i = 0; i < first; i++)
		if (s[i].head && s[i].event == KRON_EVENT_CPU)
			cpu = s[i].payload;
	s[first - 1] = s[first];
	s[first - 1].event = KRON_EVENT_CPU;
	s[first - 1].payload = cpu;
}

static uint32_t count_holes(const struct watch *w, const uint8_t *bytes, uint32_t at, uint32_t end)
{
	uint32_t n = 0;

	for (uint32_t size; (size = size_at(w, bytes, at, end)) != 0; at += size)
		n += !((const struct kron_sample *)(const void *)(bytes + at))->head;
	return n;
}

/* What of it lies in the window goes into the trace.  How many samples. */
static uint32_t write_held(struct watch *w, struct held *h)
{
	const struct trace_window *win = &w->finder.found.v[0];
	struct chunk_owner o = {.uid = h->head.proc_uid, .tid = (pid_t)h->head.tid};
	uint32_t first = UINT32_MAX, end = 0, samples;
	struct trace_chunk head = h->head;

	for (uint32_t at = 0, size; (size = size_at(w, h->bytes, at, head.nbytes)) != 0;
	     at += size) {
		const struct kron_sample *s = (const void *)(h->bytes + at);
		uint64_t tsc = s->head ? kron_sample_time_near(s, w->start.tsc) : 0;

		if (first == UINT32_MAX && s->head && tsc >= win->from)
			first = at;
		if (s->head && tsc <= win->to)
			end = at + size;
	}
	samples = first < end ? count_samples(w, h->bytes, first, end) : 0;
	if (!samples)
		return 0;
	if (first && !w->board) {
		put_cpu_record((void *)h->bytes, first / KRON_SAMPLE_SIZE);
		first -= KRON_SAMPLE_SIZE;
	}
	head.nbytes = end - first;
	head.holes = count_holes(w, h->bytes, first, end);
	if (w->board)
		return drain_write(w->d, &head, h->bytes + first, &o, samples) ? 0 : samples;
	return drain_write_slots(w->d, &head, h->bytes + first, &o, samples) ? 0 : samples;
}

static uint64_t last_time(const struct watch *w, const struct held *h)
{
	uint64_t last = 0;

	for (uint32_t at = 0, size; (size = size_at(w, h->bytes, at, h->head.nbytes)) != 0;
	     at += size) {
		const struct kron_sample *s = (const void *)(h->bytes + at);
		uint64_t tsc = s->head ? kron_sample_time_near(s, w->start.tsc) : 0;

		last = tsc > last ? tsc : last;
	}
	return last;
}

static void hold(struct watch *w, uint32_t pool, const struct trace_chunk *head, const void *data)
{
	struct held *h = vec_push(&w->held);

	h->head = *head;
	h->place = (struct place){.seq = head->seq};
	if (pool != WATCH_NO_POOL && w->pool[pool].seq == head->seq)
		h->place = w->pool[pool];
	h->bytes = xmalloc(head->nbytes + 1ul);
	memcpy(h->bytes, data, head->nbytes);
	h->last = last_time(w, h);
}

/* What the window has of it into the trace, the rest away. */
static void settle(struct watch *w)
{
	vec_for(&w->held, h)
		let_go(w, h, w->finder.fired ? write_held(w, h) : 0);
	w->held.n = 0;
}

/* What threads still have in unfinished chunks comes later: watch_take() writes its part. */
static void finish(struct watch *w)
{
	w->done = true;
	segment_set_sampling(w->d->seg, false);
	settle(w);
}

void watch_take(struct watch *w, uint32_t pool, const struct trace_chunk *head, const void *data,
		const struct chunk_owner *o)
{
	lane_of(w, o); /* while its task is known */
	hold(w, pool, head, data);
	if (w->done)
		settle(w);
}

/* ---- the watch ---- */

void watch_look(struct watch *w, bool last)
{
	double ns = w->board ? FIFO_NS : MOMENT_NS;
	uint64_t now = read_clock(w), moment = (uint64_t)(ns / 1e9 * w->finder.hz);

	if (w->done)
		return;
	w->round++;
	gather_held(w, last ? UINT64_MAX : now - moment);
	if (!last)
		gather_pool(w, now - moment);
	bind_names(w);
	if (!w->tables && !last)
		return; /* what is new stays so */
	feed(w);
	if (last || window_finder_is_closed(&w->finder, now - 2 * moment))
		finish(w);
	else
		forget_old(w, now - 2 * moment);
}

uint64_t watch_fired_tsc(const struct watch *w)
{
	return w->fired_tsc;
}

uint64_t watch_outside(const struct watch *w)
{
	return w->outside;
}

void watch_close(struct watch *w)
{
	if (!w)
		return;
	close_tables(w);
	vec_for(&w->held, h)
		xfree(h->bytes);
	vec_for(&w->lanes, l)
		xfree((char *)(uintptr_t)l->name);
	vec_for(&w->procs, p)
		xfree(p->exe);
	vec_free(&w->held);
	vec_free(&w->lanes);
	vec_free(&w->sources);
	vec_free(&w->procs);
	vec_free(&w->news);
	trigger_free(w->trigger);
	window_finder_free(&w->finder);
	xfree(w->pool);
	xfree(w->dir);
	xfree(w);
}
