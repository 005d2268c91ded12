/* SPDX-License-Identifier: MIT */
/*
 * lane.c - the slow path of a probe: no lane yet, or no room in its chunk.
 *
 *        thunk.S
 *           | claim says: no room                     board
 *           v                                    +-------------+
 *     kron_rt_slow --- nothing free, discard --> | lost += 1   |
 *           |                                    |             |
 *           | signals blocked                    |             |
 *           v                                    |             |
 *     own lane? (register) --> hand over the --> | OWNED->FULL |
 *           |                  old chunk         |             |
 *           v                                    |             |
 *     take a chunk <---------------------------- | FREE->OWNED | or wait, or wrap, or lose
 *           |                                    +-------------+
 *           v
 *     records: CPU, LOST if any, then the sample itself; publish the claim word
 *
 * What may interrupt what:
 *   A handler's probe may come between any two instructions of thunk.S.  It may run this file
 *   from end to end.  So the slow path, once signals are blocked, first tries to claim again.
 *   While signals are blocked the lane is ours alone.  They are not blocked in wait_for_room()
 *   (the handler may fork, or leave by longjmp) nor in quiet mode (lane->busy guards it).
 *
 * Exactness: a trigger ends as one sample or as one loss.  Losses are counted at once in
 * shared memory (a kill must not lose them), and again in the lane, for the LOST record that
 * shows in the trace where they were.
 */
#include <errno.h>
#include <limits.h>
#include <sys/mman.h>
#include <time.h>
#include <linux/futex.h>
#include <linux/mman.h>
#include "board/holes.h"
#include "runtime/rt.h"
#include "runtime/sys.h"
#include "runtime/mini.h"

#define WAIT_SLICE_NS 100000000 /* how often a waiter looks whether the collector still lives */
#define WAIT_SLICES_MAX 100u    /* 10 s in which nothing at all was freed */
#define GROW_SLICE_NS 5000000   /* likewise where the pool can grow */
#define GROW_SLICES_MAX 20u     /* 0.1 s without growth, less under a storm of signals */
#define SWEEP_MIN 64u
#define QUIET_CHUNKS 512u /* 32 MiB, opened before a seccomp filter */

/* Stands in for the lane of a thread that may take no sample: it never has room. */
static struct rt_lane mute_lane;

#ifndef RT_STATIC
__thread struct rt_lane *kron_rt_lane;
#endif

/* ---- samples ---- */

static uint64_t claim_next(struct rt_lane *lane, uint32_t slots)
{
	uint64_t old = slots * RT_CLAIM_STEP;

	/* One instruction: whole for a handler on this thread, the only one it meets. */
	__asm__ volatile(RT_LOCKED "xaddq %0, %1"
			 : "+r"(old), "+m"(lane->claim)
			 :
			 : "cc", "memory");
	return old;
}

/* An exhausted claim word back to zero, unless a handler has just made it a fresh one. */
static void claim_exhaust(struct rt_lane *lane)
{
	uint64_t seen = __atomic_load_n(&lane->claim, __ATOMIC_RELAXED);

	if (!rt_claim_has_room(seen))
		__asm__ volatile(RT_LOCKED "cmpxchgq %2, %1"
				 : "+a"(seen), "+m"(lane->claim)
				 : "r"(0ul)
				 : "cc", "memory");
}

static void lane_set_cpu(struct rt_lane *lane, uint32_t cpu)
{
	/* In this order: see thunk.S. */
	__atomic_store_n(&lane->head, KRON_HEAD_TRACE(cpu), __ATOMIC_RELAXED);
	__atomic_store_n(&lane->cpu, cpu, __ATOMIC_RELEASE);
}

/* The thunk's work in C.  False: no room, though perhaps for less: that is filled. */
static bool lane_sample(struct rt_lane *lane, const struct rt_trigger *t)
{
	uint32_t slots = rt_trigger_slots(t);

	for (;;) {
		uint64_t claim = claim_next(lane, slots), addr = rt_claim_addr(claim);
		uint32_t cpu;

		if (!rt_claim_has_room(claim))
			return false;
		if (rt_claim_left(claim) < slots) {
			rt_fill_slots(lane, addr, rt_claim_left(claim));
			return false;
		}
		cpu = rt_cpu_read();
		if (cpu == lane->cpu) {
			rt_trigger_put(lane, addr, t, 0);
			return true;
		}
		lane_set_cpu(lane, cpu);
		rt_sample_put(lane, addr, KRON_EVENT_CPU, cpu, 0);
		rt_fill_slots(lane, addr + KRON_SAMPLE_SIZE, slots - 1);
	}
}

static void lane_lose(struct rt_lane *lane)
{
	__atomic_fetch_add(&lane->lost, 1, __ATOMIC_RELAXED);
	rt_proc_count_lost(1);
}

/* ---- registration ---- */

/* The i-th lane that this process has given out. */
static struct rt_lane *lane_at(uint32_t i)
{
	return &kron_rt.lanes[(kron_rt.proc->first_lane + i) % RT_LANES_MAX];
}

static void lanes_sweep(uint32_t tid)
{
	struct rt_proc *p = kron_rt.proc;
	uint32_t used = __atomic_load_n(&p->lanes_used, __ATOMIC_RELAXED);
	uint32_t i;

	for (i = 0; i < used; i++) {
		struct rt_lane *lane = lane_at(i);
		uint32_t owner = __atomic_load_n(&lane->tid, __ATOMIC_RELAXED);

		if (owner == 0 || owner == RT_TID_DEAD)
			continue;
		/* A lane with our number is an earlier thread's: we are only registering now. */
		if (owner != tid && sys3(__NR_tgkill, p->pid, owner, 0) != -ESRCH)
			continue;
		if (__atomic_compare_exchange_n(&lane->tid, &owner, RT_TID_DEAD, false,
						__ATOMIC_RELAXED, __ATOMIC_RELAXED))
			__atomic_fetch_add(&p->lanes_dead, 1, __ATOMIC_RELAXED);
	}
}

static struct rt_lane *lane_reuse(uint32_t tid)
{
	struct rt_proc *p = kron_rt.proc;
	uint32_t used = __atomic_load_n(&p->lanes_used, __ATOMIC_RELAXED);
	uint32_t i;

	if (__atomic_load_n(&p->lanes_dead, __ATOMIC_RELAXED) == 0)
		return NULL;
	for (i = 0; i < used; i++) {
		uint32_t dead = RT_TID_DEAD;

		if (__atomic_compare_exchange_n(&lane_at(i)->tid, &dead, tid, false,
						__ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
			__atomic_fetch_sub(&p->lanes_dead, 1, __ATOMIC_RELAXED);
			return lane_at(i);
		}
	}
	return NULL;
}

static struct rt_lane *lane_fresh(uint32_t tid)
{
	struct rt_proc *p = kron_rt.proc;
	uint32_t used = __atomic_load_n(&p->lanes_used, __ATOMIC_RELAXED);

	while (used < RT_LANES_MAX) {
		if (__atomic_compare_exchange_n(&p->lanes_used, &used, used + 1, false,
						__ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
			__atomic_fetch_add(&kron_rt.lanes_before, 1, __ATOMIC_RELAXED);
			__atomic_store_n(&lane_at(used)->tid, tid, __ATOMIC_RELAXED);
			return lane_at(used);
		}
	}
	return NULL;
}

/*
 * A lane for a new thread.  Threads do not tell when they end, so the lanes of dead ones are
 * found by asking the kernel, each time that twice as many are used as after the last look.
 */
static struct rt_lane *lane_get(uint32_t tid)
{
	struct rt_proc *p = kron_rt.proc;
	struct rt_lane *lane = lane_reuse(tid);
	uint32_t used = __atomic_load_n(&p->lanes_used, __ATOMIC_RELAXED);
	uint32_t sweep_at = __atomic_load_n(&p->sweep_at, __ATOMIC_RELAXED);

	if (!lane && used >= (sweep_at ? sweep_at : SWEEP_MIN)) {
		lanes_sweep(tid);
		used -= __atomic_load_n(&p->lanes_dead, __ATOMIC_RELAXED);
		sweep_at = 2 * used < SWEEP_MIN ? SWEEP_MIN : 2 * used;
		if (sweep_at > RT_LANES_MAX)
			sweep_at = RT_LANES_MAX;
		__atomic_store_n(&p->sweep_at, sweep_at, __ATOMIC_RELAXED);
		lane = lane_reuse(tid);
	}
	return lane ? lane : lane_fresh(tid);
}

static struct rt_lane *lane_register(struct rt_lane *lane, uint32_t tid)
{
	if (!lane)
		return NULL;
	lane->claim = 0;
	lane->chunk = 0;
	lane->known = 0;
	lane->busy = 0;
	lane->lost = 0;
	lane->source = KRON_SOURCE(kron_rt.ctl->node, tid);
	rt_tid_registered(tid);
	rt_thread_set_lane(lane);
	return lane;
}

/*
 * The calling thread's lane, made if there is none.  NULL: this thread cannot have one.
 *
 * A lane that is registered is used as it is, also by a vfork child, which runs on its
 * parent's thread data while the parent sleeps.  It never registers one itself: the name in
 * it would be a process that is about to be another program.
 */
struct rt_lane *rt_lane_self(void)
{
	struct rt_lane *lane = rt_thread_lane();
	uint32_t tid;

	if (lane && lane->tid)
		return lane;
	if (!rt_proc_ensure() || !rt_proc_is_ours())
		return NULL;
	tid = (uint32_t)sys_gettid();
	return lane_register(lane_get(tid), tid);
}

/*
 * The same without a system call.  Lanes of dead threads cannot be found then.  Signals are open:
 * a handler's trigger that finds us at work is lost.  `at_work` is not taken over by a child that
 * the handler forks: there it names another process.
 */
struct rt_lane *rt_lane_self_quiet(void)
{
	static RT_THREAD uint32_t at_work;
	struct rt_lane *lane = rt_thread_lane();
	uint32_t me = kron_rt.proc->uid + 1;
	uint32_t tid;

	if (lane && lane->tid)
		return lane;
	if (__atomic_exchange_n(&at_work, me, __ATOMIC_ACQUIRE) == me)
		return NULL;
	tid = rt_proc_ensure_quiet(lane != NULL) ? rt_tid_known(false) : 0;
	lane = tid ? lane_reuse(tid) : NULL;
	if (tid && !lane)
		lane = lane_fresh(tid);
	lane = lane_register(lane, tid);
	__atomic_store_n(&at_work, 0, __ATOMIC_RELEASE);
	return lane;
}

/* ---- chunks ---- */

static uint64_t lane_word(const struct rt_lane *lane, enum kron_chunk_state state)
{
	const struct rt_proc *p = kron_rt.proc;

	return kron_chunk_word(state, lane->tid, p->slot, p->uid);
}

static void hand_over(struct rt_lane *lane)
{
	uint32_t index = lane->chunk;

	if (!index)
		return;
	lane->chunk = 0;
	/* Release: pairs with the acquire of whoever takes a FULL chunk. */
	__atomic_store_n(&kron_rt.states[index - 1], lane_word(lane, KRON_CHUNK_FULL),
			 __ATOMIC_RELEASE);
}

static void wake_collector(void)
{
	__atomic_fetch_add(&kron_rt.ctl->wake_collector, 1, __ATOMIC_RELEASE);
	if (!kron_rt.quiet)
		sys3(__NR_futex, (long)&kron_rt.ctl->wake_collector, FUTEX_WAKE, INT_MAX);
}

static void note_opened(uint32_t chunks)
{
	uint32_t opened = __atomic_load_n(&kron_rt.opened, __ATOMIC_RELAXED);

	while (opened < chunks &&
	       !__atomic_compare_exchange_n(&kron_rt.opened, &opened, chunks, false,
					    __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
}

/*
 * Chunks [0, n) that we may touch: those that have pages, opened here as the pool grows.  In
 * quiet mode it does not grow for us any more.
 */
static uint32_t usable_chunks(void)
{
	uint32_t ready = __atomic_load_n(&kron_rt.ctl->chunks_ready, __ATOMIC_ACQUIRE);
	uint32_t opened = __atomic_load_n(&kron_rt.opened, __ATOMIC_ACQUIRE);
	uint64_t from = (uint64_t)opened * KRON_CHUNK_SIZE;

	if (ready > kron_rt.chunks)
		ready = kron_rt.chunks;
	if (ready <= opened)
		return ready;
	if (kron_rt.quiet ||
	    sys_mprotect(kron_rt.pool + from, (uint64_t)ready * KRON_CHUNK_SIZE - from,
			 PROT_READ | PROT_WRITE))
		return opened;
	note_opened(ready);
	return ready;
}

/* Chunks that have no pages yet are not touched before they are FREE (take_free). */
void rt_lane_open_ahead(void)
{
	uint32_t opened = usable_chunks();
	uint32_t wanted = kron_rt.chunks < QUIET_CHUNKS ? kron_rt.chunks : QUIET_CHUNKS;
	uint64_t from = (uint64_t)opened * KRON_CHUNK_SIZE;

	if (opened < wanted &&
	    !sys_mprotect(kron_rt.pool + from, (uint64_t)wanted * KRON_CHUNK_SIZE - from,
			  PROT_READ | PROT_WRITE))
		note_opened(wanted);
}

/* Index of a chunk that is now ours, or -1. */
static int32_t take_free(const struct rt_lane *lane)
{
	struct kron_ctl *ctl = kron_rt.ctl;
	uint32_t ready = usable_chunks();
	uint64_t mine = lane_word(lane, KRON_CHUNK_OWNED);
	uint32_t i;

	for (i = 0; i < ready; i++) {
		uint64_t word = __atomic_load_n(&kron_rt.states[i], __ATOMIC_RELAXED);

		/* Acquire: pairs with the collector's release of a zeroed chunk. */
		if (kron_chunk_word_state(word) == KRON_CHUNK_FREE &&
		    __atomic_compare_exchange_n(&kron_rt.states[i], &word, mine, false,
						__ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
			int32_t left = __atomic_sub_fetch(&ctl->free_count, 1, __ATOMIC_RELAXED);

			if (2 * (int64_t)left < (int64_t)ready)
				wake_collector();
			return (int32_t)i;
		}
	}
	return -1;
}

static struct kron_chunk *chunk_at(uint32_t index)
{
	return (struct kron_chunk *)(kron_rt.pool + (uint64_t)index * KRON_CHUNK_SIZE);
}

/* A process of another pid namespace cannot be asked about from here, nor from there. */
static bool owner_is_gone(uint64_t owner)
{
	const struct kron_proc *s = &kron_rt.procs[kron_chunk_word_slot(owner) % KRON_PROCS_MAX];
	uint32_t flags = s->flags | kron_rt.procs[kron_rt.proc->slot].flags;

	return !kron_rt.quiet && !(flags & KRON_PROC_FOREIGN_PIDNS) &&
	       sys3(__NR_tgkill, s->pid, kron_chunk_word_tid(owner), 0) == -ESRCH;
}

/*
 * Triggers in a FULL chunk, those included that were cut off; -1 when somebody may still be
 * writing there.  Every slot of a FULL chunk was claimed, unless its owner died and the
 * collector made it FULL: then nobody writes, and the zeros at the end are unused room.
 */
static int32_t count_triggers(const struct kron_chunk *chunk, uint64_t owner)
{
	const struct kron_sample *s = (const struct kron_sample *)(chunk + 1);
	uint32_t end = KRON_CHUNK_SAMPLES;
	bool gone = false;
	int32_t triggers = 0;
	uint32_t i;

	for (i = 0; i < end; i++) {
		uint32_t head = __atomic_load_n(&s[i].head, __ATOMIC_ACQUIRE);

		if (head == 0 && !gone && !kron_hole_is_abandoned(s, i)) {
			if (!owner_is_gone(owner))
				return -1;
			gone = true;
			while (end > i && s[end - 1].head == 0)
				end--;
		}
		triggers += i < end && (head == 0 || s[i].event < KRON_EVENT_SPECIAL);
	}
	return triggers;
}

/* The FULL chunk with the lowest sequence number above `above`, or -1; *word is its state. */
static int32_t oldest_full(uint64_t above, uint64_t *seq, uint64_t *word)
{
	uint32_t usable = usable_chunks();
	uint64_t best_seq = UINT64_MAX;
	int32_t best = -1;
	uint32_t i;

	for (i = 0; i < usable; i++) {
		uint64_t w = __atomic_load_n(&kron_rt.states[i], __ATOMIC_ACQUIRE);
		uint64_t s;

		if (kron_chunk_word_state(w) != KRON_CHUNK_FULL)
			continue;
		s = __atomic_load_n(&chunk_at(i)->seq, __ATOMIC_RELAXED);
		if (s > above && s < best_seq) {
			best_seq = s;
			best = (int32_t)i;
			*word = w;
		}
	}
	*seq = best_seq;
	return best;
}

static void count_wrapped(uint64_t owner, uint64_t triggers)
{
	struct kron_proc *s = &kron_rt.procs[kron_chunk_word_slot(owner) % KRON_PROCS_MAX];
	uint64_t uid = __atomic_load_n(&s->state, __ATOMIC_RELAXED) >> 8;

	if ((uid & 0x3fffff) == kron_chunk_word_uid(owner))
		__atomic_fetch_add(&s->lost, triggers, __ATOMIC_RELAXED);
	else
		__atomic_fetch_add(&kron_rt.ctl->lost_unowned, triggers, __ATOMIC_RELAXED);
}

/*
 * Wrap mode: the oldest full chunk goes.  It is taken first and looked at then: with a hole in
 * it, somebody may still be writing there, so it goes back and the next one is tried.
 * seq = 0 before the count: a kill in between leaves a chunk whose samples do not count.
 */
static int32_t take_oldest(const struct rt_lane *lane)
{
	uint64_t mine = lane_word(lane, KRON_CHUNK_OWNED);
	uint64_t seq = 0;
	uint64_t word = 0;
	int32_t index;

	while ((index = oldest_full(seq, &seq, &word)) >= 0) {
		struct kron_chunk *chunk = chunk_at((uint32_t)index);
		uint64_t *state = &kron_rt.states[index];
		const uint64_t owner = word;
		int32_t triggers;

		if (!__atomic_compare_exchange_n(state, &word, mine, false, __ATOMIC_ACQUIRE,
						 __ATOMIC_RELAXED))
			continue;
		triggers = count_triggers(chunk, owner);
		if (triggers < 0) {
			__atomic_store_n(state, owner, __ATOMIC_RELEASE);
			continue;
		}
		__atomic_store_n(&chunk->seq, 0, __ATOMIC_RELEASE);
		count_wrapped(owner, (uint64_t)triggers);
		mini_zero(chunk, KRON_CHUNK_SIZE);
		return index;
	}
	return -1;
}

/*
 * The pool is not full while it can still grow.  A thread that fills chunks faster than the
 * collector adds them (a third of a millisecond for a MiB, if it gets a processor) waits for
 * it in every mode.  When that brings nothing the pool counts as full, until it has grown.
 */
static bool can_grow(void)
{
	const struct kron_ctl *ctl = kron_rt.ctl;
	uint32_t ready = __atomic_load_n(&ctl->chunks_ready, __ATOMIC_RELAXED);

	return ready < kron_rt.chunks && kron_rt.grown_to != ready && !kron_rt.quiet &&
	       !kron_rt.orphan && !__atomic_load_n(&ctl->closing, __ATOMIC_RELAXED);
}

static void growth_ends(void)
{
	kron_rt.grown_to = __atomic_load_n(&kron_rt.ctl->chunks_ready, __ATOMIC_RELAXED);
}

static int32_t chunk_take(const struct rt_lane *lane)
{
	int32_t index = take_free(lane);

	if (index < 0 && kron_rt.ctl->when_full == KRON_WHEN_FULL_WRAP && !can_grow())
		index = take_oldest(lane);
	return index;
}

/*
 * First touches of pages, in the midst of samples, would double a probe's cost: have them all
 * made at once, the first time that this process gets the chunk.
 */
static void populate(uint32_t index)
{
	uint64_t bit = 1ull << index % 64;
	uint64_t *word = &kron_rt.proc->populated[index / 64];

	if (kron_rt.quiet || __atomic_load_n(word, __ATOMIC_RELAXED) & bit)
		return;
	sys_madvise(chunk_at(index), KRON_CHUNK_SIZE, MADV_POPULATE_WRITE);
	__atomic_fetch_or(word, bit, __ATOMIC_RELAXED);
}

/* Fill the head of a chunk that is ours, take the sample, and open the rest for claims. */
static void lane_begin(struct rt_lane *lane, uint32_t index, const struct rt_trigger *t)
{
	struct kron_chunk *chunk = chunk_at(index);
	uint64_t at = (uint64_t)(chunk + 1);
	uint32_t left = KRON_CHUNK_SAMPLES;
	uint32_t overflow = 0;
	uint64_t lost;

	populate(index);
	chunk->source = lane->source;
	__atomic_store_n(&chunk->seq,
			 __atomic_add_fetch(&kron_rt.ctl->next_seq, 1, __ATOMIC_RELAXED),
			 __ATOMIC_RELEASE);

	rt_cpu_note();
	lane_set_cpu(lane, rt_cpu_read());
	rt_sample_put(lane, at, KRON_EVENT_CPU, lane->cpu, 0);
	at += KRON_SAMPLE_SIZE;
	left--;

	lost = __atomic_exchange_n(&lane->lost, 0, __ATOMIC_RELAXED);
	if (lost) {
		overflow = KRON_HEAD_FIFO_OVERFLOW;
		rt_sample_put(lane, at, KRON_EVENT_LOST,
			      lost > UINT_MAX ? UINT_MAX : (uint32_t)lost, 0);
		at += KRON_SAMPLE_SIZE;
		left--;
	}
	rt_trigger_put(lane, at, t, overflow);
	at += rt_trigger_slots(t) * KRON_SAMPLE_SIZE;
	left -= rt_trigger_slots(t);

	lane->chunk = index + 1;
	__atomic_store_n(&lane->claim, rt_claim_word(at, left), __ATOMIC_RELEASE);
}

/* The chunk stays OWNED till the thread ends: only one whose last slot is claimed may be FULL. */
void rt_lane_mute(void)
{
#ifdef RT_STATIC
	kron_rt.mute = true; /* there is no place for what is one thread's only */
	rt_thread_forget();
#else
	rt_thread_set_lane(&mute_lane);
#endif
}

bool rt_lane_is_mute(void)
{
	return rt_thread_lane() == &mute_lane || kron_rt.mute;
}

/* ---- full ---- */

static bool may_wait(uint32_t seen)
{
	const struct kron_ctl *ctl = kron_rt.ctl;

	if (kron_rt.stuck && kron_rt.stuck_at != seen)
		kron_rt.stuck = false;
	if (ctl->when_full != KRON_WHEN_FULL_WAIT)
		return can_grow() && !rt_collector_is_gone();
	return !kron_rt.quiet && !kron_rt.stuck &&
	       !__atomic_load_n(&ctl->closing, __ATOMIC_ACQUIRE) && !rt_collector_is_gone();
}

/*
 * Every chunk may belong to a thread that sleeps, for ever perhaps, and perhaps on something
 * that we hold.  A program must not hang for our sake: after a long time without any room
 * triggers are lost again, until there is a sign of life.
 */
static void patience_ends(uint32_t seen)
{
	kron_rt.stuck_at = seen;
	__atomic_store_n(&kron_rt.stuck, true, __ATOMIC_RELEASE);
	rt_log("waited too long for room", seen);
}

/*
 * Sleep until the collector has freed something, at most a slice.  `seen` is wake_waiters from
 * before we looked for a chunk: had it changed since, the kernel would not let us sleep.
 * Handlers run meanwhile: one may fork (the child comes back here with its lane wiped) or leave
 * by longjmp, so the trigger counts as lost until we are back.
 */
static void wait_for_room(uint64_t mask, uint32_t seen)
{
	struct kron_ctl *ctl = kron_rt.ctl;
	struct timespec slice = {.tv_sec = 0,
				 .tv_nsec = can_grow() ? GROW_SLICE_NS : WAIT_SLICE_NS};
	uint32_t uid = kron_rt.proc->uid;

	rt_proc_count_lost(1);
	__atomic_fetch_add(&ctl->waiters, 1, __ATOMIC_SEQ_CST);
	wake_collector();
	rt_signals_restore(mask);
	sys4(__NR_futex, (long)&ctl->wake_waiters, FUTEX_WAIT, seen, (long)&slice);
	rt_signals_block();
	if (kron_rt.proc->uid != uid)
		return; /* a child that a handler forked: the books are its parent's */
	__atomic_fetch_sub(&ctl->waiters, 1, __ATOMIC_RELAXED);
	rt_proc_count_lost((uint64_t)-1);
}

void rt_wait_while(bool (*full)(void))
{
	uint32_t slices = 0;
	uint32_t last = 0;
	uint64_t since = 0, mask;

	growth_ends(); /* chunks are nothing to us */
	mask = rt_signals_block();
	for (;;) {
		uint32_t seen = __atomic_load_n(&kron_rt.ctl->wake_waiters, __ATOMIC_SEQ_CST);

		if (!full())
			break;
		slices = seen == last ? slices + 1 : 0;
		last = seen;
		if (slices > WAIT_SLICES_MAX)
			patience_ends(seen);
		if (!may_wait(seen) || rt_waited_too_long(&since))
			break;
		wait_for_room(mask, seen);
	}
	rt_signals_restore(mask);
}

/* ---- the slow path ---- */

/* Nothing is free, nobody waits for it, and there is nothing to hand over: no system call. */
static bool can_only_lose(const struct rt_lane *lane)
{
	const struct kron_ctl *ctl = kron_rt.ctl;

	if (lane->tid == 0 || lane->chunk != 0 || rt_claim_has_room(lane->claim))
		return false;
	if (__atomic_load_n(&ctl->free_count, __ATOMIC_RELAXED) > 0)
		return false;
	if (ctl->when_full == KRON_WHEN_FULL_WAIT)
		return kron_rt.orphan || __atomic_load_n(&ctl->closing, __ATOMIC_RELAXED);
	return ctl->when_full == KRON_WHEN_FULL_DISCARD && !can_grow();
}

static void slow_blocked(const struct rt_trigger *t, uint64_t mask)
{
	uint32_t slices = 0;
	uint32_t last = 0;
	uint64_t since = 0;

	for (;;) {
		uint32_t seen = __atomic_load_n(&kron_rt.ctl->wake_waiters, __ATOMIC_SEQ_CST);
		struct rt_lane *lane = rt_lane_self();
		int32_t index;

		if (!lane) {
			rt_proc_count_lost(1);
			return;
		}
		if (lane_sample(lane, t))
			return;
		claim_exhaust(lane);
		hand_over(lane);
		index = chunk_take(lane);
		if (index >= 0) {
			lane_begin(lane, (uint32_t)index, t);
			return;
		}
		slices = seen == last ? slices + 1 : 0;
		last = seen;
		if (slices > GROW_SLICES_MAX)
			growth_ends();
		if (slices > WAIT_SLICES_MAX)
			patience_ends(seen);
		if (!may_wait(seen) || rt_waited_too_long(&since)) {
			lane_lose(lane);
			return;
		}
		wait_for_room(mask, seen);
	}
}

/*
 * Under a seccomp filter: no system call, so signals stay open, and a handler's trigger that
 * finds us at work is lost.  So are those of threads that we cannot name (tid.c).
 */
static void slow_quiet(const struct rt_trigger *t)
{
	struct rt_lane *lane = rt_lane_self_quiet();
	int32_t index;

	if (!lane) {
		rt_proc_count_lost(1);
		return;
	}
	if (__atomic_exchange_n(&lane->busy, 1, __ATOMIC_ACQUIRE)) {
		lane_lose(lane);
		return;
	}
	if (!lane_sample(lane, t)) {
		claim_exhaust(lane);
		hand_over(lane);
		index = chunk_take(lane);
		if (index >= 0)
			lane_begin(lane, (uint32_t)index, t);
		else
			lane_lose(lane);
	}
	__atomic_store_n(&lane->busy, 0, __ATOMIC_RELEASE);
}

static void trigger_take(const struct rt_trigger *t)
{
	struct rt_lane *lane = rt_thread_lane();
	uint64_t mask;

	if (!kron_rt.live)
		return;
	if (lane == &mute_lane || kron_rt.mute) {
		if (lane)
			claim_exhaust(lane);
		rt_proc_count_lost(1);
		return;
	}
	if (lane && can_only_lose(lane)) {
		claim_exhaust(lane);
		lane_lose(lane);
		return;
	}
	if (kron_rt.proc->state == RT_PROC_REFUSED) {
		rt_proc_count_lost(1);
		return;
	}
#ifdef RT_STATIC
	/* The thunk may have found no lane where there is one. */
	if (lane && lane->tid && lane_sample(lane, t))
		return;
#endif
	if (kron_rt.quiet) {
		slow_quiet(t);
		return;
	}
	mask = rt_signals_block();
	slow_blocked(t, mask);
	rt_signals_restore(mask);
}

void kron_rt_slow(uint32_t event, uint32_t payload)
{
	const struct rt_trigger trigger = {event, payload, false, 0};

	trigger_take(&trigger);
}

void kron_rt_resource(uint32_t event, uint32_t payload)
{
	const struct rt_trigger trigger = {event, payload, true, 0};

	trigger_take(&trigger);
}

void rt_lane_record(uint32_t event, uint32_t payload, uint32_t tid)
{
	const struct rt_trigger t = {event, payload, false, KRON_SOURCE(kron_rt.ctl->node, tid)};
	uint64_t mask = rt_signals_block();
	struct rt_lane *lane = rt_thread_lane();
	int32_t index;

	if (!lane_sample(lane, &t)) {
		claim_exhaust(lane);
		hand_over(lane);
		index = chunk_take(lane);
		if (index >= 0)
			lane_begin(lane, (uint32_t)index, &t);
	}
	rt_signals_restore(mask);
}

/*
 * Constant time, and a sample that is not to be taken: what registers a thread that takes one
 * registers this one, too.  Its lane need not have room.
 */
static void meet_lane(void)
{
	uint64_t mask;

	if (!kron_rt.live || kron_rt.proc->state == RT_PROC_REFUSED)
		return;
	if (kron_rt.quiet) {
		rt_lane_self_quiet();
		return;
	}
	mask = rt_signals_block();
	rt_lane_self();
	rt_signals_restore(mask);
}

void kron_rt_slow_constant(uint32_t event, uint32_t payload, uint32_t take)
{
	if (take)
		kron_rt_slow(event, payload);
	else
		meet_lane();
}
