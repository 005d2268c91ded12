/* SPDX-License-Identifier: MIT */
/*
 * memory.h - what the runtime maps of its own accord, and how it grows.
 */
#ifndef RUNTIME_MEMORY_H
#define RUNTIME_MEMORY_H

#include "runtime/core/rt.h"

/* Stacks of our own, where the program's are too small for C (thunk.inc). */
bool rt_map_stacks(void) __attribute__((visibility("hidden")));
/* Map [off, off + len) of a segment, at addr and nowhere else if `fixed`. */
long rt_map_shared(uint64_t addr, bool fixed, uint64_t len, int prot, int fd, uint64_t off)
	__attribute__((visibility("hidden")));
/* 0, or -errno: text that was writable may not be executed again. */
long rt_text_trial(void) __attribute__((visibility("hidden")));
/* Map as much of the pool as has pages, and what a fork wipes.  0 or -errno. */
long rt_pool_map(const struct rt_segment *seg) __attribute__((visibility("hidden")));
void rt_pool_unmap(void) __attribute__((visibility("hidden")));
/* What is mapped of the segment comes into core dumps, for kron recover. */
void rt_memory_into_cores(void) __attribute__((visibility("hidden")));
/* Chunks [0, n): those that there are; of them those that may be touched; the same, after mapping the rest if that can be. */
uint32_t rt_pool_ready(void) __attribute__((visibility("hidden")));
uint32_t rt_pool_mapped(void) __attribute__((visibility("hidden")));
uint32_t rt_pool_usable(void) __attribute__((visibility("hidden")));
/* Nothing can be mapped later: map what may be needed of pool and lanes. */
void rt_memory_open_ahead(void) __attribute__((visibility("hidden")));
/*
 * The page at addr is gone.  If it is the segment's, its file was truncated: private memory, full of zeros,
 * takes its place, and so the gates in it are closed.  Async-signal-safe.
 */
bool rt_memory_replace(uint64_t addr) __attribute__((visibility("hidden")));
/* Have the pages of a chunk in our page table. */
void rt_pool_populate(uint32_t index) __attribute__((visibility("hidden")));

static inline struct kron_chunk *rt_pool_chunk(uint32_t index)
{
	return (struct kron_chunk *)(kron_rt.pool + (uint64_t)index * KRON_CHUNK_SIZE);
}

/* Bytes of each of the two mappings. */
uint64_t rt_pool_size(void) __attribute__((visibility("hidden")));
uint64_t rt_private_size(void) __attribute__((visibility("hidden")));

/* The process page and the first lanes: zero pages for every child with memory of its own. */
long rt_private_map(void) __attribute__((visibility("hidden")));
void rt_private_unmap(void) __attribute__((visibility("hidden")));
/* Use what lies there: another module's runtime has mapped it, and it is rt_private_first() long. */
void rt_private_use(long at) __attribute__((visibility("hidden")));
uint64_t rt_private_first(void) __attribute__((visibility("hidden")));
/* May lanes [0, n) be touched? */
bool rt_private_holds(uint32_t lanes) __attribute__((visibility("hidden")));

#endif
