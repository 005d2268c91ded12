/* SPDX-License-Identifier: MIT */
/*
 * pairs_stack.c - which of a lane's strands runs, which wait for it, and which were left, or frames of them, as
 * unwinders say; whose the time is meanwhile; and how far away its functions have their callees.
 *
 * And when those calls end that nothing ends: after a lane's last event, and at the end of a window
 * (--trigger), for what came before the next one is unknown.
 *
 *   main ── a ── b ──┤ window 1 ends     a, b and main are still running there
 *                          b, a          left out
 *   window 2 begins ├── a ──             another call, and the stack is as at a trace's begin: main
 *                                        is not known
 */
#include "trace/analysis/pairs_impl.h"

#include <string.h>

#define WAITING_MOST 64 /* strands that wait for one another */

/* What s has interrupted, or was begun by, and what that has: they all wait for it.  NULL: nothing. */
static struct strand *waits_for(const struct strand *s)
{
	return frame_ref_get(&s->below) ? s->below.strand : NULL;
}

/* Whose the time is once s has ended, if nothing waits for it. */
static struct strand *heir_of(const struct strand *s)
{
	struct strand *x = s->begun_on;

	return x && x->serial == s->begun_serial && x->n ? x : NULL;
}

static void note_begun_on(struct strand *s, struct strand *x)
{
	s->begun_on = x;
	s->begun_serial = x ? x->serial : 0;
}

bool pairs_is_waiting(const struct strand *x, const struct strand *s)
{
	for (int hops = 0; s && hops < WAITING_MOST; hops++, s = waits_for(s))
		if (s == x)
			return true;
	return false;
}

struct moment pairs_end_of(const struct lane *l, const struct strand *s,
			   const struct trace_event *e)
{
	return s->is_left ? s->left : pairs_now(l, e);
}

/* ---- standing still ---- */

static void charge(struct pairs *p, struct frame *f, struct moment from, struct moment to)
{
	f->children += to.tsc - from.tsc;
	f->paused = true;
	if (p->sink.pause)
		p->sink.pause(p->sink.ctx,
			      &(struct pair_call){.payer = f->node,
						  .payer_function = f->function,
						  .entry_tsc = from.tsc,
						  .exit_tsc = to.tsc,
						  .entry = from.in,
						  .exit = to.in},
			      to.sample - from.sample);
}

void pairs_charge_pause(struct pairs *p, struct strand *s, struct moment at)
{
	struct moment from = s->paused;

	from.tsc += s->ran.tsc; /* as if that had come first: a sum, and rare */
	from.sample += s->ran.samples;
	if (!s->n || at.tsc <= s->paused.tsc)
		return;
	if (at.tsc > from.tsc)
		charge(p, &s->frames[s->n - 1], from, at);
	s->paused = at;
	memset(&s->ran, 0, sizeof(s->ran));
}

static void go_on(struct pairs *p, struct strand *s, struct moment at)
{
	if (s->pauses)
		pairs_charge_pause(p, s, at);
	s->pauses = false;
}

static void pause_at(struct strand *s, struct moment at)
{
	s->pauses = true;
	s->paused = at;
	memset(&s->ran, 0, sizeof(s->ran));
}

void pairs_end_bottom(struct lane *l, struct strand *s, const struct frame *payer, struct moment at)
{
	struct strand *below = s->below.strand;

	if (!s->plain)
		strand_set_remove(&l->set, s);
	s->paused = at;
	if (payer && below->pauses && below->paused.tsc < at.tsc)
		below->paused = at;
}

/* s does from now on. */
static void let_run(struct pairs *p, struct lane *l, struct strand *s, struct moment now)
{
	const bool is_known = l->cur || (l->heir && l->heir != s);

	if (l->heir && l->heir != s && now.tsc > l->vacant.tsc) {
		l->heir->ran.tsc += now.tsc - l->vacant.tsc;
		l->heir->ran.samples += now.sample - l->vacant.sample;
	}
	if (l->cur)
		pause_at(l->cur, now);
	go_on(p, s, is_known ? now : l->vacant);
	l->heir = NULL;
}

/* ---- which runs ---- */

void pairs_make_current(struct pairs *p, struct lane *l, struct strand *s,
			const struct trace_event *e)
{
	struct strand *x = s, *was = l->cur;
	int hops;

	if (s == was)
		return;
	let_run(p, l, s, pairs_now(l, e));
	l->cur = s;
	l->switches++;
	s->aside = false;
	for (hops = 0; x && hops < WAITING_MOST; hops++, x = waits_for(x)) {
		x->is_left = false;
		x->waited = l->switches;
	}
	for (hops = 0; was && hops < WAITING_MOST; hops++, was = waits_for(was)) {
		if (was->waited == l->switches)
			break;
		was->is_left = was->was_left = true;
		was->left = pairs_now(l, e);
	}
}

void pairs_retire(struct pairs *p, struct lane *l, struct strand *s)
{
	if (s->n || s->plain)
		return;
	if (l->heir == s)
		l->heir = NULL;
	if (l->cur == s) {
		l->cur = waits_for(s);
		l->heir = l->cur ? NULL : heir_of(s);
		if (l->cur) {
			l->cur->is_left = false;
			go_on(p, l->cur, s->paused);
		}
		l->vacant = s->paused;
	}
	strand_release(&p->pool, s);
}

struct strand *pairs_begin_strand(struct pairs *p, struct lane *l, const struct trace_event *e,
				  bool linked)
{
	struct strand *s = strand_new(&p->pool), *cur = l->cur;

	if (cur) {
		s->below = frame_ref_to(cur, cur->n - 1);
		s->base_depth = cur->base_depth + cur->n;
		s->linked = linked;
	}
	note_begun_on(s, cur ? cur : l->heir);
	pairs_make_current(p, l, s, e);
	return s;
}

/* Its time above the frame that it is cut from: no callee's, for another stack's it is. */
static void charge_cut(struct pairs *p, struct frame *f, const struct frame *cut,
		       struct moment until)
{
	const struct moment from = {.tsc = cut->entry, .in = cut->in, .sample = cut->sample};

	if (until.tsc > from.tsc)
		charge(p, f, from, until);
}

void pairs_cut(struct pairs *p, struct lane *l, struct strand *s, uint32_t at,
	       const struct trace_event *e)
{
	struct strand *x = strand_new(&p->pool);
	struct moment end = pairs_end_of(l, s, e);
	struct moment ran = s->pauses ? s->paused : pairs_now(l, e);

	while (x->cap < s->n - at)
		strand_grow(x);
	x->n = s->n - at;
	memcpy(x->frames, s->frames + at, x->n * sizeof(*x->frames));
	s->n = at;
	x->root = s->root;
	x->base_depth = s->base_depth + at;
	x->below = frame_ref_to(s, at - 1);
	x->linked = true;
	x->aside = true;
	x->is_left = x->was_left = true;
	x->left = end;
	note_begun_on(x, s);
	pause_at(x, ran);
	charge_cut(p, &s->frames[at - 1], &x->frames[0], ran);
	x->cut_function = s->frames[at - 1].function;
	x->cut_gap = s->frames[at - 1].sp - x->frames[0].sp;
	strand_set_add(&l->set, x);
}

void pairs_learn_reach(struct lane *l, uint32_t function, uint32_t gap)
{
	uint32_t i;

	if (gap <= APART)
		return;
	if (!l->reach)
		l->reach = xcalloc(1, sizeof(*l->reach));
	i = index_of(&l->reach->functions, function);
	while (l->reach->gap.n <= i)
		*vec_push(&l->reach->gap) = 0;
	if (l->reach->gap.v[i] < gap)
		l->reach->gap.v[i] = gap;
}

uint32_t pairs_reach_of(const struct lane *l, uint32_t function)
{
	uint32_t i = l->reach ? index_find(&l->reach->functions, function) : INDEX_NONE;

	return i == INDEX_NONE ? APART : l->reach->gap.v[i];
}

void pairs_free_reach(struct lane *l)
{
	if (!l->reach)
		return;
	index_free(&l->reach->functions);
	vec_free(&l->reach->gap);
	xfree(l->reach);
	l->reach = NULL;
}

/* ---- frames that are left for good ---- */

/*
 * It has exits, all with probes: one that ended without a sample was unwound.  One that was left by a
 * jump has no sample to come.
 */
static bool would_be_seen(const struct pairs *p, const struct lane *l, const struct frame *f)
{
	const struct trace_function *fn = trace_function_of(p->t, KRON_EVENT_ENTRY(f->function));

	return fn && (fn->ways & (TRACE_RETURNS | TRACE_JUMPS)) && !(fn->ways & TRACE_UNSEEN) &&
	       !f->jump && !f->asleep && !(l->has_loss && f->entry < l->loss_tsc);
}

/*
 * The frames of s from keep on end.  Did what runs on other stacks, and was begun by them, end with
 * them, by a jump out of a handler?  A coroutine would let its caller go on to its exit.
 */
static void unwind(struct pairs *p, struct lane *l, struct strand *s, uint32_t keep,
		   const struct trace_event *e)
{
	if (s == l->cur || !pairs_is_waiting(s, l->cur) || p->t->filter)
		return;
	for (uint32_t i = keep; i < s->n; i++)
		if (!would_be_seen(p, l, &s->frames[i]))
			return;
	while (l->cur != s) {
		struct strand *x = l->cur;

		pairs_close_above(p, l, x, 0, e, pairs_now(l, e));
		pairs_retire(p, l, x);
	}
}

void pairs_close_from(struct pairs *p, struct lane *l, struct strand *s, uint32_t keep,
		      const struct trace_event *e)
{
	if (keep < s->n)
		unwind(p, l, s, keep, e);
	pairs_close_above(p, l, s, keep, e, pairs_end_of(l, s, e));
}

/* ---- what a stack has grown over ---- */

/* The current stack has grown over s, so its frames ended when it was left. */
static void bury(struct pairs *p, struct lane *l, struct strand *s, const struct trace_event *e)
{
	pairs_learn_reach(l, s->cut_function, s->cut_gap);
	pairs_close_above(p, l, s, 0, e, pairs_end_of(l, s, e));
	pairs_retire(p, l, s);
}

bool pairs_is_just_above(const struct lane *l, uint32_t sp)
{
	return l->cur && sp - strand_bottom(l->cur) < APART &&
	       strand_set_below(&l->set, sp) == l->cur;
}

/* Cut off frames that a call of the current stack at sp would overwrite, or lies beyond. */
static bool is_grown_over(const struct lane *l, const struct strand *s, uint32_t sp)
{
	if (!s->aside)
		return false;
	if (strand_holds(s, sp))
		return sp - s->frames[strand_above(s, sp)].sp < APART;
	return strand_top(s) - sp > pairs_reach_of(l, s->frames[s->n - 1].function);
}

struct strand *pairs_grow_over(struct pairs *p, struct lane *l, struct strand *s,
			       const struct trace_event *e, uint32_t sp)
{
	while (s != l->cur && is_grown_over(l, s, sp)) {
		bury(p, l, s, e);
		s = strand_set_find(&l->set, sp);
	}
	return s;
}

/*
 * ---- records of unwinders and of longjmp ----
 *
 *   main ─ catches ─ f ─ throws ─ (unwinder)
 *                  ▲            ▲
 *          UNWOUND │            │ UNWINDS: all between the two has ended, on which strand ever it is
 *
 * longjmp may also have changed stacks, of coroutines for instance, and does not say from where it comes.  So
 * what follows from its record is what would follow from a call of the frame that goes on.
 */

/* The frames of s from keep on have ended; what is left of it runs. */
static void go_on_in(struct pairs *p, struct lane *l, struct strand *s, uint32_t keep,
		     const struct trace_event *e)
{
	pairs_close_from(p, l, s, keep, e);
	if (keep)
		pairs_make_current(p, l, s, e);
	else
		pairs_retire(p, l, s);
}

/* What lies below the frame that goes on, whose last callee's place sp is. */
static void go_on_at(struct pairs *p, struct lane *l, const struct trace_event *e, uint32_t sp)
{
	const bool deeper = pairs_is_deeper(l->cur, sp);
	struct strand *s = strand_set_find(&l->set, sp);

	if (deeper)
		s = pairs_grow_over(p, l, s, e, sp);
	if (s && strand_holds(s, sp)) {
		uint32_t keep = strand_above(s, sp);

		if (keep && sp - s->frames[keep].sp >= APART) {
			pairs_cut(p, l, s, keep, e);
			pairs_make_current(p, l, s, e);
		} else {
			go_on_in(p, l, s, keep, e);
		}
	} else if (s && s != l->cur && pairs_is_deeper(s, sp) &&
		   strand_top(s) - sp <= pairs_reach_of(l, s->frames[s->n - 1].function)) {
		pairs_make_current(p, l, s, e);
	} else if (pairs_is_just_above(l, sp)) {
		go_on_in(p, l, l->cur, 0, e);
	}
}

/* How many of its frames lie at sp or above. */
static uint32_t count_from(const struct strand *s, uint32_t sp)
{
	if (strand_bottom(s) - sp >= HALF)
		return 0;
	return strand_holds(s, sp) ? strand_above(s, sp - 1) : s->n;
}

/* All that lies from `from` up to below `to`. */
static void leave_range(struct pairs *p, struct lane *l, struct strand *s, uint32_t from,
			uint32_t to, const struct trace_event *e)
{
	uint32_t keep = count_from(s, to), end = count_from(s, from);

	if (!end ||
	    keep >= end) /* far away, it may seem to lie above the one and below the other */
		return;
	if (end < s->n && s->frames[end - 1].sp - s->frames[end].sp >= APART)
		pairs_cut(p, l, s, end, e);
	go_on_in(p, l, s, keep, e);
}

/* Strands that lie in it end; one reaches down into it. */
static void leave_all(struct pairs *p, struct lane *l, const struct trace_event *e, uint32_t from)
{
	const uint32_t to = e->s.payload;
	struct strand *s;

	while ((s = strand_set_find(&l->set, from)) && strand_bottom(s) - from < to - from)
		leave_range(p, l, s, from, to, e);
	s = strand_set_find(&l->set, to);
	if (s)
		leave_range(p, l, s, from, to, e);
	if (l->cur)
		leave_range(p, l, l->cur, from, to, e);
}

void pairs_unwind(struct pairs *p, struct lane *l, const struct trace_event *e)
{
	const uint32_t from = l->unwinds, to = e->s.payload;

	if (e->s.event == KRON_EVENT_UNWINDS) {
		l->unwinds = e->s.payload;
		return;
	}
	l->unwinds = 0;
	if (l->may_be_gone && l->cur && l->cur->n && to - strand_top(l->cur) < NEAR)
		pairs_end_jump(p, l, e);
	if (from && to - from < NEAR)
		leave_all(p, l, e, from);
	else
		go_on_at(p, l, e, to - 8);
}

/* ---- what sinks ask ---- */

const struct trace *pairs_trace(const struct pairs *p)
{
	return p->t;
}

uint32_t pairs_top(const struct pairs *p, uint32_t lane)
{
	const struct lane *l = &p->lanes[lane];
	const struct strand *s = l->cur ? l->cur : l->plain;

	return s && s->n ? s->frames[s->n - 1].node : PAIR_NO_NODE;
}

uint32_t pairs_below(const struct pairs *p, uint32_t lane)
{
	const struct lane *l = &p->lanes[lane];
	const struct strand *s = l->newest;
	const struct frame *f;

	if (s->n > 1)
		return s->frames[s->n - 2].node;
	f = frame_ref_get(&s->below);
	return f ? f->node : PAIR_NO_NODE;
}

uint32_t pairs_strands(const struct pairs *p, uint32_t lane)
{
	return p->lanes[lane].set.n + (p->lanes[lane].plain && p->lanes[lane].plain->n);
}

uint64_t pairs_events(const struct pairs *p, uint32_t lane)
{
	return p->lanes[lane].events;
}

const struct pair_counts *pairs_counts(const struct pairs *p)
{
	return &p->counts;
}

/* ---- where nothing more is seen ---- */

uint64_t pairs_lane_end(struct pairs *p, uint32_t lane)
{
	struct lane *l = &p->lanes[lane];

	if (!l->end_tsc)
		l->end_tsc = trace_lane_end(p->t, lane, l->last_tsc);
	return l->end_tsc;
}

/* They were open up to this moment.  Where that is an estimate, or nobody knows more, they ended then or later. */
static struct moment still_open(const struct pairs *p, const struct lane *l, uint64_t tsc,
				bool is_known)
{
	struct moment end = {
		.event = l->events, .sample = l->samples, .tsc = tsc, .in = {tsc, tsc}};

	if (p->is_sparse && (tsc == l->last_tsc || !is_known))
		end.in = (struct trace_bounds){l->last_in.lo, UINT64_MAX};
	return end;
}

/* Strands that nobody waits for ended when they were left, as far as anyone can know. */
static void finish_strand(struct pairs *p, struct lane *l, struct strand *s, struct moment end)
{
	if (s->is_left)
		pairs_close_above(p, l, s, 0, NULL, s->left);
	else
		pairs_leave_open(p, l, s, end);
	pairs_retire(p, l, s);
}

static void finish_all(struct pairs *p, struct lane *l, struct moment end)
{
	for (uint32_t i = l->set.n; i-- > 0;) {
		struct strand *s = l->set.v[i];

		if (s->is_left)
			finish_strand(p, l, s, end);
	}
	while (l->cur)
		finish_strand(p, l, l->cur, end);
	while (l->set.n)
		finish_strand(p, l, l->set.v[l->set.n - 1], end);
	if (l->plain)
		finish_strand(p, l, l->plain, end);
}

static bool has_open(const struct lane *l)
{
	return l->set.n || (l->plain && l->plain->n);
}

/* ---- a window ---- */

/* What was lost before a LOST record may have been lost in the window. */
static uint64_t end_of_window(const struct pairs *p, const struct lane *l,
			      const struct trace_event *e)
{
	if (e->s.event == KRON_EVENT_LOST)
		return l->last_tsc;
	return p->t->filter->until(p->t->filter, l->last_tsc);
}

void pairs_end_window(struct pairs *p, struct lane *l, const struct trace_event *e)
{
	if (l->may_be_gone)
		pairs_end_jump(p, l, NULL);
	if (has_open(l))
		finish_all(p, l, still_open(p, l, end_of_window(p, l, e), true));
	children_forget_calls(l);
	l->window_to = p->t->filter->window_end(p->t->filter, e->tsc);
}

bool pairs_is_cut(const struct pairs *p, const struct trace_event *entry, uint64_t tsc)
{
	const struct lane *l = &p->lanes[entry->lane];

	return tsc > l->window_to || pairs_will_sleep(p, l, entry->s.event / 2, tsc);
}

/* ---- a lane ---- */

void pairs_finish_lane(struct pairs *p, uint32_t lane)
{
	struct lane *l = &p->lanes[lane];

	if (l->may_be_gone)
		pairs_end_jump(p, l, NULL);
	if (p->t->nsleeps && has_open(l))
		pairs_notice_last_sleeps(p, l);
	if (has_open(l))
		finish_all(p, l,
			   still_open(p, l, pairs_lane_end(p, lane),
				      trace_lane_has_end(p->t, lane)));
	if (l->plain) {
		strand_release(&p->pool, l->plain);
		l->plain = NULL;
	}
	if (l->active) { /* every frame is popped, so every count is back at zero */
		xfree(p->spare);
		p->spare = l->active;
		l->active = NULL;
	}
	children_free(l);
	pairs_free_reach(l);
	l->child_ended = false;
	xfree(l->set.v);
	memset(&l->set, 0, sizeof(l->set));
}
