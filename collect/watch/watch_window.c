/* SPDX-License-Identifier: MIT */
/*
 * watch_window.c - the trigger has fired: counts what comes after, and when that is enough finds
 * the window, exact to the sample, among all that is still there, and writes it.
 *
 * While the trigger was looked for, samples were only counted, by chunks; here those of all lanes
 * come once more, in order of time, as a reader of the trace would see them
 * (trace/analysis/window.h).
 */
#include "collect/watch/watch_impl.h"

#include <string.h>

/* ---- the samples of one lane, chunk by chunk ---- */

struct walk {
	const struct watch_chunk *c;
	uint32_t lane;
	uint32_t at;
	uint64_t order, tsc; /* of `s` */
	struct kron_sample s;
	struct sample_walk packed;
};

static void enter_chunk(struct walk *k, const struct watch_chunk *c)
{
	k->c = c;
	k->at = 0;
	if (c && c->packed)
		sample_walk_start(&k->packed, c->bytes, c->size, true);
}

static const struct kron_sample *next_in_chunk(const struct watch *w, struct walk *k)
{
	const uint8_t *bytes;
	uint32_t size, end;

	if (k->c->packed)
		return sample_walk_next(&k->packed, NULL);
	bytes = watch_chunk_bytes(w, k->c);
	end = k->c->taken ? k->c->head.nbytes : k->c->at; /* no further than we have looked */
	while ((size = watch_size_at(w, bytes, k->at, end)) != 0) {
		const struct kron_sample *s = (const void *)(bytes + k->at);

		k->at += size;
		/* Acquire: the head is stored last; partner: the thunk's store of it. */
		if (__atomic_load_n(&s->head, __ATOMIC_ACQUIRE))
			return s;
	}
	return NULL;
}

/* The next sample of the lane, special records left out. */
static bool go_on(const struct watch *w, struct walk *k)
{
	const struct kron_sample *s;

	while (k->c) {
		s = next_in_chunk(w, k);
		if (!s) {
			enter_chunk(k, k->c->next);
			continue;
		}
		if (s->event >= KRON_EVENT_SPECIAL)
			continue;
		k->s = *s;
		k->tsc = kron_sample_time_near(s, w->start.tsc);
		k->order = k->tsc > k->order ? k->tsc : k->order;
		return true;
	}
	return false;
}

/* ---- all of them, by time ---- */

struct merge {
	const struct watch *w;
	struct walk **heap;
	size_t n;
};

/* As readers merge: by time, then in the order that lanes have in a trace. */
static bool comes_before(const struct watch *w, const struct walk *a, const struct walk *b)
{
	return a->order != b->order ? a->order < b->order
				    : w->lanes.v[a->lane].key < w->lanes.v[b->lane].key;
}

static void sift_down(struct merge *m, size_t i)
{
	struct walk *k = m->heap[i];

	for (;;) {
		size_t child = 2 * i + 1;

		if (child >= m->n)
			break;
		if (child + 1 < m->n && comes_before(m->w, m->heap[child + 1], m->heap[child]))
			child++;
		if (!comes_before(m->w, m->heap[child], k))
			break;
		m->heap[i] = m->heap[child];
		i = child;
	}
	m->heap[i] = k;
}

static void merge_begin(struct merge *m, const struct watch *w)
{
	*m = (struct merge){.w = w, .heap = xcalloc(w->lanes.n, sizeof(*m->heap))};
	for (uint32_t i = 0; i < w->lanes.n; i++) {
		struct walk *k;

		if (!w->lanes.v[i].chunks)
			continue;
		k = xcalloc(1, sizeof(*k));
		k->lane = i;
		enter_chunk(k, w->lanes.v[i].chunks);
		if (go_on(w, k))
			m->heap[m->n++] = k;
		else
			xfree(k);
	}
	for (size_t i = m->n / 2; i-- > 0;)
		sift_down(m, i);
}

static void merge_go_on(struct merge *m)
{
	if (!go_on(m->w, m->heap[0])) {
		xfree(m->heap[0]);
		m->heap[0] = m->heap[--m->n];
	}
	if (m->n)
		sift_down(m, 0);
}

static void merge_end(struct merge *m)
{
	while (m->n)
		xfree(m->heap[--m->n]);
	xfree(m->heap);
}

/* ---- the window ---- */

static uint64_t count_after(const struct watch *w, const struct watch_chunk *c)
{
	struct walk k = {.order = 0};
	const struct kron_sample *s;
	uint64_t n = 0;

	enter_chunk(&k, c);
	while ((s = next_in_chunk(w, &k)) && (!c->taken || c->packed || k.at <= c->at))
		n += s->event < KRON_EVENT_SPECIAL &&
		     kron_sample_time_near(s, w->start.tsc) > w->fired.at;
	return n;
}

/* Lanes may have been looked at further than to where it fired. */
void watch_window_begin(struct watch *w)
{
	vec_for(&w->lanes, l) {
		l->has_next = false;
		for (const struct watch_chunk *c = l->chunks; c; c = c->next)
			if (c->at && c->last > w->fired.at)
				w->after += count_after(w, c);
	}
}

bool watch_window_is_closed(const struct watch *w, uint64_t until)
{
	const struct window_finder *f = &w->finder;

	if (f->post.ns)
		return until > w->fired.at &&
		       until - w->fired.at > (uint64_t)((double)f->post.ns * f->hz / 1e9);
	return w->after >= f->post.samples;
}

/* At each sample by time; *from: where the window begins, once that is known. */
static void see(struct watch *w, const struct walk *k, uint64_t *from)
{
	const struct watch_fired *x = &w->fired;
	struct window_finder *f = &w->finder;

	if ((x->by_time || x->by_group) && !f->fired && k->order > x->at)
		window_finder_open(f, *from, x->at);
	window_finder_see(f, k->tsc);
	if (x->by_group && !f->fired)
		*from = window_finder_from(f, k->tsc);
	if (x->by_group)
		return;
	if (k->lane != x->lane || f->fired)
		return;
	if (x->by_time && k->tsc == x->since)
		*from = window_finder_from(f, k->tsc);
	else if (!x->by_time && !memcmp(&k->s, &x->s, sizeof(k->s)))
		window_finder_open(f, window_finder_from(f, k->tsc), k->tsc);
}

static void find_window(struct watch *w)
{
	struct window_finder *f = &w->finder;
	uint64_t from = w->fired.by_time ? w->fired.since : w->fired.at;
	struct merge m;

	if (f->pre.ns)
		from = window_finder_from(f, from);
	if (f->pre.ns && !f->post.samples) { /* nothing to count */
		window_finder_open(f, from, w->fired.at);
		return;
	}
	for (merge_begin(&m, w); m.n; merge_go_on(&m)) {
		see(w, m.heap[0], &from);
		if (window_finder_is_closed(f, m.heap[0]->order))
			break;
	}
	merge_end(&m);
	if (!f->fired) /* after the last sample, or the sample is gone: a program wrote over it */
		window_finder_open(f, from, w->fired.at);
}

/* ---- to the trace ---- */

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

struct cut {
	uint32_t first, end; /* bytes */
	uint32_t samples, holes;
};

/* From the first sample in the window to the last one. */
static struct cut find_cut(const struct watch *w, const uint8_t *bytes, uint32_t nbytes)
{
	const struct trace_window *win = &w->finder.found.v[0];
	struct cut cut = {.first = UINT32_MAX};
	uint32_t holes = 0, samples = 0;

	for (uint32_t at = 0, size; (size = watch_size_at(w, bytes, at, nbytes)) != 0; at += size) {
		const struct kron_sample *s = (const void *)(bytes + at);
		uint64_t tsc = s->head ? kron_sample_time_near(s, w->start.tsc) : 0;

		if (cut.first == UINT32_MAX && (!s->head || tsc < win->from))
			continue;
		if (cut.first == UINT32_MAX)
			cut.first = at;
		holes += !s->head;
		samples += s->head && s->event < KRON_EVENT_SPECIAL;
		if (!s->head || tsc > win->to)
			continue;
		cut.end = at + size;
		cut.samples = samples;
		cut.holes = holes;
	}
	return cut;
}

static uint32_t write_cut(struct watch *w, const struct watch_chunk *c, uint8_t *bytes)
{
	struct chunk_owner o = {.uid = c->head.proc_uid, .tid = (pid_t)c->head.tid};
	struct cut cut = find_cut(w, bytes, c->head.nbytes);
	struct trace_chunk head = c->head;

	if (!cut.samples)
		return 0;
	if (cut.first && !w->board) {
		put_cpu_record((void *)bytes, cut.first / KRON_SAMPLE_SIZE);
		cut.first -= KRON_SAMPLE_SIZE;
	}
	head.nbytes = cut.end - cut.first;
	head.holes = cut.holes;
	if (w->board)
		return drain_write(w->d, &head, bytes + cut.first, &o, cut.samples) ? 0
										    : cut.samples;
	return drain_write_slots(w->d, &head, bytes + cut.first, &o, cut.samples) ? 0 : cut.samples;
}

uint32_t watch_window_write(struct watch *w, struct watch_chunk *c)
{
	uint8_t *bytes;
	uint32_t written;

	if (!w->fired.at)
		return 0;
	bytes = xmalloc(c->head.nbytes + 1ul);
	if (c->packed)
		c->head.nbytes = (uint32_t)packed_restore(bytes, c->head.nbytes, c->bytes, c->size);
	else
		memcpy(bytes, watch_chunk_bytes(w, c), c->head.nbytes);
	written = write_cut(w, c, bytes);
	xfree(bytes);
	return written;
}

static void write_row(struct watch *w, const struct watch_row *r)
{
	while (r->oldest)
		watch_chunk_let_go(w, r->oldest, watch_window_write(w, r->oldest));
}

/* What threads still have in unfinished chunks comes later: watch_take() writes its part. */
void watch_window_finish(struct watch *w)
{
	__atomic_store_n(&w->done, true, __ATOMIC_RELAXED);
	drain_notice_gates(w->d, true);
	segment_set_sampling(w->d->seg, false);
	if (w->fired.at)
		find_window(w);
	write_row(w, &w->held);
	write_row(w, &w->resident);
}
