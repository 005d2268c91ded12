/* SPDX-License-Identifier: MIT */
/* test_lane.c - lanes, chunks and losses: samples taken + samples lost = triggers, exactly. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "board/model/holes.h"
#include "runtime/core/chunks.h"
#include "tests/unit/runtime/lane_rig.h"

/* ---- chunks follow each other ---- */

static void rollover(void)
{
	struct tally t;
	uint64_t seq = 0;
	uint32_t i;

	set_up(8, KRON_WHEN_FULL_DISCARD);
	rig_trigger(probe, 5 * (KRON_CHUNK_SAMPLES - 1) + 10);
	t = tally_all();
	CHECK_EQ(t.samples, 5 * (KRON_CHUNK_SAMPLES - 1) + 10);
	CHECK_EQ(t.holes, 0);
	CHECK_EQ(t.chunks, 6);
	CHECK(t.cpu_records >= 6);
	CHECK_EQ(rig_lost(&board), 0);
	CHECK_EQ(board.ctl->free_count, 2);
	for (i = 0; i < 6; i++) {
		CHECK_EQ(kron_chunk_word_state(board.states[i]),
			 i < 5 ? KRON_CHUNK_FULL : KRON_CHUNK_OWNED);
		CHECK(rig_chunk(&board, i)->seq > seq);
		seq = rig_chunk(&board, i)->seq;
		CHECK_EQ(rig_samples(&board, i)->event, KRON_EVENT_CPU);
	}
	CHECK_EQ(kron_chunk_word_state(board.states[6]), KRON_CHUNK_FREE);
}

/* ---- discard ---- */

static void discard_says_where(void)
{
	struct tally before, after = {0};
	const struct kron_sample *s;
	uint32_t lost;

	set_up(2, KRON_WHEN_FULL_DISCARD);
	rig_trigger(probe, 10000);
	before = tally_all();
	lost = (uint32_t)(10000 - before.samples);
	CHECK_EQ(rig_lost(&board), lost);
	CHECK_EQ(before.lost_records, 0);
	CHECK_EQ(rig_drain(&board, &after), 2); /* the last one was handed over, too */
	rig_trigger(probe, 3);
	s = rig_samples(&board, 0);
	CHECK_EQ(s[0].event, KRON_EVENT_CPU);
	CHECK_EQ(s[1].event, KRON_EVENT_LOST);
	CHECK_EQ(s[1].payload, lost);
	CHECK_EQ(s[2].event, 2);
	CHECK_EQ(s[2].head & KRON_HEAD_FIFO_OVERFLOW, KRON_HEAD_FIFO_OVERFLOW);
	CHECK_EQ(s[3].head & KRON_HEAD_FIFO_OVERFLOW, 0);
	CHECK_EQ(s[5].head, 0);
	CHECK_EQ(rig_lost(&board), lost);
}

#define THREADS 4
#define PER_THREAD 400000ull

static void *trigger_many(void *arg)
{
	(void)arg;
	rig_trigger(probe, PER_THREAD);
	return NULL;
}

static void run_threads(void)
{
	pthread_t t[THREADS];
	unsigned i;

	for (i = 0; i < THREADS; i++)
		CHECK(pthread_create(&t[i], NULL, trigger_many, NULL) == 0);
	for (i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
}

static void exact_with(uint32_t chunks, enum kron_when_full when_full, unsigned nap_us)
{
	struct tally t;
	uint64_t triggers;

	set_up(chunks, when_full);
	collector_start(nap_us);
	storm_begin(300, on_signal);
	run_threads();
	storm_end();
	t = collector_stop();
	triggers = THREADS * PER_THREAD + handled;
	printf("# %llu triggers, %llu by handlers, %llu samples, %llu lost, %llu flagged\n",
	       (unsigned long long)triggers, (unsigned long long)handled,
	       (unsigned long long)t.samples, (unsigned long long)rig_lost(&board),
	       (unsigned long long)t.flagged);
	CHECK(handled > 0);
	CHECK_EQ(t.holes, 0);
	CHECK_EQ(t.samples + rig_lost(&board), triggers);
	if (when_full == KRON_WHEN_FULL_WAIT)
		CHECK_EQ(rig_lost(&board), 0);
}

static void discard_is_exact(void)
{
	exact_with(8, KRON_WHEN_FULL_DISCARD, 3000);
	CHECK(rig_lost(&board) > 0);
	/* What was not yet told in a record is still in some lane. */
	CHECK(collector.t.lost_records <= rig_lost(&board));
}

static void wait_loses_nothing(void)
{
	exact_with(8, KRON_WHEN_FULL_WAIT, 1000);
	CHECK_EQ(board.ctl->waiters, 0);
}

static void wait_gives_up_when_closing(void)
{
	set_up(1, KRON_WHEN_FULL_WAIT);
	board.ctl->closing = 1;
	rig_trigger(probe, 100000);
	CHECK_EQ(tally_all().samples + rig_lost(&board), 100000);
}

static void wait_gives_up_without_collector(void)
{
	pid_t dead = fork();

	if (dead == 0)
		_exit(0);
	waitpid(dead, NULL, 0);
	set_up(1, KRON_WHEN_FULL_WAIT);
	kron_rt.collector_pid = dead;
	rig_trigger(probe, 100000);
	CHECK_EQ(tally_all().samples + rig_lost(&board), 100000);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void *sleep_once(void *back_at)
{
	rt_pool_sleep(board.ctl->wake_waiters, 900000000);
	__atomic_store_n((uint64_t *)back_at, now_ns(), __ATOMIC_RELAXED);
	return NULL;
}

/* Who is still in the kernel's list of those to wake would be woken once more, in a system call of the program. */
static void woken_waits_for_his_waker(void)
{
	uint64_t back_at, woken_at;
	bool woken = false;
	pthread_t t;

	set_up(1, KRON_WHEN_FULL_WAIT);
	board.ctl->wakers = 1; /* and never done: killed */
	while (!woken) {
		__atomic_store_n(&back_at, 0, __ATOMIC_RELAXED);
		CHECK(pthread_create(&t, NULL, sleep_once, &back_at) == 0);
		while (!woken && !__atomic_load_n(&back_at, __ATOMIC_RELAXED)) {
			woken_at = now_ns();
			woken = syscall(SYS_futex, &board.ctl->wake_waiters, FUTEX_WAKE, 1, NULL,
					NULL, 0) == 1;
		}
		pthread_join(t, NULL);
	}
	CHECK(back_at >= woken_at + 100000000);
}

/* ---- wrap ---- */

static void wrap_is_exact(void)
{
	struct tally t;
	uint64_t triggers;

	set_up(12, KRON_WHEN_FULL_WRAP);
	storm_begin(300, on_signal);
	run_threads();
	storm_end();
	t = tally_all();
	triggers = THREADS * PER_THREAD + handled;
	printf("# %llu triggers, %llu samples, %llu lost\n", (unsigned long long)triggers,
	       (unsigned long long)t.samples, (unsigned long long)rig_lost(&board));
	CHECK_EQ(t.holes, 0);
	CHECK_EQ(t.samples + rig_lost(&board), triggers);
	/* a handler's chunk may have made one vain that a thread had just begun: that was given back */
	CHECK_EQ(t.chunks + board.ctl->free_count, 12);
	CHECK(board.ctl->free_count <= THREADS);
}

static void wrap_keeps_the_newest(void)
{
	uint64_t seen = 0;
	uint32_t i;

	set_up(4, KRON_WHEN_FULL_WRAP);
	rig_trigger(probe, 30000);
	for (i = 0; i < 4; i++)
		seen |= 1ull << rig_chunk(&board, i)->seq;
	/* 30000 / 3275 = 9.2: ten chunks were begun, the last four of them are there. */
	CHECK_EQ(seen, 0xfull << 7);
}

/* A claim that was interrupted before its store: the chunk is handed over with a hole. */
static void wrap_spares_holes(void)
{
	uint64_t claim;

	set_up(3, KRON_WHEN_FULL_WRAP);
	rig_trigger(probe, 10);
	claim = kron_rt_lane->claim;
	kron_rt_lane->claim += RT_CLAIM_STEP;
	rig_trigger(probe, 20000); /* round and round, never over chunk 0 */
	CHECK_EQ(rig_chunk(&board, 0)->seq, 1);
	CHECK_EQ(tally_all().holes, 1);
	/* Now the interrupted thread goes on. */
	((struct kron_sample *)rt_claim_addr(claim))->event = 2;
	((struct kron_sample *)rt_claim_addr(claim))->head = KRON_HEAD_TRACE(0);
	rig_trigger(probe, 20000);
	CHECK(rig_chunk(&board, 0)->seq > 1);
	CHECK_EQ(tally_all().samples + rig_lost(&board), 40011);
}

/* What the collector makes of a dead thread's chunk in wrap mode: FULL, with room at its end. */
static void wrap_takes_chunks_of_the_dead(void)
{
	pthread_t t;

	set_up(3, KRON_WHEN_FULL_WRAP);
	CHECK(pthread_create(&t, NULL, trigger_few, (void *)50) == 0);
	pthread_join(t, NULL);
	board.states[0] = (board.states[0] & ~(uint64_t)KRON_STATE_MASK) | KRON_CHUNK_FULL;
	rig_trigger(probe, 30000);
	CHECK(rig_chunk(&board, 0)->seq > 1);
	CHECK_EQ(tally_all().samples + rig_lost(&board), 30050);
}

/* ---- a handler that switches chunks under a claim ---- */

/*
 * The thunk's claim, made by hand, with the handler in the middle.  Once the slot is claimed
 * it is real, and once it is not it is not, whatever became of the lane since.
 */
static void handler_switches_chunks(void)
{
	struct rt_lane *lane;
	uint64_t claim;
	uint32_t left;

	set_up(16, KRON_WHEN_FULL_DISCARD);
	probe();
	lane = kron_rt_lane;
	for (left = 0; left < 40000; left++) {
		claim = lane->claim;
		lane->claim += RT_CLAIM_STEP;
		if (left % 1000 == 0)
			rig_trigger(probe, 4000);
		if (rt_claim_has_room(claim)) {
			struct kron_sample *s = (struct kron_sample *)rt_claim_addr(claim);
			uint64_t off = (uint64_t)((uint8_t *)s - kron_rt.pool);

			CHECK_EQ(s->head, 0);
			CHECK(off < 16ull * KRON_CHUNK_SIZE);
			CHECK_EQ((off % KRON_CHUNK_SIZE - KRON_CHUNK_HEADER) % KRON_SAMPLE_SIZE, 0);
			s->head = KRON_HEAD_TRACE(0);
		} else {
			probe();
		}
		rig_drain(&board, &collector.t);
	}
}

static sigjmp_buf back;
static volatile sig_atomic_t has_back;

static void on_signal_leave(int sig)
{
	(void)sig;
	if (has_back)
		siglongjmp(back, 1);
}

/* A claim that a longjmp cuts off leaves a hole at worst: the lane goes on. */
static void handler_leaves_by_longjmp(void)
{
	static volatile uint64_t triggers, jumps;
	struct tally t;
	uint64_t counted;

	set_up(3000, KRON_WHEN_FULL_DISCARD);
	storm_begin(200, on_signal_leave);
	while (jumps < 1000) {
		jumps++;
		if (sigsetjmp(back, 1) == 0) {
			has_back = 1;
			for (;;) {
				triggers++;
				probe();
			}
		}
	}
	storm_end();
	t = tally_all();
	counted = t.samples + t.holes + rig_lost(&board);
	printf("# %llu triggers, %llu samples, %llu holes\n", (unsigned long long)triggers,
	       (unsigned long long)t.samples, (unsigned long long)t.holes);
	/* A jump may come between our count and the claim. */
	CHECK(counted <= triggers && counted + jumps >= triggers);
	CHECK(t.holes <= jumps);
}

/*
 * Has the chunk a hole that nothing in it tells to be abandoned?  All samples of the loop below
 * have one depth: that is a hole whose payload was not stored, or one that nothing follows.
 */
static bool is_in_doubt(const struct kron_sample *s)
{
	bool is_followed = false;
	uint32_t i;

	for (i = KRON_CHUNK_SAMPLES; i-- > 0;) {
		if (s[i].head == 0 && (s[i].payload == 0 || !is_followed))
			return true;
		is_followed |= kron_sample_is_trigger(&s[i]);
	}
	return false;
}

static uint32_t count_undoubted(void)
{
	uint32_t n = 0;
	uint32_t i;

	for (i = 0; i < board.ctl->chunks_ready; i++) {
		n += kron_chunk_word_state(board.states[i]) == KRON_CHUNK_FULL &&
		     !is_in_doubt(rig_samples(&board, i));
	}
	return n;
}

/* Chunks with holes that longjmps left come back to the pool while the thread lives. */
static void longjmp_holes_are_let_go(void)
{
	static volatile uint64_t triggers, jumps;
	struct tally t;

	set_up(200, KRON_WHEN_FULL_DISCARD);
	storm_begin(200, on_signal_leave);
	while (jumps < 1000) {
		jumps++;
		if (sigsetjmp(back, 1) == 0) {
			has_back = 1;
			for (;;) {
				triggers++;
				probe();
			}
		}
		rig_drain(&board, &collector.t);
	}
	storm_end();
	rig_drain(&board, &collector.t);
	t = tally_all();
	printf("# %llu holes let go, %llu left in %llu chunks\n",
	       (unsigned long long)collector.t.holes, (unsigned long long)t.holes,
	       (unsigned long long)t.chunks);
	CHECK_EQ(count_undoubted(), 0);
	CHECK(collector.t.holes > t.holes);
}

static void hole_rule(void)
{
	static struct kron_sample s[KRON_CHUNK_SAMPLES];
	static const uint32_t depth[] = {100, 140, 0, 2000, 2050, 2000};
	uint32_t i;

	for (i = 0; i < KRON_CHUNK_SAMPLES; i++) {
		s[i].head = KRON_HEAD_TRACE(0);
		s[i].payload = (i < 6 ? 0u - depth[i] : 0u - 2050);
	}
	s[2].head = 0;
	s[2].payload = 0u - 140;
	CHECK(!kron_hole_is_abandoned(s, 2)); /* all the rest is the handler's */
	s[3000].payload = 0u - 140;
	CHECK(kron_hole_is_abandoned(s, 2)); /* a later iteration of the main flow's loop */
	s[3000].payload = 0u - 2050;
	s[2].payload = 0;                     /* cut off before it stored even that */
	CHECK(!kron_hole_is_abandoned(s, 2)); /* all the rest is the handler's */
	s[3].payload = 0u - 2100;             /* its first function has no probe */
	CHECK(!kron_hole_is_abandoned(s, 2));
	s[3000].payload = 0u - 100; /* the main flow again */
	CHECK(kron_hole_is_abandoned(s, 2));
	s[1].payload = 0u - 90000; /* before: a deep callee */
	s[3].payload = 0u - 2000;
	CHECK(kron_hole_is_abandoned(s, 2));
	s[3275].head = 0; /* the last slot: nothing comes after it */
	CHECK(!kron_hole_is_abandoned(s, 3275));
	for (i = 0; i < 2; i++)
		s[i].event = KRON_EVENT_CPU;
	CHECK(kron_hole_is_abandoned(s, 2));
}

static const struct tap_test tests[] = {
	{"rollover", rollover},
	{"discard_says_where", discard_says_where},
	{"discard_is_exact", discard_is_exact},
	{"wait_loses_nothing", wait_loses_nothing},
	{"wait_gives_up_when_closing", wait_gives_up_when_closing},
	{"wait_gives_up_without_collector", wait_gives_up_without_collector},
	{"woken_waits_for_his_waker", woken_waits_for_his_waker},
	{"wrap_is_exact", wrap_is_exact},
	{"wrap_keeps_the_newest", wrap_keeps_the_newest},
	{"wrap_spares_holes", wrap_spares_holes},
	{"wrap_takes_chunks_of_the_dead", wrap_takes_chunks_of_the_dead},
	{"handler_switches_chunks", handler_switches_chunks},
	{"handler_leaves_by_longjmp", handler_leaves_by_longjmp},
	{"longjmp_holes_are_let_go", longjmp_holes_are_let_go},
	{"hole_rule", hole_rule},
};

int main(int argc, char **argv)
{
	return tap_main(tests, sizeof(tests) / sizeof(tests[0]), argc, argv);
}
