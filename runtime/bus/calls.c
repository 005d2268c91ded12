/* SPDX-License-Identifier: MIT */
/*
 * calls.c - counters of calls (segment.h: struct kron_calls), where the trampoline cannot count by itself:
 * the first call of a thread into a part of the functions, and all calls of a thread that has no counters.
 */
#include "runtime/bus/bus.h"
#include "runtime/core/chunks.h"
#include "runtime/core/rt.h"
#include "runtime/core/thread.h"
#include "runtime/sys/memory.h"
#include "runtime/sys/signals.h"

/* A fork by a handler would leave a child with a chunk in its parent's name: signals are blocked, or
 * the chunk is nobody's counters. */
static bool is_still(const struct rt_lane *lane, uint64_t word)
{
	const struct rt_proc *p = kron_rt.proc;

	return word == kron_chunk_word(KRON_CHUNK_CALLS, lane->tid, p->slot, p->uid);
}

static void take_chunk(struct rt_lane *lane, uint32_t part)
{
	const bool blocks = !kron_rt.quiet;
	const uint64_t mask = blocks ? rt_signals_block() : 0;
	const struct rt_proc *p = kron_rt.proc;
	const uint64_t mine = kron_chunk_word(KRON_CHUNK_CALLS, lane->tid, p->slot, p->uid);
	int32_t index = lane->calls[part] ? -1 : rt_chunk_take(mine, NULL);

	if (index >= 0 && is_still(lane, mine)) {
		struct kron_calls *c = (struct kron_calls *)rt_pool_chunk((uint32_t)index);

		rt_pool_populate((uint32_t)index);
		c->part = part + 1;
		/* Release: a handler's trampoline that finds it finds it whole. */
		__atomic_store_n(&lane->calls[part], c, __ATOMIC_RELEASE);
	}
	if (blocks)
		rt_signals_restore(mask);
}

/* The calling thread's own, or NULL. */
static struct kron_calls *find_own(uint32_t part)
{
	struct rt_lane *lane = rt_thread_counting();

	if (!lane)
		return NULL;
	if (lane->calls[part])
		return lane->calls[part];
	rt_busy_begin();
	if (__atomic_load_n(&kron_rt.ctl->free_count, __ATOMIC_RELAXED) > 0)
		take_chunk(lane, part);
	else if (rt_pool_can_grow())
		rt_collector_wake();
	rt_busy_end();
	return lane->calls[part];
}

static struct kron_calls *find_shared(uint32_t part)
{
	/* Acquire: partner: collect/counts.c. */
	uint32_t index = __atomic_load_n(&kron_rt.ctl->calls_shared[part], __ATOMIC_ACQUIRE);

	return index && index <= rt_pool_usable() ? (struct kron_calls *)rt_pool_chunk(index - 1)
						  : NULL;
}

void rt_count_call(uint32_t number)
{
	uint32_t part = number / KRON_CALLS_IN_CHUNK, i = number % KRON_CALLS_IN_CHUNK;
	struct kron_calls *c;

	if (part >= KRON_CALLS_PARTS)
		return;
	c = find_own(part);
	if (c) { /* one instruction: whole for a handler on this thread */
		__asm__ volatile("incq %0" : "+m"(c->n[i]) : : "cc");
		return;
	}
	c = find_shared(part);
	if (c)
		__atomic_fetch_add(&c->n[i], 1, __ATOMIC_RELAXED);
	else
		rt_proc_count_lost(1);
}
