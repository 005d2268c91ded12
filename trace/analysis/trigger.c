/* SPDX-License-Identifier: MIT */
/*
 * trigger.c - see trigger.h; trigger_parse.c makes what runs here.
 *
 *   states[thread].met[k]: when the first k+1 steps were met last, in order and in time
 *   waits: what the last step waits for, all threads' in one list in order of their beginning
 *
 * A sample that meets step k moves the time of the steps before it up to there.  Going from the
 * last step to the first, no sample counts for two steps.
 *
 * A without B: of several A the first waits, for its time is over first, and a B ends the waiting
 * of all.  So there is one wait a thread.
 *
 * FUNC>T: a call is known by its stack pointer S.  While it runs, all samples of its stack lie
 * below S.  So it has ended with the first one at S, its exit mostly, unless that is an exit by a
 * jump, or the entry of what that led to (the rule is pairs.c's); or with one less than TRIGGER_APART
 * above, where exceptions, longjmp() or an exit without a probe left it.  One farther above may
 * also be another stack that lies there: then the call is set aside.  It has ended, unless its exit
 * comes after all: from then on the thread is known to have several stacks, and what is set aside
 * there goes on waiting.  Calls of FUNC inside one that waits end before it, so they need not
 * wait.  Those more than TRIGGER_APART below it wait all the same, for they may be on another stack; so a
 * thread has at most one wait for each 4 KiB of stack.
 */
#include "trace/analysis/trigger.h"

#include <string.h>

#include "trace/analysis/trigger_impl.h"

/* ---- the list of waits ---- */

static uint32_t take_wait(struct trigger *g)
{
	uint32_t i = g->unused;

	if (i) {
		g->unused = g->waits.v[i - 1].sibling;
		return i;
	}
	vec_push(&g->waits);
	return (uint32_t)g->waits.n;
}

void trigger_find_open_sp(const struct trigger *g, struct trigger_state *s)
{
	const struct trigger_wait *w;

	s->open_sp = s->njumpers ? s->jumpers[s->njumpers - 1].sp : UINT32_MAX;
	for (w = trigger_wait_at(g, s->waits); w; w = trigger_wait_at(g, w->sibling))
		if (w->sp < s->open_sp)
			s->open_sp = w->sp;
}

/* In order of `since`; a sample may come late, so look for its place from the end. */
static void begin_wait(struct trigger *g, uint32_t state, const struct trace_event *e)
{
	struct trigger_state *s = &g->states.v[state];
	uint32_t i = take_wait(g), before = g->youngest;
	struct trigger_wait *w, *next;

	while (before && trigger_wait_at(g, before)->since > e->tsc)
		before = trigger_wait_at(g, before)->before;
	w = trigger_wait_at(g, i);
	*w = (struct trigger_wait){
		.since = e->tsc,
		.lane = e->lane,
		.state = state,
		.before = before,
		.next = before ? trigger_wait_at(g, before)->next : g->oldest,
		.sibling = s->waits,
		.sp = e->s.payload,
		.called = e->s.event / 2,
		.runs = e->s.event / 2,
	};
	s->waits = g->begun = i;
	if (before)
		trigger_wait_at(g, before)->next = i;
	else
		g->oldest = i;
	next = trigger_wait_at(g, w->next);
	if (next)
		next->before = i;
	else
		g->youngest = i;
	trigger_find_open_sp(g, s);
}

static void end_wait(struct trigger *g, uint32_t i)
{
	struct trigger_wait *w = trigger_wait_at(g, i);
	struct trigger_state *s = &g->states.v[w->state];
	uint32_t *p = &s->waits;

	while (*p != i)
		p = &trigger_wait_at(g, *p)->sibling;
	*p = w->sibling;
	if (w->before)
		trigger_wait_at(g, w->before)->next = w->next;
	else
		g->oldest = w->next;
	if (w->next)
		trigger_wait_at(g, w->next)->before = w->before;
	else
		g->youngest = w->before;
	w->sibling = g->unused;
	g->unused = i;
	if (g->begun == i)
		g->begun = 0;
	trigger_find_open_sp(g, s);
}

static void end_all_waits(struct trigger *g, struct trigger_state *s)
{
	while (s->waits)
		end_wait(g, s->waits);
}

/* ---- what to look at ---- */

static void free_steps(struct trigger *g)
{
	for (uint32_t i = 0; i < g->nsteps; i++) {
		condition_free(g->steps[i].condition);
		condition_free(g->steps[i].also);
	}
	condition_free(g->ends);
}

void trigger_free(struct trigger *g)
{
	if (!g)
		return;
	free_steps(g);
	vec_free(&g->waits);
	vec_free(&g->outs);
	trace_jumps_free(&g->jumps);
	xfree(g->cycles);
	xfree(g->leads_out);
	vec_for(&g->states, s)
		xfree(s->jumpers);
	vec_free(&g->states);
	xfree(g->by_event);
	xfree(g);
}

/* fn(c) for each condition. */
#define FOR_CONDITIONS(g, c, statement)                                 \
	do {                                                            \
		for (uint32_t i_ = 0; i_ < (g)->nsteps; i_++) {         \
			struct condition *c = (g)->steps[i_].condition; \
			statement;                                      \
			c = (g)->steps[i_].also;                        \
			if (c)                                          \
				statement;                              \
		}                                                       \
		if ((g)->ends) {                                        \
			struct condition *c = (g)->ends;                \
			statement;                                      \
		}                                                       \
	} while (0)

static enum condition_answer of_event(const struct trigger_step *step, uint32_t event)
{
	enum condition_answer a = condition_of_event(step->condition, event), b;

	if (!step->also)
		return a;
	b = condition_of_event(step->also, event);
	return a < b ? a : b; /* the weaker of the two */
}

/* What samples with this number may meet, and, *sure, what they do meet. */
static uint8_t wants_of(const struct trigger *g, uint32_t event, uint8_t *sure)
{
	enum condition_answer a;
	uint8_t bits = 0;

	*sure = 0;
	for (uint32_t k = 0; k < g->nsteps; k++) {
		a = of_event(&g->steps[k], event);
		bits |= (uint8_t)((a != CONDITION_FAILS) << k);
		*sure |= (uint8_t)((a == CONDITION_HOLDS) << k);
	}
	a = g->ends ? condition_of_event(g->ends, event) : CONDITION_FAILS;
	bits |= a != CONDITION_FAILS ? TRIGGER_ENDS : 0;
	*sure |= a == CONDITION_HOLDS ? TRIGGER_ENDS : 0;
	if (g->kind == TRIGGER_CALL) {
		bits |= TRIGGER_FRAMES | TRIGGER_NEXT;
		*sure |= TRIGGER_FRAMES | TRIGGER_NEXT;
	}
	return bits;
}

static void make_table(struct trigger *g, const struct trace_names *names)
{
	xfree(g->by_event);
	g->nevents = 2 * names->limit;
	g->by_event = xcalloc(2ul * g->nevents + 1, 1);
	for (uint32_t i = 0; i < g->nevents; i++)
		g->by_event[i] = wants_of(g, i, &g->by_event[g->nevents + i]);
	for (size_t i = 0; i < names->n; i++) { /* the user's payload is not a stack pointer */
		uint32_t event = KRON_EVENT_ENTRY(names->v[i].n);

		if (!names->v[i].is_event || event >= g->nevents)
			continue;
		g->by_event[event] &= (uint8_t) ~(TRIGGER_FRAMES | TRIGGER_NEXT);
		g->by_event[g->nevents + event] &= (uint8_t) ~(TRIGGER_FRAMES | TRIGGER_NEXT);
	}
}

void trigger_bind_names(struct trigger *g, const struct trace_names *names)
{
	FOR_CONDITIONS(g, c, condition_bind_names(c, names));
	make_table(g, names);
	trigger_take_jumps(g, names);
}

static void make_state(struct trigger *g, uint32_t lane)
{
	while (g->states.n <= (g->across ? 0 : lane))
		vec_push(&g->states)->open_sp = UINT32_MAX;
}

void trigger_bind_lane(struct trigger *g, uint32_t lane, const struct trace_lane *l,
		       const struct trace_proc *p)
{
	FOR_CONDITIONS(g, c, condition_bind_lane(c, lane, l, p));
	make_state(g, lane);
}

static uint64_t ticks_of(uint64_t ns, double hz)
{
	double ticks = (double)ns * hz / 1e9;

	return ticks < 0x1p62 ? (uint64_t)ticks : 1ull << 62;
}

void trigger_set_rate(struct trigger *g, double hz)
{
	for (uint32_t i = 0; i < g->nsteps; i++)
		g->steps[i].within = ticks_of(g->steps[i].within_ns, hz);
	if (!g->at_end)
		g->limit = ticks_of(g->limit_ns, hz);
}

void trigger_fire_at_end(struct trigger *g)
{
	g->at_end = true;
	g->limit = 0;
}

void trigger_set_limit(struct trigger *g, uint64_t ticks)
{
	g->limit = ticks;
}

uint64_t trigger_fired_since(const struct trigger *g, uint64_t *at)
{
	if (g->ended_since)
		*at = g->ended_at;
	return g->ended_since;
}

void trigger_bind(struct trigger *g, const struct trace *t)
{
	struct trace_names names;

	trace_names_of(&names, t);
	trigger_bind_names(g, &names);
	trace_names_free(&names);
	FOR_CONDITIONS(g, c, condition_bind_lanes(c, t));
	if (t->nlanes)
		make_state(g, (uint32_t)t->nlanes - 1);
	trigger_set_rate(g, t->tsc_hz);
	trigger_take_sleeps(g, t);
	g->is_whole = true;
}

bool trigger_names_threads(const struct trigger *g)
{
	bool names = false;

	FOR_CONDITIONS(g, c, names |= condition_names_threads(c));
	return names;
}

const char *trigger_unknown_name(const struct trigger *g, bool lanes)
{
	const char *name = NULL;

	FOR_CONDITIONS(g, c, name = name ? name : condition_unknown_name(c, lanes));
	return name;
}

bool trigger_is_across(const struct trigger *g)
{
	return g->across;
}

bool trigger_waits(const struct trigger *g)
{
	return g->kind != TRIGGER_SAMPLE;
}

/*
 * Steps that can be met now.  One that is met need not be met again where the next one has no
 * limit: only for that the latest counts.
 */
static uint8_t open_steps(const struct trigger *g, const struct trigger_state *s)
{
	uint8_t mask = (uint8_t)(1 | s->is_met << 1);

	for (uint32_t k = 0; k + 1 < g->nsteps; k++)
		if (s->is_met & 1u << k && !g->steps[k + 1].within_ns)
			mask &= (uint8_t) ~(1u << k);
	return mask;
}

/*
 * Within threads: of the last step, what is waited for; else of the first step that only the latest
 * sample counts for.
 */
static void find_undoing(const struct trigger *g, const struct trigger_state *s,
			 struct trigger_wants *w)
{
	const struct trigger_wait *i;

	w->limit = g->limit;
	w->passing = (uint8_t)(1u << (g->nsteps - 1));
	w->undoing = g->kind == TRIGGER_CALL ? TRIGGER_FRAMES : TRIGGER_ENDS;
	if (g->kind == TRIGGER_SAMPLE) {
		w->limit = INT64_MAX;
		w->passing = w->undoing = g->nsteps > 1;
	}
	for (i = trigger_wait_at(g, s->waits); i; i = trigger_wait_at(g, i->sibling)) {
		if (!g->at_end && i->since + g->limit < w->over)
			w->over = i->since + g->limit;
		w->is_unsure |= i->aside && i->sp == w->open_sp;
	}
	w->is_unsure |= s->njumpers != 0; /* then open_sp may be one's that is not waited for */
}

/* Across threads a sample of one changes what is wanted of others that are ahead of it. */
struct trigger_wants trigger_wants(const struct trigger *g, uint32_t lane)
{
	const struct trigger_state *s = &g->states.v[g->across ? 0 : lane];
	struct trigger_wants w = {
		.by_event = g->by_event,
		.nevents = g->nevents,
		.mask = g->across ? 0xff : open_steps(g, s),
		.open_sp = s->open_sp,
		.follows = g->follows,
		.bottom = s->bottom,
		.over = UINT64_MAX,
	};

	if (s->waits && g->kind == TRIGGER_WITHOUT)
		w.mask |= TRIGGER_ENDS;
	if ((s->waits || s->njumpers) && g->kind == TRIGGER_CALL)
		w.mask |= TRIGGER_FRAMES;
	if (s->is_next)
		w.mask |= TRIGGER_NEXT;
	if (g->follows && s->has_bottom_jumped)
		w.mask |= TRIGGER_NEXT;
	if (!g->across)
		find_undoing(g, s, &w);
	return w;
}

static bool is_step_met(const struct trigger_step *step, const struct trace_event *e)
{
	return condition_holds(step->condition, e) &&
	       (!step->also || condition_holds(step->also, e));
}

uint8_t trigger_test(const struct trigger *g, const struct trigger_wants *w,
		     const struct trace_event *e)
{
	bool known = e->s.event < w->nevents;
	uint8_t bits = (known ? w->by_event[e->s.event] : 0xff) & w->mask;
	uint8_t out = bits & (known ? w->by_event[w->nevents + e->s.event] : TRIGGER_FRAMES);

	if (e->s.event >= KRON_EVENT_SPECIAL)
		return g->kind != TRIGGER_CALL ? 0 : w->follows ? TRIGGER_FRAMES : out;
	bits &= (uint8_t)~out;
	for (uint32_t k = 0; bits && k < g->nsteps; k++)
		if (bits & 1u << k && is_step_met(&g->steps[k], e))
			out |= (uint8_t)(1u << k);
	if (bits & TRIGGER_ENDS && g->ends && condition_holds(g->ends, e))
		out |= TRIGGER_ENDS;
	if (trigger_is_outside(w, &e->s))
		out |= TRIGGER_FRAMES;
	if (e->jump && g->kind == TRIGGER_CALL && trigger_is_in_cycle(g, e->jump))
		out |= TRIGGER_JUMP;
	return out;
}

/* ---- calls ---- */

/*
 * A sample at the place of a call that waits: does the call go on, as it has exited by a jump, or is this
 * what a jump led to?  What comes to itself by jumps has ended, with all that it has jumped to.
 */
static bool goes_on(const struct trigger *g, const struct trigger_state *s, struct trigger_wait *w,
		    const struct trace_event *e)
{
	const struct trigger_jumper *last = trigger_last_jumper_at(s, w->sp);
	uint32_t function = e->s.event / 2, again;
	bool is_exit = e->s.event & 1;

	if (!w->jump) {
		w->jump = is_exit && function == w->runs ? e->jump : 0;
		return w->jump != 0;
	}
	if (is_exit && last && last->binder == function) {
		w->jump = trigger_jump_of_binder(g, w->jump, e);
		return true;
	}
	if (is_exit && e->jump && w->jump & TRACE_JUMP_STALE)
		return !trace_jump_is_inside(&g->jumps, w->jump, function); /* binds, it seems */
	again = trigger_find_jumper(s, w->sp, function);
	if (is_exit || !trace_jump_goes_on(&g->jumps, w->jump, function, false) ||
	    (again < s->njumpers && again <= trigger_find_jumper(s, w->sp, w->called)))
		return false;
	w->runs = function;
	w->jump = 0;
	return true;
}

/* It has ended then, and this sample, or one after it, tells so. */
static void end_call_at(struct trigger *g, uint32_t i, uint64_t tsc)
{
	const struct trigger_wait *w = trigger_wait_at(g, i);

	if (g->at_end && tsc > w->since + g->limit &&
	    (!g->ended_since || w->since < g->ended_since)) {
		g->ended_since = w->since;
		g->ended_at = tsc;
	}
	end_wait(g, i);
}

static void end_call(struct trigger *g, uint32_t i, const struct trace_event *e)
{
	end_call_at(g, i, e->tsc);
}

/* It has exited by a jump just now, and nobody who waits for it is recorded (pairs.c). */
static void leave_alone(struct trigger *g, uint32_t i, const struct trace_event *e)
{
	struct trigger_wait *w = trigger_wait_at(g, i);

	if (trace_jump_is_uncertain(&g->jumps, e->jump)) {
		w->may_be_gone = true;
		w->jumped = e->tsc;
	} else if (trigger_leads_out(g, e->jump)) {
		end_call(g, i, e);
	}
}

/* A sample at sp tells of a call that waits. */
static void see_frame(struct trigger *g, struct trigger_state *s, uint32_t i,
		      const struct trace_event *e)
{
	struct trigger_wait *w = trigger_wait_at(g, i);
	uint32_t above = e->s.payload - w->sp;
	bool jumped = w->jump;

	if (w->may_be_gone && above) {
		end_call_at(g, i, w->jumped);
		return;
	}
	w->is_late |= w->may_be_gone && !g->at_end && w->since + g->limit < e->tsc;
	w->may_be_gone = false;
	if (w->is_late) /* it went on: what ended it came too late */
		return;
	if (!w->sp || !e->s.payload) { /* traces of other boards: by function */
		if (w->sp || e->s.payload || !condition_holds(g->ends, e))
			return;
		if (w->depth)
			w->depth--;
		else
			end_call(g, i, e);
	} else if (!above) {
		s->has_stacks |= w->aside && condition_holds(g->ends, e);
		w->aside = false;
		if (!goes_on(g, s, w, e))
			end_call(g, i, e);
		else if (!jumped && w->jump && trigger_is_alone(g, s, w->sp))
			leave_alone(g, i, e);
		return;
	} else if (above < TRIGGER_APART) {
		end_call(g, i, e);
	} else if (above < TRIGGER_STACK) {
		w->aside = true;
	}
	if (w->jump && above && !(e->s.event & 1))
		w->jump |= TRACE_JUMP_STALE;
}

static void see_frames(struct trigger *g, struct trigger_state *s, const struct trace_event *e)
{
	uint32_t next;

	for (uint32_t i = s->waits; i; i = next) {
		next = trigger_wait_at(g, i)->sibling;
		see_frame(g, s, i, e);
	}
}

/* Frames from `from` on, if that is known, are left for good, and the thread goes on with this stack pointer. */
static void see_unwound(struct trigger *g, struct trigger_state *s, uint32_t from,
			const struct trace_event *e)
{
	const uint32_t to = e->s.payload,
		       length = from && to - from < TRIGGER_STACK ? to - from : 0;
	uint32_t next;

	for (uint32_t i = s->waits; i; i = next) {
		struct trigger_wait *w = trigger_wait_at(g, i);
		uint32_t above = to - 8 - w->sp;

		next = w->sibling;
		if (!w->sp || w->is_late)
			continue;
		if (w->may_be_gone && to - w->sp < TRIGGER_STACK)
			end_call_at(g, i, w->jumped);
		else if (w->sp - from < length || above < TRIGGER_APART)
			end_call(g, i, e);
		else if (above < TRIGGER_STACK)
			w->aside = true;
	}
	trigger_forget_left(g, s, to);
}

static void see_unwinding(struct trigger *g, struct trigger_state *s, const struct trace_event *e)
{
	if (e->s.event == KRON_EVENT_UNWOUND)
		see_unwound(g, s, s->unwinds, e);
	s->unwinds = e->s.event == KRON_EVENT_UNWINDS ? e->s.payload : 0;
}

/* It runs inside one that waits, and ends before it. */
static bool is_inside(const struct trigger *g, const struct trigger_state *s, uint32_t sp)
{
	struct trigger_wait *w;

	for (w = trigger_wait_at(g, s->waits); w; w = trigger_wait_at(g, w->sibling)) {
		if (!sp && !w->sp) {
			w->depth++;
			return true;
		}
		if (sp && w->sp && !w->aside && !w->is_late && w->sp - sp < TRIGGER_APART)
			return true;
	}
	return false;
}

/* ---- samples ---- */

static bool is_in_time(const struct trigger *g, const struct trigger_state *s, uint32_t k,
		       uint64_t tsc)
{
	const struct trigger_step *step = &g->steps[k];

	if (!k)
		return true;
	if (!(s->is_met & 1u << (k - 1)))
		return false;
	if (!step->within_ns || tsc <= s->met[k - 1])
		return true;
	return tsc - s->met[k - 1] <= step->within;
}

static void begin(struct trigger *g, uint32_t state, const struct trace_event *e)
{
	const struct trigger_state *s = &g->states.v[state];

	if (g->kind == TRIGGER_CALL ? is_inside(g, s, e->s.payload) : s->waits)
		return;
	begin_wait(g, state, e);
}

static bool is_over_before(const struct trigger *g, const struct trigger_state *s, uint64_t tsc)
{
	const struct trigger_wait *w;

	for (w = trigger_wait_at(g, s->waits); w; w = trigger_wait_at(g, w->sibling))
		if (w->since + g->limit < tsc)
			return true;
	return false;
}

bool trigger_is_private(const struct trigger *g, const struct trace_event *e, uint8_t bits)
{
	const struct trigger_state *s;

	if (g->across)
		return false;
	s = &g->states.v[e->lane];
	if (g->kind == TRIGGER_SAMPLE)
		return !(bits & 1u << (g->nsteps - 1)) || !is_in_time(g, s, g->nsteps - 1, e->tsc);
	return !s->waits || !is_over_before(g, s, e->tsc);
}

static bool is_frame(const struct trigger *g, const struct trace_event *e)
{
	return e->s.event < g->nevents && g->by_event[e->s.event] & TRIGGER_FRAMES;
}

enum trigger_answer trigger_feed(struct trigger *g, const struct trace_event *e, uint8_t bits)
{
	uint32_t state = g->across ? 0 : e->lane;
	struct trigger_state *s = &g->states.v[state];

	g->begun = 0;
	g->ended_since = g->ended_at = 0;
	if (kron_event_is_unwinding(e->s.event)) {
		see_unwinding(g, s, e);
		return g->ended_since ? TRIGGER_FIRES : TRIGGER_NOTHING;
	}
	if (s->waits && bits & TRIGGER_FRAMES)
		see_frames(g, s, e);
	if (g->kind == TRIGGER_CALL && is_frame(g, e))
		trigger_follow_jumps(g, s, e);
	if (s->waits && bits & TRIGGER_ENDS && g->kind == TRIGGER_WITHOUT)
		end_all_waits(g, s);
	for (uint32_t k = g->nsteps; k-- > 0;) {
		if (!(bits & 1u << k) || !is_in_time(g, s, k, e->tsc))
			continue;
		if (k + 1 < g->nsteps) {
			s->is_met |= (uint8_t)(1u << k);
			s->met[k] = e->tsc;
		} else if (g->kind != TRIGGER_SAMPLE) {
			begin(g, state, e);
		} else {
			s->is_met = 0;
			return TRIGGER_FIRES;
		}
	}
	return g->ended_since ? TRIGGER_FIRES : g->begun ? TRIGGER_WAITS : TRIGGER_NOTHING;
}

/* ---- what is waited for ---- */

/* One that has gone, maybe, is not late: its next sample tells, and if none comes, nothing does. */
static uint64_t over_at(const struct trigger *g, const struct trigger_wait *w)
{
	if (!w->may_be_gone)
		return w->since + g->limit;
	return g->is_whole || g->at_end ? UINT64_MAX : w->jumped + g->limit;
}

static bool is_nothing(struct trigger *g, const struct trigger_wait *w)
{
	if (w->may_be_gone || (w->aside && !g->states.v[w->state].has_stacks))
		return true;
	if (g->at_end || !trigger_has_slept(g, w))
		return false;
	g->unsure++;
	return true;
}

bool trigger_due(struct trigger *g, uint64_t t, struct trigger_due *out)
{
	const struct trigger_wait *w;
	uint32_t next;

	for (uint32_t i = g->oldest; (w = trigger_wait_at(g, i)) && w->since + g->limit < t;
	     i = next) {
		next = w->next;
		if (over_at(g, w) >= t)
			continue;
		if (is_nothing(g, w)) {
			end_wait(g, i);
			continue;
		}
		if (g->at_end)
			return false;
		g->due = i;
		*out = (struct trigger_due){w->lane, w->since, w->since + g->limit, w->note};
		return true;
	}
	return false;
}

void trigger_settle(struct trigger *g, bool fires)
{
	struct trigger_state *s = &g->states.v[trigger_wait_at(g, g->due)->state];

	end_wait(g, g->due);
	if (fires)
		s->is_met = 0;
}

void trigger_note(struct trigger *g, uint64_t note)
{
	if (g->begun)
		trigger_wait_at(g, g->begun)->note = note;
}

uint64_t trigger_since(const struct trigger *g)
{
	return g->oldest ? trigger_wait_at(g, g->oldest)->since : UINT64_MAX;
}

uint64_t trigger_until(const struct trigger *g)
{
	const struct trigger_wait *w = g->at_end ? NULL : trigger_wait_at(g, g->oldest);
	uint64_t until = UINT64_MAX;

	for (; w && w->since + g->limit < until; w = trigger_wait_at(g, w->next))
		if (over_at(g, w) < until)
			until = over_at(g, w);
	return until;
}

static void forget_jumps(struct trigger_state *s)
{
	s->njumpers = 0;
	s->is_next = s->has_bottom_jumped = false;
	s->open_sp = UINT32_MAX;
}

void trigger_lost(struct trigger *g, uint32_t lane)
{
	struct trigger_state *s = &g->states.v[g->across ? 0 : lane];

	g->unsure += s->waits != 0;
	end_all_waits(g, s);
	forget_jumps(s);
}

void trigger_lost_any(struct trigger *g)
{
	while (g->oldest) {
		g->unsure++;
		end_wait(g, g->oldest);
	}
	vec_for(&g->states, s)
		forget_jumps(s);
}

uint64_t trigger_unsure(const struct trigger *g)
{
	return g->unsure;
}

bool trigger_forget_lane(struct trigger *g, uint32_t lane)
{
	if (g->across)
		return true;
	if (g->states.v[lane].waits)
		return false;
	xfree(g->states.v[lane].jumpers);
	g->states.v[lane] = (struct trigger_state){.open_sp = UINT32_MAX};
	return true;
}
