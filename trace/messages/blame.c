/* SPDX-License-Identifier: MIT */
/*
 * blame.c - whose fault the waits are.
 *
 *   rank 1  ──────┤ waits for 0 ├──      While rank 1 waits for rank 0, that waits for rank 3 most of the time: that part of the
 *   rank 0  ───┤ waits for 3 ├─────      wait is rank 3's fault, the rest is rank 0's.
 *   rank 3  ─────────────────┤send
 *
 * At each moment of a wait the thread is looked for that does not wait itself.
 */
#include <stdlib.h>

#include "base/vec.h"
#include "trace/messages/messages.h"

enum { DEEPEST = 256 }; /* clocks that disagree can make a circle of waits */

struct blame {
	const struct message_wait *waits; /* by `who`, then `since` */
	size_t *first;                    /* of each lane; one more at the end */
	uint64_t *caused;
};

static int in_order(const void *a, const void *b)
{
	const struct message_wait *x = a, *y = b;

	if (x->who != y->who)
		return x->who < y->who ? -1 : 1;
	return (x->since > y->since) - (x->since < y->since);
}

/* The first wait of the lane that ends after this moment. */
static size_t wait_after(const struct blame *b, uint32_t lane, uint64_t since)
{
	size_t lo = b->first[lane], hi = b->first[lane + 1];

	while (lo < hi) {
		const size_t mid = lo + (hi - lo) / 2;

		if (b->waits[mid].until <= since)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static void blame(struct blame *b, uint32_t lane, uint64_t since, uint64_t until, int depth)
{
	const size_t end = b->first[lane + 1];

	for (size_t i = depth < DEEPEST ? wait_after(b, lane, since) : end;
	     i < end && since < until; i++) {
		const struct message_wait *w = &b->waits[i];
		const uint64_t from = w->since > since ? w->since : since;
		const uint64_t to = w->until < until ? w->until : until;

		if (from >= until)
			break;
		b->caused[lane] += from - since;
		if (to > from)
			blame(b, w->by, from, to, depth + 1);
		since = to > since ? to : since;
	}
	b->caused[lane] += since < until ? until - since : 0;
}

void message_blame(struct message_wait *waits, size_t n, uint64_t *caused, size_t nlanes)
{
	struct blame b = {waits, xcalloc(nlanes + 1, sizeof(size_t)), caused};

	if (n)
		qsort(waits, n, sizeof(*waits), in_order);
	for (size_t i = 0, at = 0; i <= nlanes; i++) {
		while (at < n && waits[at].who < i)
			at++;
		b.first[i] = at;
	}
	for (size_t i = 0; i < n; i++)
		blame(&b, waits[i].by, waits[i].since, waits[i].until, 0);
	xfree(b.first);
}
