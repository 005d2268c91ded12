/* SPDX-License-Identifier: MIT */
/*
 * trigger_sleep.c - what a trigger waits for, and functions whose probes were out of the program meanwhile: a call
 * whose end nobody could see has not taken long for that.
 */
#include "trace/analysis/trigger_impl.h"

bool trigger_waits_for(const struct trigger *g, uint32_t function)
{
	const uint32_t entry = KRON_EVENT_ENTRY(function);

	return trigger_waits(g) && entry + 1 < g->nevents &&
	       (g->by_event[entry] | g->by_event[entry + 1]) & TRIGGER_ENDS;
}

static bool is_about(const struct trigger *g, const struct trigger_wait *w,
		     const struct trace_sleep *row)
{
	if (g->kind == TRIGGER_CALL && w->sp)
		return trace_sleep_has(row, w->called) || trace_sleep_has(row, w->runs);
	for (size_t i = 0; i < row->n; i++)
		for (uint32_t f = row->functions[i].first;
		     f <= row->functions[i].last && f < g->nevents / 2; f++)
			if (trigger_waits_for(g, f))
				return true;
	return false;
}

bool trigger_has_slept(const struct trigger *g, const struct trigger_wait *w)
{
	const uint64_t end = w->since + g->limit;

	for (size_t i = 0; g->slept && i < g->slept->nsleeps; i++) {
		const struct trace_sleep *row = &g->slept->sleeps[i];

		if (!row->wakes && row->until >= w->since && row->since <= end &&
		    is_about(g, w, row))
			return true;
	}
	return false;
}
