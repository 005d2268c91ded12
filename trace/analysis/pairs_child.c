/* SPDX-License-Identifier: MIT */
/*
 * pairs_child.c - a child that borrows its parent's memory (vfork, posix_spawn) runs in its parent's
 * lane while its parent sleeps.  It never returns from what it called last:
 *
 *   main │ launch │ vfork ──┐ returns in the child
 *                 │         └─ prepare │ execve ──┐ the child is another program
 *                 │ vfork, a second time ◄────────┘ the parent goes on
 *                 │ waitpid
 *
 * The runtime's records (kron/board.h) say where the child began and where it ended.  Its frames
 * are those that were entered in between:
 *
 *   on the parent's stack   vfork: all below vfork's return address
 *                           posix_spawn: those after a gap, for the parent's own frames lie close to
 *                           each other, and the child's stack somewhere else
 *   on other stacks         all of them
 *
 * They end when the parent goes on: at its first sample.  An exec that fails voids the record of the
 * end.  A child that is killed leaves none: then its frames end as others do whose stack is used again
 * or left for good (pairs.c).
 */
#include "base/vec.h"
#include "trace/analysis/pairs_impl.h"

#define DEEPEST 64u /* a child's child, and so on */

struct child {
	uint32_t parent; /* thread that was about to make it */
	uint32_t sp;     /* of the function that makes it */
	uint32_t function;
	bool has_function; /* that one is traced */
	bool has_stack;    /* of its own */
	uint64_t begin;    /* TSC */
};

struct children {
	struct child v[DEEPEST]; /* each is the parent of the next one */
	uint32_t n;
};

static uint32_t writer_of(const struct trace_event *e)
{
	return e->s.source & KRON_SOURCE_TID_MASK;
}

/* ---- which frames are the child's ---- */

static bool is_later(const struct frame *f, const struct child *c)
{
	return f->entry >= c->begin;
}

/* The strand lies on the stack on which the child was made. */
static bool is_parents(const struct strand *s, const struct child *c)
{
	uint32_t below = c->sp - strand_bottom(s);

	return strand_holds(s, c->sp) || !is_later(&s->frames[0], c) ||
	       (c->has_stack && below <= APART);
}

/* Of the frames on the parent's stack, from the top, those that are the child's begin here. */
static uint32_t first_of_child(const struct strand *s, const struct child *c)
{
	uint32_t i = s->n, first, above;

	while (i && is_later(&s->frames[i - 1], c) && c->sp - s->frames[i - 1].sp < HALF)
		i--;
	if (!c->has_stack)
		return i;
	for (above = c->sp, first = i; first < s->n; above = s->frames[first++].sp)
		if (above - s->frames[first].sp > APART)
			break;
	return first;
}

static struct strand *find_strand(const struct lane *l, const struct child *c)
{
	if (l->cur && !is_parents(l->cur, c))
		return l->cur;
	for (uint32_t i = l->set.n; i-- > 0;)
		if (!is_parents(l->set.v[i], c))
			return l->set.v[i];
	return NULL;
}

static void close_frames(struct pairs *p, struct lane *l, const struct trace_event *e,
			 const struct child *c)
{
	struct strand *s;

	while ((s = find_strand(l, c))) {
		pairs_close_above(p, l, s, 0, e, pairs_end_of(l, s, e));
		pairs_retire(p, l, s);
	}
	for (uint32_t i = l->set.n; i-- > 0;) {
		s = l->set.v[i];
		pairs_close_above(p, l, s, first_of_child(s, c), e, pairs_end_of(l, s, e));
		if (!s->n)
			pairs_retire(p, l, s);
	}
}

/* ---- records ---- */

/* vfork's own frame is the last one that was entered before the record. */
static void note_function(const struct lane *l, struct child *c)
{
	const struct strand *s = l->cur;

	c->has_function = s && s->n && strand_top(s) == c->sp;
	if (c->has_function)
		c->function = s->frames[s->n - 1].function;
}

static void begin(struct lane *l, const struct trace_event *e)
{
	struct children *x = l->children;
	struct child *c;

	if (!x)
		x = l->children = xcalloc(1, sizeof(*x));
	/* who makes another one goes on: those it has made before are gone */
	for (uint32_t i = 0; i < x->n; i++)
		if (x->v[i].parent == writer_of(e))
			x->n = i;
	if (x->n == DEEPEST)
		return;
	c = &x->v[x->n++];
	*c = (struct child){.parent = writer_of(e),
			    .sp = e->s.payload,
			    .has_stack = e->s.event == KRON_EVENT_SPAWN,
			    .begin = e->tsc};
	note_function(l, c);
}

void children_record(struct pairs *p, struct lane *l, const struct trace_event *e)
{
	struct children *x = l->children;

	switch (e->s.event) {
	case KRON_EVENT_VFORK:
	case KRON_EVENT_SPAWN:
		if (l->child_ended)
			children_end(p, l, e);
		begin(l, e);
		break;
	case KRON_EVENT_CHILD_ENDS:
		/* children of its own that did not say so are gone */
		while (x && x->n && x->v[x->n - 1].parent == writer_of(e))
			x->n--;
		l->child_ended = x && x->n;
		break;
	case KRON_EVENT_CHILD_LIVES:
		l->child_ended = false;
		break;
	}
}

void children_end(struct pairs *p, struct lane *l, const struct trace_event *e)
{
	struct children *x = l->children;

	l->child_ended = false;
	close_frames(p, l, e, &x->v[--x->n]);
	x->v[x->n].begin = UINT64_MAX; /* its vfork may still return: children_second_return() */
}

/* Of a child that is over, or of the last one that has not said so. */
bool children_second_return(struct pairs *p, struct lane *l, const struct trace_event *e,
			    uint32_t function)
{
	struct children *x = l->children;
	uint32_t i = x ? x->n + (x->n < DEEPEST) : 0;

	while (i-- > 0) {
		struct child *c = &x->v[i];

		if (!c->has_function || c->has_stack || c->sp != e->s.payload ||
		    c->function != function)
			continue;
		if (c->begin != UINT64_MAX)
			close_frames(p, l, e, c);
		c->has_function = false;
		x->n = i < x->n ? i : x->n;
		return true;
	}
	return false;
}

void children_forget_calls(struct lane *l)
{
	for (uint32_t i = 0; l->children && i < DEEPEST; i++)
		l->children->v[i].has_function = false;
}

void children_free(struct lane *l)
{
	xfree(l->children);
	l->children = NULL;
}
