/* SPDX-License-Identifier: MIT */
/* grow.c - see grow.h */
#define _GNU_SOURCE
#include "collect/grow.h"

#include <limits.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define STEP 16u /* chunks: a third of a millisecond */
#define RESERVE 256
#define IDLE_MS 1000u
#define ROOM_MS 1000u

static long futex(uint32_t *word, int op, uint32_t val, const struct timespec *timeout)
{
	return syscall(SYS_futex, word, op, val, timeout, NULL, 0);
}

void segment_wake_waiters(struct segment *seg)
{
	/* Both sequentially consistent; partner and argument: runtime/core/lane.c, wait_for_room(). */
	__atomic_fetch_add(&seg->ctl->wake_waiters, 1, __ATOMIC_SEQ_CST);
	if (!__atomic_load_n(&seg->ctl->waiters, __ATOMIC_SEQ_CST))
		return;
	__atomic_fetch_add(&seg->ctl->wakers, 1, __ATOMIC_ACQ_REL);
	futex(&seg->ctl->wake_waiters, FUTEX_WAKE, INT_MAX, NULL);
	__atomic_fetch_sub(&seg->ctl->wakers, 1, __ATOMIC_ACQ_REL);
}

void segment_wake_collector(struct segment *seg)
{
	__atomic_fetch_add(&seg->ctl->wake_collector, 1, __ATOMIC_ACQ_REL);
	futex(&seg->ctl->wake_collector, FUTEX_WAKE, INT_MAX, NULL);
}

void segment_wait(struct segment *seg, uint32_t seen, uint32_t ms)
{
	struct timespec ts = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};

	futex(&seg->ctl->wake_collector, FUTEX_WAIT, seen, &ts);
}

static bool is_short_of_chunks(struct segment *seg, uint32_t wanted)
{
	uint32_t ready = segment_ready(seg);
	int32_t free = __atomic_load_n(&seg->ctl->free_count, __ATOMIC_ACQUIRE);

	if (ready >= segment_limit(seg))
		return false;
	if (ready < SEGMENT_CHUNKS_FIRST || 2 * (int64_t)free < (int64_t)ready ||
	    free < (int64_t)wanted)
		return true;
	/* The runtime has asked before: a busy thread fills RESERVE chunks in some 7 ms, and so
	 * long may it take until we get a processor. */
	return free < RESERVE && __atomic_load_n(&seg->ctl->wake_collector, __ATOMIC_RELAXED);
}

void grow_pool(struct segment *seg, uint32_t wanted)
{
	while (is_short_of_chunks(seg, wanted)) {
		if (__atomic_load_n(&seg->ctl->closing, __ATOMIC_ACQUIRE) ||
		    !segment_grow(seg, STEP))
			return;
		segment_wake_waiters(seg);
	}
}

static void *grow_thread(void *arg)
{
	struct grow *g = arg;

	pthread_setname_np(pthread_self(), "kron-grow");
	while (!__atomic_load_n(&g->stop, __ATOMIC_ACQUIRE)) {
		uint32_t seen = __atomic_load_n(&g->seg->ctl->wake_collector, __ATOMIC_ACQUIRE);
		uint32_t wanted = __atomic_load_n(&g->wanted, __ATOMIC_RELAXED);

		grow_pool(g->seg, wanted);
		/* Release: the pool; partner: grow_make_room(), which may have asked for others meanwhile. */
		__atomic_compare_exchange_n(&g->wanted, &wanted, 0, false, __ATOMIC_RELEASE,
					    __ATOMIC_RELAXED);
		if (__atomic_load_n(&g->stop, __ATOMIC_ACQUIRE))
			break;
		segment_wait(g->seg, seen, IDLE_MS);
	}
	if (g->give_back)
		segment_give_back(g->seg);
	return NULL;
}

int grow_start(struct grow *g, struct segment *seg, struct err *err)
{
	int code;

	memset(g, 0, sizeof(*g));
	g->seg = seg;
	code = pthread_create(&g->thread, NULL, grow_thread, g);
	if (code)
		return err_set(err, code, "cannot start a thread: %s", strerror(code));
	g->running = true;
	return 0;
}

void grow_make_room(struct grow *g, uint64_t chunks)
{
	const struct timespec nap = {.tv_nsec = 1000000};
	uint32_t most;

	if (!g->running ||
	    __atomic_load_n(&g->seg->ctl->free_count, __ATOMIC_ACQUIRE) >= (int64_t)chunks)
		return;
	most = segment_limit(g->seg) / 4;
	__atomic_store_n(&g->wanted, chunks < most ? (uint32_t)chunks : most, __ATOMIC_RELAXED);
	segment_wake_collector(g->seg);
	for (unsigned ms = 0; ms < ROOM_MS && __atomic_load_n(&g->wanted, __ATOMIC_ACQUIRE); ms++)
		nanosleep(&nap, NULL);
}

void grow_ask_to_stop(struct grow *g, bool give_back)
{
	if (!g->running || __atomic_load_n(&g->stop, __ATOMIC_RELAXED))
		return;
	g->give_back = give_back;
	/* Release: give_back; partner: grow_thread(). */
	__atomic_store_n(&g->stop, true, __ATOMIC_RELEASE);
	segment_wake_collector(g->seg);
}

void grow_stop(struct grow *g)
{
	if (!g->running)
		return;
	grow_ask_to_stop(g, false);
	pthread_join(g->thread, NULL);
	g->running = false;
}
