/* SPDX-License-Identifier: MIT */
/*
 * dynamic_thread.c - thread.h where ld.so has given us thread-local storage.
 *
 * The storage is part of every thread's data from its first instruction, at a distance from %fs that
 * ld.so knows at START (initial-exec): no allocation, no call.  rseq's area lies there, too, where the
 * C library registers one (glibc 2.35 and later).
 */
#define _GNU_SOURCE
#include <kron/live.h>
#include "runtime/core/rt.h"
#include "runtime/core/thread.h"
#include "runtime/dynamic/dynamic.h"
#include "runtime/sys/processor.h"
#include "runtime/sys/sys.h"
#include "runtime/sys/mini.h"

/* ---- START ---- */

static void find_cpu(void);

void rt_threads_start(void)
{
	find_cpu();
	rt_tid_find();
	rt_home_find();
}

uint64_t kron_rt_lanes_start, kron_rt_lanes_size;
int64_t kron_rt_lane_at;

void rt_threads_lanes_at(uint64_t start, uint64_t size)
{
	kron_rt_lanes_start = start;
	kron_rt_lanes_size = size;
	/* Not from an address, which would be read by way of %fs. */
	if (!rt_is_strange())
		__asm__("mov kron_rt_lane@gottpoff(%%rip), %0" : "=r"(kron_rt_lane_at));
}

/* 0, as in a process that was not told: each sample reads it. */
uint32_t kron_rt_clock_mask;

void rt_threads_clock(uint32_t every)
{
	kron_rt_clock_mask = every ? every - 1 : 0;
}

void rt_thread_thunks(struct kron_hello *hello)
{
	hello->thunk[KRON_THUNK_LANE] = (uint64_t)kron_rt_probe;
	hello->payload_thunk[KRON_THUNK_LANE] = (uint64_t)kron_rt_payload;
	hello->thunk[KRON_THUNK_LANE_CONSTANT] = (uint64_t)kron_rt_probe_constant;
	hello->payload_thunk[KRON_THUNK_LANE_CONSTANT] = (uint64_t)kron_rt_payload_constant;
	hello->thunk[KRON_THUNK_LANE_SPARSE] = (uint64_t)kron_rt_probe_sparse;
	hello->payload_thunk[KRON_THUNK_LANE_SPARSE] = (uint64_t)kron_rt_payload;
	hello->timed_thunk = (uint64_t)kron_rt_probe_timed;
	hello->thunk[KRON_THUNK_HARDWARE] = (uint64_t)kron_rt_probe_hardware;
	hello->payload_thunk[KRON_THUNK_HARDWARE] = (uint64_t)kron_rt_probe_hardware;
	hello->counts = rt_counts_offset();
}

/* ---- the lane ---- */

RT_THREAD struct rt_lane *kron_rt_lane;

struct rt_lane *rt_thread_lane(void)
{
	return rt_is_strange() ? rt_strange_lane() : kron_rt_lane;
}

/* Release: a handler's thunk that finds the lane finds what was written to it before. */
void rt_thread_set_lane(struct rt_lane *lane)
{
	if (!rt_is_strange())
		__atomic_store_n(&kron_rt_lane, lane, __ATOMIC_RELEASE);
}

/* All is known since START. */
void rt_thread_prepare_quiet(void)
{
}

void rt_thread_mute(void)
{
	kron_rt.one_mute = true;
	if (rt_is_strange())
		kron_rt.mute = true;
	rt_thread_set_lane(&kron_rt_mute_lane);
}

bool rt_thunks_find_lanes(void)
{
	return !rt_is_strange();
}

struct rt_lane *rt_thread_check(uint32_t tid)
{
	if (rt_is_at_home(tid))
		return NULL;
	rt_strangers_come();
	return rt_lane_of(tid);
}

/*
 * Threads that share their thread data share the lane in it, and destroy each other's claims.  If
 * nobody has announced them, here is where it shows.  (A vfork child borrows its parent's.)
 */
bool rt_thread_shares(const struct rt_lane *lane)
{
	if (rt_is_strange() || (uint32_t)sys_gettid() == lane->tid || !rt_proc_is_ours())
		return false;
	rt_strangers_come();
	return true;
}

/* ---- words of its own ---- */

struct rt_own *rt_thread_own(void)
{
	static RT_THREAD struct rt_own own;

	return rt_is_strange() ? NULL : &own;
}

/* ---- its CPU ---- */

/* Stands in for rseq's cpu_id where rseq is not registered: set at each new chunk. */
static RT_THREAD uint32_t no_rseq_cpu;
long kron_rt_cpu_offset;
/* Likewise for its rseq_cs: nobody takes a mark away. */
static RT_THREAD uint64_t no_rseq_mark;
long kron_rt_mark_offset;

/* From ld.so. */
extern const ptrdiff_t __rseq_offset __attribute__((weak, visibility("default")));
extern const unsigned int __rseq_size __attribute__((weak, visibility("default")));

static bool registers_rseq(void)
{
	return &__rseq_offset && &__rseq_size && __rseq_size != 0;
}

bool rt_has_rseq(void)
{
	return registers_rseq() && !rt_is_strange();
}

bool kron_rt_has_rdpid;

void rt_threads_take_board(void)
{
	kron_rt_has_rdpid = kron_live_has_rdpid();
}

static void find_cpu(void)
{
	const char *self = __builtin_thread_pointer();
	const bool has = registers_rseq();

	kron_rt_cpu_offset = has ? __rseq_offset + RT_RSEQ_CPU : (char *)&no_rseq_cpu - self;
	kron_rt_mark_offset = has ? __rseq_offset + RT_RSEQ_CS : (char *)&no_rseq_mark - self;
}

void rt_cpu_note(void)
{
	if (!registers_rseq() && !rt_is_strange())
		no_rseq_cpu = rt_cpu();
}

uint32_t rt_cpu_read(void)
{
	uint32_t cpu;

	if (rt_is_strange())
		return rt_cpu();
	__asm__ volatile("movl %%fs:(%1), %0" : "=r"(cpu) : "r"(kron_rt_cpu_offset));
	return cpu;
}
