/* SPDX-License-Identifier: MIT */
/*
 * trigger_jumps.c - exits by a jump, for a trigger on calls: jumps.h tells where they lead.
 *
 * Which of them it has to remember is found out once, when the trigger meets the trace's names.  And
 * whether it matters who waits for FUNC: a call that jumps to what is not recorded, with nobody recorded
 * who waits for it, has ended with its jump as far as anyone can know (pairs.c).
 */
#include "trace/analysis/trigger_impl.h"

#include <string.h>

#include "trace/names.h"

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

/* ---- who is left to somebody that is not recorded ---- */

static void find_leads_out(struct trigger *g, const struct trace_names *names)
{
	uint32_t n = g->nevents / 2;
	bool *recorded = xcalloc(n + 1ul, sizeof(*recorded));

	for (size_t i = 0; i < names->n; i++)
		if (!names->v[i].is_event && names->v[i].n < n)
			recorded[names->v[i].n] = true;
	g->leads_out = xcalloc(g->jumps.n + 1, sizeof(*g->leads_out));
	for (size_t i = 0; i < g->jumps.n; i++) {
		const struct trace_jump *j = &g->jumps.v[i];

		if (j->to == JUMP_TO_NAME)
			g->leads_out[i] = !j->ntargets;
		else if (j->to != JUMP_TO_ANYTHING)
			g->leads_out[i] = j->target >= n || !recorded[j->target];
	}
	xfree(recorded);
}

static bool mark(bool *marked, uint32_t n, uint32_t function)
{
	bool is_new = function < n && !marked[function];

	if (is_new)
		marked[function] = true;
	return is_new;
}

static bool mark_targets(const struct trigger *g, const struct trace_jump *j, bool *marked)
{
	uint32_t n = g->nevents / 2;
	bool grows = false;

	if (j->to == JUMP_TO_FUNCTION || j->to == JUMP_TO_INSIDE)
		return mark(marked, n, j->target);
	for (uint32_t k = 0; j->to == JUMP_TO_NAME && k < j->ntargets; k++)
		grows |= mark(marked, n, g->jumps.targets[j->target + k]);
	return grows;
}

/* May FUNC, or what it goes on in, jump to what is not recorded?  A long way is taken for one. */
static bool may_lead_out(const struct trigger *g)
{
	uint8_t last = (uint8_t)(1u << (g->nsteps - 1));
	uint32_t n = g->nevents / 2;
	bool *marked = xcalloc(n + 1ul, sizeof(*marked));
	bool grows = true, found = false;

	for (uint32_t f = 0; f < n; f++)
		marked[f] = g->by_event[KRON_EVENT_ENTRY(f)] & last;
	for (int turns = 0; grows && !found && turns < 16; turns++) {
		grows = false;
		for (size_t i = 0; i < g->jumps.n && !found; i++) {
			const struct trace_jump *j = &g->jumps.v[i];

			if (j->function >= n || !marked[j->function])
				continue;
			found = g->leads_out[i] ||
				trace_jump_is_uncertain(&g->jumps, (uint32_t)i + 1);
			grows |= mark_targets(g, j, marked);
		}
	}
	xfree(marked);
	return found || grows;
}

void trigger_take_jumps(struct trigger *g, const struct trace_names *names)
{
	trace_jumps_free(&g->jumps);
	xfree(g->cycles);
	xfree(g->leads_out);
	g->cycles = g->leads_out = NULL;
	if (g->kind != TRIGGER_CALL)
		return;
	trace_jumps_copy(&g->jumps, &names->jumps);
	find_cycles(g);
	find_leads_out(g, names);
	g->follows = may_lead_out(g);
}

bool trigger_is_in_cycle(const struct trigger *g, uint32_t jump)
{
	return jump - 1 < g->jumps.n && g->cycles[jump - 1];
}

bool trigger_leads_out(const struct trigger *g, uint32_t jump)
{
	return jump - 1 < g->jumps.n && g->leads_out[jump - 1];
}

/* ---- who has exited by a jump ---- */

uint32_t trigger_find_jumper(const struct trigger_state *s, uint32_t sp, uint32_t function)
{
	for (uint32_t i = s->njumpers; i-- > 0 && s->jumpers[i].sp <= sp;)
		if (s->jumpers[i].sp == sp && s->jumpers[i].function == function)
			return i;
	return s->njumpers;
}

static void drop_jumpers(struct trigger_state *s, uint32_t up_to)
{
	while (s->njumpers && s->jumpers[s->njumpers - 1].sp <= up_to)
		s->njumpers--;
}

struct trigger_jumper *trigger_last_jumper_at(const struct trigger_state *s, uint32_t sp)
{
	for (uint32_t i = s->njumpers; i-- > 0 && s->jumpers[i].sp <= sp;)
		if (s->jumpers[i].sp == sp)
			return &s->jumpers[i];
	return NULL;
}

static bool is_waited_for(const struct trigger *g, const struct trigger_state *s, uint32_t sp)
{
	const struct trigger_wait *w;

	for (w = trigger_wait_at(g, s->waits); w; w = trigger_wait_at(g, w->sibling))
		if (w->sp == sp)
			return true;
	return false;
}

uint32_t trigger_jump_of_binder(const struct trigger *g, uint32_t jump, const struct trace_event *e)
{
	return e->jump && trace_jump_is_uncertain(&g->jumps, jump) ? e->jump : jump;
}

static void add_jumper(const struct trigger *g, struct trigger_state *s,
		       const struct trace_event *e)
{
	uint32_t sp = e->s.payload, function = e->s.event / 2;

	struct trigger_jumper *last = trigger_last_jumper_at(s, sp);

	drop_jumpers(s, sp - 1);
	if (last && last->binder == function) {
		last->jump = trigger_jump_of_binder(g, last->jump, e);
		last->binder = UINT32_MAX;
		return;
	}
	if (last && last->callee != function)
		drop_jumpers(s, sp);
	if (s->njumpers && s->jumpers[s->njumpers - 1].binder == function)
		s->jumpers[s->njumpers - 1].binder = UINT32_MAX; /* it bound somebody else's */
	if (!trigger_is_in_cycle(g, e->jump) && !is_waited_for(g, s, sp))
		return;
	if (!s->jumpers)
		s->jumpers = xcalloc(TRIGGER_JUMPERS, sizeof(*s->jumpers));
	if (s->njumpers == TRIGGER_JUMPERS) {
		s->njumpers /= 2;
		memmove(s->jumpers, s->jumpers + s->njumpers, s->njumpers * sizeof(*s->jumpers));
	}
	s->jumpers[s->njumpers++] = (struct trigger_jumper){
		.sp = sp,
		.function = function,
		.jump = e->jump,
		.callee = UINT32_MAX,
		.binder = UINT32_MAX,
	};
}

/* An entry: what the last one has led to? */
static void see_entry(const struct trigger *g, struct trigger_state *s, const struct trace_event *e)
{
	uint32_t sp = e->s.payload, function = e->s.event / 2;
	struct trigger_jumper *last;

	drop_jumpers(s, sp - 1);
	last = trigger_last_jumper_at(s, sp);
	if (last && last->callee == UINT32_MAX &&
	    trace_jump_goes_on(&g->jumps, last->jump, function, false)) {
		last->callee = function;
		s->njumpers = (uint8_t)trigger_find_jumper(s, sp, function);
		if (s->njumpers && s->jumpers[s->njumpers - 1].sp == sp)
			s->jumpers[s->njumpers - 1].callee = function;
		return;
	}
	drop_jumpers(s, sp);
	last = s->njumpers ? &s->jumpers[s->njumpers - 1] : NULL;
	if (!last || last->callee != UINT32_MAX)
		return;
	if (!(last->jump & TRACE_JUMP_STALE) && last->sp - sp <= TRACE_JUMP_POPPED)
		last->binder = function;
	last->jump |= TRACE_JUMP_STALE;
}

/* ---- who waits for whom ---- */

bool trigger_is_alone(const struct trigger *g, const struct trigger_state *s, uint32_t sp)
{
	return g->follows && (!s->bottom || s->bottom == sp);
}

/*
 * The outermost call that runs: all that it has called lies below it.  At one place of the stack those
 * that have jumped to one another are one.
 */
static void follow_bottom(const struct trigger *g, struct trigger_state *s,
			  const struct trace_event *e)
{
	uint32_t sp = e->s.payload;

	if (s->has_bottom_jumped && sp != s->bottom) {
		drop_jumpers(s, s->bottom);
		s->bottom = 0;
	}
	s->has_bottom_jumped = false;
	if (s->bottom && (s->bottom - sp - 1 < TRIGGER_STACK || sp - s->bottom >= TRIGGER_STACK))
		return; /* inside, or on another stack */
	if (!(e->s.event & 1))
		s->bottom = sp;
	else if (!e->jump || sp != s->bottom || trigger_leads_out(g, e->jump))
		s->bottom = 0;
	else
		s->has_bottom_jumped = trace_jump_is_uncertain(&g->jumps, e->jump);
}

static void find_next(const struct trigger *g, struct trigger_state *s)
{
	const struct trigger_jumper *last = s->njumpers ? &s->jumpers[s->njumpers - 1] : NULL;

	trigger_find_open_sp(g, s);
	s->is_next = last && last->callee == UINT32_MAX && !(last->jump & TRACE_JUMP_STALE);
}

void trigger_forget_left(const struct trigger *g, struct trigger_state *s, uint32_t to)
{
	if (s->bottom && to - s->bottom < TRIGGER_STACK)
		s->bottom = s->has_bottom_jumped = 0;
	drop_jumpers(s, to);
	find_next(g, s);
}

void trigger_follow_jumps(const struct trigger *g, struct trigger_state *s,
			  const struct trace_event *e)
{
	bool is_over;

	if (!e->s.payload)
		return;
	is_over = trigger_leads_out(g, e->jump) && trigger_is_alone(g, s, e->s.payload);
	if (g->follows)
		follow_bottom(g, s, e);
	if (e->jump && is_over)
		drop_jumpers(s, e->s.payload);
	else if (e->jump)
		add_jumper(g, s, e);
	else if (e->s.event & 1)
		drop_jumpers(s, e->s.payload);
	else if (s->njumpers)
		see_entry(g, s, e);
	find_next(g, s);
}
