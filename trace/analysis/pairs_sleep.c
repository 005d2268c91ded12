/* SPDX-License-Identifier: MIT */
/*
 * pairs_sleep.c - calls that were open when their functions went to sleep.
 *
 *   main ─ a (asleep) ─ g ─ b (asleep)      b ends with the last that was seen of the thread
 *                                           before, and not before it went to sleep; a with
 *                                           g, which it had called: it lasted at least so long
 *
 * So it is when the gates of their groups are closed: then nothing is seen of them, either.
 *
 * Their ends are inferred, and these calls span what was not seen: nobody knows how long they took.
 * If such a function wakes while its frame is there, its exit may be that of a later call.
 */
#include "trace/analysis/pairs_impl.h"

/* Of a strand from some depth on nothing is known to run. */
static void close_top(struct pairs *p, struct lane *l, struct strand *s,
		      const struct trace_event *e, struct moment at)
{
	uint32_t keep = s->n;

	while (keep && s->frames[keep - 1].asleep)
		keep--;
	if (keep == s->n)
		return;
	pairs_close_above(p, l, s, keep, e, at);
	if (!s->n)
		pairs_retire(p, l, s);
}

static bool mark(const struct trace *t, struct strand *s, const struct trace_sleep *row)
{
	bool any = false;

	for (uint32_t i = 0; i < s->n; i++) {
		struct frame *f = &s->frames[i];

		if (f->entry < row->until && trace_sleep_has(t, row, f->function))
			any = f->asleep = true;
	}
	return any;
}

static void go_to_sleep(struct pairs *p, struct lane *l, const struct trace_sleep *row,
			const struct trace_event *e)
{
	const uint64_t end = l->last_tsc > row->since ? l->last_tsc : row->since;
	const struct moment at = {end, {end, end}, l->events, l->samples};
	bool any = false;

	for (uint32_t i = 0; i < l->set.n; i++)
		any |= mark(p->t, l->set.v[i], row);
	if (l->plain)
		any |= mark(p->t, l->plain, row);
	if (!any)
		return;
	l->has_asleep = true;
	for (uint32_t i = l->set.n; i-- > 0;)
		if (i < l->set.n) /* one that is retired takes none but itself out of the set */
			close_top(p, l, l->set.v[i], e, at);
	if (l->plain)
		close_top(p, l, l->plain, e, at);
}

void pairs_notice_sleeps(struct pairs *p, struct lane *l, const struct trace_event *e)
{
	const uint32_t node = p->t->lanes[l->number].node;

	for (; l->sleeps < p->t->nsleeps && p->t->sleeps[l->sleeps].until <= e->tsc; l->sleeps++) {
		const struct trace_sleep *row = &p->t->sleeps[l->sleeps];

		/* what is open when its window ends knows of no later one */
		if (!row->wakes && row->node == node && row->since < l->window_to)
			go_to_sleep(p, l, row, e);
	}
}

bool pairs_will_sleep(const struct pairs *p, const struct lane *l, uint32_t function, uint64_t tsc)
{
	const uint32_t node = p->t->lanes[l->number].node;

	for (size_t i = l->sleeps; i < p->t->nsleeps && p->t->sleeps[i].until <= tsc; i++) {
		const struct trace_sleep *row = &p->t->sleeps[i];

		if (!row->wakes && row->node == node && trace_sleep_has(p->t, row, function))
			return true;
	}
	return false;
}

/* A thread of which nothing more was seen, and that has open calls: rows that begin before its end. */
void pairs_notice_last_sleeps(struct pairs *p, struct lane *l)
{
	const uint32_t node = p->t->lanes[l->number].node;

	for (; l->sleeps < p->t->nsleeps; l->sleeps++) {
		const struct trace_sleep *row = &p->t->sleeps[l->sleeps];

		if (!row->wakes && row->node == node && row->since < pairs_lane_end(p, l->number))
			go_to_sleep(p, l, row, NULL);
	}
}

void pairs_close_asleep(struct pairs *p, struct lane *l, const struct trace_event *e)
{
	if (l->cur && l->cur->n && l->cur->frames[l->cur->n - 1].asleep)
		close_top(p, l, l->cur, e, pairs_now(l, e));
	if (l->plain && l->plain->n && l->plain->frames[l->plain->n - 1].asleep)
		close_top(p, l, l->plain, e, pairs_now(l, e));
}
