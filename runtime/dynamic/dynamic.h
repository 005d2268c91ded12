/* SPDX-License-Identifier: MIT */
/*
 * dynamic.h - the runtime as a library that ld.so has loaded: thread.h by thread-local storage.
 *
 *   %fs ──► thread data: kron_rt_lane ──► lane        thunk.inc: OWN_LANE
 *                        kron_rt_words.counts ──► word of the lane ──► kron_counts.n
 *
 * What lies there is not to be trusted in a program that points %fs elsewhere (strangers.c).
 */
#ifndef RUNTIME_DYNAMIC_H
#define RUNTIME_DYNAMIC_H

#include <stdbool.h>
#include <stdint.h>

#define RT_THREAD __thread __attribute__((tls_model("initial-exec")))

struct rt_lane;

/* ---- dynamic_thread.c ---- */
extern __thread struct rt_lane *kron_rt_lane
	__attribute__((visibility("hidden"), tls_model("initial-exec")));
/* For the hardware's thunk: where kron_rt_lane is, from %fs; 0 before there are lanes, and once
 * rt_is_strange().  (A lane's thunk would pay for the load, the hardware's gains by it.) */
extern int64_t kron_rt_lane_at __attribute__((visibility("hidden")));
/* Where lanes lie: what else a thread finds in its data is not a lane. */
extern uint64_t kron_rt_lanes_start __attribute__((visibility("hidden")));
extern uint64_t kron_rt_lanes_size __attribute__((visibility("hidden")));
/* Where the thunk finds the CPU number, from %fs: in rseq's area, or no_rseq_cpu. */
extern long kron_rt_cpu_offset __attribute__((visibility("hidden")));
/* And where it marks that nobody else has run since (thunk_sparse.S): rseq_cs, or no_rseq_mark. */
extern long kron_rt_mark_offset __attribute__((visibility("hidden")));

/* ---- dynamic_counts.c ---- */
/* What trampolines find from %fs. */
struct kron_rt_words {
	uint64_t **counts;
	int64_t *pages;
};
extern __thread struct kron_rt_words kron_rt_words
	__attribute__((visibility("hidden"), tls_model("initial-exec")));
/* kron_hello.counts */
int64_t rt_counts_offset(void) __attribute__((visibility("hidden")));

/* ---- dynamic_tid.c ---- */
/* At START, while there are system calls. */
void rt_tid_find(void) __attribute__((visibility("hidden")));
/* From %fs to where libc has the kernel keep the thread's number; 0 = not known. */
long rt_tid_offset(void) __attribute__((visibility("hidden")));

/* ---- strangers.c ---- */
/* Thread data may be another's, or nobody's.  Only set; atomic. */
extern uint32_t kron_rt_strange __attribute__((visibility("hidden")));

static inline bool rt_is_strange(void)
{
	return __atomic_load_n(&kron_rt_strange, __ATOMIC_RELAXED) != 0;
}

/* The lane that is registered under the calling thread's number. */
struct rt_lane *rt_strange_lane(void) __attribute__((visibility("hidden")));
/* At START. */
void rt_home_find(void) __attribute__((visibility("hidden")));
/* From now on lanes are found by the thread's number, and thread data is not touched. */
void rt_strangers_come(void) __attribute__((visibility("hidden")));
/* Is this thread's data what libc made for it?  tid: its number. */
bool rt_is_at_home(uint32_t tid) __attribute__((visibility("hidden")));

#endif
