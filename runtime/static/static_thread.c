/* SPDX-License-Identifier: MIT */
/* static_thread.c - thread.h where no thread-local storage is ours: see static.h */
#define _GNU_SOURCE
#include <asm/prctl.h>
#include <linux/futex.h>
#include <sys/uio.h>
#include "runtime/core/thread.h"
#include "runtime/static/static.h"
#include "runtime/sys/processor.h"
#include "runtime/sys/sys.h"
#include "runtime/sys/mini.h"

#define PAGE 4096ul
#define MOVES_MAX 16u

struct rt_threads kron_rt_threads;
long kron_rt_tid_offset;
bool kron_rt_has_rdpid;
bool kron_rt_can_read_base;
static uint32_t moves; /* how often the offset turned out to be another one; atomic */
static uint32_t looks; /* how often it was not where it should be; atomic */

void kron_rt_thread_init(bool can, bool has_rdpid, int32_t data_from, int32_t data_end)
{
	kron_rt_can_read_base = can;
	kron_rt_has_rdpid = has_rdpid;
	kron_rt_threads.self[0].word = RT_SELF_NONE; /* whose word is 0 finds nobody there */
	rt_data_init(data_from, data_end);
}

/* What lies at %fs:0. */
static uint64_t self_word(void)
{
	uint64_t word;

	__asm__ volatile("movq %%fs:0, %0" : "=r"(word));
	return word;
}

uint64_t rt_fs_base(void)
{
	uint64_t base = 0;

	if (kron_rt_can_read_base)
		__asm__ volatile("rdfsbase %0" : "=r"(base));
	else if (!kron_rt.quiet)
		sys2(__NR_arch_prctl, ARCH_GET_FS, (long)&base);
	else if (kron_rt_tid_offset) /* nobody finds a lane by another base then */
		base = self_word();
	return base;
}

/* ---- the number near the base ---- */

/* Only what the kernel could read for us is known to be there. */
static long read_words(void *to, uint64_t from, size_t len)
{
	struct iovec local = {.iov_base = to, .iov_len = len};
	struct iovec remote = {.iov_base = (void *)from, .iov_len = len};

	return sys6(__NR_process_vm_readv, sys_getpid(), (long)&local, 1, (long)&remote, 1, 0);
}

/* The calling thread's number, as its own data has it at this offset from %fs. */
static uint32_t number_at(long offset)
{
	uint32_t word;

	__asm__ volatile("movl %%fs:(%1), %0" : "=r"(word) : "r"(offset));
	return word;
}

static uint32_t self_index(uint64_t word)
{
	return (uint32_t)word >> RT_SELF_SHIFT & RT_THREADS_MASK;
}

/*
 * Is that what its data has there?  Memory that cannot be read has nothing.  A futex is compared without the
 * kernel's lock of the memory map, in whose queue hundreds of threads would stand, each until it gets a processor again.
 */
static bool has_number_at(uint64_t base, long offset, uint32_t tid)
{
	uint32_t nobody = 0;

	if (kron_rt.quiet) /* it is where we have the number from */
		return number_at(offset) == tid;
	return !sys6(__NR_futex, (long)(base + (uint64_t)offset), FUTEX_CMP_REQUEUE_PRIVATE, 0, 0,
		     (long)&nobody, tid);
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

void rt_numbers_end(void)
{
	__atomic_store_n(&moves, MOVES_MAX + 1, __ATOMIC_SEQ_CST);
	__atomic_store_n(&kron_rt_tid_offset, 0, __ATOMIC_SEQ_CST);
}

/* The 1st, 2nd, 4th, 8th … time. */
static bool is_turn(uint32_t *times)
{
	const uint32_t n = __atomic_add_fetch(times, 1, __ATOMIC_RELAXED);

	return !(n & (n - 1));
}

/*
 * What is found is read by all threads from now on.  One that comes meanwhile may have less data
 * (strangers): either we see that here, or its maker sees the offset.
 */
static void find_number(uint64_t base, uint32_t tid)
{
	int32_t from, end;
	long offset;

	rt_data_range(&from, &end);
	offset = search(base, base & -4ul, base + (uint64_t)(int64_t)end, tid);
	if (!offset)
		offset = search(base, (base + (uint64_t)(int64_t)from + 3) & -4ul, base, tid);
	if (!offset)
		return;
	if (__atomic_fetch_add(&moves, 1, __ATOMIC_SEQ_CST) >= MOVES_MAX) {
		rt_numbers_end(); /* it is not in the same place in all threads */
		return;
	}
	__atomic_store_n(&kron_rt_tid_offset, offset, __ATOMIC_SEQ_CST);
	rt_data_range(&from, &end);
	if (offset < from || offset + 4 > end ||
	    __atomic_load_n(&moves, __ATOMIC_SEQ_CST) > MOVES_MAX)
		__atomic_store_n(&kron_rt_tid_offset, 0, __ATOMIC_SEQ_CST);
}

static bool has_number(uint64_t base, uint32_t tid)
{
	const long offset = kron_rt_tid_offset;

	return offset && has_number_at(base, offset, tid);
}

static void write_entry(uint64_t *key, struct rt_lane **to, uint64_t none, uint64_t base,
			struct rt_lane *lane)
{
	__atomic_store_n(key, none, __ATOMIC_RELEASE);
	__atomic_store_n(to, lane, __ATOMIC_RELEASE);
	__atomic_store_n(key, base, __ATOMIC_RELEASE);
}

/*
 * The kernel has just said that the calling thread has lane->tid.  An entry that two threads
 * write at once may have the base of one and the lane of the other; then the numbers differ.
 */
static void remember(struct rt_lane *lane)
{
	const uint64_t base = rt_fs_base();
	uint32_t i = lane->tid & RT_THREADS_MASK;

	if (!base || __atomic_load_n(&moves, __ATOMIC_RELAXED) > MOVES_MAX)
		return;
	if (!has_number(base, lane->tid)) {
		if (kron_rt.quiet)
			return;
		/* a thread of Go's writes it when it has begun, some have none */
		if (is_turn(&looks))
			find_number(base, lane->tid);
		if (!has_number(base, lane->tid))
			return;
	}
	write_entry(&kron_rt_threads.base[i], &kron_rt_threads.lane[i], 0, base, lane);
	if (self_word() != base) /* Go's */
		return;
	i = self_index(base);
	write_entry(&kron_rt_threads.self[i].word, &kron_rt_threads.self[i].lane, RT_SELF_NONE,
		    base, lane);
}

void rt_thread_prepare_quiet(void)
{
	const uint64_t base = kron_rt_tid_offset ? 0 : rt_fs_base();

	if (base && __atomic_load_n(&moves, __ATOMIC_RELAXED) <= MOVES_MAX)
		find_number(base, (uint32_t)sys_gettid());
}

void rt_thread_set_lane(struct rt_lane *lane)
{
	if (lane >= kron_rt.lanes && lane < kron_rt.lanes + RT_LANES_MAX)
		remember(lane);
}

/* ---- the calling thread's lane ---- */

/* NULL: the word at %fs:0 leads to none. */
static struct rt_lane *lane_by_self(uint32_t number)
{
	const uint64_t word = self_word();
	const struct rt_self *s = &kron_rt_threads.self[self_index(word)];
	struct rt_lane *lane = s->word == word ? s->lane : NULL;

	return lane && lane->tid == number ? lane : NULL;
}

/* Whose number is near the base, as the thunks see it; NULL: nobody's. */
static struct rt_lane *lane_by_base(void)
{
	const long offset = kron_rt_tid_offset;
	struct rt_lane *lane;
	uint32_t i;

	if (!offset || (kron_rt_can_read_base && !rt_fs_base()))
		return NULL;
	i = number_at(offset) & RT_THREADS_MASK;
	lane = lane_by_self(number_at(offset));
	if (!lane && kron_rt_can_read_base && kron_rt_threads.base[i] == rt_fs_base())
		lane = kron_rt_threads.lane[i];
	return lane;
}

/* A vfork child runs on its parent's thread data: its lane is that of the thread that waits. */
static struct rt_lane *lane_of_parent(void)
{
	struct rt_lane *lane = lane_by_base();

	return lane ? lane : rt_lane_of((uint32_t)sys0(__NR_getppid));
}

/* A thread of this process whose thunks would find another's lane, and whom nobody has announced. */
static void look_for_strangers(uint32_t tid)
{
	const struct rt_lane *lane = lane_by_base();

	if (lane && lane->tid && lane->tid != tid && lane->tid == number_at(kron_rt_tid_offset) &&
	    rt_proc_is_ours())
		rt_strangers_come();
}

/* Without a system call: who has had a lane before. */
static struct rt_lane *lane_known(void)
{
	uint32_t tid = rt_tid_known(false);

	return tid ? rt_lane_of(tid) : NULL;
}

/* The kernel says who we are. */
static struct rt_lane *lane_asked(void)
{
	const uint32_t tid = (uint32_t)sys_gettid();
	struct rt_lane *lane = rt_lane_of(tid);

	look_for_strangers(tid);
	if (lane)
		remember(lane);
	else if (kron_rt.proc->pid && !rt_is_strange() && !rt_proc_is_ours())
		lane = lane_of_parent();
	return lane;
}

struct rt_lane *rt_thread_lane(void)
{
	struct rt_lane *lane;

	if (!kron_rt.live || kron_rt.named)
		return NULL;
	rt_busy_begin();
	lane = kron_rt.quiet ? lane_known() : lane_asked();
	rt_busy_end();
	return lane;
}

/* No probe finds its lane by itself any more. */
void rt_thread_mute(void)
{
	kron_rt.mute = true;
	rt_numbers_end();
}

bool rt_thunks_find_lanes(void)
{
	return false;
}

/* ---- its number ---- */

void rt_tid_registered(uint32_t tid)
{
	(void)tid;
}

uint32_t rt_tid_known(bool forked)
{
	long offset = kron_rt_tid_offset;

	/* A forked child cannot tell its number from its parent's. */
	if (forked || !offset || (kron_rt_can_read_base && !rt_fs_base()))
		return 0;
	return number_at(offset);
}

/* ---- its CPU: no word in its data, but the processor says it ---- */

bool rt_has_rseq(void)
{
	return false;
}

/* Nothing to do: who began has said what the processor has. */
void rt_threads_take_board(void)
{
}

uint32_t rt_cpu_read(void)
{
	return rt_cpu();
}

void rt_cpu_note(void)
{
}

/* ---- START, and what is not there ---- */

void rt_threads_start(void)
{
}

uint32_t kron_rt_clock_mask;
long kron_rt_mark_offset;
/* struct rseq_cs, which the kernel checks: a section in which nobody ever is (thunk_static.S) */
struct rt_mark kron_rt_mark;

void kron_rt_mark_init(long offset)
{
	kron_rt_mark.start = (uint64_t)kron_rt_mark_start;
	kron_rt_mark.len = RT_MARK_LEN;
	kron_rt_mark.aborted = (uint64_t)kron_rt_mark_aborted;
	kron_rt_mark_offset = offset;
}

/* Who cannot see that a thread was switched away reads the clock each time. */
void rt_threads_clock(uint32_t every)
{
	kron_rt_clock_mask = every && kron_rt_mark_offset ? every - 1 : 0;
}

void rt_threads_lanes_at(uint64_t start, uint64_t size)
{
	(void)start, (void)size;
}

/* The board of hardware needs rseq: the collector must do without. */
void rt_thread_thunks(struct kron_hello *hello)
{
	hello->thunk[KRON_THUNK_LANE] = (uint64_t)kron_rt_probe;
	hello->payload_thunk[KRON_THUNK_LANE] = (uint64_t)kron_rt_payload;
	hello->thunk[KRON_THUNK_LANE_CONSTANT] = (uint64_t)kron_rt_probe_constant;
	hello->payload_thunk[KRON_THUNK_LANE_CONSTANT] = (uint64_t)kron_rt_payload_constant;
	hello->thunk[KRON_THUNK_LANE_SPARSE] = (uint64_t)kron_rt_probe_sparse;
	hello->payload_thunk[KRON_THUNK_LANE_SPARSE] = (uint64_t)kron_rt_payload;
	hello->timed_thunk = (uint64_t)kron_rt_probe_timed;
}

/* The number is the kernel's word. */
struct rt_lane *rt_thread_check(uint32_t tid)
{
	(void)tid;
	return NULL;
}

bool rt_thread_shares(const struct rt_lane *lane)
{
	(void)lane;
	return false;
}

struct rt_own *rt_thread_own(void)
{
	return NULL;
}

/* Trampolines know no way to it; the thunk finds it by the lane (thunk_bus.S). */
void rt_thread_set_pages(int64_t *table)
{
	(void)table;
}

/* As the thunks find it. */
static struct rt_lane *lane_seen(void)
{
	struct rt_lane *lane = lane_by_base();

	return lane && lane->tid == number_at(kron_rt_tid_offset) ? lane : NULL;
}

struct rt_lane *rt_thread_with_pages(void)
{
	struct rt_lane *lane = lane_seen();

	return lane && lane->pages ? lane : NULL;
}

/* Not each time: a thread whose number is not near its base would ask the kernel for it at each count. */
struct rt_lane *rt_thread_counting(void)
{
	static uint32_t asked; /* atomic */
	struct rt_lane *lane = lane_seen();

	if (lane || !is_turn(&asked) || rt_lane_is_mute() || rt_proc_is_refused())
		return lane;
	return rt_lane_find();
}
