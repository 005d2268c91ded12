/* SPDX-License-Identifier: MIT */
/*
 * view_cpus.c - who was seen on each CPU, and in which function.
 *
 * As in the database's table "stay": between two samples of one thread that came one after
 * another on a CPU, with no other thread's in between and none of its own elsewhere, the thread
 * was there.  What lies between the samples of two threads is nobody's: there a switch was made,
 * nobody knows when.  So a CPU's share is what the trace can prove, a lower limit; a thread
 * that slept alone on a CPU counts as being there.
 *
 * Where the trace has context switches, these say it: from its switch in to its switch out a
 * thread was on the CPU.  They are merged with the samples by time, for the function on top of
 * its stack is known from the samples.  A sample puts its thread on a CPU only before the first
 * switch of that thread, or after some were lost: the two clocks differ by less than a
 * microsecond, which is enough for a sample to seem later than the switch out that follows it.
 */
#include <stdlib.h>
#include <string.h>

#include "trace/analysis/offcpu.h"
#include "trace/view/view_impl.h"

#define CPUS_MOST 4096u /* higher numbers are garbage */
#define NOWHERE UINT32_MAX

struct cpu {
	struct view_track by_thread, by_function;
	uint64_t last, busy, samples, switches;
	uint32_t lane;
	bool seen;
};
struct lane_state {
	uint32_t cpu, top; /* function number, UINT32_MAX: none */
};
struct thread_state {
	uint32_t lane; /* where it was seen last: after an exec it is another one */
	bool has_switch;
};
struct view_cpus {
	struct view *v;
	struct pairs *pairs;
	struct lane_state *lanes;
	VEC(struct cpu) cpus;
	uint64_t bins, width;
	uint64_t migrations;

	struct offcpu *off;
	const struct trace_switch *next, *end;
	struct index tids;
	VEC(struct thread_state) threads; /* by index of tid */
};

static void on_enter(void *ctx, const struct trace_event *e, uint32_t function, uint32_t depth)
{
	struct view_cpus *c = ctx;

	(void)depth;
	c->lanes[e->lane].top = function;
}

static void on_leave(void *ctx, const struct trace_event *e, const struct pair_call *call)
{
	struct view_cpus *c = ctx;

	(void)e;
	c->lanes[call->lane].top = call->caller;
}

static struct thread_state *set_lane(struct view_cpus *c, uint32_t lane)
{
	uint32_t i = index_of(&c->tids, trace_lane_task(&c->v->t->lanes[lane]));

	if (i == c->threads.n)
		vec_push(&c->threads);
	c->threads.v[i].lane = lane;
	return &c->threads.v[i];
}

struct view_cpus *view_cpus_open(struct view *v)
{
	struct view_cpus *c = xcalloc(1, sizeof(*c));
	struct pair_sink sink = {.ctx = c, .enter = on_enter, .leave = on_leave};

	c->v = v;
	c->bins = v->budget.cpus;
	c->width = (v->to - v->from) / c->bins + 1;
	c->lanes = xcalloc(v->t->nlanes, sizeof(*c->lanes));
	for (size_t i = 0; i < v->t->nlanes; i++)
		c->lanes[i] = (struct lane_state){.cpu = NOWHERE, .top = UINT32_MAX};
	c->pairs = pairs_open(v->t, &sink);
	c->off = offcpu_open(v->t);
	if (offcpu_is_known(v->t)) {
		size_t n;

		c->next = offcpu_with_ends(c->off, &n);
		c->end = n ? c->next + n : c->next;
	}
	for (uint32_t i = (uint32_t)v->t->nlanes; i-- > 0;)
		set_lane(c, i); /* at first the first one */
	return c;
}

static struct cpu *cpu_at(struct view_cpus *c, uint32_t number)
{
	struct cpu *cpu;

	while (c->cpus.n <= number)
		vec_push(&c->cpus);
	cpu = &c->cpus.v[number];
	if (!cpu->seen) {
		cpu->seen = true;
		cpu->lane = NOWHERE;
		view_track_open(&cpu->by_thread, c->bins, c->width);
		view_track_open(&cpu->by_function, c->bins, c->width);
	}
	return cpu;
}

static void add_stay(struct view_cpus *c, struct cpu *cpu, uint64_t tsc)
{
	const struct view *v = c->v;
	uint64_t a = cpu->last < v->from ? v->from : cpu->last, b = tsc > v->to ? v->to : tsc;
	uint32_t top = c->lanes[cpu->lane].top;

	if (a >= b)
		return;
	cpu->busy += b - a;
	view_track_add(&cpu->by_thread, a - v->from, b - v->from, cpu->lane);
	/* UINT32_MAX - 1: in no function that has a probe */
	view_track_add(&cpu->by_function, a - v->from, b - v->from,
		       top == UINT32_MAX ? UINT32_MAX - 1 : top);
}

/* ---- with context switches ---- */

/* What it was before an exec, and after it. */
static bool is_same_thread(const struct view_cpus *c, uint32_t a, uint32_t b)
{
	const struct trace_lane *v = c->v->t->lanes;

	return a == b ||
	       (a != NOWHERE && b != NOWHERE && trace_lane_task(&v[a]) == trace_lane_task(&v[b]));
}

static bool has_switch(const struct view_cpus *c, uint32_t lane)
{
	return c->threads.v[index_find(&c->tids, trace_lane_task(&c->v->t->lanes[lane]))]
		.has_switch;
}

/* At a switch, or sample, of this lane's thread.  When another one left of which no switch is known, nobody knows. */
static void leave_cpu(struct view_cpus *c, struct cpu *cpu, uint64_t tsc, uint32_t lane)
{
	if (cpu->lane != NOWHERE && tsc > cpu->last &&
	    (is_same_thread(c, cpu->lane, lane) || has_switch(c, cpu->lane)))
		add_stay(c, cpu, tsc);
	cpu->lane = NOWHERE;
}

static void take_switch(struct view_cpus *c, const struct trace_switch *s)
{
	uint32_t i = index_find(&c->tids, s->tid), lane;
	struct cpu *cpu;

	if (s->kind == TRACE_SWITCH_LOST)
		vec_for(&c->threads, t)
			t->has_switch = false;
	if (s->kind == TRACE_SWITCH_LOST || i == INDEX_NONE || s->cpu >= CPUS_MOST)
		return;
	lane = c->threads.v[i].lane;
	cpu = cpu_at(c, s->cpu);
	c->threads.v[i].has_switch = true;
	if (s->kind == TRACE_SWITCH_IN || is_same_thread(c, cpu->lane, lane))
		leave_cpu(c, cpu, s->tsc, lane);
	if (s->kind != TRACE_SWITCH_IN)
		return;
	cpu->lane = lane;
	cpu->last = s->tsc;
	cpu->switches += view_holds(c->v, s->tsc);
}

static void be_seen_running(struct view_cpus *c, const struct trace_event *e)
{
	struct cpu *cpu = cpu_at(c, e->cpu);
	struct lane_state *l = &c->lanes[e->lane];
	const bool is_known = set_lane(c, e->lane)->has_switch;

	if (l->cpu != NOWHERE && l->cpu != e->cpu) {
		c->migrations += view_holds(c->v, e->tsc);
		if (!is_known && c->cpus.v[l->cpu].lane == e->lane)
			c->cpus.v[l->cpu].lane = NOWHERE;
	}
	l->cpu = e->cpu;
	cpu->samples += view_holds(c->v, e->tsc) && e->s.event < KRON_EVENT_SPECIAL;
	if (cpu->lane == e->lane && e->tsc > cpu->last) {
		add_stay(c, cpu, e->tsc);
		cpu->last = e->tsc;
	} else if (cpu->lane != e->lane && (!is_known || is_same_thread(c, cpu->lane, e->lane))) {
		leave_cpu(c, cpu, e->tsc, e->lane);
		cpu->lane = e->lane;
		cpu->last = e->tsc;
	}
}

/* ---- by samples alone ---- */

static void be_seen(struct view_cpus *c, const struct trace_event *e)
{
	struct cpu *cpu = cpu_at(c, e->cpu);
	struct lane_state *l = &c->lanes[e->lane];

	if (l->cpu != NOWHERE && l->cpu != e->cpu) {
		c->migrations += view_holds(c->v, e->tsc);
		if (c->cpus.v[l->cpu].lane == e->lane)
			c->cpus.v[l->cpu].lane = NOWHERE;
	}
	l->cpu = e->cpu;
	if (cpu->lane == e->lane && e->tsc > cpu->last)
		add_stay(c, cpu, e->tsc);
	else if (cpu->lane != e->lane && cpu->lane != NOWHERE)
		cpu->switches += view_holds(c->v, e->tsc);
	cpu->lane = e->lane;
	if (e->tsc > cpu->last)
		cpu->last = e->tsc;
	cpu->samples += view_holds(c->v, e->tsc) && e->s.event < KRON_EVENT_SPECIAL;
}

void view_cpus_feed(struct view_cpus *c, const struct trace_event *e)
{
	if (!c->end) {
		if (e->cpu < CPUS_MOST)
			be_seen(c, e);
		pairs_feed(c->pairs, e);
		return;
	}
	for (; c->next < c->end && c->next->tsc <= e->tsc; c->next++)
		take_switch(c, c->next);
	if (e->cpu < CPUS_MOST)
		be_seen_running(c, e);
	pairs_feed(c->pairs, e);
}

static void put_cpu(struct view_cpus *c, uint32_t number, struct cpu *cpu)
{
	struct json *j = &c->v->j;

	fputc('\n', j->f);
	json_open(j, '{');
	json_ku64(j, "cpu", number);
	json_ku64(j, "busy_ns", trace_ns(c->v->t, cpu->busy));
	json_ku64(j, "samples", cpu->samples);
	json_ku64(j, "switches", cpu->switches);
	json_key(j, "by_thread");
	view_track_put(&cpu->by_thread, j);
	json_key(j, "by_function");
	view_track_put(&cpu->by_function, j);
	json_close(j, '}');
}

/* ---- when threads were off the CPUs: the longest stretches of each ---- */

/* Sorts the longest first. */
static int by_length(const void *a, const void *b)
{
	return view_span_is_less(a, b) - view_span_is_less(b, a);
}

static int by_begin(const void *a, const void *b)
{
	const struct view_span *x = a, *y = b;

	return x->begin < y->begin ? -1 : x->begin > y->begin;
}

/* What the view has of it. */
bool view_cpus_stretch(const struct view *v, uint32_t lane, const struct offcpu_stretch *o,
		       struct view_span *out)
{
	const struct view_lane *l = &v->lanes[lane];
	uint64_t from = l->first < v->from ? v->from : l->first;
	uint64_t to = l->last > v->to ? v->to : l->last;

	*out = (struct view_span){.begin = o->out < from ? from : o->out,
				  .end = o->in > to ? to : o->in,
				  .function = o->preempted};
	return out->begin < out->end;
}

/* v[0] up to v[n], by length: from v[most] on they are for view_detail.c. */
static void leave_out(struct view *view, uint32_t lane, const struct view_span *v, size_t n,
		      size_t most)
{
	struct view_lane *l = &view->lanes[lane];

	l->off_left_out = n - most;
	l->any_off_kept = most;
	if (most)
		l->least_off_kept = v[most - 1];
	for (size_t i = most; i < n; i++)
		view->short_calls[view_detail_bucket(v[i].end - v[i].begin)]++;
}

static void put_stretches(struct view_cpus *c, uint32_t lane, size_t most)
{
	const struct view *v = c->v;
	struct offcpu_walk w;
	VEC(struct view_span) all = {0};
	uint64_t off = 0;
	size_t n;
	struct json *j = &c->v->j;

	offcpu_of(c->off, trace_lane_task(&v->t->lanes[lane]), &w);
	for (size_t i = 0; i < w.n; i++) {
		struct view_span s;

		if (!view_cpus_stretch(v, lane, &w.v[i], &s))
			continue;
		off += s.end - s.begin;
		*vec_push(&all) = s;
	}
	n = all.n;
	if (all.n > most) {
		qsort(all.v, all.n, sizeof(*all.v), by_length);
		leave_out(c->v, lane, all.v, all.n, most);
		all.n = most;
		qsort(all.v, all.n, sizeof(*all.v), by_begin);
	}
	json_open(j, '[');
	json_u64(j, lane);
	json_u64(j, trace_ns(v->t, off));
	json_u64(j, n);
	json_open(j, '[');
	vec_for(&all, s) {
		json_i64(j, view_ns(v, s->begin));
		json_i64(j, view_ns(v, s->end));
		json_u64(j, s->function);
	}
	json_close(j, ']');
	json_close(j, ']');
	vec_free(&all);
}

static void put_off(struct view_cpus *c)
{
	struct json *j = &c->v->j;
	const struct view *v = c->v;
	size_t most = v->budget.lanes ? v->budget.losses / v->budget.lanes : 0;

	json_key(j, "switches_known");
	json_bool(j, offcpu_is_known(v->t));
	if (!offcpu_is_known(v->t))
		view_put_key_name(j, "switches_why_not", offcpu_why_not(v->t));
	json_ku64(j, "switches_lost", offcpu_count(c->off).lost);
	json_key(j, "off");
	json_open(j, '[');
	for (uint32_t i = 0; i < v->t->nlanes && offcpu_is_known(v->t); i++)
		if (v->lanes[i].shown)
			put_stretches(c, i, most);
	json_close(j, ']');
}

void view_cpus_put(struct view_cpus *c)
{
	struct json *j = &c->v->j;

	for (; c->next < c->end; c->next++)
		take_switch(c, c->next);
	put_off(c);
	json_ku64(j, "migrations", c->migrations);
	json_ku64(j, "cpu_bins", c->bins);
	json_ku64(j, "cpu_bin_ticks", c->width);
	json_key(j, "cpus");
	json_open(j, '[');
	vec_for(&c->cpus, cpu)
		if (cpu->seen)
			put_cpu(c, (uint32_t)(cpu - c->cpus.v), cpu);
	json_close(j, ']');
}

void view_cpus_free(struct view_cpus *c)
{
	pairs_close(c->pairs);
	offcpu_close(c->off);
	index_free(&c->tids);
	vec_free(&c->threads);
	vec_free(&c->cpus);
	xfree(c->lanes);
	xfree(c);
}
