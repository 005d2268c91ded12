/* SPDX-License-Identifier: MIT */
/*
 * thread.h - the seam between the runtime and the threads of the program that it is in.
 *
 * How a thread finds its lane, and where words can lie that belong to one thread alone, depends on how
 * the runtime came into the program.  All the rest is the same everywhere.  Each link of the runtime has
 * one implementation of this header:
 *
 *                    in                        the calling thread's lane              words of its own
 *   runtime/dynamic/ libkron-rt.so             a word of ld.so's thread-local         thread-local
 *                                              storage, at a fixed distance from %fs
 *   runtime/static/  kron-start: static        a table, by the thread's number, which none
 *                    programs (kron patch)     lies near %fs (static.h)
 *
 * An implementation brings the thunks along that go its way to the lane, and names them to the collector
 * (rt_thread_thunks()).  To the slow path it is these functions.  They are async-signal-safe, and make a
 * system call only where it says so and kron_rt.quiet is not set.
 */
#ifndef RUNTIME_THREAD_H
#define RUNTIME_THREAD_H

#include <stdbool.h>
#include <stdint.h>

struct kron_hello;
struct rt_lane;

/* ---- START ---- */

/* The first thread, before any probe is hit: find out what the functions below go by. */
void rt_threads_start(void) __attribute__((visibility("hidden")));
/* Lanes lie in [start, start + size) from now on.  Nothing else that a thread finds is a lane. */
/* How many samples share a reading of the clock; a power of two, 0 or 1: none. */
void rt_threads_clock(uint32_t every) __attribute__((visibility("hidden")));
void rt_threads_lanes_at(uint64_t start, uint64_t size) __attribute__((visibility("hidden")));
/* The thunks that find a lane, and the way to a thread's counters. */
void rt_thread_thunks(struct kron_hello *hello) __attribute__((visibility("hidden")));

/* ---- the lane ---- */

/*
 * The calling thread's lane; NULL: none yet.  A vfork child has its parent's.  After a fork the child's
 * may be one that was wiped.  May ask the kernel for the thread's number.
 */
struct rt_lane *rt_thread_lane(void) __attribute__((visibility("hidden")));
/* This is it from now on, and the thunks find it. */
void rt_thread_set_lane(struct rt_lane *lane) __attribute__((visibility("hidden")));
/* The thunks are to find no lane with room for this thread any more: it may not read the time.  Where
 * that cannot be said of one thread it is said of all (kron_rt.mute). */
void rt_thread_mute(void) __attribute__((visibility("hidden")));
/* Does a thunk find its thread's lane whenever there is one?  Then a trigger comes to the slow path only
 * if the lane had no room. */
bool rt_thunks_find_lanes(void) __attribute__((visibility("hidden")));
/*
 * The thread, whose number the kernel says is tid, is about to register, for rt_thread_lane() said NULL.
 * Not NULL: it has a lane after all, for what rt_thread_lane() went by was not to be trusted.
 */
struct rt_lane *rt_thread_check(uint32_t tid) __attribute__((visibility("hidden")));
/* True: the lane that rt_thread_lane() has just said is another thread's.  It will not be said again. */
bool rt_thread_shares(const struct rt_lane *lane) __attribute__((visibility("hidden")));

/* ---- words of the calling thread's own ---- */

#define RT_OWN_SCRATCH 152 /* libc's struct sigaction */
#define RT_OWN_SCRATCHES 2 /* a handler may set an action while we do */
struct rt_own {
	uint64_t stepped;      /* faults.c */
	uint32_t registering;  /* register.c */
	uint32_t next_scratch; /* hook_signals.c */
	_Alignas(8) uint8_t scratch[RT_OWN_SCRATCHES][RT_OWN_SCRATCH];
};
/* NULL: there is no place for any.  Who asks makes do with words that all threads share. */
struct rt_own *rt_thread_own(void) __attribute__((visibility("hidden")));
/* Its lane, by which trampolines or thunks find counters from now on; NULL: it has none, or they find none by it. */
struct rt_lane *rt_thread_counting(void) __attribute__((visibility("hidden")));

/* Its table of pages, for the trampolines (wire.h); where they find none they come to the slow path. */
void rt_thread_set_pages(int64_t *table) __attribute__((visibility("hidden")));
/* Its lane, if that has such a table and is found without a system call; else NULL. */
struct rt_lane *rt_thread_with_pages(void) __attribute__((visibility("hidden")));

/* ---- its number, without a system call ---- */

/* A seccomp filter is about to come: what only system calls tell is looked for now. */
void rt_thread_prepare_quiet(void) __attribute__((visibility("hidden")));
/* The thread has a lane under this number now. */
void rt_tid_registered(uint32_t tid) __attribute__((visibility("hidden")));
/* 0 = not known.  forked: it is to be that of a new process, whose first thread had a lane in its
 * parent. */
uint32_t rt_tid_known(bool forked) __attribute__((visibility("hidden")));

/* ---- its CPU, as its thunks know it ---- */

/* Has this thread an rseq area, of libc's and its own? */
bool rt_has_rseq(void) __attribute__((visibility("hidden")));
/* The session's bus is a board's: each probe asks for its CPU. */
void rt_threads_take_board(void) __attribute__((visibility("hidden")));
uint32_t rt_cpu_read(void) __attribute__((visibility("hidden")));
/* A new chunk begins: what is not kept up to date by the kernel is now. */
void rt_cpu_note(void) __attribute__((visibility("hidden")));

/* ---- in front of what makes threads with thread data of the program's own, or moves %fs ---- */

void rt_hook_clone(uint64_t flags, uint64_t tls) __attribute__((visibility("hidden")));
void rt_hook_arch_prctl(uint64_t code, uint64_t addr) __attribute__((visibility("hidden")));
void rt_hook_fs(void) __attribute__((visibility("hidden")));

#endif
