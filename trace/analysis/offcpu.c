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
	VEC(struct trace_switch) records;
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
	return o;
}

void offcpu_close(struct offcpu *o)
{
	if (!o)
		return;
	vec_free(&o->records);
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
