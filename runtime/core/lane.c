/* SPDX-License-Identifier: MIT */
/*
 * lane.c - the slow path of a probe: no lane yet, or no room in its chunk.
 *
 *     thunk.S
 *        | claim says: no room                                       pool (chunks.c)
 *        v                                                          +--------------+
 *   kron_rt_slow --- nothing free, discard: lost += 1               |              |
 *        |                                                          |              |
 *        |  own lane? (register.c)                                  |              |
 *        v                                                          |              |
 *   work_begin -------------------------------- a second one at work: signals blocked
 *        |                                                          |              |
 *        v     claim: chunk c, all claimed -> NONE                  |              |
 *   let_go ------------------------------------------ c ----------> | OWNED->FULL  |
 *        |                                                          |              |
 *   rt_chunk_take <---------------------------------- n ----------- | FREE->OWNED  | or wait, or
 *        |     pages; records: CPU, LOST if any; the sample itself  |              | wrap, or lose
 *        v                                                          |              |
 *   begin      claim: NONE -> chunk n  --- not NONE any more: n --> | OWNED->FREE  | and again
 *        |                                                          +--------------+
 *        v
 *   work_end
 *
 * Signals are open.  Whoever blocks them changes the program: while a busy thread has them blocked the
 * kernel gives a signal of the process to another thread, which it would not have disturbed.
 *
 * What may interrupt what:
 *   A handler's probe may come between any two instructions of thunk.S and of this file, and run
 *   this file from end to end.  The handler may return, leave by longjmp, fork, or end the thread.
 *
 *   I1. A chunk is taken into use, and let go, by one compare-and-exchange of the claim word.
 *       The word says all that there is to say (lane.h), so it does not matter what it has been
 *       meanwhile: whoever finds "chunk c, all claimed" in it, and makes it NONE, is the only one
 *       to hand c over; whoever finds NONE, and puts a chunk there, is the only one to do that.
 *       Who loses goes back to the start and tries to claim, for then there is room, mostly.
 *   I2. One slow path of a thread at most works with signals open: that whose token `work` names.
 *       Another one on the same thread finds it there and blocks signals, so to the first it is one
 *       instruction, and nesting ends with it; it returns with nothing in hand.
 *   I3. What the first one has in hand, its lane says before it has it (`taken`, `leaving`).  Nobody
 *       else touches these chunks, and they are OWNED in the lane's name, so that a kill leaves
 *       them accountable.
 *   I4. A longjmp leaves `work` behind.  The frame that it names is gone when its token is: a
 *       frame that somebody may come back to has its memory untouched.  Who finds it gone takes its
 *       place and what it had in hand (take_over).  While nobody can tell, I2's second case holds.
 *   I5. A forked child comes back here with its lane wiped.  Its compare-and-exchanges fail, for a
 *       wiped claim word is 0 and never NONE.  Before it would write to a chunk it looks whether it
 *       is who it was.  (Between that look and the last of a dozen stores it may be too late, as in
 *       thunk.S between claim and store: then the child makes the same sample again.)
 *   I6. A new chunk's record of the CPU is written before the chunk is in use, when a handler's
 *       probe may still write another one to the chunk before.  So `cpu` says NONE from then on,
 *       and says something again only if it is still that NONE.
 *
 * Exactness: a trigger ends as one sample or as one loss.  A probe that a handler leaves by longjmp
 * before its sample exists has not taken place, nor has the function that it stands in front of.
 * Losses are counted at once in shared memory (a kill must not lose them), and again in the lane, for
 * the LOST record that shows in the trace where they were.
 */
#include <errno.h>
#include <limits.h>
#include <time.h>
#include <linux/futex.h>
#include "runtime/core/chunks.h"
#include "runtime/sys/memory.h"
#include "runtime/core/rt.h"
#include "runtime/core/thread.h"
#include "runtime/sys/signals.h"
#include "runtime/sys/sys.h"
#include "runtime/sys/mini.h"

#define WAIT_SLICE_NS 100000000 /* how often a waiter looks whether the collector still lives */
#define WAIT_MAX_MS 10000u      /* in which nothing at all was freed */
#define GROW_SLICE_NS 5000000   /* likewise where the pool can grow */
#define GROW_MAX_MS 100u        /* without growth */
#define IN_VAIN_MAX 1000u       /* handlers that installed a chunk while we did, and filled it */
#define DEEP 0x20000u           /* handlers in each other, on the stack of who waits */
#define STACK_MAX 0x10000000u
#define PATIENCE_WAIT_MS 30000u /* with --when-full wait */
#define PATIENCE_ELSE_MS 2000u  /* while the pool grows, or where kron ctl has said to wait */
#define PATIENCE_PAUSE_MS 60000u

struct rt_lane kron_rt_mute_lane;

/*
 * ---- one instruction each: whole for a handler on this thread ----
 *
 * And for other threads: two may share a lane until it shows that they share their thread data.
 */

static uint64_t claim_next(struct rt_lane *lane, uint32_t slots)
{
	return __atomic_fetch_add(&lane->claim, slots * RT_CLAIM_STEP, __ATOMIC_ACQ_REL);
}

static bool word_swap(uint64_t *word, uint64_t from, uint64_t to)
{
	return __atomic_compare_exchange_n(word, &from, to, false, __ATOMIC_ACQ_REL,
					   __ATOMIC_RELAXED);
}

/* Claims in vain are taken back, unless there is a fresh chunk by now. */
static void claim_settle(struct rt_lane *lane)
{
	uint64_t seen = __atomic_load_n(&lane->claim, __ATOMIC_RELAXED);

	if (!rt_claim_has_room(seen))
		word_swap(&lane->claim, seen, rt_claim_end(seen));
}

static int32_t lane_chunk(const struct rt_lane *lane)
{
	return rt_chunk_ending(rt_claim_end(__atomic_load_n(&lane->claim, __ATOMIC_RELAXED)));
}

/* ---- samples ---- */

static struct rt_stamp stamp_of(const struct rt_lane *lane)
{
	return (struct rt_stamp){lane->source, lane->head};
}

/* Copies of it would name the processor that the thread was on. */
static void lane_drop_stamp(struct rt_lane *lane)
{
	lane->stamp = 0;
	__atomic_signal_fence(__ATOMIC_RELEASE);
}

static void lane_set_cpu(struct rt_lane *lane, uint32_t cpu)
{
	/* The order matters: see thunk.S. */
	__atomic_store_n(&lane->head, KRON_HEAD_TRACE(cpu), __ATOMIC_RELAXED);
	lane_drop_stamp(lane);
	__atomic_store_n(&lane->cpu, cpu, __ATOMIC_RELEASE);
}

/* The thunk's work in C.  False: no room, though perhaps for less: that is filled. */
static bool lane_sample(struct rt_lane *lane, const struct rt_trigger *t)
{
	uint32_t slots = rt_trigger_slots(t), in_vain = 0;

	for (;;) {
		uint64_t claim = claim_next(lane, slots), addr = rt_claim_addr(claim);
		uint32_t cpu;

		if (!rt_claim_has_room(claim))
			return false;
		if (rt_claim_left(claim) < slots) {
			rt_fill_slots(stamp_of(lane), addr, rt_claim_left(claim));
			return false;
		}
		cpu = rt_cpu_read();
		if (cpu == lane->cpu) {
			if (rt_trigger_put(stamp_of(lane), addr, t,
					   in_vain < IN_VAIN_MAX ? &lane->claim : NULL,
					   claim + slots * RT_CLAIM_STEP))
				return true;
			rt_fill_slots(stamp_of(lane), addr, slots);
			in_vain++;
			continue;
		}
		lane_set_cpu(lane, cpu);
		rt_sample_put(stamp_of(lane), addr, KRON_EVENT_CPU, cpu);
		rt_fill_slots(stamp_of(lane), addr + KRON_SAMPLE_SIZE, slots - 1);
	}
}

static void lane_lose(struct rt_lane *lane)
{
	__atomic_fetch_add(&lane->lost, 1, __ATOMIC_RELAXED);
	rt_proc_count_lost(1);
}

/* head and cpu, as one word. */
static uint64_t *cpu_word(struct rt_lane *lane)
{
	return (uint64_t *)(void *)&lane->head;
}

static uint64_t cpu_said(uint32_t cpu)
{
	return (uint64_t)cpu << 32 | KRON_HEAD_TRACE(cpu);
}

/* ---- who is at work ---- */

#define TOKEN 0x6b726f6e776f726bull

struct work {
	volatile uint64_t token; /* TOKEN, its own address folded in, while we are at it */
	struct rt_lane *lane;
	uint64_t mine; /* the lane's word of an OWNED chunk */
	uint32_t uid;  /* of the process that began */
	bool nested;   /* signals are blocked */
	uint64_t mask;
};

static uint64_t token_at(uint64_t addr)
{
	return TOKEN ^ addr;
}

/*
 * Can nobody come back to the frame whose token lay there?  Ours lies where it did, or memory has
 * another use by now, or none: the kernel looks, so that it does not matter.  Memory that nobody
 * has used since proves nothing.  To requeue nobody is a comparison without a sleep: a futex that waits
 * for no time does so for the timer's slack, 50 us, and with SA_NODEFER the next signal may be there by then.
 */
static bool is_gone(const struct work *w, uint64_t token)
{
	long ret;

	if (token >= (uint64_t)w && token < (uint64_t)(w + 1))
		return true;
	if (kron_rt.quiet)
		return false;
	ret = sys6(__NR_futex, (long)token, FUTEX_CMP_REQUEUE_PRIVATE, 0, 0, (long)token,
		   (uint32_t)token_at(token));
	return ret == -EAGAIN || ret == -EFAULT;
}

/*
 * What a slow path had in hand that was left by longjmp.  With signals blocked: a handler's probe
 * could take such a chunk into use between our look at its word and what follows from that.
 */
static void take_over(const struct work *w)
{
	struct rt_lane *lane = w->lane;
	const uint64_t mask = rt_signals_block();
	const int32_t current = lane_chunk(lane);
	const int32_t leaving = (int32_t)lane->leaving - 1, taken = (int32_t)lane->taken - 1;

	if (leaving >= 0 && leaving != current)
		rt_chunk_hand_over((uint32_t)leaving, w->mine);
	if (taken >= 0 && taken != current &&
	    __atomic_load_n(&kron_rt.states[taken], __ATOMIC_ACQUIRE) == w->mine)
		rt_chunk_give((uint32_t)taken, w->mine, KRON_CHUNK_SIZE);
	lane->leaving = lane->taken = 0;
	rt_signals_restore(mask);
}

/* We are a child that a handler has forked since: the lane is wiped. */
static bool is_another(const struct work *w)
{
	return !__atomic_load_n(&w->lane->tid, __ATOMIC_RELAXED) ||
	       __atomic_load_n(&kron_rt.proc->uid, __ATOMIC_RELAXED) != w->uid;
}

static uint64_t word_of(const struct rt_lane *lane)
{
	const struct rt_proc *p = kron_rt.proc;

	return kron_chunk_word(KRON_CHUNK_OWNED, lane->tid, p->slot, p->uid);
}

/* False: another one is at work, and signals may not be blocked. */
static bool work_begin(struct work *w, struct rt_lane *lane)
{
	uint64_t there = __atomic_load_n(&lane->work, __ATOMIC_RELAXED);

	*w = (struct work){
		.token = token_at((uint64_t)&w->token),
		.lane = lane,
		.uid = kron_rt.proc->uid,
		.mine = word_of(lane),
	};
	if ((!there || is_gone(w, there)) && word_swap(&lane->work, there, (uint64_t)&w->token)) {
		if ((lane->taken || lane->leaving) && !kron_rt.quiet)
			take_over(w);
		return true;
	}
	w->token = 0;
	w->nested = !kron_rt.quiet;
	if (w->nested)
		w->mask = rt_signals_block();
	return w->nested;
}

static void work_end(struct work *w)
{
	if (w->nested) {
		rt_signals_restore(w->mask);
		return;
	}
	__atomic_store_n(&w->lane->work, 0, __ATOMIC_RELAXED);
	w->token = 0;
}

/* Where what is in hand is noted: of the one with signals open. */
static void note(struct work *w, uint32_t *where, uint32_t chunk)
{
	if (!w->nested)
		__atomic_store_n(where, chunk, __ATOMIC_RELAXED);
}

/* ---- one chunk after the other ---- */

/* All slots of the lane's chunk, if it has one, are claimed: the lane is without. */
static void let_go(struct work *w)
{
	struct rt_lane *lane = w->lane;
	uint64_t seen = __atomic_load_n(&lane->claim, __ATOMIC_RELAXED);
	int32_t chunk = rt_chunk_ending(rt_claim_end(seen));

	if (rt_claim_has_room(seen))
		return; /* a handler's probe was here */
	if (chunk < 0) {
		claim_settle(lane);
		return;
	}
	note(w, &lane->leaving, (uint32_t)chunk + 1);
	if (word_swap(&lane->claim, seen, RT_CLAIM_NONE))
		rt_chunk_hand_over((uint32_t)chunk, w->mine);
	note(w, &lane->leaving, 0);
}

#define BEGIN_MAX (KRON_CHUNK_HEADER + (3 + RT_PARTS_MAX) * KRON_SAMPLE_SIZE)

/* What a new chunk begins with: CPU, LOST if any, the sample.  Where the next one goes. */
static uint64_t fill_first(struct kron_chunk *chunk, struct rt_stamp stamp, uint32_t cpu,
			   uint64_t lost, const struct rt_trigger *t)
{
	uint64_t at = (uint64_t)(chunk + 1);

	chunk->source = stamp.source;
	rt_sample_put(stamp, at, KRON_EVENT_CPU, cpu);
	at += KRON_SAMPLE_SIZE;
	if (lost) {
		rt_sample_put(stamp, at, KRON_EVENT_LOST,
			      lost > UINT_MAX ? UINT_MAX : (uint32_t)lost);
		at += KRON_SAMPLE_SIZE;
		stamp.head |= KRON_HEAD_FIFO_OVERFLOW;
	}
	rt_trigger_put(stamp, at, t, NULL, 0); /* a handler's chunk makes this one vain (begin) */
	at += rt_trigger_slots(t) * KRON_SAMPLE_SIZE;
	/* Release: the records above; partner: collect/drain.c, for a chunk whose owner has died. */
	__atomic_store_n(&chunk->seq,
			 __atomic_add_fetch(&kron_rt.ctl->next_seq, 1, __ATOMIC_RELAXED),
			 __ATOMIC_RELEASE);
	return at;
}

/* A chunk that is ours, with the sample in it, is the lane's.  False: the lane has one, or is gone. */
static bool begin(struct work *w, uint32_t index, const struct rt_trigger *t)
{
	struct rt_lane *lane = w->lane;
	struct kron_chunk *chunk = rt_pool_chunk(index);
	uint64_t at, lost;
	uint32_t cpu;

	rt_pool_populate(index);
	if (is_another(w)) {
		/* Noted in our own memory, so it was we who took it, and not who forked us. */
		if (lane->taken == index + 1)
			rt_chunk_give(index, w->mine, 0);
		return false;
	}
	rt_cpu_note();
	cpu = rt_cpu_read();
	lost = __atomic_exchange_n(&lane->lost, 0, __ATOMIC_RELAXED);
	__atomic_store_n(cpu_word(lane), cpu_said(RT_CPU_NONE), __ATOMIC_RELAXED);
	at = fill_first(chunk, (struct rt_stamp){lane->source, KRON_HEAD_TRACE(cpu)}, cpu, lost, t);
	if (word_swap(&lane->claim, RT_CLAIM_NONE,
		      rt_claim_word(at, (uint32_t)((uint64_t)chunk + KRON_CHUNK_SIZE - at) /
						KRON_SAMPLE_SIZE))) {
		lane_drop_stamp(lane);
		word_swap(cpu_word(lane), cpu_said(RT_CPU_NONE), cpu_said(cpu));
		note(w, &lane->taken, 0);
		return true;
	}
	if (is_another(w))
		return false;
	rt_chunk_give(index, w->mine, BEGIN_MAX);
	note(w, &lane->taken, 0);
	__atomic_fetch_add(&lane->lost, lost, __ATOMIC_RELAXED);
	return false;
}

/* The chunk stays OWNED till the thread ends: only one whose last slot is claimed may be FULL. */
void rt_lane_mute(void)
{
	rt_thread_mute();
}

bool rt_lane_is_mute(void)
{
	return rt_thread_lane() == &kron_rt_mute_lane || kron_rt.mute;
}

/* ---- full ---- */

/* Never 0, whatever wake_waiters was. */
static uint64_t stuck_at(uint32_t seen)
{
	return 1ull << 32 | seen;
}

static bool may_wait(uint32_t seen)
{
	const struct kron_ctl *ctl = kron_rt.ctl;

	if (rt_when_full() != KRON_WHEN_FULL_WAIT)
		return rt_pool_can_grow() && !rt_collector_is_gone();
	return !kron_rt.quiet && kron_rt.stuck != stuck_at(seen) &&
	       !__atomic_load_n(&ctl->closing, __ATOMIC_ACQUIRE) && !rt_collector_is_gone();
}

/*
 * Every chunk may belong to a thread that sleeps, for ever perhaps, and perhaps on something
 * that we hold.  A program must not hang for our sake: after a long time without any room
 * triggers are lost again, until there is a sign of life.
 */
static void patience_ends(uint32_t seen)
{
	kron_rt.stuck = stuck_at(seen);
	rt_log("waited too long for room", seen);
}

/*
 * How long a thread waits in all, whatever signs of life the segment shows: they are words in memory that
 * all traced processes write to, other users' among them.  So they are believed for a time only.  Who
 * asked for --when-full wait wants to lose nothing, and is in no hurry; everybody else would rather
 * lose samples than time.  After that nobody in this process waits for a minute, so that it costs a
 * small part of its time at most.
 */
static bool has_waited_too_long(uint64_t *since, uint64_t now)
{
	if (!*since)
		*since = now;
	if (now - *since > (kron_rt.waits ? PATIENCE_WAIT_MS : PATIENCE_ELSE_MS))
		kron_rt.no_waits_ms = now + PATIENCE_PAUSE_MS;
	return now < kron_rt.no_waits_ms;
}

/* By the clock: a signal ends a slice early. */
struct patience {
	uint64_t since; /* ms; 0: we have not waited yet */
	uint64_t whole; /* likewise, whatever was freed meanwhile */
	uint32_t last;  /* wake_waiters then */
};

/* False: we have waited in vain, or may not. */
static bool is_patient(struct patience *p, uint32_t seen)
{
	const uint64_t now = sys_now_ms();

	if (!p->since || seen != p->last) {
		p->since = now;
		p->last = seen;
	}
	if (now - p->since > GROW_MAX_MS)
		rt_pool_growth_ends();
	if (now - p->since > WAIT_MAX_MS)
		patience_ends(seen);
	return may_wait(seen) && !has_waited_too_long(&p->whole, now);
}

static uint64_t signals_close(const struct work *w)
{
	return w->nested ? 0 : rt_signals_block();
}

static void signals_open(const struct work *w, uint64_t mask)
{
	if (!w->nested)
		rt_signals_restore(mask);
}

/*
 * Why nobody sleeps past his call; the partner is segment_wake_waiters() (collect/grow.c).
 *
 *     thread                                      collector
 *   1 seen = wake_waiters                       a a chunk is free, the pool has grown, or closing
 *   2 looks for what a does: nothing            b wake_waiters += 1
 *   3 waiters += 1                              c waiters == 0?  Then nobody is called
 *   4 futex: sleeps if wake_waiters == seen     d futex: wakes who sleeps
 *
 * If 1 has read what b wrote, 2 has found what a did: b releases it.  Else b comes after 1.  Then either c
 * finds what 3 wrote, and d wakes us, or comes before we sleep and b has spoilt 4; or it does not,
 * so c comes before 3, hence b before 4, and 4 finds another number.  That "c did not see 3, so 4
 * sees b" is what acquire and release cannot give: 1, b, c and 3 are sequentially consistent.  On x86
 * b and 3 are locked instructions, which wait for all stores before them, and 1 and c plain loads.
 * The slice is for another case: a collector that is dead calls nobody.
 */

/*
 * Sleep until the collector has freed something, at most a slice.
 * Handlers run meanwhile, unless it is one of theirs that waits (I2); so however fast signals
 * come, a thread waits twice at most.  One may fork, or leave by longjmp, so the trigger counts
 * as lost until we are back.  Signals are blocked while these books are kept: they are two words.
 */
static void wait_for_room(const struct work *w, uint32_t seen)
{
	struct kron_ctl *ctl = kron_rt.ctl;
	const long slice = rt_pool_can_grow() ? GROW_SLICE_NS : WAIT_SLICE_NS;
	const uint64_t mask = signals_close(w);
	const bool ours = !is_another(w);

	if (ours) {
		rt_proc_count_lost(1);
		__atomic_fetch_add(&ctl->waiters, 1, __ATOMIC_SEQ_CST);
		rt_collector_wake();
	}
	signals_open(w, mask);
	if (!ours)
		return;
	rt_pool_sleep(seen, slice);
	signals_close(w);
	if (!is_another(w)) { /* a child that a handler forked: the books are its parent's */
		__atomic_fetch_sub(&ctl->waiters, 1, __ATOMIC_RELAXED);
		rt_proc_count_lost((uint64_t)-1);
	}
	signals_open(w, mask);
}

/*
 * Waiting makes a handler longer than the time between two signals, and with SA_NODEFER the next
 * one comes as soon as it has waited.  Where that has filled a good part of the handlers' stack
 * the program would die of it: triggers are lost, and counted, until the stack is less full.
 */
static bool is_deep(const struct work *w)
{
	struct {
		uint64_t start;
		int32_t flags;
		uint64_t size;
	} stack = {0, 0, 0};
	uint64_t here = (uint64_t)w;

	if (!w->nested || sys2(__NR_sigaltstack, 0, (long)&stack))
		return false;
	if (here - stack.start < stack.size)
		return here - stack.start < stack.size / 2;
	return w->lane->work - here < STACK_MAX && w->lane->work - here > DEEP;
}

void rt_wait_while(bool (*full)(void))
{
	struct rt_lane *lane = rt_thread_lane();
	struct patience p = {0, 0, 0};
	struct work w;

	if (!lane || !lane->tid || !work_begin(&w, lane))
		return;
	rt_pool_growth_ends(); /* chunks are nothing to us */
	for (;;) {
		uint32_t seen = __atomic_load_n(&kron_rt.ctl->wake_waiters, __ATOMIC_SEQ_CST);

		if (is_another(&w) || !full() || !is_patient(&p, seen))
			break;
		wait_for_room(&w, seen);
	}
	work_end(&w);
}

/* ---- the slow path ---- */

/* Nothing is free, nobody waits for it, and there is nothing to hand over: no system call. */
static bool can_only_lose(const struct rt_lane *lane)
{
	const struct kron_ctl *ctl = kron_rt.ctl;

	if (lane->tid == 0 || lane_chunk(lane) >= 0)
		return false;
	if (__atomic_load_n(&ctl->free_count, __ATOMIC_RELAXED) > 0)
		return false;
	if (rt_when_full() == KRON_WHEN_FULL_WAIT)
		return kron_rt.orphan || __atomic_load_n(&ctl->closing, __ATOMIC_RELAXED);
	return rt_when_full() == KRON_WHEN_FULL_DISCARD && !rt_pool_can_grow();
}

/* False: we are another process now, and all begins again. */
static bool slow(struct work *w, const struct rt_trigger *t)
{
	struct patience p = {0, 0, 0};
	uint32_t in_vain = 0;

	while (!is_another(w)) {
		uint32_t seen = __atomic_load_n(&kron_rt.ctl->wake_waiters, __ATOMIC_SEQ_CST);
		int32_t index;

		if (lane_sample(w->lane, t))
			return true;
		let_go(w);
		index = rt_chunk_take(w->mine, w->nested ? NULL : &w->lane->taken);
		if (index >= 0 && begin(w, (uint32_t)index, t))
			return true;
		if (is_another(w))
			break;
		if (index >= 0 && in_vain++ < IN_VAIN_MAX)
			continue;
		if (index >= 0 || kron_rt.quiet || is_deep(w) || !is_patient(&p, seen)) {
			lane_lose(w->lane);
			return true;
		}
		wait_for_room(w, seen);
	}
	return false;
}

static void trigger_take(const struct rt_trigger *t)
{
	struct rt_lane *lane = rt_thread_lane();
	struct work w;
	bool done = false;

	if (!kron_rt.live)
		return;
	if (lane == &kron_rt_mute_lane || kron_rt.mute) {
		if (lane)
			claim_settle(lane);
		rt_proc_count_lost(1);
		return;
	}
	if (lane && can_only_lose(lane)) {
		claim_settle(lane);
		lane_lose(lane);
		return;
	}
	if (rt_proc_is_refused()) {
		rt_proc_count_lost(1);
		return;
	}
	if (!rt_thunks_find_lanes() && lane && lane->tid && lane_sample(lane, t))
		return;
	rt_busy_begin();
	while (!done) {
		lane = rt_lane_find();
		if (!lane) {
			rt_proc_count_lost(1);
			break;
		}
		if (!work_begin(&w, lane)) {
			lane_lose(lane);
			break;
		}
		done = slow(&w, t);
		work_end(&w);
	}
	rt_busy_end();
}

/* Nobody has looked whether there is room.  Thread data may be the program's own (strangers.c). */
void rt_trigger_take(const struct rt_trigger *t)
{
	struct rt_lane *lane = rt_thread_lane();

	if (!kron_rt.live || kron_rt.mute || rt_proc_is_refused() || lane < kron_rt.lanes ||
	    lane >= kron_rt.lanes + RT_LANES_MAX || !lane->tid || !lane_sample(lane, t))
		trigger_take(t);
}

void kron_rt_slow(uint32_t event, uint32_t payload)
{
	const struct rt_trigger trigger = {.event = event, .payload = payload};

	trigger_take(&trigger);
}

void kron_rt_resource(uint32_t event, uint32_t payload)
{
	const struct rt_trigger trigger = {.event = event, .payload = payload, .resource = true};

	trigger_take(&trigger);
}

void kron_rt_slow_wide(uint32_t event, uint64_t payload, uint64_t claim)
{
	const struct rt_part high = {KRON_EVENT_WIDE, (uint32_t)(payload >> 32)};
	const struct rt_trigger trigger = {
		.event = event, .payload = (uint32_t)payload, .nparts = 1, .parts = &high};
	const struct rt_lane *lane = rt_thread_lane();
	uint32_t left = rt_claim_left(claim);

	/* A chunk that is handed over has no empty ones. */
	if (claim && lane && lane->tid)
		rt_fill_slots(stamp_of(lane), rt_claim_addr(claim),
			      left < KRON_WIDE_SLOTS ? left : KRON_WIDE_SLOTS);
	trigger_take(&trigger);
}

void rt_lane_record(uint32_t event, uint32_t payload, uint32_t tid)
{
	const struct rt_trigger t = {
		.event = event, .payload = payload, .source = KRON_SOURCE(kron_rt.ctl->node, tid)};
	struct rt_lane *lane = rt_thread_lane();
	uint32_t in_vain = 0;
	struct work w;

	if (!lane || !work_begin(&w, lane)) /* a filter may have come since it was looked for */
		return;
	while (in_vain++ < IN_VAIN_MAX && !is_another(&w) && !lane_sample(lane, &t)) {
		int32_t index;

		let_go(&w);
		index = rt_chunk_take(w.mine, w.nested ? NULL : &lane->taken);
		if (index < 0 || begin(&w, (uint32_t)index, &t))
			break;
	}
	work_end(&w);
}

/*
 * Constant time, and a sample that is not to be taken: what registers a thread that takes one
 * registers this one, too.  Its lane need not have room.
 */
static void meet_lane(void)
{
	if (!kron_rt.live || rt_proc_is_refused())
		return;
	rt_busy_begin();
	rt_lane_find();
	rt_busy_end();
}

void kron_rt_slow_constant(uint32_t event, uint32_t payload, uint32_t take)
{
	if (take)
		kron_rt_slow(event, payload);
	else
		meet_lane();
}
