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
 * Cost: every frame is pushed once and popped once; searches are binary.  A frame may be moved
 * when a strand is cut, once for each gap above it.
 */
#include "trace/pairs.h"

#include <string.h>

#include "base/vec.h"
#include "trace/strands.h"

#define NEAR (1u << 20)
#define APART 4096u
#define HALF (1u << 31)
#define PLAIN_SEARCH 1024    /* frames looked at to find an exit's entry by function alone */
#define RECURSION_SEARCH 256 /* likewise for recursion on a second stack */

/* Of one function in one lane: open frames, all of one root.  Others are searched for. */
struct activity {
	uint32_t root, count;
};

struct lane {
	struct strand_set set;
	struct strand *cur;   /* NULL: unknown, or no open frames */
	struct strand *plain; /* frames whose samples have no stack pointer */
	struct activity *active;
	uint64_t last_tsc, loss_tsc;
	bool has_loss;
};

struct pairs {
	const struct trace *t;
	struct pair_sink sink;
	struct pair_counts counts;
	struct lane *lanes;
	struct strand_pool pool;
	uint32_t nfunctions; /* numbers below it have reach and activity */
	uint32_t *reach;
	struct activity *spare; /* all zero: of a lane that ended */
};

enum ending { EXITED, INFERRED, OPEN };

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
	strand_push(s, e->s.payload, function, e->tsc);
	if (s->n == 1 && !s->plain)
		strand_set_add(&l->set, s);
	activity_enter(p, l, s, function);
	if (p->sink.node) {
		const struct frame *caller = caller_of_top(s);

		s->frames[s->n - 1].node =
			p->sink.node(p->sink.ctx, caller ? caller->node : PAIR_NO_NODE, function);
	}
	if (p->sink.enter)
		p->sink.enter(p->sink.ctx, e, function, s->base_depth + s->n - 1);
}

/* The frame that the top frame's time goes to, once that is popped. */
static struct frame *parent_of_top(struct strand *s)
{
	struct frame *f;

	if (s->n > 1)
		return &s->frames[s->n - 2];
	f = frame_ref_get(&s->below);
	if (f && !s->linked && (s->was_left || s->below.index + 1 != s->below.strand->n))
		return NULL; /* other things ran in between: not simply nested */
	return f;
}

static void count_call(struct pairs *p, const struct pair_call *c)
{
	p->counts.calls++;
	p->counts.inferred += c->inferred;
	p->counts.open += c->open;
	p->counts.spans_loss += c->spans_loss;
}

/* Close the top frame.  The strand leaves the set with its last frame; see retire(). */
static void pop(struct pairs *p, struct lane *l, struct strand *s, const struct trace_event *e,
		uint32_t lane, uint64_t tsc, enum ending how)
{
	struct frame *f = &s->frames[s->n - 1];
	uint64_t exit = tsc > f->entry ? tsc : f->entry, duration = exit - f->entry;
	struct frame *parent = parent_of_top(s);
	const struct frame *caller = caller_of_top(s);
	struct pair_call call = {
		.lane = lane,
		.function = f->function,
		.caller = caller ? caller->function : UINT32_MAX,
		.node = f->node,
		.payer = parent ? parent->node : PAIR_NO_NODE,
		.depth = s->base_depth + s->n - 1,
		.entry_tsc = f->entry,
		.exit_tsc = exit,
		.children_tsc = f->children < duration ? f->children : duration,
		.inferred = how == INFERRED,
		.open = how == OPEN,
		.spans_loss = l->has_loss && f->entry < l->loss_tsc && l->loss_tsc <= exit,
	};

	if (parent)
		parent->children += duration;
	if (s->n == 1 && !s->plain)
		strand_set_remove(&l->set, s);
	s->n--;
	call.recursive = activity_leave(p, l, s, call.function);
	count_call(p, &call);
	if (p->sink.leave)
		p->sink.leave(p->sink.ctx, e, &call);
}

/* Give an empty strand back; what it interrupted, or was called from, runs again. */
static void retire(struct pairs *p, struct lane *l, struct strand *s)
{
	if (s->n || s->plain)
		return;
	if (l->cur == s)
		l->cur = frame_ref_get(&s->below) ? s->below.strand : NULL;
	strand_release(&p->pool, s);
}

/* Close frames[keep..] from the top, by inference.  The strand stays, even if empty. */
static void close_above(struct pairs *p, struct lane *l, struct strand *s, uint32_t keep,
			const struct trace_event *e, uint64_t tsc)
{
	while (s->n > keep)
		pop(p, l, s, e, e->lane, tsc, INFERRED);
}

/* ---- strands come and go ---- */

/* When frames that turn out to be dead ended at the latest. */
static uint64_t end_of(const struct lane *l, const struct strand *s, const struct trace_event *e)
{
	return s == l->cur || !s->was_left ? e->tsc : s->left_tsc;
}

static void make_current(struct lane *l, struct strand *s, uint64_t tsc)
{
	if (l->cur && l->cur != s) {
		l->cur->was_left = true;
		l->cur->left_tsc = tsc;
	}
	s->aside = false;
	l->cur = s;
}

/* A strand for a frame that fits nowhere, on top of what runs now. */
static struct strand *begin_strand(struct pairs *p, struct lane *l, uint64_t tsc, bool linked)
{
	struct strand *s = strand_new(&p->pool), *cur = l->cur;

	if (cur) {
		s->below = frame_ref_to(cur, cur->n - 1);
		s->base_depth = cur->base_depth + cur->n;
		s->linked = linked;
	}
	make_current(l, s, tsc);
	return s;
}

/* Cut frames[at..] off into a strand of their own, set aside.  0 < at < n. */
static void cut(struct pairs *p, struct lane *l, struct strand *s, uint32_t at,
		const struct trace_event *e)
{
	struct strand *x = strand_new(&p->pool);
	uint64_t end = end_of(l, s, e);

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
	x->was_left = true;
	x->left_tsc = end;
	x->cut_function = s->frames[at - 1].function;
	x->cut_gap = s->frames[at - 1].sp - x->frames[0].sp;
	strand_set_add(&l->set, x);
}

static void learn_reach(struct pairs *p, uint32_t function, uint32_t gap)
{
	if (function < p->nfunctions && p->reach[function] < gap)
		p->reach[function] = gap;
}

static uint32_t reach_of(const struct pairs *p, uint32_t function)
{
	uint32_t reach = function < p->nfunctions ? p->reach[function] : 0;

	return reach > APART ? reach : APART;
}

/* The current stack has grown over s, so its frames ended when it was left. */
static void bury(struct pairs *p, struct lane *l, struct strand *s, const struct trace_event *e)
{
	learn_reach(p, s->cut_function, s->cut_gap);
	close_above(p, l, s, 0, e, end_of(l, s, e));
	retire(p, l, s);
}

/* ---- entries ---- */

/* sp lies below the top of the current strand, by less than NEAR */
static inline bool is_deeper(const struct strand *s, uint32_t sp)
{
	return s && strand_top(s) - sp - 1 < NEAR - 1 && strand_bottom(s) - sp < HALF;
}

/* An entry between bottom and top: the frames that are not above it ended, or wait. */
static void enter_inside(struct pairs *p, struct lane *l, struct strand *s,
			 const struct trace_event *e, uint32_t function)
{
	uint32_t keep = strand_above(s, e->s.payload);

	if (keep && e->s.payload - s->frames[keep].sp >= APART) {
		cut(p, l, s, keep, e);
		make_current(l, s, e->tsc);
		s = begin_strand(p, l, e->tsc, false);
	} else {
		if (keep) /* again a call from there: so that is how far its callees are */
			learn_reach(p, s->frames[keep - 1].function,
				    s->frames[keep - 1].sp - s->frames[keep].sp);
		close_above(p, l, s, keep, e, end_of(l, s, e));
		if (keep || s == l->cur || (s->linked && frame_ref_get(&s->below))) {
			make_current(l, s, e->tsc);
		} else { /* all of it was dead: a new start on the same memory */
			retire(p, l, s);
			s = begin_strand(p, l, e->tsc, false);
		}
	}
	push(p, l, s, e, function);
}

/* sp is a little above the current bottom and nothing lies between: all of it ended. */
static bool is_just_above(const struct lane *l, uint32_t sp)
{
	return l->cur && sp - strand_bottom(l->cur) < APART &&
	       strand_set_below(&l->set, sp) == l->cur;
}

/* Cut off frames that a call of the current stack at sp would overwrite, or lies beyond. */
static bool is_grown_over(const struct pairs *p, const struct strand *s, uint32_t sp)
{
	if (!s->aside)
		return false;
	if (strand_holds(s, sp))
		return sp - s->frames[strand_above(s, sp)].sp < APART;
	return strand_top(s) - sp > reach_of(p, s->frames[s->n - 1].function);
}

/*
 * The strand further down that sp is a usual callee's place of, while it lies oddly far from
 * the current top: what runs now was started by that strand, on memory between its frames.
 */
static struct strand *usual_caller(const struct pairs *p, const struct strand *cur, uint32_t sp)
{
	const struct strand *s = cur;

	if (strand_top(cur) - sp <= reach_of(p, cur->frames[cur->n - 1].function))
		return NULL;
	for (int hops = 0; hops < 8 && frame_ref_get(&s->below); hops++) {
		s = s->below.strand;
		if (is_deeper(s, sp) &&
		    strand_top(s) - sp <= reach_of(p, s->frames[s->n - 1].function))
			return (struct strand *)(uintptr_t)s;
	}
	return NULL;
}

static void enter_slowly(struct pairs *p, struct lane *l, const struct trace_event *e,
			 uint32_t function)
{
	uint32_t sp = e->s.payload;
	bool deeper = is_deeper(l->cur, sp);
	struct strand *s = strand_set_find(&l->set, sp);

	while (deeper && s != l->cur && is_grown_over(p, s, sp)) {
		bury(p, l, s, e);
		s = strand_set_find(&l->set, sp);
	}
	if (s && strand_holds(s, sp)) {
		enter_inside(p, l, s, e, function);
		return;
	}
	if (deeper && s == l->cur) {
		struct strand *caller = usual_caller(p, s, sp);

		if (caller) {
			make_current(l, caller, e->tsc);
			s = begin_strand(p, l, e->tsc, true);
		}
		push(p, l, s, e, function);
		return;
	}
	if (s && s != l->cur && is_deeper(s, sp) &&
	    strand_top(s) - sp <= reach_of(p, s->frames[s->n - 1].function)) {
		make_current(l, s, e->tsc);
		push(p, l, s, e, function);
		return;
	}
	if (is_just_above(l, sp)) {
		s = l->cur;
		close_above(p, l, s, 0, e, e->tsc);
		push(p, l, s, e, function);
		return;
	}
	s = l->cur;
	s = begin_strand(p, l, e->tsc,
			 deeper && strand_top(s) - sp <= reach_of(p, s->frames[s->n - 1].function));
	push(p, l, s, e, function);
}

static void enter(struct pairs *p, struct lane *l, const struct trace_event *e, uint32_t function)
{
	uint32_t sp = e->s.payload;

	p->counts.entries++;
	if (is_deeper(l->cur, sp) && (l->set.n == 1 || strand_set_find(&l->set, sp) == l->cur)) {
		push(p, l, l->cur, e, function);
	} else if (sp) {
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

		if (gap > APART)
			learn_reach(p, s->frames[s->n - 2].function, gap);
	} else if (s->linked) {
		const struct frame *f = frame_ref_get(&s->below);

		if (f && f->sp - s->frames[0].sp < HALF)
			learn_reach(p, f->function, f->sp - s->frames[0].sp);
	}
	pop(p, l, s, e, e->lane, e->tsc, EXITED);
	retire(p, l, s);
}

/* The frame at index i of s exits: what is above it ended without, or is on another stack. */
static void exit_from(struct pairs *p, struct lane *l, struct strand *s, uint32_t i,
		      const struct trace_event *e)
{
	if (i + 1 < s->n) {
		uint32_t gap = s->frames[i].sp - s->frames[i + 1].sp;

		if (gap > reach_of(p, s->frames[i].function))
			cut(p, l, s, i + 1, e);
	}
	close_above(p, l, s, i + 1, e, end_of(l, s, e));
	make_current(l, s, e->tsc);
	pop_exited(p, l, s, e);
}

/* An exit at sp without its entry: still, frames of this stack up to sp ended. */
static void exit_unknown(struct pairs *p, struct lane *l, struct strand *s,
			 const struct trace_event *e, uint32_t function)
{
	uint32_t sp = e->s.payload;

	orphan(p, e, function);
	if (s && strand_holds(s, sp)) {
		uint32_t keep = strand_above(s, sp);

		if (keep && sp - s->frames[keep].sp >= APART)
			return;
		close_above(p, l, s, keep, e, end_of(l, s, e));
		make_current(l, s, e->tsc);
		retire(p, l, s);
	} else if (is_just_above(l, sp)) {
		s = l->cur;
		close_above(p, l, s, 0, e, e->tsc);
		retire(p, l, s);
	}
}

static void exit_slowly(struct pairs *p, struct lane *l, const struct trace_event *e,
			uint32_t function)
{
	struct strand *s = strand_set_find(&l->set, e->s.payload);

	if (s && strand_holds(s, e->s.payload)) {
		uint32_t i = strand_above(s, e->s.payload);

		if (s->frames[i].sp == e->s.payload && s->frames[i].function == function) {
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
		close_above(p, l, s, i, e, e->tsc);
		pop(p, l, s, e, e->lane, e->tsc, EXITED);
		return;
	}
	orphan(p, e, function);
}

static void leave(struct pairs *p, struct lane *l, const struct trace_event *e, uint32_t function)
{
	struct strand *s = l->cur;

	p->counts.exits++;
	if (s && strand_top(s) == e->s.payload && s->frames[s->n - 1].function == function)
		pop_exited(p, l, s, e);
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
	p->nfunctions = trace_function_limit(t);
	p->reach = xcalloc(p->nfunctions, sizeof(*p->reach));
	return p;
}

void pairs_feed(struct pairs *p, const struct trace_event *e)
{
	struct lane *l = &p->lanes[e->lane];
	const struct trace_user_event *u;

	if (e->tsc > l->last_tsc)
		l->last_tsc = e->tsc;
	if (e->s.event >= KRON_EVENT_SPECIAL) {
		if (e->s.event == KRON_EVENT_LOST) {
			l->has_loss = true;
			l->loss_tsc = e->tsc;
		}
		if (p->sink.special)
			p->sink.special(p->sink.ctx, e);
	} else if (p->t->nuser_events && (u = trace_user_event_of(p->t, e->s.event))) {
		if (p->sink.user_event)
			p->sink.user_event(p->sink.ctx, e, u);
	} else if (e->s.event & 1) {
		leave(p, l, e, e->s.event / 2);
	} else {
		enter(p, l, e, e->s.event / 2);
	}
}

static void finish_strand(struct pairs *p, struct lane *l, struct strand *s, uint32_t lane,
			  uint64_t tsc)
{
	enum ending how = s->aside ? INFERRED : OPEN;

	while (s->n)
		pop(p, l, s, NULL, lane, tsc, how);
	retire(p, l, s);
}

/* The strands that wait for one another, from the current one down, run to the lane's end. */
static bool is_waited_on(const struct lane *l, const struct strand *x)
{
	const struct strand *s = l->cur;

	for (int hops = 0; s && hops < 64; hops++) {
		if (s == x)
			return true;
		s = frame_ref_get(&s->below) ? s->below.strand : NULL;
	}
	return false;
}

void pairs_finish_lane(struct pairs *p, uint32_t lane)
{
	struct lane *l = &p->lanes[lane];

	for (uint32_t i = l->set.n; i-- > 0;) {
		struct strand *s = l->set.v[i];

		if (s->aside || (s->was_left && !is_waited_on(l, s)))
			finish_strand(p, l, s, lane, s->left_tsc);
	}
	while (l->cur)
		finish_strand(p, l, l->cur, lane, l->last_tsc);
	while (l->set.n)
		finish_strand(p, l, l->set.v[l->set.n - 1], lane, l->last_tsc);
	if (l->plain) {
		finish_strand(p, l, l->plain, lane, l->last_tsc);
		strand_release(&p->pool, l->plain);
		l->plain = NULL;
	}
	if (l->active) { /* every frame is popped, so every count is back at zero */
		xfree(p->spare);
		p->spare = l->active;
		l->active = NULL;
	}
	xfree(l->set.v);
	memset(&l->set, 0, sizeof(l->set));
}

void pairs_finish(struct pairs *p)
{
	for (size_t i = 0; i < p->t->nlanes; i++)
		pairs_finish_lane(p, (uint32_t)i);
}

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

const struct pair_counts *pairs_counts(const struct pairs *p)
{
	return &p->counts;
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
	}
	strand_pool_free(&p->pool);
	xfree(p->spare);
	xfree(p->reach);
	xfree(p->lanes);
	xfree(p);
}
