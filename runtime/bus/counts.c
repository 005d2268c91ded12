/* SPDX-License-Identifier: MIT */
/*
 * counts.c - a thread's Resource Counters on the lane bus (segment.h: struct kron_counts): an entry of its own, or the
 * control block's where it has none.
 *
 * Whoever finds the entry by the lane counts without coming here: trampolines (dynamic_counts.c) or the thunk
 * (thunk_bus.S).
 */
#include "runtime/bus/bus.h"
#include "runtime/core/rt.h"
#include "runtime/core/thread.h"

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

/* The calling thread's, which nobody else writes to; NULL: it has none. */
static uint64_t *find_own(void)
{
	struct rt_lane *lane = rt_thread_counting();

	if (!lane)
		return NULL;
	/* A handler in between may do the same: then one of two entries is not used further. */
	if (!lane->counts)
		lane->counts = take_entry(lane);
	return lane->counts;
}

void rt_count(uint32_t counter, uint64_t times)
{
	uint64_t *n = find_own();

	if (n) /* one instruction: whole for a handler on this thread */
		__asm__ volatile("addq %1, %0" : "+m"(n[counter]) : "r"(times) : "cc");
	else
		__atomic_fetch_add(&kron_rt.ctl->counts[counter], times, __ATOMIC_RELAXED);
}
