/* SPDX-License-Identifier: MIT */
/*
 * static.h - how a probe finds its thread's lane in a program whose thread data is not ours.
 *
 *   %fs's base ──hash──► kron_rt_threads ──► lane ──► tid
 *       │                                              ║ the same?
 *       └── + kron_rt_tid_offset ──► the tid that the C library keeps there
 *
 * The base of %fs differs for all living threads of a process.  It is used again when a thread
 * has ended, so it is no name by itself; but C libraries (and Go's runtime) keep the thread's
 * number near it, and both together are.  Where that number lies is found out, and what is
 * believed was the kernel's word once, for each pair.  Where there is no such number, or no %fs,
 * or the kernel does not let us read its base, we ask for the number each time (gettid).
 *
 * So a lane is one thread's here too, and no claim meets another thread's.  It is locked all the
 * same: threads that share their thread data (a bare clone) must not destroy each other's samples.
 */
#ifndef RUNTIME_STATIC_H
#define RUNTIME_STATIC_H

#define RT_THREADS_SHIFT 11
#define RT_THREADS_HASH 0x9e3779b1
#define RT_THREADS_BASE_SHIFT 6
#define RT_THREAD_LANE 8
#define RT_THREAD_SHIFT 4

#ifndef __ASSEMBLER__
#include <stdbool.h>
#include <stdint.h>
#include <kron/start.h>
#include "runtime/core/rt.h"

struct rt_thread_entry {
	uint64_t base; /* of %fs */
	struct rt_lane *lane;
};
_Static_assert(__builtin_offsetof(struct rt_thread_entry, lane) == RT_THREAD_LANE,
	       "thunk_static.S");
_Static_assert(sizeof(struct rt_thread_entry) == 1 << RT_THREAD_SHIFT, "thunk_static.S");

extern struct rt_thread_entry kron_rt_threads[1 << RT_THREADS_SHIFT]
	__attribute__((visibility("hidden")));
/* From %fs; 0 = not known, and no entry may be believed. */
extern long kron_rt_tid_offset __attribute__((visibility("hidden")));

extern const struct kron_start kron_start __attribute__((visibility("hidden")));
/* Our data may be written to: zero before that. */
extern bool kron_rt_has_data __attribute__((visibility("hidden")));

/* can_read_base: the kernel lets programs use rdfsbase. */
void kron_rt_thread_init(bool can_read_base) __attribute__((visibility("hidden")));
void kron_rt_static(uint64_t *sp) __attribute__((visibility("hidden")));
/* static_library.c */
#define RT_ENV_BOARD "KRON_BOARD="
#define RT_BOARD_NAME_MAX 63u
/* Is the process to store to a board, and may it be told so?  Then which. */
bool rt_library_is_asked(char board[RT_BOARD_NAME_MAX + 1]) __attribute__((visibility("hidden")));
/* static_board.c: wake the probes on the board of this name. */
void kron_rt_board(const char *name) __attribute__((visibility("hidden")));
/* static_wake.c: what kron patch wrote down; false: nothing was changed. */
bool kron_rt_wake(const struct kron_start *start) __attribute__((visibility("hidden")));
#endif

#endif
