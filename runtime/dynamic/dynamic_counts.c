/* SPDX-License-Identifier: MIT */
/*
 * dynamic_counts.c - a thread's own counters (segment.h: struct kron_counts).  The trampoline counts by
 * itself once kron_rt_words.counts leads to them:
 *
 *   kron_rt_words.counts ──► words of the lane ──► kron_counts.n, kron_calls.n
 *   (thread data)            (wiped by fork)       (the board's segment)
 *
 * In a thread that has never counted it leads to words that are always NULL.  The word after it leads to the
 * thread's table of pages, at first to one that is always empty.
 */
#include "runtime/core/rt.h"
#include "runtime/core/thread.h"
#include "runtime/dynamic/dynamic.h"

static uint64_t *no_counts[KRON_CALLS_WORD + KRON_CALLS_PARTS]; /* never written */
static int64_t no_pages[KRON_FUNCTION_TABLE_ENTRIES];           /* likewise */
RT_THREAD struct kron_rt_words kron_rt_words = {no_counts, no_pages};
_Static_assert(__builtin_offsetof(struct kron_rt_words, pages) == 8, "wire.h, thunk_bus.S");

int64_t rt_counts_offset(void)
{
	return rt_is_strange() ? 0
			       : (char *)&kron_rt_words.counts - (char *)__builtin_thread_pointer();
}

struct rt_lane *rt_thread_counting(void)
{
	struct rt_lane *lane;

	if (rt_lane_is_mute() || rt_proc_is_refused())
		return NULL;
	lane = rt_lane_find();
	if (lane && !rt_is_strange())
		kron_rt_words.counts = &lane->counts;
	return lane;
}

void rt_thread_set_pages(int64_t *table)
{
	if (!rt_is_strange())
		kron_rt_words.pages = table;
}

/* That of a forked child is wiped. */
struct rt_lane *rt_thread_with_pages(void)
{
	struct rt_lane *lane = rt_is_strange() ? NULL : kron_rt_lane;

	return lane && lane->pages ? lane : NULL;
}
