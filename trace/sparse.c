/* SPDX-License-Identifier: MIT */
/* sparse.c - see sparse.h. */
#include "trace/sparse.h"

#include <string.h>

#include "base/search.h"

#define HELD_MAX 8192u /* garbage may have no reading at all */
#define SMOOTH 8u
#define WAITED 8u /* this many times the usual distance */

static bool is_copy(const struct sparse_sample *s)
{
	return s->s.time_lo & 1;
}

/* As for the sample before, mostly. */
static bool is_next_leave(const struct sparse *x, uint64_t reading)
{
	return (!x->off_at || x->off[x->off_at - 1].out <= reading) &&
	       (x->off_at == x->noff || x->off[x->off_at].out > reading);
}

/*
 * When the thread left its processor after a reading: what copies that was taken before.  UINT64_MAX: nobody knows.  If
 * the next reading was made while the thread was off, it is somebody else's, who borrows its memory.
 */
static uint64_t left_after(struct sparse *x, uint64_t reading, uint64_t next)
{
	const struct sparse_off *off;

	if (!x->noff || x->is_child)
		return UINT64_MAX;
	if (!is_next_leave(x, reading))
		x->off_at = partition_point(i, x->noff, x->off[i].out <= reading);
	if (x->off_at == x->noff)
		return UINT64_MAX;
	off = &x->off[x->off_at];
	if (next > off->out + x->off_error && next + x->off_error < off->in)
		return UINT64_MAX;
	return off->out + x->off_error;
}

static void settle(struct sparse *x, struct sparse_sample *s, uint64_t tsc, uint64_t hi)
{
	const uint64_t left = s->lo < hi ? left_after(x, s->lo, hi) : hi;

	if (left < hi)
		hi = left;
	if (tsc < s->lo)
		tsc = s->lo;
	if (tsc > hi)
		tsc = hi;
	s->tsc = tsc;
	s->hi = hi;
	s->is_settled = true;
	while (x->unsettled < x->held.n && x->held.v[x->unsettled].is_settled)
		x->unsettled++;
}

static uint32_t count_before(const struct sparse *x, uint64_t reading)
{
	uint32_t n = 0;

	for (size_t i = x->unsettled; i < x->held.n; i++)
		n += !x->held.v[i].is_settled && x->held.v[i].lo < reading;
	return n;
}

/* May the thread have done something else before the reading? */
enum waited { WAITED_NOT, WAITED_MAYBE, WAITED_SURELY };

/* How far apart samples are put. */
static uint64_t step_of(struct sparse *x, uint64_t from, uint64_t reading, uint32_t n,
			enum waited waited)
{
	const uint64_t even = reading > from ? (reading - from) / (n + 1) : 0, gap = x->gap;

	if (waited != WAITED_NOT && gap && even / WAITED > gap) {
		if (waited == WAITED_MAYBE)
			x->gap += gap / SMOOTH + 1;
		return gap;
	}
	x->gap = gap ? (gap * (SMOOTH - 1) + even) / SMOOTH : even;
	return even;
}

/* What was taken before this reading. */
static void settle_before(struct sparse *x, uint64_t reading, enum waited waited)
{
	const size_t first = x->unsettled, end = x->held.n;
	uint32_t n = count_before(x, reading), k = 0;
	uint64_t step, left, from = x->base;

	if (!n)
		return;
	if (!from)
		from = x->held.v[first].lo;
	left = left_after(x, from, reading);
	step = left < reading ? step_of(x, from, left, n, WAITED_NOT)
			      : step_of(x, from, reading, n, waited);
	for (size_t i = first; i < end; i++) {
		struct sparse_sample *s = &x->held.v[i];

		if (!s->is_settled && s->lo < reading)
			settle(x, s, from + ++k * step, reading);
	}
}

/* Those that were given are no longer held. */
static void make_room(struct sparse *x)
{
	size_t left = x->held.n - x->at;

	if (!x->at)
		return;
	memmove(x->held.v, x->held.v + x->at, left * sizeof(*x->held.v));
	x->held.n = left;
	x->unsettled -= x->at;
	x->at = 0;
}

static enum waited has_waited(const struct sparse *x, const struct sparse_sample *s)
{
	if (s->s.event == KRON_EVENT_CPU)
		return WAITED_SURELY;
	if (s->always_reads)
		return WAITED_MAYBE;
	return x->since + 1 < x->every ? WAITED_SURELY : WAITED_NOT;
}

/* Its readings are its own, and so are copies of them, until it has ended. */
static void notice_child(struct sparse *x, uint32_t event)
{
	if (event == KRON_EVENT_VFORK || event == KRON_EVENT_SPAWN ||
	    event == KRON_EVENT_CHILD_LIVES)
		x->is_child = true;
	else if (event == KRON_EVENT_CHILD_ENDS)
		x->is_child = false;
}

void sparse_put(struct sparse *x, const struct sparse_sample *s)
{
	struct sparse_sample *new;

	if (x->at == x->held.n || x->at >= 512)
		make_room(x);
	if (!is_copy(s)) {
		settle_before(x, s->tsc, has_waited(x, s));
		notice_child(x, s->s.event);
	} else if (x->held.n - x->unsettled >= HELD_MAX) {
		sparse_end(x, s->tsc);
	}
	new = vec_push(&x->held);
	*new = *s;
	new->is_settled = false;
	new->lo = s->tsc & ~(uint64_t)is_copy(s);
	x->since = is_copy(s) || s->always_reads ? x->since + 1 : 0;
	if (is_copy(s))
		return;
	if (s->tsc > x->base)
		x->base = s->tsc;
	settle(x, new, s->tsc, s->tsc);
}

void sparse_end(struct sparse *x, uint64_t end)
{
	uint64_t from = x->base;
	uint32_t k = 0;

	for (size_t i = x->unsettled; i < x->held.n; i++) {
		struct sparse_sample *s = &x->held.v[i];

		if (!s->is_settled)
			settle(x, s, from + ++k * x->gap, end > s->lo ? end : UINT64_MAX);
	}
}

const struct sparse_sample *sparse_next(struct sparse *x)
{
	if (x->at == x->held.n || !x->held.v[x->at].is_settled)
		return NULL;
	return &x->held.v[x->at++];
}

const struct sparse_sample *sparse_peek(const struct sparse *x, size_t ahead)
{
	size_t i = x->at + ahead;

	return i < x->held.n && x->held.v[i].is_settled ? &x->held.v[i] : NULL;
}

void sparse_free(struct sparse *x)
{
	vec_free(&x->held);
}
