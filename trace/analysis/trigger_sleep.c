/* SPDX-License-Identifier: MIT */
/*
 * trigger_sleep.c - what a trigger waits for, and functions whose probes were out of the program meanwhile: a call
 * whose end nobody could see has not taken long for that, and a B that nobody could see has not failed to come.
 *
 *   A ─── B goes ─── A ──── A ─── B is back ─── A      only the last one may fire
 */
#include "trace/analysis/trigger_impl.h"

#include <stdlib.h>

bool trigger_waits_for(const struct trigger *g, uint32_t function)
{
	const uint32_t entry = KRON_EVENT_ENTRY(function);

	return trigger_waits(g) && entry + 1 < g->nevents &&
	       (g->by_event[entry] | g->by_event[entry + 1]) & TRIGGER_ENDS;
}

/* ---- when something that ends the waiting slept ---- */

enum { OUT = 1, CLOSED = 2 }; /* its probes are out; the gate of its group is closed */

struct sleeping {
	uint8_t *functions; /* these, or-ed; 0: awake */
	uint32_t n;         /* of them */
};

static void turn_function(struct trigger *g, struct sleeping *s, const struct trace_sleep *row,
			  uint32_t function)
{
	const uint8_t bit = row->of_groups ? CLOSED : OUT, before = s->functions[function];

	if (!trigger_waits_for(g, function) || !trace_sleep_has(g->slept, row, function))
		return;
	s->functions[function] = row->wakes ? before & ~bit : before | bit;
	s->n += (uint32_t) !!s->functions[function] - (uint32_t) !!before;
}

/* Of these functions one has gone, or the last one has come back. */
static void turn(struct trigger *g, struct sleeping *s, const struct trace_sleep *row)
{
	const uint32_t before = s->n;

	for (uint32_t f = 0; f < g->nevents / 2; f++)
		turn_function(g, s, row, f);
	if (!before && s->n)
		*vec_push(&g->outs) = (struct trigger_out){row->node, row->since, UINT64_MAX};
	else if (before && !s->n)
		g->outs.v[g->outs.n - 1].to = row->until;
}

static void list_outs(struct trigger *g, uint32_t node)
{
	struct sleeping s = {.functions = xcalloc(g->nevents / 2 + 1, sizeof(*s.functions))};

	for (size_t i = 0; i < g->slept->nsleeps; i++)
		if (g->slept->sleeps[i].node == node)
			turn(g, &s, &g->slept->sleeps[i]);
	xfree(s.functions);
}

void trigger_take_sleeps(struct trigger *g, const struct trace *t)
{
	g->slept = t->nsleeps ? t : NULL;
	g->outs.n = 0;
	for (uint32_t node = 0; g->slept && trigger_waits(g) && node < trace_parts(t); node++)
		list_outs(g, node);
}

static bool was_out(const struct trigger *g, const struct trigger_wait *w, uint64_t end)
{
	const uint32_t node = g->slept->lanes[w->lane].node;

	for (size_t i = 0; i < g->outs.n; i++) {
		const struct trigger_out *out = &g->outs.v[i];

		if ((g->across || out->node == node) && out->from <= end && out->to >= w->since)
			return true;
	}
	return false;
}

/* ---- what is asked ---- */

/* It was awake as it was called. */
static bool has_gone(const struct trigger *g, const struct trigger_wait *w, uint64_t end)
{
	const uint32_t node = g->slept->lanes[w->lane].node;

	for (size_t i = 0; i < g->slept->nsleeps; i++) {
		const struct trace_sleep *row = &g->slept->sleeps[i];

		if (!row->wakes && row->node == node && row->until >= w->since &&
		    row->since <= end &&
		    (trace_sleep_has(g->slept, row, w->called) ||
		     trace_sleep_has(g->slept, row, w->runs)))
			return true;
	}
	return false;
}

bool trigger_has_slept(const struct trigger *g, const struct trigger_wait *w)
{
	const uint64_t end = w->since + g->limit;

	if (!g->slept)
		return false;
	return g->kind == TRIGGER_CALL && w->sp ? has_gone(g, w, end) : was_out(g, w, end);
}
