/* SPDX-License-Identifier: MIT */
/* static_thread.c - see static.h */
#define _GNU_SOURCE
#include <sys/uio.h>
#include "runtime/static/static.h"
#include "runtime/sys/sys.h"
#include "runtime/sys/mini.h"

#define PAGE 4096ul
/* Where the number may be: glibc 720 bytes after the base, musl 48, Go's m.procid 72 before it. */
#define SEARCH_BEFORE 256l
#define SEARCH_BEHIND 2048l
#define MOVES_MAX 16u

struct rt_thread_entry kron_rt_threads[1 << RT_THREADS_SHIFT];
long kron_rt_tid_offset;
static bool can_read_base;
static uint32_t moves; /* how often the offset turned out to be another one; atomic */

void kron_rt_thread_init(bool can)
{
	can_read_base = can;
}

static uint64_t fs_base(void)
{
	uint64_t base = 0;

	if (can_read_base)
		__asm__ volatile("rdfsbase %0" : "=r"(base));
	return base;
}

static struct rt_thread_entry *entry_of(uint64_t base)
{
	uint32_t hash = (uint32_t)(base >> RT_THREADS_BASE_SHIFT) * RT_THREADS_HASH;

	return &kron_rt_threads[hash >> (32 - RT_THREADS_SHIFT)];
}

/* ---- the number near the base ---- */

/* Only what the kernel could read for us is known to be there. */
static long read_words(void *to, uint64_t from, size_t len)
{
	struct iovec local = {.iov_base = to, .iov_len = len};
	struct iovec remote = {.iov_base = (void *)from, .iov_len = len};

	return sys6(__NR_process_vm_readv, sys_getpid(), (long)&local, 1, (long)&remote, 1, 0);
}

/* Where thread data begins a thread has its number: base is of a thread like others. */
static uint32_t number_at(long offset)
{
	uint32_t word;

	__asm__ volatile("movl %%fs:(%1), %0" : "=r"(word) : "r"(offset));
	return word;
}

static bool has_number(uint64_t base, long offset, uint32_t tid)
{
	uint32_t word = 0;

	if (kron_rt.quiet) /* it is where we have the number from */
		return offset && number_at(offset) == tid;
	return offset && read_words(&word, base + (uint64_t)offset, sizeof(word)) == sizeof(word) &&
	       word == tid;
}

/* The offset from the base of a word of [from, end), in one page; 0: there is none. */
static long search(uint64_t base, uint64_t from, uint64_t end, uint32_t tid)
{
	uint32_t words[64];

	while (from < end) {
		uint64_t len = end - from < sizeof(words) ? end - from : sizeof(words);
		long got = read_words(words, from, len);
		long i;

		for (i = 0; i < got / (long)sizeof(words[0]); i++) {
			if (words[i] == tid && from + 4 * (uint64_t)i != base)
				return (long)(from + 4 * (uint64_t)i - base);
		}
		if (got < (long)len) /* the rest of this page is not there, either */
			from = (from | (PAGE - 1)) + 1;
		else
			from += len;
	}
	return 0;
}

static void find_number(uint64_t base, uint32_t tid)
{
	long offset;

	if (__atomic_fetch_add(&moves, 1, __ATOMIC_RELAXED) >= MOVES_MAX) {
		/* It lies nowhere: from now on the kernel is asked each time. */
		__atomic_store_n(&kron_rt_tid_offset, 0, __ATOMIC_RELAXED);
		return;
	}
	offset = search(base, base & -4ul, base + SEARCH_BEHIND, tid);
	if (!offset)
		offset = search(base, (base - SEARCH_BEFORE) & -4ul, base, tid);
	__atomic_store_n(&kron_rt_tid_offset, offset, __ATOMIC_RELAXED);
}

/*
 * The kernel has just said that the calling thread has lane->tid.  An entry that two threads
 * write at once may have the base of one and the lane of the other; then the numbers differ.
 */
static void remember(struct rt_lane *lane)
{
	uint64_t base = fs_base();
	struct rt_thread_entry *e = entry_of(base);

	if (!base || __atomic_load_n(&moves, __ATOMIC_RELAXED) > MOVES_MAX)
		return;
	if (!has_number(base, kron_rt_tid_offset, lane->tid)) {
		if (kron_rt.quiet)
			return;
		find_number(base, lane->tid);
		if (!has_number(base, kron_rt_tid_offset, lane->tid))
			return;
	}
	__atomic_store_n(&e->lane, NULL, __ATOMIC_RELEASE);
	__atomic_store_n(&e->base, base, __ATOMIC_RELEASE);
	__atomic_store_n(&e->lane, lane, __ATOMIC_RELEASE);
}

void rt_thread_set_lane(struct rt_lane *lane)
{
	if (lane >= kron_rt.lanes && lane < kron_rt.lanes + RT_LANES_MAX)
		remember(lane);
}

/* ---- the calling thread's lane ---- */

/* A vfork child runs on its parent's thread data: its lane is that of the thread that waits. */
static struct rt_lane *lane_of_parent(void)
{
	uint64_t base = fs_base();
	const struct rt_thread_entry *e = entry_of(base);

	if (base && e->base == base && e->lane)
		return e->lane;
	return rt_lane_of((uint32_t)sys0(__NR_getppid));
}

/* Without a system call: who has had a lane before. */
static struct rt_lane *lane_known(void)
{
	uint32_t tid = rt_tid_known(false);

	return tid ? rt_lane_of(tid) : NULL;
}

struct rt_lane *rt_thread_lane(void)
{
	uint32_t tid;
	struct rt_lane *lane;

	if (!kron_rt.live || kron_rt.named)
		return NULL;
	if (kron_rt.quiet)
		return lane_known();
	tid = (uint32_t)sys_gettid();
	lane = rt_lane_of(tid);
	if (lane)
		remember(lane);
	else if (kron_rt.proc->pid && !rt_proc_is_ours())
		lane = lane_of_parent();
	return lane;
}

void rt_thread_forget(void)
{
	__atomic_store_n(&moves, MOVES_MAX + 1, __ATOMIC_RELAXED);
	__atomic_store_n(&kron_rt_tid_offset, 0, __ATOMIC_RELAXED);
}

/* ---- tid.c's part ---- */

void rt_tid_find(void)
{
}

void rt_tid_registered(uint32_t tid)
{
	(void)tid;
}

uint32_t rt_tid_known(bool forked)
{
	long offset = kron_rt_tid_offset;

	/* A forked child cannot tell its number from its parent's. */
	return !forked && offset && fs_base() ? number_at(offset) : 0;
}
