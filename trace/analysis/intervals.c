/* SPDX-License-Identifier: MIT */
/* intervals.c - see intervals.h. */
#define _GNU_SOURCE
#include "trace/analysis/intervals.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "trace/index.h"

/* A definition that names an event: bit i of `roles` says that it is its event i + 1. */
struct use {
	uint32_t event; /* index */
	uint32_t def;
	unsigned roles;
};
enum { FIRST = 1, SECOND = 2, THIRD = 4 };

/* An open interval of class 1, 2 or 3. */
struct frame {
	int64_t begin, middle;
	uint64_t begin_mark, middle_mark;
	struct trace_bounds begin_in, middle_in;
	uint32_t source, cpu;
	bool has_middle;
	bool is_outermost;
};

/* The open intervals of one definition in one stream, the innermost last. */
struct stack {
	VEC(struct frame) frames;
	uint32_t epoch; /* of the stream when the frames were put here */
};

/* What is matched in itself: a source, a processor, or everything. */
struct stream {
	int64_t last;
	uint32_t epoch; /* one more each time its time goes back, or another window begins */
	uint64_t window;
};

/* A start or an end of class 4. */
struct mark {
	int64_t time;
	uint64_t number; /* of the sample */
	uint64_t mark;
	struct trace_bounds in;
	uint32_t source, cpu, clock;
};
typedef VEC(struct mark) marks;

struct queue {
	marks starts, ends;
	size_t first; /* in order: of the starts that wait */
	size_t early; /* of several clocks: of the ends that wait for a start */
	uint64_t window;
};

struct intervals {
	const struct interval_info *info;
	int match;
	uint64_t event_mask;
	intervals_fn *fn;
	void *arg;

	struct index events;
	VEC(struct use) uses;
	uint32_t *first_use; /* by event index; one more at the end */

	bool in_order;
	int64_t time; /* of this sample */
	uint64_t mark, window;
	struct trace_bounds in;
	uint32_t source, cpu, clock;
	uint64_t samples, other, parts;
	int64_t *doubts; /* by clock; NULL: there is one */
	uint32_t clocks;
	int64_t most_doubt;

	struct index stream_keys, stack_keys;
	VEC(struct stream) streams;
	VEC(struct stack) stacks;
	struct queue *queues;        /* by definition */
	struct intervals_left *left; /* by definition */
};

/* ---- which definitions name an event ---- */

static int by_event(const void *a, const void *b)
{
	const struct use *x = a, *y = b;

	if (x->event != y->event)
		return x->event < y->event ? -1 : 1;
	return x->def < y->def ? -1 : x->def > y->def;
}

static void add_uses(struct intervals *m, uint32_t def)
{
	const struct interval_def *d = &m->info->defs.v[def];
	size_t before = m->uses.n;

	for (int i = 0; i < d->nevents; i++) {
		uint32_t event = index_of(&m->events, d->event[i]);
		struct use *u = NULL;

		for (size_t k = before; k < m->uses.n; k++)
			if (m->uses.v[k].event == event)
				u = &m->uses.v[k];
		if (!u)
			u = vec_push(&m->uses);
		u->event = event;
		u->def = def;
		u->roles |= 1u << i;
	}
}

static void index_uses(struct intervals *m)
{
	size_t at = 0;

	for (size_t i = 0; i < m->info->defs.n; i++)
		add_uses(m, (uint32_t)i);
	if (m->uses.n)
		qsort(m->uses.v, m->uses.n, sizeof(*m->uses.v), by_event);
	m->first_use = xcalloc(m->events.n + 1, sizeof(*m->first_use));
	for (size_t e = 0; e <= m->events.n; e++) {
		while (at < m->uses.n && m->uses.v[at].event < e)
			at++;
		m->first_use[e] = (uint32_t)at;
	}
}

struct intervals *intervals_new(const struct interval_info *info, int match, unsigned event_bits,
				intervals_fn *fn, void *arg)
{
	struct intervals *m = xcalloc(1, sizeof(*m));

	m->info = info;
	m->match = match;
	m->event_mask = event_bits < 64 ? (1ull << event_bits) - 1 : ~0ull;
	m->fn = fn;
	m->arg = arg;
	m->parts = 1;
	m->queues = xcalloc(info->defs.n + 1, sizeof(*m->queues));
	m->left = xcalloc(info->defs.n + 1, sizeof(*m->left));
	index_uses(m);
	return m;
}

/* Hostile timestamps may run around 64 bits. */
static int64_t difference(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a - (uint64_t)b);
}

/* ---- classes 1 to 3 ---- */

/* n open intervals are given up.  Where a begin is an end, too, the last one is no loss. */
static void give_up(struct intervals *m, uint32_t def, size_t n)
{
	const struct interval_def *d = &m->info->defs.v[def];

	for (int i = 1; i < d->nevents; i++)
		if (d->event[i] == d->event[0])
			return;
	m->left[def].begun += n;
}

static uint32_t stream_here(struct intervals *m)
{
	uint64_t key = m->match == MATCH_SOURCE ? m->source : m->match == MATCH_CPU ? m->cpu : 0;
	uint32_t i = index_of(&m->stream_keys, key);
	struct stream *s;

	if (i == m->streams.n)
		vec_push(&m->streams)->last = m->time;
	s = &m->streams.v[i];
	if ((m->time < s->last && !m->in_order) || m->window != s->window)
		s->epoch++;
	s->last = m->time;
	s->window = m->window;
	return i;
}

static struct stack *stack_of(struct intervals *m, uint32_t stream, uint32_t def)
{
	uint32_t i = index_of(&m->stack_keys, (uint64_t)stream << 32 | def);
	uint32_t epoch = m->streams.v[stream].epoch;
	struct stack *s;

	if (i == m->stacks.n)
		vec_push(&m->stacks);
	s = &m->stacks.v[i];
	if (s->epoch != epoch) {
		give_up(m, def, s->frames.n);
		s->frames.n = 0;
		s->epoch = epoch;
	}
	return s;
}

/* From the begin (or the middle) of f to here (or to the middle). */
static void emit(struct intervals *m, uint32_t def, int row, const struct frame *f,
		 bool from_middle, bool to_middle)
{
	int64_t begin = from_middle ? f->middle : f->begin, end = to_middle ? f->middle : m->time;
	struct interval i = {.begin = begin,
			     .ticks = difference(end, begin),
			     .begin_mark = from_middle ? f->middle_mark : f->begin_mark,
			     .end_mark = to_middle ? f->middle_mark : m->mark,
			     .begin_in = from_middle ? f->middle_in : f->begin_in,
			     .end_in = to_middle ? f->middle_in : m->in,
			     .source = f->source,
			     .end_source = m->source,
			     .cpu = f->cpu,
			     .is_outermost = f->is_outermost};

	m->fn(m->arg, def, row, &i);
}

static void end_one(struct intervals *m, uint32_t def, struct stack *s, int row)
{
	const struct frame *f;

	if (!s->frames.n) {
		m->left[def].ended++;
		return;
	}
	f = &s->frames.v[--s->frames.n];
	emit(m, def, row, f, false, false);
}

/* The middle of class 3: of the innermost one. */
static void pass_middle(struct intervals *m, uint32_t def, struct stack *s)
{
	struct frame *f = s->frames.n ? &s->frames.v[s->frames.n - 1] : NULL;

	if (!f || f->has_middle) {
		m->left[def].ended++;
		return;
	}
	f->middle = m->time;
	f->middle_mark = m->mark;
	f->middle_in = m->in;
	f->has_middle = true;
}

/* The end of class 3 counts for all three rows, or, without a middle, for none. */
static void end_both(struct intervals *m, uint32_t def, struct stack *s)
{
	const struct frame *f;

	if (!s->frames.n) {
		m->left[def].ended++;
		return;
	}
	f = &s->frames.v[--s->frames.n];
	if (!f->has_middle) {
		m->left[def].begun++;
		return;
	}
	emit(m, def, 0, f, false, true);
	emit(m, def, 1, f, true, false);
	emit(m, def, 2, f, false, false);
}

/* An event that ends and begins ends first. */
static void use_nested(struct intervals *m, const struct use *u, uint32_t stream)
{
	struct stack *s = stack_of(m, stream, u->def);

	if (m->info->defs.v[u->def].class == 3) {
		if (u->roles & SECOND)
			pass_middle(m, u->def, s);
		if (u->roles & THIRD && (!(u->roles & FIRST) || s->frames.n))
			end_both(m, u->def, s);
	} else if (u->roles & (SECOND | THIRD)) {
		/* "1 10 10": the first one of all has nothing to end, and that is no loss */
		if (!(u->roles & FIRST) || s->frames.n)
			end_one(m, u->def, s, u->roles & SECOND ? 0 : 1);
	}
	if (u->roles & FIRST) {
		struct frame *f = vec_push(&s->frames);

		f->is_outermost = s->frames.n == 1;
		f->begin = m->time;
		f->begin_mark = m->mark;
		f->begin_in = m->in;
		f->source = m->source;
		f->cpu = m->cpu;
	}
}

/* ---- class 4 ---- */

#define EARLY_MOST 1024u /* ends that are looked at for a start: each of them found none for long */

static int by_time(const void *a, const void *b)
{
	const struct mark *x = a, *y = b;

	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

static void emit_pair(struct intervals *m, uint32_t def, const struct mark *start,
		      const struct mark *end)
{
	struct interval i = {.begin = start->time,
			     .ticks = difference(end->time, start->time),
			     .begin_mark = start->mark,
			     .end_mark = end->mark,
			     .begin_in = start->in,
			     .end_in = end->in,
			     .source = start->source,
			     .end_source = end->source,
			     .cpu = start->cpu};

	m->fn(m->arg, def, 0, &i);
}

/* By how much an end of one of them may come before a start of the other. */
static int64_t doubt_of(const struct intervals *m, uint32_t clock, uint32_t other)
{
	const int64_t a = clock < m->clocks ? m->doubts[clock] : 0;
	const int64_t b = other < m->clocks ? m->doubts[other] : 0;

	if (clock == other)
		return -1;
	return a > INT64_MAX - b ? INT64_MAX : a + b;
}

/* Those before `first` have gone. */
static void shorten(marks *v, size_t *first)
{
	if (*first <= 1024 || *first <= v->n / 2)
		return;
	v->n -= *first;
	memmove(v->v, v->v + *first, v->n * sizeof(*v->v));
	*first = 0;
}

/* An end that came too early for this start takes it; false: there is none. */
static bool pair_with_early(struct intervals *m, uint32_t def, struct queue *q,
			    const struct mark *start)
{
	while (q->early < q->ends.n &&
	       difference(start->time, q->ends.v[q->early].time) > m->most_doubt) {
		m->left[def].ended++; /* no start can come that late */
		q->early++;
	}
	for (size_t i = q->early; i < q->ends.n && i - q->early < EARLY_MOST; i++) {
		const struct mark end = q->ends.v[i];

		if (difference(start->time, end.time) > doubt_of(m, start->clock, end.clock))
			continue;
		emit_pair(m, def, start, &end);
		memmove(&q->ends.v[q->early + 1], &q->ends.v[q->early],
			(i - q->early) * sizeof(end));
		q->early++;
		shorten(&q->ends, &q->early);
		return true;
	}
	return false;
}

/* Pairs an end with the first start that waits for one; an end without a start waits itself, or is counted. */
static void pair_at_once(struct intervals *m, uint32_t def, struct queue *q, const struct mark *end)
{
	if (q->first == q->starts.n && m->clocks > 1) {
		*vec_push(&q->ends) = *end;
		return;
	}
	if (q->first == q->starts.n) {
		m->left[def].ended++;
		return;
	}
	emit_pair(m, def, &q->starts.v[q->first++], end);
	shorten(&q->starts, &q->first);
}

/* What waits at the end of a window has nothing to wait for. */
static void give_up_queue(struct intervals *m, uint32_t def, struct queue *q)
{
	m->left[def].begun += q->starts.n - q->first;
	m->left[def].ended += q->ends.n - q->early;
	q->starts.n = q->first = 0;
	q->ends.n = q->early = 0;
}

static void use_queued(struct intervals *m, const struct use *u)
{
	struct queue *q = &m->queues[u->def];
	struct mark k = {.time = m->time,
			 .number = m->samples,
			 .mark = m->mark,
			 .in = m->in,
			 .source = m->source,
			 .cpu = m->cpu,
			 .clock = m->clock};

	if (q->window != m->window)
		give_up_queue(m, u->def, q);
	q->window = m->window;
	if (u->roles & FIRST && m->clocks > 1 && pair_with_early(m, u->def, q, &k))
		return;
	if (u->roles & FIRST)
		*vec_push(&q->starts) = k;
	else if (m->in_order)
		pair_at_once(m, u->def, q, &k);
	else
		*vec_push(&q->ends) = k;
}

static void pair_marks(struct intervals *m, uint32_t def)
{
	struct queue *q = &m->queues[def];
	size_t s = q->first;

	if (m->parts > 1 && q->starts.n && q->ends.n) {
		qsort(q->starts.v, q->starts.n, sizeof(*q->starts.v), by_time);
		qsort(q->ends.v, q->ends.n, sizeof(*q->ends.v), by_time);
	}
	for (size_t i = q->early; i < q->ends.n; i++) {
		const struct mark *e = &q->ends.v[i];
		const bool has_start =
			s < q->starts.n && (m->parts > 1 || q->starts.v[s].number < e->number);

		if (has_start)
			emit_pair(m, def, &q->starts.v[s++], e);
		else
			m->left[def].ended++;
	}
	m->left[def].begun += q->starts.n - s;
}

/* ---- samples ---- */

static void advance(struct intervals *m, const struct interval_sample *s)
{
	if (m->samples && difference(s->time, m->time) < 0 && !m->in_order)
		m->parts++;
	m->samples++;
	m->time = s->time;
	m->mark = s->mark;
	m->window = s->window;
	m->in = s->in;
	m->source = s->source;
	m->cpu = s->cpu;
	m->clock = s->clock;
}

void intervals_in_order(struct intervals *m)
{
	m->in_order = true;
}

void intervals_of_clocks(struct intervals *m, const int64_t *doubts, uint32_t n)
{
	int64_t most = 0, second = 0;

	for (uint32_t i = 0; i < n; i++) {
		second = doubts[i] > most ? most : doubts[i] > second ? doubts[i] : second;
		most = doubts[i] > most ? doubts[i] : most;
	}
	m->in_order = true;
	m->doubts = xcalloc(n, sizeof(*m->doubts));
	memcpy(m->doubts, doubts, n * sizeof(*m->doubts));
	m->clocks = n;
	m->most_doubt = most > INT64_MAX - second ? INT64_MAX : most + second;
}

void intervals_sample(struct intervals *m, const struct interval_sample *s)
{
	uint32_t stream = 0, event = index_find(&m->events, s->data & m->event_mask);

	advance(m, s);
	if (event != INDEX_NONE || !m->in_order) /* else the stream's last time is not needed */
		stream = stream_here(m);
	if (event == INDEX_NONE) {
		m->other++;
		return;
	}
	for (uint32_t i = m->first_use[event]; i < m->first_use[event + 1]; i++) {
		const struct use *u = &m->uses.v[i];

		if (m->info->defs.v[u->def].class == 4)
			use_queued(m, u);
		else
			use_nested(m, u, stream);
	}
}

void intervals_end_source(struct intervals *m)
{
	for (size_t i = 0; i < m->stacks.n; i++) {
		give_up(m, (uint32_t)m->stack_keys.keys[i], m->stacks.v[i].frames.n);
		m->stacks.v[i].frames.n = 0;
	}
}

void intervals_finish(struct intervals *m)
{
	for (size_t d = 0; d < m->info->defs.n; d++)
		if (m->info->defs.v[d].class == 4)
			pair_marks(m, (uint32_t)d);
	intervals_end_source(m);
}

const struct intervals_left *intervals_left(const struct intervals *m, size_t def)
{
	return &m->left[def];
}

uint64_t intervals_other(const struct intervals *m)
{
	return m->other;
}

uint64_t intervals_parts(const struct intervals *m)
{
	return m->parts;
}

void intervals_free(struct intervals *m)
{
	vec_for(&m->stacks, s)
		vec_free(&s->frames);
	for (size_t d = 0; d < m->info->defs.n; d++) {
		vec_free(&m->queues[d].starts);
		vec_free(&m->queues[d].ends);
	}
	vec_free(&m->stacks);
	vec_free(&m->streams);
	vec_free(&m->uses);
	index_free(&m->events);
	index_free(&m->stream_keys);
	index_free(&m->stack_keys);
	xfree(m->first_use);
	xfree(m->queues);
	xfree(m->left);
	xfree(m->doubts);
	xfree(m);
}
