/* SPDX-License-Identifier: MIT */
/*
 * merge.c - all samples of a trace in order of time: a k-way merge of the lanes.
 *
 * A binary heap holds one entry a lane, keyed by the time of its next sample.  The top lane
 * runs on while its key stays below the better one of the heap's second row, which costs one
 * comparison a sample; only when it falls behind is the heap mended.
 *
 * A lane's own order is never changed: where its clock steps back (a signal handler's probe
 * runs between another probe's claim and its clock reading), the key stays at the highest time
 * so far.
 *
 * Chunks are mapped, touched once, and given back: the resident memory of a merge is about one
 * chunk a lane, whatever the trace's size.
 */
#include <string.h>

#include "trace/jumps.h"
#include "trace/reader_impl.h"
#include "trace/sparse.h"

struct run { /* one lane on its way */
	uint64_t key;
	uint64_t tsc;           /* of sample */
	struct trace_bounds in; /* likewise */
	const struct kron_sample *sample;
	struct sample_walk walk;   /* over the current chunk */
	uint32_t chunk, chunk_end; /* index of the current one, of the lane's end */
	uint32_t lane;
	uint32_t cpu;
	uint32_t first_cpu;          /* of its node */
	uint64_t start;              /* near which its times are */
	const struct joined *joined; /* whose lane it is; NULL: of this trace alone */
	const uint32_t *counters;    /* likewise, NULL: it has none */
	struct sample_parts parts;
	struct sparse *sparse;    /* NULL: each sample has read the clock */
	struct sparse_sample now; /* with it: the sample */
};

struct trace_cursor {
	const struct trace *t;
	struct run **heap;
	struct run *runs;
	size_t nruns;
	size_t n;           /* in the heap */
	uint64_t limit_key; /* the better of heap[1] and heap[2] */
	uint32_t limit_lane;
	const struct run *last;     /* that gave the last event; NULL when it has ended */
	struct trace_memory memory; /* of that event */
};

static bool next_chunk(const struct trace *t, struct run *r)
{
	const struct trace_priv *p = priv_of(t);
	const struct chunk_ref *c = &p->chunks.v[r->chunk];

	if (r->walk.at)
		lanes_have_read(t, c++), r->chunk++;
	if (r->chunk == r->chunk_end)
		return false;
	lanes_walk(t, c, &r->walk);
	return true;
}

/* A record tells the full number; a sample whose three bits differ tells of a lost record. */
static void follow_cpu(struct run *r)
{
	uint32_t bits = r->sample->head >> KRON_HEAD_CPU_SHIFT;

	if (r->sample->event == KRON_EVENT_CPU)
		r->cpu = r->sample->payload;
	else if ((r->cpu & KRON_HEAD_CPU_MASK) != bits)
		r->cpu = bits;
}

static void take_part(struct sample_parts *parts, const struct kron_sample *s)
{
	struct trace_memory *m = &parts->memory;
	uint32_t k = s->event - KRON_EVENT_TEXT;

	if (s->event == KRON_EVENT_WIDE) {
		parts->is_wide = true;
		parts->high = s->payload;
	} else if (s->event == KRON_EVENT_MEMORY) {
		parts->has_memory = true;
		m->is_unreadable = s->payload & KRON_MEMORY_UNREADABLE;
		m->is_cut = s->payload & KRON_MEMORY_CUT;
		/* a record is missing: so is the rest of the text */
		m->is_unreadable |= (s->payload & KRON_MEMORY_LENGTH) > m->length;
		m->length = m->is_unreadable ? 0 : (uint8_t)(s->payload & KRON_MEMORY_LENGTH);
		m->text[m->length] = '\0';
	} else if (k < KRON_TEXT_MAX / 4 && m->length == 4 * k) {
		memcpy(m->text + m->length, &s->payload, 4);
		m->length += 4;
	}
}

/*
 * The parts that begin here, and the sample right after them.  They belong to it if they are of its time:
 * else their own was cut off.
 */
static const struct kron_sample *gather(struct sample_walk *walk, const struct kron_sample *s,
					struct sample_parts *parts)
{
	uint64_t time = 0;

	parts->memory.length = 0;
	for (; s && kron_event_is_part(s->event); s = sample_walk_next(walk, NULL)) {
		if (kron_sample_time(s) != time) {
			parts->is_wide = parts->has_memory = false;
			parts->memory.length = 0;
		}
		time = kron_sample_time(s);
		take_part(parts, s);
	}
	if (!s || s->event >= KRON_EVENT_SPECIAL || kron_sample_time(s) != time)
		parts->is_wide = parts->has_memory = false;
	if (!parts->is_wide)
		parts->high = 0;
	return s;
}

/* The next sample of a chunk. */
static inline const struct kron_sample *next_whole(struct sample_walk *walk,
						   struct sample_parts *parts)
{
	const struct kron_sample *s = sample_walk_next(walk, NULL);

	parts->is_wide = parts->has_memory = false;
	parts->high = 0;
	return s && kron_event_is_part(s->event) ? gather(walk, s, parts) : s;
}

static inline uint64_t time_of(const struct run *r, const struct kron_sample *s)
{
	uint64_t tsc = kron_sample_time_near(s, r->start);

	return r->joined ? timeline_to(&r->joined->clock, tsc) : tsc;
}

static const uint32_t *counters_of(const struct kron_sample *s)
{
	uint32_t type = s->head >> KRON_HEAD_TYPE_SHIFT & KRON_HEAD_TYPE_MASK;

	return type == KRON_HEAD_TYPE_RESOURCE ? (const uint32_t *)(s + 1) : NULL;
}

static bool always_reads(const struct trace *t, uint32_t event)
{
	const struct trace_function *f = trace_function_of(t, event);

	return f ? f->ways & TRACE_TIMED : trace_user_event_of(t, event) != NULL;
}

/* All samples of the lane are older; UINT64_MAX: nobody knows. */
static uint64_t latest_end(const struct trace *t, const struct trace *own, const struct run *r)
{
	const uint32_t lane = r->lane - (r->joined ? r->joined->first_lane : 0);
	const struct trace_proc *proc = trace_proc_of(own, own->lanes[lane].proc_uid);
	const uint64_t end = trace_session_number(own, "copied_tsc", own->end_tsc);

	if (!trace_lane_has_end(t, r->lane) || end < own->end_tsc) /* copied after a reboot */
		return UINT64_MAX;
	return proc && proc->end_tsc && proc->end_tsc < end ? proc->end_tsc : end;
}

/* One more goes to those whose times depend on each other.  False: there is none. */
static bool feed_sparse(const struct trace *t, struct run *r)
{
	const struct trace *own = r->joined ? r->joined->t : t;
	struct sparse_sample x = {0};
	const struct kron_sample *s;

	while (!(s = next_whole(&r->walk, &x.parts)))
		if (r->chunk == r->chunk_end || !next_chunk(t, r)) {
			sparse_end(r->sparse, latest_end(t, own, r));
			return false;
		}
	x.s = *s;
	x.counters = counters_of(s);
	x.tsc = kron_sample_time_near(s, r->start);
	x.always_reads = !(s->time_lo & 1) && always_reads(own, s->event);
	sparse_put(r->sparse, &x);
	return true;
}

static uint64_t on_line(const struct run *r, uint64_t tsc)
{
	return r->joined && tsc != UINT64_MAX ? timeline_to(&r->joined->clock, tsc) : tsc;
}

static struct trace_bounds on_line_both(const struct run *r, const struct sparse_sample *s)
{
	return (struct trace_bounds){on_line(r, s->lo), on_line(r, s->hi)};
}

/* One more than is given, so that there is one to be looked ahead at. */
static bool advance_sparse(const struct trace *t, struct run *r)
{
	const struct sparse_sample *s;

	while (!(s = sparse_next(r->sparse)))
		if (!feed_sparse(t, r)) {
			s = sparse_next(r->sparse);
			break;
		}
	if (!s)
		return false;
	r->now = *s;
	while (!sparse_peek(r->sparse, 0) && feed_sparse(t, r))
		;
	r->sample = &r->now.s;
	r->counters = r->now.counters;
	r->parts = r->now.parts;
	r->tsc = on_line(r, r->now.tsc);
	r->in = on_line_both(r, &r->now);
	return true;
}

static inline bool advance_whole(const struct trace *t, struct run *r)
{
	const struct kron_sample *s;

	while (!(s = next_whole(&r->walk, &r->parts)))
		if (!next_chunk(t, r))
			return false;
	r->sample = s;
	r->counters = counters_of(s);
	r->tsc = time_of(r, s);
	r->in = (struct trace_bounds){r->tsc, r->tsc};
	return true;
}

static inline bool advance(const struct trace *t, struct run *r)
{
	if (!(r->sparse ? advance_sparse(t, r) : advance_whole(t, r)))
		return false;
	if (r->tsc > r->key)
		r->key = r->tsc;
	follow_cpu(r);
	return true;
}

static bool comes_before(const struct run *a, const struct run *b)
{
	return a->key != b->key ? a->key < b->key : a->lane < b->lane;
}

static void sift_down(struct trace_cursor *c, size_t i)
{
	struct run *r = c->heap[i];

	for (;;) {
		size_t child = 2 * i + 1;

		if (child >= c->n)
			break;
		if (child + 1 < c->n && comes_before(c->heap[child + 1], c->heap[child]))
			child++;
		if (!comes_before(c->heap[child], r))
			break;
		c->heap[i] = c->heap[child];
		i = child;
	}
	c->heap[i] = r;
}

static void find_limit(struct trace_cursor *c)
{
	const struct run *second = c->n > 1 ? c->heap[1] : NULL;

	if (c->n > 2 && comes_before(c->heap[2], second))
		second = c->heap[2];
	c->limit_key = second ? second->key : UINT64_MAX;
	c->limit_lane = second ? second->lane : UINT32_MAX;
}

#define OFF_ERROR_US 5 /* of times in records of context switches, on the samples' clock */

static struct sparse *sparse_new(const struct trace *own, uint32_t tid, unsigned every)
{
	struct sparse *x = xcalloc(1, sizeof(*x));

	x->every = every;
	x->off = lane_off(own, tid, &x->noff);
	x->off_error = (uint64_t)(own->tsc_hz * OFF_ERROR_US / 1e6);
	return x;
}

static void add_lane(struct trace_cursor *c, uint32_t lane)
{
	const struct trace_priv *p = priv_of(c->t);
	struct run *r = &c->runs[c->nruns++];
	unsigned every;

	r->lane = lane;
	r->joined = p->joined ? &p->joined[c->t->lanes[lane].node] : NULL;
	r->first_cpu = r->joined ? r->joined->node.first_cpu : 0;
	r->start = r->joined ? r->joined->t->start_tsc : c->t->start_tsc;
	every = trace_node_clock_every(c->t, c->t->lanes[lane].node);
	if (every > 1)
		r->sparse =
			sparse_new(r->joined ? r->joined->t : c->t, c->t->lanes[lane].tid, every);
	r->chunk = p->lane_first[lane];
	r->chunk_end = p->lane_first[lane + 1];
	if (next_chunk(c->t, r) && advance(c->t, r))
		c->heap[c->n++] = r;
}

static struct trace_cursor *cursor_new(const struct trace *t, size_t nlanes)
{
	struct trace_cursor *c = xcalloc(1, sizeof(*c));

	c->t = t;
	c->runs = xcalloc(nlanes, sizeof(*c->runs));
	c->heap = xcalloc(nlanes, sizeof(*c->heap));
	return c;
}

static void cursor_start(struct trace_cursor *c)
{
	for (size_t i = c->n / 2; i-- > 0;)
		sift_down(c, i);
	find_limit(c);
}

struct trace_cursor *trace_cursor_open_some(const struct trace *t, const bool *want)
{
	struct trace_cursor *c = cursor_new(t, t->nlanes);

	for (size_t i = 0; i < t->nlanes; i++)
		if (!want || want[i])
			add_lane(c, (uint32_t)i);
	cursor_start(c);
	return c;
}

struct trace_cursor *trace_cursor_open(const struct trace *t, int lane)
{
	struct trace_cursor *c;

	if (lane < 0)
		return trace_cursor_open_some(t, NULL);
	c = cursor_new(t, 1);
	if ((size_t)lane < t->nlanes)
		add_lane(c, (uint32_t)lane);
	cursor_start(c);
	return c;
}

/* heap[0] has moved on, or ended. */
static void mend(struct trace_cursor *c, bool ended)
{
	if (ended)
		c->heap[0] = c->heap[--c->n];
	if (c->n)
		sift_down(c, 0);
	find_limit(c);
}

static inline void put_parts(struct trace_cursor *c, const struct sample_parts *parts,
			     struct trace_event *out)
{
	out->is_wide = parts->is_wide;
	out->high = parts->high;
	out->memory = NULL;
	if (parts->has_memory) {
		c->memory = parts->memory;
		out->memory = &c->memory;
	}
}

static bool next_sample(struct trace_cursor *c, struct trace_event *out)
{
	struct run *r;

	if (!c->n)
		return false;
	r = c->heap[0];
	out->tsc = r->tsc;
	out->in = r->in;
	out->lane = r->lane;
	out->cpu = r->cpu + r->first_cpu;
	out->s = *r->sample;
	put_parts(c, &r->parts, out);
	if (r->joined)
		join_event(r->joined, out);
	trace_resolve(c->t, out);
	out->counters = r->counters;
	c->last = r;
	if (!advance(c->t, r)) {
		c->last = NULL;
		mend(c, true);
	} else if (r->key >= c->limit_key && (r->key > c->limit_key || r->lane > c->limit_lane)) {
		mend(c, false);
	}
	return true;
}

bool trace_cursor_next(struct trace_cursor *c, struct trace_event *out)
{
	const struct trace_filter *f = c->t->filter;

	while (next_sample(c, out))
		if (!f || f->passes(f, out))
			return true;
	return false;
}

/* A look ahead does not show what a text says. */
static const struct trace_memory hidden = {.is_unreadable = true};

struct ahead { /* what a look ahead is at */
	struct kron_sample s;
	struct sample_parts parts;
	const uint32_t *counters;
	uint64_t tsc;
	struct trace_bounds in;
};

static void show_ahead(const struct trace_cursor *c, const struct run *r, const struct ahead *a,
		       struct trace_event *out)
{
	out->tsc = a->tsc;
	out->in = a->in;
	out->lane = r->lane;
	out->cpu = r->cpu + r->first_cpu;
	out->s = a->s;
	out->is_wide = a->parts.is_wide;
	out->high = a->parts.high;
	out->memory = a->parts.has_memory ? &hidden : NULL;
	if (r->joined)
		join_event(r->joined, out);
	trace_resolve(c->t, out);
	out->counters = a->counters;
}

/* False: the filter stops it, or it is a record of the CPU. */
static bool is_shown_ahead(const struct trace_cursor *c, const struct run *r, const struct ahead *a,
			   struct trace_event *out)
{
	const struct trace_filter *f = c->t->filter;

	if (a->s.event == KRON_EVENT_CPU)
		return false;
	show_ahead(c, r, a, out);
	return !f || f->passes(f, out);
}

static bool peek_sparse(const struct trace_cursor *c, const struct run *r, struct trace_event *out)
{
	const struct sparse_sample *s = &r->now;

	for (size_t i = 0; s; s = sparse_peek(r->sparse, i++)) {
		const struct ahead a = {s->s, s->parts, s->counters, on_line(r, s->tsc),
					on_line_both(r, s)};

		if (is_shown_ahead(c, r, &a, out))
			return true;
	}
	return false;
}

bool trace_cursor_peek(const struct trace_cursor *c, struct trace_event *out)
{
	const struct run *r = c->last;
	struct sample_walk walk;
	struct sample_parts parts;

	if (!r)
		return false;
	if (r->sparse)
		return peek_sparse(c, r, out);
	walk = r->walk;
	parts = r->parts;
	for (const struct kron_sample *s = r->sample; s; s = next_whole(&walk, &parts)) {
		const uint64_t tsc = time_of(r, s);
		const struct ahead a = {*s, parts, counters_of(s), tsc, {tsc, tsc}};

		if (is_shown_ahead(c, r, &a, out))
			return true;
	}
	return false;
}

bool trace_cursor_is_last(const struct trace_cursor *c)
{
	return !c->last;
}

void trace_cursor_close(struct trace_cursor *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->nruns; i++) {
		if (c->runs[i].sparse)
			sparse_free(c->runs[i].sparse);
		xfree(c->runs[i].sparse);
	}
	xfree(c->heap);
	xfree(c->runs);
	xfree(c);
}
