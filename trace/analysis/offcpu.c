/* SPDX-License-Identifier: MIT */
/* offcpu.c - see offcpu.h. */
#include "trace/analysis/offcpu.h"

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "base/search.h"
#include "trace/index.h"

struct thread {
	size_t first, n; /* in stretches */
	uint64_t out;    /* it left then; 0: it runs, or nobody knows */
	uint16_t cpu;
	bool preempted;
};

struct offcpu {
	VEC(struct trace_switch) records, with_ends;
	VEC(uint64_t) node_ends;              /* of several traces */
	VEC(struct offcpu_stretch) stretches; /* thread by thread */
	struct index tids;
	VEC(struct thread) threads; /* as tids has them */
	struct offcpu_counts counts;
};

/* ---- the file ---- */

static void read_records(struct offcpu *o, const struct trace *t)
{
	size_t n;
	struct trace_switch *v = trace_switches(t, &n);

	vec_reserve(&o->records, o->records.n + n);
	if (n)
		memcpy(o->records.v + o->records.n, v, n * sizeof(*v));
	o->records.n += n;
	xfree(v);
}

static uint64_t earlier(uint64_t a, uint64_t b) /* 0: unknown */
{
	return !a || (b && b < a) ? b : a;
}

/* When its recording ended; of one that was killed, as late as its records from v[first] on go. */
static uint64_t end_of_node(const struct offcpu *o, const struct trace *t, uint32_t node,
			    size_t first)
{
	const struct trace *own = trace_node_at(t, node)->t;
	uint64_t end = earlier(own->end_tsc, trace_session_number(own, "closed_tsc", 0));

	if (end)
		return trace_node_time(t, node, end);
	for (size_t i = first; i < o->records.n; i++)
		if (o->records.v[i].tsc > end)
			end = o->records.v[i].tsc;
	return end;
}

/* Of all nodes: on their common clock, with numbers of threads that no two of them share. */
static void read_nodes(struct offcpu *o, const struct trace *t)
{
	for (uint32_t node = 0; node < trace_nodes(t); node++) {
		size_t first = o->records.n;

		read_records(o, trace_node_at(t, node)->t);
		for (size_t i = first; i < o->records.n; i++) {
			struct trace_switch *r = &o->records.v[i];

			r->tsc = trace_node_time(t, node, r->tsc);
			r->cpu = (uint16_t)(r->cpu + trace_node_at(t, node)->first_cpu);
			if (r->kind != TRACE_SWITCH_LOST)
				r->tid = trace_task(node, r->tid);
		}
		*vec_push(&o->node_ends) = end_of_node(o, t, node, first);
	}
}

static int by_time(const void *a, const void *b)
{
	const struct trace_switch *x = a, *y = b;

	return x->tsc < y->tsc ? -1 : x->tsc > y->tsc;
}

static bool is_sorted(const struct offcpu *o)
{
	for (size_t i = 1; i < o->records.n; i++)
		if (o->records.v[i].tsc < o->records.v[i - 1].tsc)
			return false;
	return true;
}

/* ---- stretches ---- */

static struct thread *thread_of(struct offcpu *o, uint32_t tid)
{
	size_t known = o->tids.n;
	uint32_t at = index_of(&o->tids, tid);

	if (at == known)
		vec_push(&o->threads);
	return &o->threads.v[at];
}

static void count_records(struct offcpu *o)
{
	size_t first = 0;

	vec_for(&o->records, r) {
		if (r->kind == TRACE_SWITCH_LOST) {
			o->counts.lost += r->tid;
			continue;
		}
		o->counts.records++;
		if (r->kind != TRACE_SWITCH_OUT && r->kind != TRACE_SWITCH_PREEMPTED)
			continue;
		o->counts.outs++;
		o->counts.preempted += r->kind == TRACE_SWITCH_PREEMPTED;
		thread_of(o, r->tid)->n++;
	}
	vec_for(&o->threads, t) {
		t->first = first;
		first += t->n;
		t->n = 0;
	}
	vec_reserve(&o->stretches, first + 1);
	o->stretches.n = first;
}

static void end_stretch(struct offcpu *o, struct thread *t, uint64_t in, uint16_t cpu)
{
	struct offcpu_stretch *s = &o->stretches.v[t->first + t->n];

	*s = (struct offcpu_stretch){.out = t->out,
				     .in = in,
				     .preempted = t->preempted,
				     .from_cpu = t->cpu,
				     .to_cpu = cpu};
	if (t->n)
		s->before = s[-1].before + (s[-1].in - s[-1].out);
	t->n++;
	t->out = 0;
}

static void make_stretches(struct offcpu *o)
{
	uint64_t lost = 0;

	vec_for(&o->records, r) {
		struct thread *t;

		if (r->kind == TRACE_SWITCH_LOST)
			lost = r->tsc;
		if (r->kind < TRACE_SWITCH_IN || r->kind > TRACE_SWITCH_PREEMPTED ||
		    index_find(&o->tids, r->tid) == INDEX_NONE)
			continue;
		t = thread_of(o, r->tid);
		if (r->kind != TRACE_SWITCH_IN) {
			t->out = r->tsc;
			t->cpu = r->cpu;
			t->preempted = r->kind == TRACE_SWITCH_PREEMPTED;
		} else if (t->out && t->out < lost) {
			t->out = 0;
		} else if (t->out) {
			end_stretch(o, t, r->tsc, r->cpu);
		}
	}
	vec_for(&o->threads, t)
		if (t->out)
			end_stretch(o, t, UINT64_MAX, t->cpu);
}

/* ---- the ends of threads, which the kernel makes no records of ---- */

struct end {
	uint32_t tid;
	uint64_t tsc; /* UINT64_MAX: unknown */
};
typedef VEC(struct end) ends;

static int by_thread(const void *a, const void *b)
{
	const struct end *x = a, *y = b;

	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	return x->tsc < y->tsc ? -1 : x->tsc > y->tsc;
}

/* Several of one number: one after the other, or what one thread was before an exec and after it. */
static void take_ends(const struct trace *t, ends *out)
{
	for (size_t i = 0; i < t->nlanes; i++) {
		const struct trace_lane *l = &t->lanes[i];
		const struct trace_proc *p = trace_proc_of(t, l->proc_uid);
		uint64_t end = earlier(l->end_tsc, p ? p->end_tsc : 0);

		*vec_push(out) = (struct end){trace_lane_task(l), end ? end : UINT64_MAX};
	}
	if (out->n)
		qsort(out->v, out->n, sizeof(*out->v), by_thread);
}

/* Of a thread that came to a processor, and is not seen to leave it before `until`; 0: unknown. */
static uint64_t end_of_run(const struct offcpu *o, const ends *e, const struct trace_switch *in,
			   uint64_t until)
{
	const uint32_t node = in->tid >> TRACE_TASK_BITS;
	const uint64_t of_node =
		until == UINT64_MAX && node < o->node_ends.n ? o->node_ends.v[node] : 0;
	size_t at = partition_point(
		i, e->n, e->v[i].tid < in->tid || (e->v[i].tid == in->tid && e->v[i].tsc <= until));
	const struct end *last = at && e->v[at - 1].tid == in->tid ? &e->v[at - 1] : NULL;
	/* an end before it is another's, who had the number earlier */
	const bool is_its = last && last->tsc >= in->tsc && last->tsc < UINT64_MAX;
	uint64_t end = earlier(is_its ? last->tsc : 0, of_node);

	return end >= in->tsc ? end : 0;
}

typedef VEC(struct trace_switch) switches;

static void end_run(const struct offcpu *o, const ends *e, const struct trace_switch *in,
		    uint64_t until, switches *out)
{
	uint64_t tsc = end_of_run(o, e, in, until);

	if (tsc)
		*vec_push(out) = (struct trace_switch){
			.tsc = tsc, .tid = in->tid, .cpu = in->cpu, .kind = TRACE_SWITCH_OUT};
}

/* Of each record that a thread came: the end, if it has not gone before it comes again. */
static void end_runs(const struct offcpu *o, const ends *e, switches *out)
{
	struct index tids = {0};
	VEC(size_t) runs = {0}; /* by index of tid: its record's, and 1; 0: it is off */

	for (size_t i = 0; i < o->records.n; i++) {
		const struct trace_switch *r = &o->records.v[i];
		uint32_t at;

		if (r->kind < TRACE_SWITCH_IN || r->kind > TRACE_SWITCH_PREEMPTED)
			continue;
		at = index_of(&tids, r->tid);
		if (at == runs.n)
			vec_push(&runs);
		if (r->kind == TRACE_SWITCH_IN && runs.v[at])
			end_run(o, e, &o->records.v[runs.v[at] - 1], r->tsc, out);
		runs.v[at] = r->kind == TRACE_SWITCH_IN ? i + 1 : 0;
	}
	vec_for(&runs, i)
		if (*i)
			end_run(o, e, &o->records.v[*i - 1], UINT64_MAX, out);
	index_free(&tids);
	vec_free(&runs);
}

/* An end after a record of the same time. */
static void add_ends(struct offcpu *o, const struct trace *t)
{
	switches all = {0};
	ends e = {0};
	size_t at = 0;

	take_ends(t, &e);
	end_runs(o, &e, &all);
	if (all.n)
		qsort(all.v, all.n, sizeof(*all.v), by_time);
	vec_reserve(&o->with_ends, o->records.n + all.n);
	vec_for(&o->records, r) {
		for (; at < all.n && all.v[at].tsc < r->tsc; at++)
			*vec_push(&o->with_ends) = all.v[at];
		*vec_push(&o->with_ends) = *r;
	}
	for (; at < all.n; at++)
		*vec_push(&o->with_ends) = all.v[at];
	vec_free(&all);
	vec_free(&e);
}

struct offcpu *offcpu_open(const struct trace *t)
{
	struct offcpu *o = xcalloc(1, sizeof(*o));

	if (trace_nodes(t))
		read_nodes(o, t);
	else
		read_records(o, t);
	if (!is_sorted(o))
		qsort(o->records.v, o->records.n, sizeof(*o->records.v), by_time);
	count_records(o);
	make_stretches(o);
	add_ends(o, t);
	return o;
}

void offcpu_close(struct offcpu *o)
{
	if (!o)
		return;
	vec_free(&o->records);
	vec_free(&o->with_ends);
	vec_free(&o->node_ends);
	vec_free(&o->stretches);
	vec_free(&o->threads);
	index_free(&o->tids);
	xfree(o);
}

/* ---- questions ---- */

bool offcpu_is_known(const struct trace *t)
{
	const char *s = trace_session(t, "switches");

	return s && !strcmp(s, "yes");
}

const char *offcpu_why_not(const struct trace *t)
{
	const char *s = trace_session(t, "switches");

	return s ? s : "the kron that made it did not record them";
}

struct offcpu_counts offcpu_count(const struct offcpu *o)
{
	return o->counts;
}

const struct trace_switch *offcpu_records(const struct offcpu *o, size_t *n)
{
	*n = o->records.n;
	return o->records.v;
}

const struct trace_switch *offcpu_with_ends(const struct offcpu *o, size_t *n)
{
	*n = o->with_ends.n;
	return o->with_ends.v;
}

void offcpu_of(const struct offcpu *o, uint32_t tid, struct offcpu_walk *w)
{
	uint32_t at = index_find(&o->tids, tid);

	*w = (struct offcpu_walk){0};
	if (at == INDEX_NONE)
		return;
	w->v = o->stretches.v + o->threads.v[at].first;
	w->n = o->threads.v[at].n;
}

/* The first stretch that is not over at this time. */
static size_t search(const struct offcpu_walk *w, uint64_t tsc)
{
	return partition_point(i, w->n, w->v[i].in <= tsc);
}

uint64_t offcpu_before(struct offcpu_walk *w, uint64_t tsc)
{
	const struct offcpu_stretch *s;

	if (!w->n)
		return 0;
	if (w->at < w->n && w->v[w->at].in <= tsc)
		w->at++;
	if ((w->at < w->n && w->v[w->at].in <= tsc) || (w->at && w->v[w->at - 1].in > tsc))
		w->at = search(w, tsc);
	if (w->at == w->n) {
		s = &w->v[w->n - 1];
		return s->before + (s->in - s->out);
	}
	s = &w->v[w->at];
	return s->before + (tsc > s->out ? tsc - s->out : 0);
}
