/* SPDX-License-Identifier: MIT */
/*
 * source.c - probes on the buses without lanes: which thread does a source address belong to?
 *
 *   thunk_bus.S ── first trigger of a thread ──► kron_rt_meet ──► lane (lane.c, for its source
 *        │                                                        address and its process slot)
 *        │                                                    ──► entry in the source table
 *        └── exact: each trigger ──► kron_rt_exact ──► board_trigger (board/model/access.h)
 *
 * A sample in a board's memory has a source address and nothing else to tell its process by, so
 * the table says it, before the first trigger.  Entries are the collector's to free: it knows
 * when the last sample of a dead thread has been fetched.
 *
 * Exactness: a trigger goes to the board, whose counters account for it, or it is counted as
 * lost here.  Nothing in between can be cut off: a bus cycle is one compare-and-swap.
 */
#include "runtime/bus/bus.h"
#include "runtime/core/rt.h"
#include "runtime/core/thread.h"
#include "runtime/sys/processor.h"
#include "runtime/sys/signals.h"
#include "runtime/sys/sys.h"
#include "runtime/sys/mini.h"

static bool entry_take(struct kron_source *s, uint64_t owner)
{
	uint64_t word = __atomic_load_n(&s->word, __ATOMIC_RELAXED);

	/* Acquire: pairs with the collector's release of what it has read. */
	return kron_chunk_word_state(word) == KRON_CHUNK_ABSENT &&
	       __atomic_compare_exchange_n(&s->word, &word, owner | KRON_CHUNK_OWNED, false,
					   __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

/* False: the table is full. */
static bool enter(const struct rt_lane *lane)
{
	const struct rt_proc *p = kron_rt.proc;
	uint64_t owner = kron_chunk_word(0, lane->tid, p->slot, p->uid);
	uint32_t i;

	for (i = 0; i < KRON_SOURCES_MAX; i++) {
		struct kron_source *s = &kron_rt.sources[i];

		if (!entry_take(s, owner))
			continue;
		s->start_tsc = rt_tsc();
		/* Release: the collector reads the time once it sees FULL. */
		__atomic_store_n(&s->word, owner | KRON_CHUNK_FULL, __ATOMIC_RELEASE);
		return true;
	}
	return false;
}

static bool meet_blocked(void)
{
	struct rt_lane *lane = rt_lane_self();

	if (!lane)
		return false;
	if (lane->known)
		return true; /* by a handler's probe, before signals were blocked */
	if (!enter(lane))
		return false;
	__atomic_store_n(&lane->known, lane->source, __ATOMIC_RELEASE);
	return true;
}

/* Under a seccomp filter: no system call, so a handler's trigger may find us at work.  Then the
 * thread has two entries, which say the same. */
static bool meet_quiet(void)
{
	struct rt_lane *lane = rt_lane_self_quiet();

	if (lane && !lane->known && enter(lane))
		__atomic_store_n(&lane->known, lane->source, __ATOMIC_RELEASE);
	return lane && lane->known != 0;
}

static bool is_known(void)
{
	const struct rt_lane *lane = rt_thread_lane();

	return lane && lane->known;
}

static bool may_meet(void)
{
	return !rt_lane_is_mute() && !rt_proc_is_refused();
}

bool kron_rt_meet(void)
{
	bool met = false;
	uint64_t mask;

	if (!kron_rt.live)
		return false;
	/* the thunk's critical section needs it */
	if (rt_bus() == KRON_BUS_HARDWARE && !rt_has_rseq()) {
		rt_proc_count_lost(1);
		return false;
	}
	if (is_known())
		return true;
	rt_busy_begin();
	if (may_meet() && kron_rt.quiet) {
		met = meet_quiet();
	} else if (may_meet()) {
		mask = rt_signals_block();
		met = meet_blocked();
		rt_signals_restore(mask);
	}
	rt_busy_end();
	if (!met)
		rt_proc_count_lost(1);
	return met;
}

void kron_rt_lose(void)
{
	rt_proc_count_lost(1);
}

/* ---- exact ---- */

/*
 * The board waits for its FIFO, but its memory goes round whether the collector has fetched what
 * is there or not.  Who wants to lose nothing waits for the collector, too.  To ask costs a bus
 * cycle, so each thread asks now and then: between two looks it writes a fraction of what is
 * left free.
 */
#define LOOK_EVERY 1024u
#define NEARLY_FULL (KRON_BOARD_MEMORY_WORDS / 4 * 3)

static bool is_memory_nearly_full(void)
{
	uint32_t fetched = (uint32_t)__atomic_load_n(&kron_rt.ctl->fetched, __ATOMIC_ACQUIRE);
	uint32_t pointer = board_read32(&kron_rt.board, KRON_BOARD_MAP);

	return ((pointer - fetched) & KRON_MAP_MASK) > NEARLY_FULL;
}

/* NULL: the sample is lost.  A filter that comes now may leave us without a way to our lane. */
static struct rt_lane *met_lane(void)
{
	struct rt_lane *lane;

	if (!kron_rt_meet())
		return NULL;
	lane = rt_thread_lane();
	if (!lane)
		rt_proc_count_lost(1);
	return lane;
}

/* Afterwards we may be another process, and a thread that is not known. */
static struct rt_lane *wait_for_collector(void)
{
	if (!kron_rt.quiet && is_memory_nearly_full())
		rt_wait_while(is_memory_nearly_full);
	return met_lane();
}

static void take_exact(uint32_t word, uint64_t data)
{
	struct rt_lane *lane;

	if (kron_rt.named) {
		board_trigger(&kron_rt.board, word, rt_cpu(),
			      KRON_SOURCE(kron_rt.ctl->node, kron_rt.quiet
								     ? rt_tid_known(false)
								     : (uint32_t)sys_gettid()),
			      data);
		return;
	}
	lane = met_lane();
	if (lane && ++lane->claim % LOOK_EVERY == 0 && rt_when_full() == KRON_WHEN_FULL_WAIT)
		lane = wait_for_collector();
	if (lane && board_trigger(&kron_rt.board, word, rt_cpu(), lane->known, data) < 0)
		rt_proc_count_lost(1);
}

void rt_trigger(uint32_t word, uint64_t data)
{
	rt_busy_begin();
	take_exact(word, data);
	rt_busy_end();
}

void kron_rt_exact(uint32_t event, uint32_t payload, uint32_t gate)
{
	uint32_t word = gate & KRON_GATE_RESOURCE ? KRON_WORD_RESOURCE : KRON_WORD_TRACE;

	rt_trigger(word + (gate >> 4 & 15), (uint64_t)payload << 32 | event);
}
