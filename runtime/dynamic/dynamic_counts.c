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

static void note_used(uint32_t used)
{
	uint32_t *word = &kron_rt.ctl->counts_used;
	uint32_t old = __atomic_load_n(word, __ATOMIC_RELAXED);

	while (old < used && !__atomic_compare_exchange_n(word, &old, used, false, __ATOMIC_RELEASE,
							  __ATOMIC_RELAXED))
		;
}

/* An entry that is ours from now on, or NULL.  What others have counted in it stays. */
static uint64_t *take_entry(const struct rt_lane *lane)
{
	const struct rt_proc *p = kron_rt.proc;
	uint64_t mine = kron_chunk_word(KRON_CHUNK_OWNED, lane->tid, p->slot, p->uid);
	uint32_t ready = __atomic_load_n(&kron_rt.ctl->counts_ready, __ATOMIC_ACQUIRE);
	uint32_t i;

	for (i = 0; i < ready && i < KRON_COUNTS_MAX; i++) {
		struct kron_counts *c = &kron_rt.count_table[i];
		uint64_t word = __atomic_load_n(&c->word, __ATOMIC_RELAXED);

		/* Acquire: pairs with the collector's release when its last owner was gone. */
		if (word || !__atomic_compare_exchange_n(&c->word, &word, mine, false,
							 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			continue;
		note_used(i + 1);
		return c->n[KRON_COUNT_BANK];
	}
	return NULL;
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

uint64_t *rt_thread_counts(void)
{
	struct rt_lane *lane = rt_thread_counting();

	if (!lane)
		return NULL;
	/* A handler in between may do the same: then one of two entries is not used further. */
	if (!lane->counts)
		lane->counts = take_entry(lane);
	return lane->counts;
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
