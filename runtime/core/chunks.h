/* SPDX-License-Identifier: MIT */
/*
 * chunks.h - chunks of the pool change hands: the runtime's part of the state machine in
 * kron/segment.h.
 *
 *     FREE ──rt_chunk_take()──► OWNED ──rt_chunk_hand_over()──► FULL
 *      ▲                       │   ▲                             │
 *      └──rt_chunk_give()──────┘   └──rt_chunk_take(), wrap──────┘
 *
 * Each is one compare-and-swap of the state word from and to what names us, `mine`: the lane's
 * word as OWNED.  So a step that somebody else has made already, or a forked child that goes on
 * where its parent was, changes nothing.
 */
#ifndef RUNTIME_CHUNKS_H
#define RUNTIME_CHUNKS_H

#include "runtime/core/rt.h"

/* Index of a chunk that is now ours, all zero, or -1.  *note (may be NULL) says at every moment
 * which one it is, + 1, from just before until the caller clears it. */
int32_t rt_chunk_take(uint64_t mine, uint32_t *note) __attribute__((visibility("hidden")));
/* Back to the pool: all after the first `dirty` bytes is zero. */
void rt_chunk_give(uint32_t index, uint64_t mine, size_t dirty)
	__attribute__((visibility("hidden")));
/* All its slots are claimed. */
void rt_chunk_hand_over(uint32_t index, uint64_t mine) __attribute__((visibility("hidden")));
/* Index of the chunk that ends at this address, or -1. */
int32_t rt_chunk_ending(uint64_t end) __attribute__((visibility("hidden")));
/* The pool is not full while it can still grow. */
bool rt_pool_can_grow(void) __attribute__((visibility("hidden")));
/* We have waited for it long enough: until it has grown it counts as full. */
void rt_pool_growth_ends(void) __attribute__((visibility("hidden")));
/* Until something was freed since wake_waiters was `seen`, or the time is over: lane.c, "Why nobody sleeps past". */
void rt_pool_sleep(uint32_t seen, long slice_ns) __attribute__((visibility("hidden")));

#endif
