/* SPDX-License-Identifier: MIT */
/*
 * trigger_jumps.c - which exits by a jump a trigger on calls has to remember: jumps.h tells where they
 * lead.  Once, when the trigger meets the trace's names.
 */
#include "trace/analysis/trigger_impl.h"

/* May the jump lead to a function that is marked?  Through a pointer it leads anywhere. */
static bool leads_to_marked(const struct trigger *g, size_t i, const bool *marked)
{
	const struct trace_jump *j = &g->jumps.v[i];

	if (trace_jump_is_uncertain(&g->jumps, (uint32_t)i + 1))
		return true;
	if (j->to == JUMP_TO_FUNCTION)
		return j->target < g->nevents / 2 && marked[j->target];
	for (uint32_t k = 0; j->to == JUMP_TO_NAME && k < j->ntargets; k++)
		if (g->jumps.targets[j->target + k] < g->nevents / 2 &&
		    marked[g->jumps.targets[j->target + k]])
			return true;
	return false;
}

/*
 * Who jumps in a circle with FUNC: only of those it matters who has jumped before FUNC was entered.
 * `marked` begins with FUNC, and grows by whoever may come to it.  A long way is taken for a circle.
 */
static void find_cycles(struct trigger *g)
{
	uint8_t last = (uint8_t)(1u << (g->nsteps - 1));
	uint32_t n = g->nevents / 2;
	bool *marked = xcalloc(n + 1ul, sizeof(*marked));
	bool grows = true, jumps = false;

	for (uint32_t f = 0; f < n; f++)
		marked[f] = g->by_event[KRON_EVENT_ENTRY(f)] & last;
	for (size_t i = 0; i < g->jumps.n; i++) {
		uint32_t f = g->jumps.v[i].function;

		jumps |= f < n && marked[f]; /* else FUNC comes to nobody */
	}
	for (int turns = 0; jumps && grows && turns < 16; turns++) {
		grows = false;
		for (size_t i = 0; i < g->jumps.n; i++) {
			uint32_t f = g->jumps.v[i].function;

			if (f >= n || marked[f] || !leads_to_marked(g, i, marked))
				continue;
			marked[f] = grows = true;
		}
	}
	g->cycles = xcalloc(g->jumps.n + 1, sizeof(*g->cycles));
	for (size_t i = 0; jumps && i < g->jumps.n; i++) {
		uint32_t f = g->jumps.v[i].function;

		g->cycles[i] = grows || (f < n && marked[f]);
	}
	xfree(marked);
}

void trigger_take_jumps(struct trigger *g, const struct trace_jumps *jumps)
{
	trace_jumps_free(&g->jumps);
	xfree(g->cycles);
	g->cycles = NULL;
	if (g->kind != TRIGGER_CALL)
		return;
	trace_jumps_copy(&g->jumps, jumps);
	find_cycles(g);
}
