/* SPDX-License-Identifier: MIT */
/*
 * pairs.c - rebuilds call stacks from entries and exits; the problem stands in pairs.h.
 *
 * Each lane has a set of strands (strands.h), one of them current.  Nearly every event meets
 * one of two cases, which cost a few comparisons:
 *
 *   entry  a little below the current top, with no other strand between: push
 *   exit   the current top has this function and this S: pop
 *
 * Everything else is decided by where S lies.  Three distances:
 *
 *   NEAR   (1 MiB) farther below the current top than this is another stack, not a deep call
 *   APART  (4 KiB) a frame that lies farther than this from where it would be expected may be
 *          on another stack; below that, what was skipped over is dead
 *   reach  of a function: how far below it a direct callee was seen that ended properly.  Big
 *          local arrays, and unprobed functions between, are told from stack switches by it
 *
 * Doubtful frames are not closed but set aside: cut off as a strand of their own, which later
 * events wake (an exit that matches, a call just below its top) or show to be dead (the stack
 * grows over it).  What is still aside at the end is closed by inference, at the time when it
 * was set aside.
 *
 * Coroutines whose stacks are adjacent start out wrong when one is first seen below another
 * that waits: its frames look like deep calls of the other.  The next event of the other finds
 * its own top under a wide gap, sets the newcomer's frames aside, and from there on both are
 * right.
 *
 * An unwinder and longjmp say themselves how far they go (pairs_stack.c).
 *
 * A function that goes to sleep (trace/sleeps.c) leaves calls open whose exits nobody will see:
 * pairs_sleep.c ends them when what they had called has ended.
 *
 * Cost: every frame is pushed once and popped once; searches are binary.  A frame may be moved
 * when a strand is cut, once for each gap above it.
 */
#include "trace/analysis/pairs_impl.h"

#include <string.h>

#include "base/vec.h"
#include "trace/jumps.h"

#define PLAIN_SEARCH 1024    /* frames looked at to find an exit's entry by function alone */
#define RECURSION_SEARCH 256 /* likewise for recursion on a second stack */

enum ending { EXITED, INFERRED, AT_LEAST, OPEN };

/* ---- frames come and go ---- */

static struct activity *activity_of(struct pairs *p, struct lane *l, uint32_t function)
{
	if (!p->sink.want_recursive || function >= p->nfunctions)
		return NULL;
	if (!l->active) {
		l->active = p->spare ? p->spare : xcalloc(p->nfunctions, sizeof(*l->active));
		p->spare = NULL;
	}
	return &l->active[function];
}

static bool is_further_up(const struct strand *s, uint32_t function)
{
	for (uint32_t i = s->n, tries = RECURSION_SEARCH; i > 0 && tries > 0; tries--)
		if (s->frames[--i].function == function)
			return true;
	return false;
}

static void activity_enter(struct pairs *p, struct lane *l, const struct strand *s,
			   uint32_t function)
{
	struct activity *a = activity_of(p, l, function);

	if (!a)
		return;
	if (!a->count)
		a->root = s->root;
	if (a->root == s->root)
		a->count++;
}

/* The frame is popped already.  Returns whether the function is still open further up. */
static bool activity_leave(struct pairs *p, struct lane *l, const struct strand *s,
			   uint32_t function)
{
	struct activity *a;

	if (!p->sink.want_recursive)
		return false;
	a = activity_of(p, l, function);
	if (!a || a->root != s->root || !a->count)
		return is_further_up(s, function);
	return --a->count > 0;
}

/* Who called the top frame; NULL: nobody that we saw. */
static const struct frame *caller_of_top(const struct strand *s)
{
	if (s->n > 1)
		return &s->frames[s->n - 2];
	return s->linked ? frame_ref_get(&s->below) : NULL;
}

static void push(struct pairs *p, struct lane *l, struct strand *s, const struct trace_event *e,
		 uint32_t function)
{
	strand_push(s, e, function, l->samples);
	if (s->n == 1 && !s->plain)
		strand_set_add(&l->set, s);
	activity_enter(p, l, s, function);
	if (p->sink.node) {
		const struct frame *caller = caller_of_top(s);

		l->newest = s;
		s->frames[s->n - 1].node =
			p->sink.node(p->sink.ctx, caller ? caller->node : PAIR_NO_NODE, function);
	}
	if (p->sink.enter)
		p->sink.enter(p->sink.ctx, e, function, s->base_depth + s->n - 1);
}

/* The frame that the top frame lies in as a whole, once that is popped. */
static struct frame *parent_of_top(struct strand *s)
{
	struct frame *f;

	if (s->n > 1)
		return &s->frames[s->n - 2];
	f = frame_ref_get(&s->below);
	if (f && !s->aside && (s->was_left || s->below.index + 1 != s->below.strand->n))
		return NULL; /* other things ran in between: not simply nested */
	return f;
}

static inline void count_call(struct pairs *p, const struct pair_call *c, enum ending how)
{
	p->counts.calls++;
	p->counts.spans_loss += c->spans_loss;
	if (__builtin_expect(how == EXITED, 1))
		return;
	p->counts.inferred += c->inferred;
	p->counts.open += how == OPEN;
	p->counts.jumped += c->jumped;
	p->counts.at_least += c->at_least;
}

/* Close the top frame.  The strand leaves the set with its last frame; see pairs_retire(). */
static void pop(struct pairs *p, struct lane *l, struct strand *s, const struct trace_event *e,
		struct moment at, enum ending how)
{
	struct frame *f = &s->frames[s->n - 1], *parent = parent_of_top(s);
	/* what was cut off has been charged then */
	struct frame *payer = __builtin_expect(s->aside, 0) && s->n == 1 ? NULL : parent;
	uint64_t exit = at.tsc > f->entry ? at.tsc : f->entry, duration = exit - f->entry;
	const struct frame *caller = caller_of_top(s);
	struct pair_call call;

	if (__builtin_expect(s->pauses, 0))
		pairs_charge_pause(p, s, at);
	call = (struct pair_call){
		.lane = l->number,
		.function = f->function,
		.caller = caller ? caller->function : UINT32_MAX,
		.node = f->node,
		.within = parent ? parent->node : PAIR_NO_NODE,
		.payer = payer ? payer->node : PAIR_NO_NODE,
		.payer_function = payer ? payer->function : UINT32_MAX,
		.depth = s->base_depth + s->n - 1,
		.entry_tsc = f->entry,
		.exit_tsc = exit,
		.entry = f->in,
		.exit = at.in,
		.children_tsc = f->children < duration ? f->children : duration,
		.ended = at.event,
		.paused = f->paused,
		.inferred = how == INFERRED || how == AT_LEAST,
		.at_least = how == AT_LEAST,
		.open = how == OPEN,
		.jumped = f->jump,
		.jump = f->jump & TRACE_JUMP_NUMBER,
		.spans_loss =
			f->asleep || (l->has_loss && f->entry < l->loss_tsc && l->loss_tsc <= exit),
	};

	if (payer)
		payer->children += duration;
	if (parent && __builtin_expect(parent->jump, 0))
		parent->jump |= TRACE_JUMP_STALE;
	if (s->n == 1)
		pairs_end_bottom(l, s, payer, at);
	s->n--;
	call.recursive = activity_leave(p, l, s, call.function);
	count_call(p, &call, how);
	if (p->sink.leave)
		p->sink.leave(p->sink.ctx, e, &call);
}

void pairs_close_above(struct pairs *p, struct lane *l, struct strand *s, uint32_t keep,
		       const struct trace_event *e, struct moment at)
{
	while (s->n > keep)
		pop(p, l, s, e, at, INFERRED);
}

void pairs_leave_open(struct pairs *p, struct lane *l, struct strand *s, struct moment at)
{
	while (s->n)
		pop(p, l, s, NULL, at, OPEN);
}

/* ---- exits by a jump ---- */

/*
 * f ends with "jmp g": f has left, and who called it waits for g.  So its frame stays where it is,
 * marked, until something shows that its caller goes on:
 *
 *   an entry at the same S, of what it jumps to   its callee; with that one's exit it has ended, too
 *   anything else at S, or above                  what it jumped to has no probes, and had ended by
 *                                                 then: an inferred end
 *
 * Where it jumps through a pointer, the next sample tells: an entry at S is taken for the callee.
 *
 * Its caller's next sample is the latest that its end may be.  If neither those who wait for it nor what it
 * jumps to are recorded, there is none, and it ends with its jump: it has lasted at least so long.
 *
 * Tail recursion would pile up frames without end.  At one S each function stands once: when it comes
 * again, its frame there and what it has jumped to end.
 */
static bool leads_on(const struct pairs *p, const struct strand *s, uint32_t at, uint32_t function)
{
	const struct trace_jumps jumps = trace_jumps_of(p->t);
	uint32_t jump = s->frames[at].jump;

	return jump && trace_jump_goes_on(&jumps, jump, function, at + 1 < s->n);
}

static bool enter_by_jump(struct pairs *p, struct lane *l, const struct trace_event *e,
			  uint32_t function)
{
	struct strand *s = l->cur;
	const struct trace_jumps jumps = trace_jumps_of(p->t);
	uint32_t first, last;
	bool is_guess;

	if (!s || !strand_holds(s, e->s.payload))
		return false;
	first = last = strand_above(s, e->s.payload);
	if (s->frames[first].sp != e->s.payload)
		return false;
	while (last + 1 < s->n && s->frames[last + 1].sp == e->s.payload)
		last++;
	if (!leads_on(p, s, last, function))
		return false;
	is_guess = trace_jump_is_uncertain(&jumps, s->frames[last].jump);
	pairs_close_above(p, l, s, last + 1, e, pairs_now(l, e));
	for (uint32_t i = first; i < s->n; i++) {
		if (s->frames[i].function != function)
			continue;
		while (s->n > i)
			pop(p, l, s, e, pairs_now(l, e), EXITED);
	}
	p->counts.led_to += is_guess;
	push(p, l, s, e, function);
	return true;
}

/* Of those who wait for the top frame, and for what has jumped there, none is known. */
static bool is_alone(const struct strand *s)
{
	for (uint32_t i = s->n - 1; i-- > 0;)
		if (!s->frames[i].jump)
			return false;
	return !frame_ref_get(&s->below);
}

/* The top frame, and what has jumped there, ended with its jump as far as anyone can know. */
static void end_with_jump(struct pairs *p, struct lane *l, struct strand *s,
			  const struct trace_event *e, struct moment at)
{
	while (s->n)
		pop(p, l, s, e, at, AT_LEAST);
	pairs_retire(p, l, s);
}

static void jump_away(struct pairs *p, struct lane *l, struct strand *s,
		      const struct trace_event *e)
{
	const struct trace_jumps jumps = trace_jumps_of(p->t);
	struct frame *f = &s->frames[s->n - 1];

	f->jump = e->jump & TRACE_JUMP_NUMBER;
	if (p->sink.jump)
		p->sink.jump(p->sink.ctx, e, f->node);
	if (!is_alone(s))
		return;
	l->jumped = pairs_now(l, e);
	if (trace_jump_is_uncertain(&jumps, f->jump))
		l->may_be_gone = true;
	else if (!trace_jump_is_recorded(p->t, f->jump))
		end_with_jump(p, l, s, e, l->jumped);
}

void pairs_end_jump(struct pairs *p, struct lane *l, const struct trace_event *e)
{
	struct strand *s = l->cur;
	struct moment at = l->jumped;

	l->may_be_gone = false;
	if (!s || !s->n || !s->frames[s->n - 1].jump || (e && e->s.payload == strand_top(s)))
		return;
	at.event = l->events;
	end_with_jump(p, l, s, e, at);
}

/* The top frame has jumped into the middle of a function, which exits at sp. */
static bool has_jumped_inside(const struct pairs *p, const struct strand *s, uint32_t sp,
			      uint32_t function)
{
	const struct trace_jumps jumps = trace_jumps_of(p->t);
	uint32_t jump = s->n ? s->frames[s->n - 1].jump : 0;

	return jump && strand_top(s) == sp && trace_jump_is_inside(&jumps, jump, function);
}

/* Samples are lost: what comes next need not be what it jumped to. */
static void forget_jump(struct lane *l)
{
	if (l->cur && l->cur->n && l->cur->frames[l->cur->n - 1].jump)
		l->cur->frames[l->cur->n - 1].jump |= TRACE_JUMP_LOST;
	l->may_be_gone = false;
}

/* ---- entries ---- */

/* An entry between bottom and top: the frames that are not above it ended, or wait. */
static void enter_inside(struct pairs *p, struct lane *l, struct strand *s,
			 const struct trace_event *e, uint32_t function)
{
	uint32_t keep = strand_above(s, e->s.payload);

	if (keep && e->s.payload - s->frames[keep].sp >= APART) {
		pairs_cut(p, l, s, keep, e);
		pairs_make_current(p, l, s, e);
		s = pairs_begin_strand(p, l, e, false);
	} else {
		if (keep) /* again a call from there: so that is how far its callees are */
			pairs_learn_reach(l, s->frames[keep - 1].function,
					  s->frames[keep - 1].sp - s->frames[keep].sp);
		pairs_close_from(p, l, s, keep, e);
		if (keep || s == l->cur || (s->linked && frame_ref_get(&s->below))) {
			pairs_make_current(p, l, s, e);
		} else { /* all of it was dead: a new start on the same memory */
			pairs_retire(p, l, s);
			s = pairs_begin_strand(p, l, e, false);
		}
	}
	push(p, l, s, e, function);
}

/*
 * The strand further down that sp is a usual callee's place of, while it lies oddly far from
 * the current top: what runs now was started by that strand, on memory between its frames.
 */
static struct strand *usual_caller(const struct lane *l, uint32_t sp)
{
	const struct strand *cur = l->cur, *s = cur;

	if (strand_top(cur) - sp <= pairs_reach_of(l, cur->frames[cur->n - 1].function))
		return NULL;
	for (int hops = 0; hops < 8 && frame_ref_get(&s->below); hops++) {
		s = s->below.strand;
		if (pairs_is_deeper(s, sp) &&
		    strand_top(s) - sp <= pairs_reach_of(l, s->frames[s->n - 1].function))
			return (struct strand *)(uintptr_t)s;
	}
	return NULL;
}

static void enter_slowly(struct pairs *p, struct lane *l, const struct trace_event *e,
			 uint32_t function)
{
	uint32_t sp = e->s.payload;
	bool deeper = pairs_is_deeper(l->cur, sp);
	struct strand *s = strand_set_find(&l->set, sp);

	if (deeper)
		s = pairs_grow_over(p, l, s, e, sp);
	if (s && strand_holds(s, sp)) {
		enter_inside(p, l, s, e, function);
		return;
	}
	if (deeper && s == l->cur) {
		struct strand *caller = usual_caller(l, sp);

		if (caller) {
			pairs_make_current(p, l, caller, e);
			s = pairs_begin_strand(p, l, e, true);
		}
		push(p, l, s, e, function);
		return;
	}
	if (s && s != l->cur && pairs_is_deeper(s, sp) &&
	    strand_top(s) - sp <= pairs_reach_of(l, s->frames[s->n - 1].function)) {
		pairs_make_current(p, l, s, e);
		push(p, l, s, e, function);
		return;
	}
	if (pairs_is_just_above(l, sp)) {
		s = l->cur;
		pairs_close_above(p, l, s, 0, e, pairs_now(l, e));
		push(p, l, s, e, function);
		return;
	}
	s = l->cur;
	s = pairs_begin_strand(p, l, e,
			       deeper && strand_top(s) - sp <=
						 pairs_reach_of(l, s->frames[s->n - 1].function));
	push(p, l, s, e, function);
}

static void enter(struct pairs *p, struct lane *l, const struct trace_event *e, uint32_t function)
{
	uint32_t sp = e->s.payload;

	p->counts.entries++;
	if (pairs_is_deeper(l->cur, sp) &&
	    (l->set.n == 1 || strand_set_find(&l->set, sp) == l->cur)) {
		push(p, l, l->cur, e, function);
	} else if (sp) {
		if (!enter_by_jump(p, l, e, function))
			enter_slowly(p, l, e, function);
	} else {
		if (!l->plain) {
			l->plain = strand_new(&p->pool);
			l->plain->plain = true;
		}
		push(p, l, l->plain, e, function);
	}
}

/* ---- exits ---- */

/* What has jumped to what has just left at sp ends with it. */
static void end_jumpers(struct pairs *p, struct lane *l, struct strand *s,
			const struct trace_event *e)
{
	while (s->n && strand_top(s) == e->s.payload && s->frames[s->n - 1].jump)
		pop(p, l, s, e, pairs_now(l, e), EXITED);
}

static void orphan(struct pairs *p, const struct trace_event *e, uint32_t function)
{
	p->counts.orphans++;
	if (p->sink.orphan_exit)
		p->sink.orphan_exit(p->sink.ctx, e, function);
}

static void pop_exited(struct pairs *p, struct lane *l, struct strand *s,
		       const struct trace_event *e)
{
	if (s->n > 1) {
		uint32_t gap = s->frames[s->n - 2].sp - s->frames[s->n - 1].sp;

		if (__builtin_expect(gap > APART, 0))
			pairs_learn_reach(l, s->frames[s->n - 2].function, gap);
	} else if (s->linked) {
		const struct frame *f = frame_ref_get(&s->below);

		if (f && f->sp - s->frames[0].sp < HALF)
			pairs_learn_reach(l, f->function, f->sp - s->frames[0].sp);
	}
	pop(p, l, s, e, pairs_now(l, e), EXITED);
	if (__builtin_expect(s->n, 1)) {
		if (__builtin_expect(strand_top(s) == e->s.payload, 0))
			end_jumpers(p, l, s, e);
		if (s->n)
			return;
	}
	pairs_retire(p, l, s);
}

static void leave_top(struct pairs *p, struct lane *l, struct strand *s,
		      const struct trace_event *e)
{
	if (__builtin_expect(e->jump, 0))
		jump_away(p, l, s, e);
	else
		pop_exited(p, l, s, e);
}

/* Nobody exits twice: then this is another call's exit, whose entry was not seen. */
static bool is_exit_of(const struct frame *f, uint32_t sp, uint32_t function)
{
	return f->sp == sp && f->function == function && !f->jump;
}

/* The frame at index i of s exits: what is above it ended without, or is on another stack. */
static void exit_from(struct pairs *p, struct lane *l, struct strand *s, uint32_t i,
		      const struct trace_event *e)
{
	if (i + 1 < s->n) {
		uint32_t gap = s->frames[i].sp - s->frames[i + 1].sp;

		if (gap > pairs_reach_of(l, s->frames[i].function))
			pairs_cut(p, l, s, i + 1, e);
	}
	pairs_close_from(p, l, s, i + 1, e);
	pairs_make_current(p, l, s, e);
	leave_top(p, l, s, e);
}

/* It has popped what it was told: see TRACE_JUMP_POPPED. */
static bool exit_above_entry(struct pairs *p, struct lane *l, const struct trace_event *e,
			     uint32_t function)
{
	const struct trace_jumps jumps = trace_jumps_of(p->t);
	uint32_t sp = e->s.payload, i = 0, own;
	struct strand *s = l->cur;
	struct frame *jumper;
	bool is_next;

	if (!s)
		return false;
	if (strand_holds(s, sp))
		i = strand_above(s, sp);
	for (; i < s->n && s->frames[i].sp == sp; i++)
		if (!s->frames[i].jump)
			return false; /* that one had ended, too */
	for (own = i;; own++) {
		if (own == s->n || sp - s->frames[own].sp > TRACE_JUMP_POPPED)
			return false;
		if (s->frames[own].function == function && !s->frames[own].jump)
			break;
	}
	jumper = i && s->frames[i - 1].sp == sp ? &s->frames[i - 1] : NULL;
	is_next = jumper && own == i && !(jumper->jump & TRACE_JUMP_STALE);
	pairs_close_above(p, l, s, own + 1, e, pairs_now(l, e));
	pop(p, l, s, e, pairs_now(l, e), EXITED);
	pairs_close_above(p, l, s, i, e, pairs_now(l, e));
	if (is_next && e->jump && trace_jump_is_uncertain(&jumps, jumper->jump))
		jumper->jump = e->jump & TRACE_JUMP_NUMBER;
	pairs_retire(p, l, s);
	return true;
}

/*
 * An exit at sp without its entry: still, frames of this stack up to sp ended.  But for three: the entry
 * was a little below; the middle of a function was jumped to; a vfork returns a second time.
 */
static void exit_unknown(struct pairs *p, struct lane *l, struct strand *s,
			 const struct trace_event *e, uint32_t function)
{
	uint32_t sp = e->s.payload;

	if (s && s == l->cur && has_jumped_inside(p, s, sp, function)) {
		p->counts.shared++;
		end_jumpers(p, l, s, e);
		pairs_retire(p, l, s);
		return;
	}
	if (l->children && children_second_return(p, l, e, function)) {
		p->counts.shared++;
		return;
	}
	if (exit_above_entry(p, l, e, function))
		return;
	orphan(p, e, function);
	if (s && strand_holds(s, sp)) {
		uint32_t keep = strand_above(s, sp);

		if (keep && sp - s->frames[keep].sp >= APART)
			return;
		pairs_close_from(p, l, s, keep, e);
		pairs_make_current(p, l, s, e);
		pairs_retire(p, l, s);
	} else if (pairs_is_just_above(l, sp)) {
		s = l->cur;
		pairs_close_above(p, l, s, 0, e, pairs_now(l, e));
		pairs_retire(p, l, s);
	}
}

static void exit_slowly(struct pairs *p, struct lane *l, const struct trace_event *e,
			uint32_t function)
{
	struct strand *s = strand_set_find(&l->set, e->s.payload);

	if (s && strand_holds(s, e->s.payload)) {
		uint32_t i = strand_above(s, e->s.payload);

		for (; i < s->n && s->frames[i].sp == e->s.payload; i++)
			if (is_exit_of(&s->frames[i], e->s.payload, function)) {
				exit_from(p, l, s, i, e);
				return;
			}
	}
	exit_unknown(p, l, s, e, function);
}

/* No stack pointer: the innermost open call of the function is the one that ends. */
static void exit_plain(struct pairs *p, struct lane *l, const struct trace_event *e,
		       uint32_t function)
{
	struct strand *s = l->plain;
	uint32_t i = s ? s->n : 0;

	for (int tries = PLAIN_SEARCH; i > 0 && tries > 0; i--, tries--) {
		if (s->frames[i - 1].function != function)
			continue;
		pairs_close_above(p, l, s, i, e, pairs_now(l, e));
		pop(p, l, s, e, pairs_now(l, e), EXITED);
		return;
	}
	orphan(p, e, function);
}

static void leave(struct pairs *p, struct lane *l, const struct trace_event *e, uint32_t function)
{
	struct strand *s = l->cur;

	p->counts.exits++;
	if (s && is_exit_of(&s->frames[s->n - 1], e->s.payload, function))
		leave_top(p, l, s, e);
	else if (e->s.payload)
		exit_slowly(p, l, e, function);
	else
		exit_plain(p, l, e, function);
}

/* ---- the outside ---- */

struct pairs *pairs_open(const struct trace *t, const struct pair_sink *sink)
{
	struct pairs *p = xcalloc(1, sizeof(*p));

	p->t = t;
	p->sink = *sink;
	p->lanes = xcalloc(t->nlanes, sizeof(*p->lanes));
	for (size_t i = 0; i < t->nlanes; i++) {
		p->lanes[i].number = (uint32_t)i;
		p->lanes[i].window_to = t->filter ? 0 : UINT64_MAX;
	}
	p->is_sparse = trace_clock_every(t) > 1;
	p->nfunctions = trace_function_limit(t);
	return p;
}

static inline void notice_time(struct lane *l, const struct trace_event *e)
{
	if (e->tsc < l->last_tsc)
		return;
	l->last_tsc = e->tsc;
	l->last_in = e->in;
}

static void special(struct pairs *p, struct lane *l, const struct trace_event *e)
{
	if (!p->t->filter) /* they pass it, whatever it is */
		notice_time(l, e);
	if (e->s.event == KRON_EVENT_LOST) {
		l->has_loss = true;
		l->loss_tsc = e->tsc;
		l->unwinds = 0;
		forget_jump(l);
	} else if (e->s.event >= KRON_EVENT_VFORK && e->s.event <= KRON_EVENT_CHILD_LIVES) {
		children_record(p, l, e);
	} else if (kron_event_is_unwinding(e->s.event)) {
		pairs_unwind(p, l, e);
	}
	if (p->sink.special)
		p->sink.special(p->sink.ctx, e);
}

void pairs_feed(struct pairs *p, const struct trace_event *e)
{
	struct lane *l = &p->lanes[e->lane];
	const struct trace_user_event *u;

	l->events++;
	l->samples += e->s.event < KRON_EVENT_SPECIAL;
	if (__builtin_expect(l->sleeps < p->t->nsleeps, 0))
		pairs_notice_sleeps(p, l, e);
	if (__builtin_expect(e->tsc > l->window_to, 0))
		pairs_end_window(p, l, e);
	if (__builtin_expect(e->s.event >= KRON_EVENT_SPECIAL, 0)) {
		special(p, l, e);
		return;
	}
	notice_time(l, e);
	if (__builtin_expect(l->may_be_gone, 0))
		pairs_end_jump(p, l, e);
	if (__builtin_expect(l->child_ended, 0))
		children_end(p, l, e);
	if (p->t->nuser_events && (u = trace_user_event_of(p->t, e->s.event))) {
		if (p->sink.user_event)
			p->sink.user_event(p->sink.ctx, e, u);
	} else if (e->s.event & 1) {
		leave(p, l, e, e->s.event / 2);
	} else {
		enter(p, l, e, e->s.event / 2);
	}
	if (__builtin_expect(l->has_asleep, 0))
		pairs_close_asleep(p, l, e);
}

void pairs_finish(struct pairs *p)
{
	for (size_t i = 0; i < p->t->nlanes; i++)
		pairs_finish_lane(p, (uint32_t)i);
}

void pairs_close(struct pairs *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->t->nlanes; i++) {
		for (uint32_t j = 0; j < p->lanes[i].set.n; j++)
			strand_release(&p->pool, p->lanes[i].set.v[j]);
		xfree(p->lanes[i].set.v);
		if (p->lanes[i].plain)
			strand_release(&p->pool, p->lanes[i].plain);
		xfree(p->lanes[i].active);
		children_free(&p->lanes[i]);
		pairs_free_reach(&p->lanes[i]);
	}
	strand_pool_free(&p->pool);
	xfree(p->spare);
	xfree(p->lanes);
	xfree(p);
}
