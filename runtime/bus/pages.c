/* SPDX-License-Identifier: MIT */
/*
 * pages.c - page reference counters: what the trampolines do not count by themselves.
 *
 *   the thread's table (wiped by fork)          chunks of the pool: OWNED, of the thread alone
 *   +------+                                    +-----------------------------+
 *   | page | --- the record that was last ----> | page, reads, writes, next --|--+   those of one
 *   | mod  |     looked for                     | page, reads, writes, next <-|--+   entry are a ring
 *   | 4096 |                                    +-----------------------------+
 *   +------+
 *
 * The records lie in shared memory, so nothing is lost however the thread ends.  The table lies in memory
 * of the process's own: a forked child finds it empty.  What stands in front of it is not wiped: a list of all
 * tables that are mapped, of those that a child has from its parent, too.
 *
 * By function a record belongs to one page and one function, and the table is larger.  A recording counts one
 * way only, so no trampoline of the other kind comes to such records.
 *
 * A handler may come between any two instructions, and count.  A record's page is set before anybody
 * finds it, and stays; a record that drops out of its ring, since two put themselves into it at once,
 * keeps its counts, and the page gets another one.
 */
#include <errno.h>
#include <sys/mman.h>
#include "runtime/bus/bus.h"
#include "runtime/core/chunks.h"
#include "runtime/core/thread.h"
#include "runtime/sys/processor.h"
#include "runtime/sys/memory.h"
#include "runtime/sys/sys.h"
#include "runtime/sys/mini.h"

#define RING_MAX (1u << 20) /* the pool is other processes', too: a ring may be no ring */
#define WAIT_SLICE_NS 5000000
#define WAITS 200u
#define FLAG_DIRECTION 0x400u
_Static_assert(RT_ACTION_LINES == KRON_ACTION_LINES &&
		       RT_ACTION_BY_FUNCTION == KRON_ACTION_BY_FUNCTION,
	       "thunk_bus.S");

/* What has a record: a page or line, by function one for each of them. */
struct unit {
	unsigned shift;
	uint32_t function; /* struct kron_page */
};

/* ---- a record of its own for each page ---- */

static uint32_t number_of(const struct kron_page *p)
{
	return (uint32_t)(((uint64_t)p - (uint64_t)kron_rt.pool) / sizeof(*p));
}

/* NULL: no such record. */
static struct kron_page *record_at(uint32_t number)
{
	if (number / (KRON_PAGES_IN_CHUNK + 1) >= rt_pool_usable())
		return NULL;
	return (struct kron_page *)(kron_rt.pool) + number;
}

static bool is_chunk_end(uint64_t at)
{
	return !at || (at - (uint64_t)kron_rt.pool) % KRON_CHUNK_SIZE == 0;
}

/* The pool may have to grow first. */
static int32_t take_chunk(uint64_t mine)
{
	for (uint32_t i = 0;; i++) {
		uint32_t seen = __atomic_load_n(&kron_rt.ctl->wake_waiters, __ATOMIC_SEQ_CST);
		int32_t index = rt_chunk_take(mine, NULL);

		if (index >= 0 || i == WAITS || kron_rt.quiet || !rt_pool_can_grow())
			return index;
		rt_collector_wake();
		rt_pool_sleep(seen, WAIT_SLICE_NS);
	}
}

/* The address of its first record; 0: there is none to be had. */
static uint64_t begin_chunk(const struct rt_lane *lane)
{
	const struct rt_proc *p = kron_rt.proc;
	uint64_t mine = kron_chunk_word(KRON_CHUNK_OWNED, lane->tid, p->slot, p->uid);
	int32_t index = take_chunk(mine);
	struct kron_chunk *chunk;

	if (index < 0)
		return 0;
	rt_pool_populate((uint32_t)index);
	chunk = rt_pool_chunk((uint32_t)index);
	chunk->source = lane->source;
	chunk->kind = KRON_CHUNK_OF_PAGES | KRON_CHUNK_BEGUN_ON(rt_cpu());
	/* Release: the kind; partner: collect/pages/pages.c. */
	__atomic_store_n(&chunk->seq,
			 __atomic_add_fetch(&kron_rt.ctl->next_seq, 1, __ATOMIC_RELAXED),
			 __ATOMIC_RELEASE);
	return (uint64_t)chunk + sizeof(struct kron_page);
}

static struct kron_page *take_record(struct rt_lane *lane)
{
	uint64_t at = __atomic_load_n(&lane->page_free, __ATOMIC_RELAXED);

	for (;;) {
		uint64_t to = is_chunk_end(at) ? begin_chunk(lane) : at;

		if (!to)
			return NULL;
		/* A handler may have begun a chunk, too: one of them stays as it is, almost empty. */
		if (__atomic_compare_exchange_n(&lane->page_free, &at,
						to + sizeof(struct kron_page), false,
						__ATOMIC_RELAXED, __ATOMIC_RELAXED))
			return (struct kron_page *)to;
	}
}

/* ---- the table ---- */

/* In front of it, and not wiped. */
struct head {
	uint64_t next; /* table: wire.h; 0: there is none */
	uint64_t size; /* of this one */
};
#define HEAD_ROOM 4096u

static struct head *head_of(uint64_t table)
{
	return (struct head *)(table - HEAD_ROOM);
}

static void enlist_table(uint64_t table)
{
	uint64_t first = __atomic_load_n(&kron_rt.page_tables, __ATOMIC_RELAXED);

	do
		head_of(table)->next = first;
	while (!__atomic_compare_exchange_n(&kron_rt.page_tables, &first, table, false,
					    __ATOMIC_RELEASE, __ATOMIC_RELAXED));
}

static int64_t *take_table(struct rt_lane *lane, uint64_t size)
{
	const uint64_t room = HEAD_ROOM + size;
	int64_t *none = NULL;
	long at;

	if (kron_rt.quiet)
		return NULL;
	at = sys_mmap((void *)(RT_PAGES_HINT + (uint64_t)(lane - kron_rt.lanes) * room), room,
		      PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (sys_failed(at))
		return NULL;
	at += HEAD_ROOM;
	head_of((uint64_t)at)->size = size;
	if (sys_madvise((void *)at, size, MADV_WIPEONFORK) ||
	    !__atomic_compare_exchange_n(&lane->pages, &none, (int64_t *)at, false,
					 __ATOMIC_RELEASE, __ATOMIC_ACQUIRE))
		sys_munmap(head_of((uint64_t)at), room);
	else
		enlist_table((uint64_t)at);
	return __atomic_load_n(&lane->pages, __ATOMIC_RELAXED);
}

void rt_pages_clear(int64_t *table)
{
	mini_zero(table, head_of((uint64_t)table)->size);
}

void rt_pages_leave(void)
{
	for (uint64_t next, at = kron_rt.page_tables; at; at = next) {
		next = head_of(at)->next;
		sys_munmap(head_of(at), HEAD_ROOM + head_of(at)->size);
	}
	kron_rt.page_tables = 0;
}

static struct rt_lane *find_lane(bool by_function)
{
	const uint64_t size = by_function ? KRON_FUNCTION_TABLE_SIZE : KRON_PAGE_TABLE_SIZE;
	struct rt_lane *lane;

	if (rt_lane_is_mute() || rt_proc_is_refused())
		return NULL;
	lane = rt_lane_find();
	if (!lane || (!lane->pages && !take_table(lane, size)))
		return NULL;
	rt_thread_set_pages(lane->pages);
	return lane;
}

static struct kron_page *look_in_ring(struct kron_page *first, uint64_t page, uint32_t function)
{
	struct kron_page *p = first;

	for (uint32_t i = 0; p && i < RING_MAX; i++) {
		if (p->page == page && p->function == function)
			return p;
		p = record_at(__atomic_load_n(&p->next, __ATOMIC_RELAXED));
		if (p == first)
			break;
	}
	return NULL;
}

static const struct kron_watch *watch(void)
{
	return (const struct kron_watch *)(uint64_t)(KRON_WINDOW_ADDR + KRON_WATCH_OFFSET);
}

/* Acquire: the lines; partner: collect/pages/pages.c. */
static bool is_watched(uint64_t page)
{
	for (uint32_t i = __atomic_load_n(&watch()->n, __ATOMIC_ACQUIRE); i; i--)
		if (watch()->line[i - 1] == page)
			return true;
	return false;
}

static int64_t *entry_of(int64_t *table, uint64_t page, struct unit u, bool is_address)
{
	uint64_t at = ((page >> u.shift) + is_address) ^ KRON_PAGE_SALT(u.function);

	return &table[at % (u.function ? KRON_FUNCTION_TABLE_ENTRIES : KRON_PAGE_TABLE_ENTRIES)];
}

static struct kron_page *first_of(const int64_t *entry)
{
	int64_t there = __atomic_load_n(entry, __ATOMIC_RELAXED);

	return there ? (struct kron_page *)(there + KRON_NO_PAGE_ADDR) : NULL;
}

static void put_first(int64_t *entry, const struct kron_page *p)
{
	__atomic_store_n(entry, (int64_t)((uint64_t)p - KRON_NO_PAGE_ADDR), __ATOMIC_RELEASE);
}

/*
 * A record of one address lies in the ring of the next entry: a trampoline that comes there has an address of
 * another line, and takes the record for none of its own.
 */
static struct kron_page *find_record(struct rt_lane *lane, uint64_t page, struct unit u,
				     bool is_address)
{
	int64_t *entry = entry_of(lane->pages, page, u, is_address);
	struct kron_page *first = first_of(entry);
	struct kron_page *p = look_in_ring(first, page, u.function);

	if (!p) {
		p = take_record(lane);
		if (!p)
			return NULL;
		p->next = first ? first->next : number_of(p);
		p->function = u.function;
		__atomic_store_n(&p->page, page, __ATOMIC_RELEASE);
		if (first)
			__atomic_store_n(&first->next, number_of(p), __ATOMIC_RELEASE);
	}
	put_first(entry, p);
	return p;
}

/* ---- counting ---- */

/* One instruction each: whole for a handler on this thread. */
static void add_to(struct kron_page *p, uint64_t reads, uint64_t writes)
{
	__asm__ volatile("addq %1, %0" : "+m"(p->reads) : "r"(reads) : "cc");
	__asm__ volatile("addq %1, %0" : "+m"(p->writes) : "r"(writes) : "cc");
}

static void add(struct rt_lane *lane, uint64_t page, struct unit u, bool is_address, uint64_t reads,
		uint64_t writes)
{
	struct kron_page *p = lane ? find_record(lane, page, u, is_address) : NULL;

	if (p)
		add_to(p, reads, writes);
	else
		rt_proc_count_lost(reads + writes);
}

static void count(struct rt_lane *lane, uint64_t page, struct unit u, uint64_t reads,
		  uint64_t writes)
{
	add(lane, page, u, false, reads, writes);
}

static struct unit unit_of(uint64_t code)
{
	return (struct unit){code & KRON_ACTION_LINES ? KRON_LINE_SHIFT : KRON_PAGE_SHIFT,
			     code & KRON_ACTION_BY_FUNCTION ? (uint32_t)(code >> 32) : 0};
}

static uint64_t page_of(uint64_t addr, unsigned shift)
{
	return addr >> shift << shift;
}

/* Two pages at most, but so many lines as it takes. */
static void count_one(struct rt_lane *lane, uint64_t at, uint64_t size, struct unit u,
		      uint64_t reads, uint64_t writes)
{
	const uint64_t last = page_of(at + size - 1, u.shift);
	uint64_t page = page_of(at, u.shift);

	if (watch()->by_address) {
		const bool is_address = is_watched(page);

		add(lane, is_address ? at : page, u, is_address, reads, writes);
		return;
	}
	count(lane, page, u, reads, writes);
	while (page != last) {
		page += 1u << u.shift;
		count(lane, page, u, reads, writes);
	}
}

/* Elements of a string instruction. */
struct run {
	uint32_t size;
	struct unit u;
	bool down;
};

/* n elements, one after the other, up or down: as many at once as begin and end in one page. */
static void count_run(struct rt_lane *lane, uint64_t at, uint64_t n, const struct run *r,
		      bool reads, bool writes)
{
	const uint64_t unit = 1u << r->u.shift;
	const uint32_t size = r->size;

	while (n) {
		uint64_t offset = at % unit, whole;

		if (r->down)
			whole = offset + size <= unit ? offset / size + 1 : 0;
		else
			whole = (unit - offset) / size;
		if (whole > n)
			whole = n;
		if (whole && !is_watched(page_of(at, r->u.shift))) {
			count(lane, page_of(at, r->u.shift), r->u, reads ? whole : 0,
			      writes ? whole : 0);
		} else {
			count_one(lane, at, size, r->u, reads, writes);
			whole = 1;
		}
		at += r->down ? -(whole * size) : whole * size;
		n -= whole;
	}
}

/*
 * A string instruction with a rep prefix.  Its counts are in registers: `data` is two words above the
 * thunk's return address, and what the thunk saved lies below that one (thunk_bus.S).
 */
static void count_repeated(struct rt_lane *lane, uint64_t code, uint64_t data, uint64_t flags)
{
	const uint64_t *saved = (const uint64_t *)data - 2; /* below it rcx, rdx, rdi, rsi */
	uint64_t n = saved[-1], rdi = saved[-3], rsi = saved[-4];
	uint32_t reads = code >> 16 & 15, writes = code >> 20 & 15;
	const struct run r = {code & 0xfff, unit_of(code), flags & FLAG_DIRECTION};

	if ((reads | writes) & 1)
		count_run(lane, rsi, n, &r, reads & 1, writes & 1);
	if ((reads | writes) & 2)
		count_run(lane, rdi, n, &r, reads & 2, writes & 2);
}

void rt_pages_count(uint64_t code, uint64_t data, uint64_t flags)
{
	struct rt_lane *lane;

	rt_busy_begin();
	lane = rt_thread_with_pages();
	if (!lane)
		lane = find_lane(code & KRON_ACTION_BY_FUNCTION);
	if (code & KRON_ACTION_REPEATED)
		count_repeated(lane, code, data, flags);
	else
		count_one(lane, data, code & 0xfff, unit_of(code), code >> 16 & 15,
			  code >> 20 & 15);
	rt_busy_end();
}
