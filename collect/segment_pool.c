/* SPDX-License-Identifier: MIT */
/*
 * segment_pool.c - the pool of chunks while it is used: how far it grows, and by what it is bounded.
 *
 *   --buffer, or a default ──► chunks_limit ◄── lowered once: what the memory cgroups have left
 *                                   ▲
 *                                   └── raised: threads stand still for want of a chunk each
 *
 * kron-grow gets the pages, kron-drain raises the limit.  The first chunks of memory of our own are free before they
 * have pages: those come when a thread takes the chunk.
 */
#define _GNU_SOURCE
#include "collect/segment.h"

#include <fcntl.h>

void segment_look_at_cgroups(struct segment *seg)
{
	cgroups_find(&seg->cgroups, "");
	seg->cgroup_left = cgroups_memory_left(&seg->cgroups);
	seg->knows_cgroups = true;
}

/* Release: pairs with segment_limit(). */
static bool set_limit(struct segment *seg, uint32_t *was, uint32_t limit)
{
	if (!__atomic_compare_exchange_n(&seg->chunks_limit, was, limit, false, __ATOMIC_RELEASE,
					 __ATOMIC_ACQUIRE))
		return false;
	__atomic_store_n(&seg->ctl->chunks_max, limit, __ATOMIC_RELAXED); /* a hint there */
	return true;
}

/* What the pool has is not left any more, and was at the start. */
static void bound_by_cgroups(struct segment *seg, uint32_t ready)
{
	uint32_t limit = segment_limit(seg);
	uint64_t share;

	segment_look_at_cgroups(seg);
	if (seg->cgroup_left == CGROUP_NO_LIMIT)
		return;
	seg->cgroup_left += (uint64_t)ready * KRON_CHUNK_SIZE;
	share = segment_share(seg->cgroup_left) / KRON_CHUNK_SIZE;
	if (share < ready)
		share = ready;
	/* Who raises it meanwhile, in another thread, does so again if that was not enough. */
	while (share < limit && !set_limit(seg, &limit, (uint32_t)share))
		;
	seg->is_bounded |= share < limit;
}

/* Of n chunks more, those that the program will not miss; its first ones it gets in any case. */
static uint32_t fit_cgroups(struct segment *seg, uint32_t ready, uint32_t n)
{
	uint64_t share;

	if (!seg->follows_cgroups || ready < SEGMENT_CHUNKS_FIRST)
		return n;
	if (!seg->knows_cgroups)
		bound_by_cgroups(seg, ready);
	if (n > segment_limit(seg) - ready)
		n = segment_limit(seg) - ready;
	if (!n || !seg->cgroups.dirs.n)
		return n;
	share = segment_share(cgroups_memory_left(&seg->cgroups)) / KRON_CHUNK_SIZE;
	return n < share ? n : (uint32_t)share;
}

/* Chunks [from, to) have pages, or will have them as soon as they are touched. */
static int get_chunks(const struct segment *seg, uint32_t from, uint32_t to)
{
	if (seg->late && to <= SEGMENT_CHUNKS_FIRST)
		return 0;
	return object_get_pages(seg->fd, KRON_POOL_OFFSET + (uint64_t)from * KRON_CHUNK_SIZE,
				(uint64_t)(to - from) * KRON_CHUNK_SIZE);
}

uint32_t segment_grow(struct segment *seg, uint32_t n)
{
	uint32_t ready = segment_ready(seg);
	uint32_t left = segment_limit(seg) - ready;

	n = n < left ? n : left;
	n = fit_cgroups(seg, ready, n);
	/* Halve the wish until /dev/shm grants it. */
	while (n && get_chunks(seg, ready, ready + n))
		n /= 2;
	if (!n)
		return 0;
	for (uint32_t i = ready; i < ready + n; i++)
		__atomic_store_n(&seg->states[i], KRON_CHUNK_FREE, __ATOMIC_RELEASE);
	/* Release: who reads the new number finds the states; partner: the runtime's claim. */
	__atomic_store_n(&seg->ready, ready + n, __ATOMIC_RELEASE);
	__atomic_store_n(&seg->ctl->chunks_ready, ready + n, __ATOMIC_RELEASE);
	__atomic_fetch_add(&seg->ctl->free_count, (int32_t)n, __ATOMIC_ACQ_REL);
	return n;
}

bool segment_raise_limit(struct segment *seg, uint32_t n)
{
	uint32_t limit = segment_limit(seg), left;

	do
		left = seg->chunks_max - limit;
	while (!set_limit(seg, &limit, limit + (n < left ? n : left)));
	return left != 0;
}

void segment_give_back(struct segment *seg)
{
	const int how = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
	uint32_t ready = segment_ready(seg), n = ready;

	while (n && __atomic_load_n(&seg->states[n - 1], __ATOMIC_ACQUIRE) == KRON_CHUNK_FREE)
		n--;
	if (n < ready) /* a failure costs memory for a moment more */
		(void)!fallocate(seg->fd, how, KRON_POOL_OFFSET + (off_t)n * KRON_CHUNK_SIZE,
				 (off_t)(ready - n) * KRON_CHUNK_SIZE);
}
