/* SPDX-License-Identifier: MIT */
/*
 * view_cpus.c - who was seen on each CPU, and in which function.
 *
 * As in the database's table "stay": between two samples of one thread that came one after
 * another on a CPU, with no other thread's in between and none of its own elsewhere, the thread
 * was there.  What lies between the samples of two threads is nobody's: there a switch was made,
 * nobody knows when.  So a CPU's share is what the trace can prove, a lower limit; a thread
 * that slept alone on a CPU counts as being there.
 */
#include <string.h>

#include "trace/view_impl.h"

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
struct view_cpus {
	struct view *v;
	struct pairs *pairs;
	struct lane_state *lanes;
	VEC(struct cpu) cpus;
	uint64_t bins, width;
	uint64_t migrations;
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
	if (e->cpu < CPUS_MOST)
		be_seen(c, e);
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

void view_cpus_put(struct view_cpus *c)
{
	struct json *j = &c->v->j;

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
	vec_free(&c->cpus);
	xfree(c->lanes);
	xfree(c);
}
