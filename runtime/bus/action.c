/* SPDX-License-Identifier: MIT */
/*
 * action.c - stores that a probe makes to the board, where they are more than one instruction.
 *
 *   count    lane bus: the thread's own counters (segment.h).  The trampoline does it by itself
 *            once %fs:kron_rt_counts leads to them:
 *
 *              kron_rt_counts ──► word of the lane ──► kron_counts.n
 *              (thread data)      (wiped by fork)      (the board's segment)
 *
 *            exact and device: a store to the increment register
 *   trigger  a sample, as if a probe had been there
 *   else     a register of the machine: the Filter Register, the CSR, a counter's enable field
 *
 * The kron_rt_counts of a thread that has never counted leads to a word that is always NULL.
 * A thread that finds no entry in the table counts in the control block, atomically.
 */
#include "runtime/core/rt.h"

#ifdef RT_STATIC
int64_t rt_counts_offset(void)
{
	return 0;
}

static void count(uint32_t counter, uint64_t times)
{
	__atomic_fetch_add(&kron_rt.ctl->counts[counter], times, __ATOMIC_RELAXED);
}
#else
static uint64_t *no_counts; /* never written */
static __thread uint64_t **kron_rt_counts __attribute__((tls_model("initial-exec"))) = &no_counts;

int64_t rt_counts_offset(void)
{
	return rt_is_strange() ? 0 : (char *)&kron_rt_counts - (char *)__builtin_thread_pointer();
}

/* ---- counters of a thread ---- */

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

/* The word of the thread's lane, with counters if there are any to be had; NULL: no lane. */
static uint64_t **find_word(void)
{
	struct rt_lane *lane;

	if (rt_lane_is_mute() || kron_rt.proc->state == RT_PROC_REFUSED)
		return NULL;
	lane = kron_rt.quiet ? rt_lane_self_quiet() : rt_lane_self_open();
	if (!lane)
		return NULL;
	/* A handler in between may do the same: then one of two entries is not used further. */
	if (!lane->counts)
		lane->counts = take_entry(lane);
	if (!rt_is_strange())
		kron_rt_counts = &lane->counts;
	return &lane->counts;
}

static void count(uint32_t counter, uint64_t times)
{
	uint64_t **word = find_word();
	uint64_t *n = word ? *word : NULL;

	if (n) /* one instruction: whole for a handler on this thread */
		__asm__ volatile("addq %1, %0" : "+m"(n[counter]) : "r"(times) : "cc");
	else
		__atomic_fetch_add(&kron_rt.ctl->counts[counter], times, __ATOMIC_RELAXED);
}
#endif

/* ---- the board's counters: a sample holds 32 bits of each ---- */

void rt_counters_read(uint32_t out[KRON_COUNTERS])
{
	uint32_t used = __atomic_load_n(&kron_rt.ctl->counts_used, __ATOMIC_ACQUIRE);
	uint32_t ready = __atomic_load_n(&kron_rt.ctl->counts_ready, __ATOMIC_ACQUIRE);
	uint32_t i, j;

	for (j = 0; j < KRON_COUNTERS; j++)
		out[j] = (uint32_t)__atomic_load_n(&kron_rt.ctl->counts[j], __ATOMIC_RELAXED);
	for (i = 0; i < used && i < ready && i < KRON_COUNTS_MAX; i++) {
		const uint64_t *n = kron_rt.count_table[i].n[0];

		for (j = 0; j < KRON_COUNT_BANKS * KRON_COUNTERS; j++)
			out[j % KRON_COUNTERS] +=
				(uint32_t)__atomic_load_n(&n[j], __ATOMIC_RELAXED);
	}
}

/* ---- stores ---- */

static bool is_open(uint32_t level)
{
	uint8_t gate = __atomic_load_n(&kron_rt.ctl->gate[level & 15], __ATOMIC_RELAXED);

	return (gate & 3) == KRON_GATE_TAKE;
}

static void increment(uint32_t counter, uint64_t times)
{
	if (rt_bus() == KRON_BUS_LANE) {
		count(counter, times);
		return;
	}
	for (; times; times--)
		board_write32(&kron_rt.board, KRON_CHIP_BYTE(KRON_WORD_INCREMENT + counter), 1);
}

static void trigger(uint32_t word, uint64_t data)
{
	if (rt_bus() == KRON_BUS_EXACT)
		rt_trigger(word, data);
	else if (!is_open(word - KRON_WORD_TRACE))
		return;
	else if (word < KRON_WORD_RESOURCE)
		kron_rt_slow((uint32_t)data, (uint32_t)(data >> 32));
	else
		kron_rt_resource((uint32_t)data, (uint32_t)(data >> 32));
}

static void store(uint32_t word, uint64_t data)
{
	if (word >= KRON_WORD_TRACE)
		trigger(word, data);
	else if (word >= KRON_WORD_INCREMENT)
		increment(word - KRON_WORD_INCREMENT, 1);
	else if (!rt_lane_is_mute()) /* the machine reads the time */
		board_write64(&kron_rt.board, KRON_CHIP_BYTE(word), data);
}

/* As the trampoline's own store does it. */
static void store_to_device(uint32_t word, uint64_t data, bool counts)
{
	uintptr_t at = KRON_WINDOW_ADDR + KRON_CHIP_BYTE(word);

	for (; counts && data; data--)
		*(volatile uint32_t *)at = 1;
	if (counts)
		return;
	if (word == KRON_WORD_TIMESTAMP || word == KRON_WORD_ENABLE || word == KRON_WORD_MODE ||
	    word == KRON_WORD_CLOCK)
		*(volatile uint64_t *)at = data;
	else
		*(volatile uint32_t *)at = (uint32_t)data;
}

void kron_rt_action(uint32_t code, uint64_t data)
{
	uint32_t word = code & 127;
	bool counts = code & KRON_ACTION_COUNT;

	if (!kron_rt.live || (code & KRON_ACTION_GATED && !is_open(code >> 8)))
		return;
	if (rt_bus() == KRON_BUS_DEVICE)
		store_to_device(word, data, counts);
	else if (counts)
		increment(word - KRON_WORD_INCREMENT, data);
	else
		store(word, data);
}
