/* SPDX-License-Identifier: MIT */
/*
 * memory.c - see memory.h.
 *
 * A program's limits count address space (RLIMIT_AS, and RLIMIT_MEMLOCK at mlockall()), used or not.
 * So only what is in use is mapped, and each mapping grows where it lies, by mremap, which needs no
 * descriptor:
 *
 *   RT_LANES_HINT   rt_proc │ lane 0 … used-1 │ ─► as threads register
 *   RT_POOL_HINT    chunk 0 … ready-1 │ ─► as the collector adds some
 *
 * Nothing may move: claim words and thread data lead there.  Where another mapping lies in the way
 * the process makes do with what it has.
 *
 * Threads that grow the same mapping at once say the same old length, of which only one is right; the
 * kernel refuses the others, and they find it grown.  No new length is less than the old one that is
 * said with it, so nothing can shrink.
 */
#define _GNU_SOURCE
#include <time.h>
#include <sys/mman.h>
#include <linux/mman.h>
#include "runtime/sys/memory.h"
#include "runtime/core/thread.h"
#include "runtime/sys/signals.h"
#include "runtime/sys/sys.h"
#include "runtime/sys/mini.h"

#define QUIET_CHUNKS 512u /* 32 MiB, opened before a seccomp filter */
#define QUIET_LANES 1024u
#define TURN_NAP_NS 50000
#define TURN_NAPS 400u   /* 20 ms and more */
#define LANES_FIRST 192u /* 24 KiB; with rt_proc a mapping of 32 */
#define LANES_STEP 512u

/* ---- mappings that stay as they are ---- */

long rt_map_shared(uint64_t addr, bool fixed, uint64_t len, int prot, int fd, uint64_t off)
{
	long at = sys_mmap((void *)addr, len, prot,
			   MAP_SHARED | MAP_NORESERVE | (fixed ? MAP_FIXED_NOREPLACE : 0), fd, off);

	if (!sys_failed(at) && fixed && (uint64_t)at != addr) {
		/* A kernel before 4.17 takes the address for a wish. */
		sys_munmap((void *)at, len);
		return -EEXIST;
	}
	/* A core dump of the program need not have gigabytes of the board in it.  Rings are another matter:
	 * rt_memory_into_cores(). */
	if (!sys_failed(at))
		sys_madvise((void *)at, len, MADV_DONTDUMP);
	return at;
}

uint8_t *kron_rt_stacks;
uint64_t kron_rt_stacks_taken;

/*
 * A forked child inherits what was taken by threads that it does not have: those stacks are lost
 * to it.  With all of them gone the program's own must do.
 */
bool rt_map_stacks(void)
{
	long at = sys_mmap((void *)RT_STACKS_HINT, (uint64_t)RT_STACKS << RT_STACK_SHIFT,
			   PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
			   0);

	if (sys_failed(at))
		return false;
	kron_rt_stacks = (uint8_t *)at;
	return true;
}

/* ---- may text become executable again? ---- */

/*
 * Some systems let a program take the X from its text but not give it back (SELinux' execmod,
 * PR_SET_MDWE, systemd's MemoryDenyWriteExecute).  There the first patch would be the
 * program's end, so we try it on a page of our own first, which nothing else lies on.
 */
__asm__(".pushsection .text.kron_trial, \"ax\", @progbits\n"
	".p2align 12\n"
	"kron_rt_trial:\n"
	".fill 4096, 1, 0xcc\n"
	".popsection\n");
extern uint8_t kron_rt_trial[] __attribute__((visibility("hidden")));

/* Each time: a program may forbid it to itself at any moment. */
long rt_text_trial(void)
{
	long ret = sys_mprotect(kron_rt_trial, 4096, PROT_READ | PROT_WRITE);

	if (ret)
		return ret;
	*(volatile uint8_t *)kron_rt_trial = 0xcc;
	return sys_mprotect(kron_rt_trial, 4096, PROT_READ | PROT_EXEC);
}

/* ---- growth ---- */

static bool remap(const struct rt_growing *g, uint64_t unit, uint32_t from, uint32_t to)
{
	return !sys_failed(sys4(__NR_mremap, (long)g->start, (long)(g->head + from * unit),
				(long)(g->head + to * unit), 0));
}

/* Never shorter: who grew it before us may be the last to say so, and then nobody finds its end. */
static void say_longer(struct rt_growing *g, uint32_t want)
{
	uint32_t said = __atomic_load_n(&g->now, __ATOMIC_RELAXED);

	/* Release: pairs with the acquire of who goes by it. */
	while (said < want && !__atomic_compare_exchange_n(&g->now, &said, want, true,
							   __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
}

/*
 * One thread at a time asks the kernel: hundreds that stand in the queue for its lock of the memory map, each until it
 * gets a processor again, hold up all others that want that lock.  It is not waited for very long: one that
 * was killed in a vfork never says that it is done.
 */
static void await_turn(const struct rt_growing *g, uint32_t want)
{
	const struct timespec nap = {.tv_nsec = TURN_NAP_NS};

	for (unsigned i = 0; i < TURN_NAPS; i++) {
		if (!__atomic_load_n(&kron_rt.proc->grows, __ATOMIC_RELAXED) || kron_rt.quiet ||
		    __atomic_load_n(&g->now, __ATOMIC_RELAXED) >= want)
			return;
		sys2(__NR_nanosleep, (long)&nap, 0);
	}
}

/*
 * Make it `want` units long.  False: not now.  Who forks while another thread is between the system
 * call and the store has a child whose mapping is longer than it knows; `next` tells it.
 */
static bool grow(struct rt_growing *g, uint64_t unit, uint32_t want)
{
	uint32_t old, next;
	bool grown = false;
	uint64_t mask;

	await_turn(g, want);
	mask = rt_signals_block();
	old = __atomic_load_n(&g->now, __ATOMIC_ACQUIRE);
	next = __atomic_load_n(&g->next, __ATOMIC_RELAXED);
	if (old >= want) {
		grown = true;
	} else {
		__atomic_store_n(&kron_rt.proc->grows, 1, __ATOMIC_RELAXED);
		__atomic_store_n(&g->next, want, __ATOMIC_RELAXED);
		grown = remap(g, unit, old, want);
		if (!grown && next > old) {
			want = want > next ? want : next + 1;
			grown = remap(g, unit, next, want);
		}
		if (grown)
			say_longer(g, want);
		else
			__atomic_store_n(&g->next, next, __ATOMIC_RELAXED);
		__atomic_store_n(&kron_rt.proc->grows, 0, __ATOMIC_RELAXED);
	}
	rt_signals_restore(mask);
	return grown || __atomic_load_n(&g->now, __ATOMIC_ACQUIRE) >= want;
}

/* ---- the pool ---- */

uint32_t rt_pool_ready(void)
{
	uint32_t ready = __atomic_load_n(&kron_rt.ctl->chunks_ready, __ATOMIC_ACQUIRE);

	return ready < kron_rt.chunks ? ready : kron_rt.chunks;
}

long rt_pool_map(const struct rt_segment *seg)
{
	uint32_t opened;
	long at;

	kron_rt.chunks = (uint32_t)((seg->size - KRON_POOL_OFFSET) / KRON_CHUNK_SIZE);
	if (kron_rt.chunks > KRON_CHUNKS_MAX)
		kron_rt.chunks = KRON_CHUNKS_MAX;
	opened = rt_pool_ready() ? rt_pool_ready() : 1;
	at = rt_map_shared(RT_POOL_HINT, false, (uint64_t)opened * KRON_CHUNK_SIZE,
			   PROT_READ | PROT_WRITE, seg->fd, KRON_POOL_OFFSET);
	if (sys_failed(at))
		return at;
	kron_rt.pool = (uint8_t *)at;
	kron_rt.opened = (struct rt_growing){.start = (uint64_t)at, .now = opened};
	return rt_private_map();
}

void rt_memory_into_cores(void)
{
	sys_madvise((void *)(uintptr_t)KRON_CTL_ADDR, KRON_WINDOW_SIZE - KRON_CTL_OFFSET,
		    MADV_DODUMP);
	sys_madvise(kron_rt.pool, rt_pool_size(), MADV_DODUMP);
}

void rt_pool_unmap(void)
{
	if (kron_rt.pool)
		sys_munmap(kron_rt.pool, rt_pool_size());
	rt_private_unmap();
}

uint64_t rt_pool_size(void)
{
	return (uint64_t)__atomic_load_n(&kron_rt.opened.now, __ATOMIC_ACQUIRE) * KRON_CHUNK_SIZE;
}

uint32_t rt_pool_mapped(void)
{
	uint32_t ready = rt_pool_ready();
	uint32_t opened = __atomic_load_n(&kron_rt.opened.now, __ATOMIC_ACQUIRE);

	return ready < opened ? ready : opened;
}

uint32_t rt_pool_usable(void)
{
	uint32_t ready = rt_pool_ready();
	uint32_t opened = __atomic_load_n(&kron_rt.opened.now, __ATOMIC_ACQUIRE);
	uint64_t tried;

	if (ready <= opened)
		return ready;
	/*
	 * A mapping that was in the way stays there, nearly always: do not try again at each chunk.  If
	 * another thread has grown the pool from the same length instead, the length is another by now,
	 * or will be in a moment, and the next try goes by that.
	 */
	tried = (uint64_t)opened << 32 | ready;
	if (kron_rt.quiet || kron_rt.not_opened == tried)
		return opened;
	if (!grow(&kron_rt.opened, KRON_CHUNK_SIZE, ready)) {
		kron_rt.not_opened = tried;
		return __atomic_load_n(&kron_rt.opened.now, __ATOMIC_ACQUIRE);
	}
	return ready;
}

void rt_memory_open_ahead(void)
{
	uint32_t wanted = kron_rt.chunks < QUIET_CHUNKS ? kron_rt.chunks : QUIET_CHUNKS;

	/* Chunks that have no pages yet are not touched before they are FREE. */
	grow(&kron_rt.opened, KRON_CHUNK_SIZE, wanted > rt_pool_ready() ? wanted : rt_pool_ready());
	rt_private_holds(kron_rt.lanes_before % RT_LANES_MAX + QUIET_LANES);
}

/*
 * First touches of pages, in the midst of samples, would double a probe's cost: have them all
 * made at once, the first time that this process gets the chunk.
 */
void rt_pool_populate(uint32_t index)
{
	uint64_t bit = 1ull << index % 64;
	uint64_t *word = &kron_rt.proc->populated[index / 64];

	if (kron_rt.quiet || __atomic_load_n(word, __ATOMIC_RELAXED) & bit)
		return;
	sys_madvise(rt_pool_chunk(index), KRON_CHUNK_SIZE, MADV_POPULATE_WRITE);
	__atomic_fetch_or(word, bit, __ATOMIC_RELAXED);
}

/* ---- what a fork wipes ---- */

static uint64_t private_size(uint32_t lanes)
{
	return RT_PROC_SIZE + (uint64_t)lanes * sizeof(struct rt_lane);
}
_Static_assert((RT_PROC_SIZE + LANES_FIRST * sizeof(struct rt_lane)) % 4096 == 0, "whole pages");
_Static_assert(LANES_STEP * sizeof(struct rt_lane) % 4096 == 0, "whole pages");
_Static_assert(RT_LANES_HINT + RT_PROC_SIZE +
			       (RT_LANES_MAX + LANES_STEP) * sizeof(struct rt_lane) <=
		       RT_POOL_HINT,
	       "the pool is in the lanes' way");

uint64_t rt_private_first(void)
{
	return private_size(LANES_FIRST);
}

void rt_private_use(long at)
{
	kron_rt.proc = (struct rt_proc *)at;
	kron_rt.lanes = (struct rt_lane *)(at + RT_PROC_SIZE);
	kron_rt.mapped = (struct rt_growing){
		.start = (uint64_t)at, .head = RT_PROC_SIZE, .now = LANES_FIRST};
	rt_threads_lanes_at((uint64_t)kron_rt.lanes,
			    (uint64_t)RT_LANES_MAX * sizeof(struct rt_lane));
}

long rt_private_map(void)
{
	const uint64_t size = rt_private_first();
	long at = sys_mmap((void *)RT_LANES_HINT, size, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	long ret;

	if (sys_failed(at))
		return at;
	ret = sys_madvise((void *)at, size, MADV_WIPEONFORK);
	if (ret) {
		sys_munmap((void *)at, size);
		return ret;
	}
	rt_private_use(at);
	return 0;
}

uint64_t rt_private_size(void)
{
	return private_size(__atomic_load_n(&kron_rt.mapped.now, __ATOMIC_ACQUIRE));
}

void rt_private_unmap(void)
{
	if (kron_rt.proc)
		sys_munmap(kron_rt.proc, rt_private_size());
}

bool rt_private_holds(uint32_t lanes)
{
	uint32_t mapped = __atomic_load_n(&kron_rt.mapped.now, __ATOMIC_ACQUIRE);

	if (lanes <= mapped)
		return true;
	if (kron_rt.quiet || lanes > RT_LANES_MAX)
		return false;
	lanes = mapped + (lanes - mapped + LANES_STEP - 1) / LANES_STEP * LANES_STEP;
	if (lanes > RT_LANES_MAX + LANES_STEP)
		return false;
	return grow(&kron_rt.mapped, sizeof(struct rt_lane), lanes);
}

/* ---- cut off ---- */

uint64_t kron_rt_faults_open;

/* For each mapping of the segment: the part that private memory has replaced. */
static struct {
	uint64_t from, to;
} replaced[3];

/* Two threads at once may replace it twice, and lose what they stored there: nobody reads that. */
static bool replace(unsigned which, uint64_t page, uint64_t start, uint64_t size)
{
	uint64_t end = start + size;
	long at;

	if (!start || page < start || page >= end)
		return false;
	if (page >= __atomic_load_n(&replaced[which].from, __ATOMIC_ACQUIRE) &&
	    page < __atomic_load_n(&replaced[which].to, __ATOMIC_ACQUIRE))
		return true; /* somebody was here first */
	at = sys6(__NR_mmap, (long)page, (long)(end - page), PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
	if (sys_failed(at))
		return false;
	__atomic_store_n(&replaced[which].from, page, __ATOMIC_RELEASE);
	__atomic_store_n(&replaced[which].to, end, __ATOMIC_RELEASE);
	return true;
}

bool rt_memory_replace(uint64_t addr)
{
	uint64_t page = addr & ~4095ull;

	return replace(0, page, KRON_CTL_ADDR, KRON_WINDOW_SIZE - KRON_CTL_OFFSET) ||
	       replace(1, page, (uint64_t)kron_rt.board.memory, KRON_MEMORY_BYTES) ||
	       replace(2, page, kron_rt.opened.start, rt_pool_size());
}
