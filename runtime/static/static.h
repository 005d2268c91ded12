/* SPDX-License-Identifier: MIT */
/*
 * static.h - how a probe finds its thread's lane in a program whose thread data is not ours.
 *
 *   %fs:0 ─────── the word's bits ─────────► kron_rt_threads ──► lane
 *        ║ the same?                              ║             ║
 *        ╚════════════════════════════════════════╝             ║ the same?
 *   %fs + kron_rt_tid_offset ─── the thread's number ═══════════╝
 *
 * Compilers get a thread's data by the word at %fs:0, so C libraries put the base there (the psABI says it), and
 * then it is as good as the base.  Where that word is not a base (Go):
 *
 *   %fs's base ── + kron_rt_tid_offset ──► the thread's number, which the C library keeps there
 *        ║                                        │            ║
 *        ║ the same?                              ▼            ║ the same?
 *        ╚═══════════════════════════════ kron_rt_threads ──► lane
 *
 * C libraries (and Go's runtime) keep the thread's number near the base of %fs.  Where that is is found
 * out.  The number alone could be a word that happens to be there, the base alone may be a thread's that
 * has ended; both together are believed once the kernel has said that they belong together.  Where there
 * is no such number, or no %fs, we ask for the number each time (gettid); so we do where that word is not a base
 * and the kernel does not let programs read it (rdfsbase).
 *
 * So a lane is one thread's, and no claim is locked.  Threads that share their thread data (a bare clone),
 * or have it where nobody can read a number, would spoil that.  They are announced as in a dynamic program
 * (strangers.c), here by the hooks in front of clone and of what changes %fs, and by whoever stops a process
 * that runs; or show when the slow path asks the kernel.  From then on it is asked each time.
 */
#ifndef RUNTIME_STATIC_H
#define RUNTIME_STATIC_H

#define RT_THREADS 2048
#define RT_THREADS_MASK (RT_THREADS - 1)
#define RT_THREADS_BASE (16 * RT_THREADS) /* the pairs come first */
#define RT_THREADS_LANE (24 * RT_THREADS)
#define RT_SELF_SHIFT 12 /* thread data lies at the end of a stack, mostly: pages apart */
#define RT_SELF_NONE 1   /* no such word */
/* Of the GDT segment whose limit is the processor's number, as the vDSO uses it. */
#define RT_CPU_SELECTOR 0x7b
#define RT_MARK_LEN 2 /* of the section that nobody executes */

#ifndef __ASSEMBLER__
#include <stdbool.h>
#include <stdint.h>
#include <kron/start.h>
#include "runtime/core/rt.h"

struct rt_threads {
	/* By the bits of the word at %fs:0. */
	struct rt_self {
		uint64_t word; /* written last; 0 is nobody's, and the word 0 is none of them */
		struct rt_lane *lane;
	} self[RT_THREADS];
	/* By the number's low bits. */
	uint64_t base[RT_THREADS]; /* of %fs; written last: where it is not 0 there is a lane */
	struct rt_lane *lane[RT_THREADS];
};
_Static_assert(sizeof(struct rt_self) == 16 && __builtin_offsetof(struct rt_self, lane) == 8,
	       "thunk_static.S");
_Static_assert(__builtin_offsetof(struct rt_threads, base) == RT_THREADS_BASE, "thunk_static.S");
_Static_assert(__builtin_offsetof(struct rt_threads, lane) == RT_THREADS_LANE, "thunk_static.S");

extern struct rt_threads kron_rt_threads __attribute__((visibility("hidden")));
/* From %fs; 0 = not known, and no entry may be believed. */
extern long kron_rt_tid_offset __attribute__((visibility("hidden")));
extern bool kron_rt_can_read_base __attribute__((visibility("hidden"))); /* by rdfsbase */

/* As in runtime/dynamic/dynamic.h; 0: there is no rseq_cs, or nobody knows where. */
extern long kron_rt_mark_offset __attribute__((visibility("hidden")));
extern uint32_t kron_rt_clock_mask __attribute__((visibility("hidden")));
struct rt_mark {
	uint32_t version, flags;
	uint64_t start, len, aborted;
} __attribute__((aligned(32)));
extern struct rt_mark kron_rt_mark __attribute__((visibility("hidden")));
void kron_rt_mark_start(void) __attribute__((visibility("hidden")));
void kron_rt_mark_aborted(void) __attribute__((visibility("hidden")));
/* Where rseq_cs is, from %fs in every thread; before rt_threads_clock(). */
void kron_rt_mark_init(long offset) __attribute__((visibility("hidden")));

extern const struct kron_start kron_start __attribute__((visibility("hidden")));
/*
 * can_read_base: the kernel lets programs use rdfsbase.  From each thread's base, [data_from, data_end) can
 * be read; nothing: they share their data.
 */
void kron_rt_thread_init(bool can_read_base, bool has_rdpid, int32_t data_from, int32_t data_end)
	__attribute__((visibility("hidden")));
/* Makes a system call where programs may not read it; if none may be made, the word at %fs:0.  0: there is none. */
uint64_t rt_fs_base(void) __attribute__((visibility("hidden")));
/* Nobody finds a lane by a number near its base any more. */
void rt_numbers_end(void) __attribute__((visibility("hidden")));
/* static_strangers.c: what of all threads' data can be read; where glibc (at 720), musl (48) and Go
 * (-72) have the number */
void rt_data_init(int32_t from, int32_t end) __attribute__((visibility("hidden")));
void rt_data_range(int32_t *from, int32_t *end) __attribute__((visibility("hidden")));
/* Threads have data that is no use to us: each is asked for its number. */
bool rt_is_strange(void) __attribute__((visibility("hidden")));
void rt_strangers_come(void) __attribute__((visibility("hidden")));
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
