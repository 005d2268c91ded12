/* SPDX-License-Identifier: MIT */
/*
 * chunks.c - see chunks.h.
 *
 * Signals are open, or not: nobody here knows.  A handler may come between any two instructions, do
 * the same from end to end, leave by longjmp, or fork.  What is cut off leaves a chunk in the name of
 * its lane, which the lane's note names (lane.c takes it up again), and nothing half counted but for
 * one place, where signals are blocked (take_full).
 *
 * One case is left alone: a handler forks between note and claim of a free chunk, and the child is the
 * first to go on.  It claims the chunk in its parent's name and cannot know whether it was the parent
 * who did.  That chunk stays empty and is nobody's until the parent's thread ends.
 */
#include <errno.h>
#include <limits.h>
#include <time.h>
#include <sys/uio.h>
#include <linux/futex.h>
#include "board/model/holes.h"
#include "runtime/core/chunks.h"
#include "runtime/sys/memory.h"
#include "runtime/sys/signals.h"
#include "runtime/sys/sys.h"
#include "runtime/sys/mini.h"

static uint64_t full_word(uint64_t mine)
{
	return (mine & ~(uint64_t)KRON_STATE_MASK) | KRON_CHUNK_FULL;
}

/* Acquire: pairs with the release of who made it what it is.  Release: ours. */
static bool word_swap(uint32_t index, uint64_t from, uint64_t to)
{
	return __atomic_compare_exchange_n(&kron_rt.states[index], &from, to, false,
					   __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* ---- letting go ---- */

void rt_chunk_hand_over(uint32_t index, uint64_t mine)
{
	word_swap(index, mine, full_word(mine));
}

void rt_chunk_give(uint32_t index, uint64_t mine, size_t dirty)
{
	struct kron_chunk *chunk = rt_pool_chunk(index);

	/* First of all: without a sequence number its samples do not count. */
	__atomic_store_n(&chunk->seq, 0, __ATOMIC_RELEASE);
	mini_zero(chunk, dirty);
	if (word_swap(index, mine, KRON_CHUNK_FREE))
		__atomic_fetch_add(&kron_rt.ctl->free_count, 1, __ATOMIC_RELAXED);
}

int32_t rt_chunk_ending(uint64_t end)
{
	uint64_t off = end - (uint64_t)kron_rt.pool;

	return off && off <= (uint64_t)kron_rt.chunks * KRON_CHUNK_SIZE
		       ? (int32_t)(off / KRON_CHUNK_SIZE) - 1
		       : -1;
}

/* ---- a free one ---- */

#define RING_FEW 8 /* as in drain_wrap.c */

/* A ring that has grown up has few free chunks, and the collector sees to it: drain_wrap.c. */
static bool are_few(int32_t left, uint32_t ready)
{
	const bool is_ring = rt_when_full() == KRON_WHEN_FULL_WRAP &&
			     ready >= __atomic_load_n(&kron_rt.ctl->chunks_max, __ATOMIC_RELAXED);

	return (is_ring ? RING_FEW : 2) * (int64_t)left < (int64_t)ready;
}

static int32_t take_free_among(uint64_t mine, uint32_t *note, uint32_t from, uint32_t to)
{
	struct kron_ctl *ctl = kron_rt.ctl;
	uint32_t i;

	for (i = from; i < to; i++) {
		if (__atomic_load_n(&kron_rt.states[i], __ATOMIC_RELAXED) != KRON_CHUNK_FREE)
			continue;
		__atomic_store_n(note, i + 1, __ATOMIC_RELAXED);
		if (word_swap(i, KRON_CHUNK_FREE, mine)) {
			int32_t left = __atomic_sub_fetch(&ctl->free_count, 1, __ATOMIC_RELAXED);

			if (are_few(left, rt_pool_ready()))
				rt_collector_wake();
			return (int32_t)i;
		}
	}
	__atomic_store_n(note, 0, __ATOMIC_RELAXED);
	return -1;
}

/* Among those that are mapped first: hundreds of threads that all map more wait for each other. */
static int32_t take_free(uint64_t mine, uint32_t *note)
{
	const uint32_t mapped = rt_pool_mapped();
	int32_t index = take_free_among(mine, note, 0, mapped);

	return index < 0 && rt_pool_ready() > mapped
		       ? take_free_among(mine, note, mapped, rt_pool_usable())
		       : index;
}

/* ---- wrap mode: the oldest full one ---- */

/* A process of another pid namespace cannot be asked about from here, nor from there. */
static bool owner_is_gone(uint64_t owner)
{
	const struct kron_proc *s = &kron_rt.procs[kron_chunk_word_slot(owner) % KRON_PROCS_MAX];
	uint32_t flags =
		__atomic_load_n(&s->flags, __ATOMIC_RELAXED) |
		__atomic_load_n(&kron_rt.procs[kron_rt.proc->slot].flags, __ATOMIC_RELAXED);

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

struct full {
	int32_t index; /* -1: there is none */
	uint64_t seq;
	uint64_t word;
};

/* The FULL chunk with the lowest sequence number above `above`. */
static struct full oldest_full(uint64_t above)
{
	uint32_t usable = rt_pool_usable();
	struct full best = {.index = -1, .seq = UINT64_MAX};
	uint32_t i;

	for (i = 0; i < usable; i++) {
		uint64_t w = __atomic_load_n(&kron_rt.states[i], __ATOMIC_ACQUIRE);
		uint64_t s;

		if (kron_chunk_word_state(w) != KRON_CHUNK_FULL)
			continue;
		s = __atomic_load_n(&rt_pool_chunk(i)->seq, __ATOMIC_RELAXED);
		if (s > above && s < best.seq)
			best = (struct full){(int32_t)i, s, w};
	}
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
 * Ours, and its samples are lost.  Signals are blocked for these few stores: a handler that leaves in
 * their midst would leave samples that are neither there nor counted.  It is what was looked at if
 * its sequence number is: no two chunks ever have the same.  seq = 0 before the count: a kill in
 * between leaves a chunk whose samples do not count.  OWNED after that: what is in our name and has a
 * number is ours.
 */
static bool take_full(const struct full *f, uint64_t mine, uint32_t triggers)
{
	const bool blocks = !kron_rt.quiet;
	const uint64_t mask = blocks ? rt_signals_block() : 0;
	struct kron_chunk *chunk = rt_pool_chunk((uint32_t)f->index);
	const uint64_t taking = (mine & ~(uint64_t)KRON_STATE_MASK) | KRON_CHUNK_TAKEN;
	bool taken = word_swap((uint32_t)f->index, f->word, taking);

	if (taken && __atomic_load_n(&chunk->seq, __ATOMIC_RELAXED) != f->seq) {
		word_swap((uint32_t)f->index, taking, f->word);
		taken = false;
	}
	if (taken) {
		__atomic_store_n(&chunk->seq, 0, __ATOMIC_RELEASE);
		count_wrapped(f->word, triggers);
		word_swap((uint32_t)f->index, taking, mine);
	}
	if (blocks)
		rt_signals_restore(mask);
	return taken;
}

#define ZERO_PIECE 16384u

/*
 * By a system call, which no handler interrupts: a child that one forks would go on with what its
 * parent did, on a chunk that the parent has put to use meanwhile.
 */
static void zero_all(struct kron_chunk *chunk)
{
	static uint8_t zeros[ZERO_PIECE]; /* never written */
	struct iovec from[KRON_CHUNK_SIZE / ZERO_PIECE];
	struct iovec to = {.iov_base = chunk, .iov_len = KRON_CHUNK_SIZE};
	uint64_t mask;

	for (uint32_t i = 0; i < KRON_CHUNK_SIZE / ZERO_PIECE; i++)
		from[i] = (struct iovec){zeros, ZERO_PIECE};
	if (!kron_rt.quiet && !kron_rt.filtered &&
	    sys6(__NR_process_vm_writev, sys_getpid(), (long)from, KRON_CHUNK_SIZE / ZERO_PIECE,
		 (long)&to, 1, 0) == KRON_CHUNK_SIZE)
		return;
	mask = kron_rt.quiet ? 0 : rt_signals_block();
	mini_zero(chunk, KRON_CHUNK_SIZE);
	if (!kron_rt.quiet)
		rt_signals_restore(mask);
}

/* A hole in it that is not abandoned means that somebody may still be writing: then the next oldest one. */
static int32_t take_oldest(uint64_t mine, uint32_t *note)
{
	struct full f = oldest_full(0);

	for (; f.index >= 0; f = oldest_full(f.seq)) {
		struct kron_chunk *chunk = rt_pool_chunk((uint32_t)f.index);
		int32_t triggers = count_triggers(chunk, f.word);

		if (triggers < 0)
			continue;
		__atomic_store_n(note, (uint32_t)f.index + 1, __ATOMIC_RELAXED);
		if (!take_full(&f, mine, (uint32_t)triggers))
			continue;
		zero_all(chunk);
		return f.index;
	}
	__atomic_store_n(note, 0, __ATOMIC_RELAXED);
	return -1;
}

/* ---- any ---- */

/*
 * The pool is not full while it can still grow.  A thread that fills chunks faster than the
 * collector adds them (a third of a millisecond for a MiB, if it gets a processor) waits for
 * it in every mode.  When that brings nothing the pool counts as full, until it has grown.
 */
bool rt_pool_can_grow(void)
{
	const struct kron_ctl *ctl = kron_rt.ctl;
	uint32_t ready = __atomic_load_n(&ctl->chunks_ready, __ATOMIC_RELAXED);

	return ready < kron_rt.chunks &&
	       ready < __atomic_load_n(&ctl->chunks_max, __ATOMIC_RELAXED) &&
	       kron_rt.grown_to != ready && !kron_rt.quiet && !kron_rt.orphan &&
	       !__atomic_load_n(&ctl->closing, __ATOMIC_RELAXED);
}

void rt_pool_growth_ends(void)
{
	kron_rt.grown_to = __atomic_load_n(&kron_rt.ctl->chunks_ready, __ATOMIC_RELAXED);
}

int32_t rt_chunk_take(uint64_t mine, uint32_t *note)
{
	uint32_t unused;
	int32_t index;

	if (!note)
		note = &unused;
	index = take_free(mine, note);
	if (index < 0 && rt_when_full() == KRON_WHEN_FULL_WRAP && !rt_pool_can_grow())
		index = take_oldest(mine, note);
	return index;
}

/* ---- sleep until there is one ---- */

#define WAKERS_YIELDS 8
#define WAKERS_NAP_NS 100000
#define WAKERS_NAPS 1000 /* 100 ms and more */

/*
 * Who wakes many threads lists them first and wakes them one by one.  One that is listed and has woken by itself meanwhile,
 * its time being over, is woken once more, later: in a system call of the program, and of these rt_sigtimedwait() takes
 * each waking for a signal, and fails with EINTR.  So nobody goes on before he who wakes is done; a killed one never is.
 */
static void await_wakers(void)
{
	const struct timespec nap = {.tv_nsec = WAKERS_NAP_NS};

	for (unsigned i = 0; i < WAKERS_NAPS; i++) {
		if (!__atomic_load_n(&kron_rt.ctl->wakers, __ATOMIC_ACQUIRE))
			return;
		if (i < WAKERS_YIELDS)
			sys2(__NR_sched_yield, 0, 0);
		else
			sys2(__NR_nanosleep, (long)&nap, 0);
	}
}

void rt_pool_sleep(uint32_t seen, long slice_ns)
{
	struct timespec slice = {.tv_nsec = slice_ns};

	if (!sys4(__NR_futex, (long)&kron_rt.ctl->wake_waiters, FUTEX_WAIT, seen, (long)&slice))
		await_wakers();
}
