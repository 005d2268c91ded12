/* SPDX-License-Identifier: MIT */
/* test_snapshot.c - whose samples a snapshot of the ring holds, while threads take chunks from each other. */
#include "tests/unit/collect/drain_rig.h"

#include <pthread.h>
#include <sys/mman.h>
#include <time.h>

#include "base/clock.h"
#include "collect/flight/snapshot.h"
#include "trace/writer_dir.h"

#define FULL KRON_CHUNK_SAMPLES

static struct snapshot snapshot_of(struct recording *b, bool is_last)
{
	const struct time_point start = {.tsc = 1000, .mono_ns = 1000};
	char *to = xasprintf("%s/001", b->dir);
	struct snapshot s = {.drain = &b->drain,
			     .start = &start,
			     .from = b->dir,
			     .to = to,
			     .why = "a test",
			     .is_last = is_last};
	struct err err;

	if (snapshot_take(&s, &err))
		fail_msg("%s", err.msg);
	assert_int_equal(samples_in(to), s.samples);
	writer_remove_dir(to);
	xfree(to);
	return s;
}

static void what_is_being_taken_is_nobodys(void **state)
{
	pid_t a = start_sleeper(), c = start_sleeper();
	struct recording b;
	struct snapshot s;

	(void)state;
	board_open(&b, "taken", KRON_WHEN_FULL_WRAP);
	slot_claim(&b, 0, 1, a, 0);
	slot_claim(&b, 1, 2, c, 0);
	fill(&b, 0, FULL);
	claim(&b, 0, KRON_CHUNK_TAKEN, 1, 2,
	      c); /* from a, whose number and samples are still there */
	fill(&b, 1, FULL);
	claim(&b, 1, KRON_CHUNK_FULL, 0, 1, a);
	fill(&b, 2, 5);
	claim(&b, 2, KRON_CHUNK_OWNED, 0, 1, a);
	claim(&b, 3, KRON_CHUNK_OWNED, 1, 2, c); /* no number yet */
	for (int is_last = 0; is_last < 2; is_last++) {
		s = snapshot_of(&b, is_last);
		assert_int_equal(s.samples, FULL + 5);
		assert_int_equal(s.left_out, 0);
	}
	end_sleeper(a);
	end_sleeper(c);
	drain_all(&b.drain);
	board_close(&b, false);
}

/* c has it, and counts a moment later what was in it. */
static void *count_what_was_taken(void *arg)
{
	struct recording *b = arg;
	const struct timespec a_moment = {.tv_nsec = 2000000};

	nanosleep(&a_moment, NULL);
	__atomic_fetch_add(&b->seg.procs[0].lost, FULL, __ATOMIC_RELAXED);
	__atomic_store_n(&b->seg.states[0], kron_chunk_word(KRON_CHUNK_OWNED, 1, 1, 2),
			 __ATOMIC_RELEASE);
	return NULL;
}

static void what_is_being_taken_counts_as_lost(void **state)
{
	pid_t a = start_sleeper(), c = start_sleeper();
	struct recording b;
	struct snapshot s;
	pthread_t taker;

	(void)state;
	board_open(&b, "taking", KRON_WHEN_FULL_WRAP);
	slot_claim(&b, 0, 1, a, 0);
	slot_claim(&b, 1, 2, c, 0);
	fill(&b, 0, FULL);
	claim(&b, 0, KRON_CHUNK_TAKEN, 1, 2, c);
	__atomic_store_n(&segment_chunk(&b.seg, 0)->seq, 0, __ATOMIC_RELAXED);
	fill(&b, 1, 5);
	claim(&b, 1, KRON_CHUNK_OWNED, 0, 1, a);
	assert_int_equal(pthread_create(&taker, NULL, count_what_was_taken, &b), 0);
	s = snapshot_of(&b, false);
	pthread_join(taker, NULL);
	assert_int_equal(s.samples, 5);
	assert_int_equal(s.totals.lost, FULL);
	end_sleeper(a);
	end_sleeper(c);
	drain_all(&b.drain);
	board_close(&b, false);
}

static void what_a_dead_one_was_taking_is_free_again(void **state)
{
	pid_t a = start_sleeper(), c = start_sleeper();
	struct recording b;

	(void)state;
	board_open(&b, "dead", KRON_WHEN_FULL_WRAP);
	slot_claim(&b, 0, 1, a, 0);
	slot_claim(&b, 1, 2, c, 0);
	fill(&b, 0, FULL);
	claim(&b, 0, KRON_CHUNK_TAKEN, 1, 2, c);
	drain_round(&b.drain, true, true);
	assert_int_equal(state_of(&b, 0), KRON_CHUNK_TAKEN); /* it will go on */
	end_sleeper(c);
	drain_round(&b.drain, true, true);
	assert_int_equal(state_of(&b, 0), KRON_CHUNK_FREE);
	assert_true(is_zero(&b, 0));
	assert_int_equal(b.seg.ctl->lost_unowned, FULL);
	end_sleeper(a);
	drain_all(&b.drain);
	assert_int_equal(b.drain.totals.samples, 0);
	board_close(&b, false);
}

static void set_times(struct recording *b, uint32_t i, uint64_t tsc)
{
	for (uint32_t k = 0; k < FULL; k++)
		set_time(&samples_of(b, i)[k], tsc);
}

/* A program may write any time.  What it says of the future makes nobody else's samples old. */
static void a_time_in_the_future_drops_nobody_elses(void **state)
{
	const uint64_t now = clock_tsc(), keep = 1ull << 36;
	const uint64_t times[] = {now - 2 * keep, now, now + 16 * keep};
	pid_t a = start_sleeper(), c = start_sleeper();
	struct recording b;
	struct snapshot s;

	(void)state;
	board_open(&b, "future", KRON_WHEN_FULL_WRAP);
	b.drain.keep_ticks = keep;
	slot_claim(&b, 0, 1, a, 0);
	slot_claim(&b, 1, 2, c, 0);
	for (uint32_t i = 0; i < 3; i++) {
		fill(&b, i, FULL);
		set_times(&b, i, times[i]);
		claim(&b, i, KRON_CHUNK_FULL, i / 2, 1 + i / 2, i / 2 ? c : a);
	}
	/* nor does a snapshot of what was until now hold it */
	for (int is_last = 0; is_last < 2; is_last++) {
		s = snapshot_of(&b, is_last);
		assert_int_equal(s.samples, FULL);
		assert_int_equal(s.left_out, 0);
	}
	assert_int_equal(drain_wrap(&b.drain, true), 1);
	assert_int_equal(state_of(&b, 0), KRON_CHUNK_FREE);
	end_sleeper(a);
	end_sleeper(c);
	drain_all(&b.drain);
	assert_int_equal(b.drain.totals.samples, 2 * FULL);
	board_close(&b, false);
}

/* While the list of full chunks is made, threads fill others, which have no place in it.  Of what is in the list, those
 * with later numbers are not older than they are. */
static void what_is_filled_during_the_look_stays(void **state)
{
	const uint64_t now = clock_tsc(), keep = 1ull << 36;
	const uint64_t times[] = {now - 3 * keep, now - 2 * keep, now};
	pid_t a = start_sleeper();
	struct recording b;

	(void)state;
	board_open(&b, "during", KRON_WHEN_FULL_WRAP);
	b.drain.keep_ticks = keep;
	slot_claim(&b, 0, 1, a, 0);
	for (uint32_t i = 0; i < 3; i++) {
		fill(&b, i, FULL);
		set_times(&b, i, times[i]);
		claim(&b, i, i < 2 ? KRON_CHUNK_FULL : KRON_CHUNK_OWNED, 0, 1, a);
	}
	b.seg.ctl->next_seq = segment_chunk(&b.seg, 0)->seq;
	assert_int_equal(drain_wrap(&b.drain, true), 1);
	assert_int_equal(state_of(&b, 0), KRON_CHUNK_FREE);
	assert_int_equal(state_of(&b, 1), KRON_CHUNK_FULL);
	b.seg.ctl->next_seq = segment_chunk(&b.seg, 1)->seq;
	assert_int_equal(drain_wrap(&b.drain, true), 1);
	assert_int_equal(state_of(&b, 1), KRON_CHUNK_FREE);
	end_sleeper(a);
	board_close(&b, false);
}

static struct recording *counted; /* whose table of processes is write-protected */
static unsigned state_then;
static uint64_t number_then;

static void protect_counted(int how)
{
	assert_int_equal(mprotect(counted->seg.procs, 4096, how), 0);
}

static void on_count(int sig)
{
	(void)sig;
	state_then = state_of(counted, 0);
	number_then = segment_chunk(&counted->seg, 0)->seq;
	protect_counted(PROT_READ | PROT_WRITE);
}

/* As its samples are counted as lost, they are nobody's: a core, or a recorder that is killed, would have them twice. */
static void what_is_let_go_is_nobodys(void **state)
{
	const uint64_t now = clock_tsc(), keep = 1ull << 36;
	pid_t a = start_sleeper();
	struct recording b;

	(void)state;
	board_open(&b, "let-go", KRON_WHEN_FULL_WRAP);
	b.drain.keep_ticks = keep;
	slot_claim(&b, 0, 1, a, 0);
	for (uint32_t i = 0; i < 2; i++) {
		fill(&b, i, FULL);
		set_times(&b, i, i ? now : now - 2 * keep);
		claim(&b, i, KRON_CHUNK_FULL, 0, 1, a);
	}
	counted = &b;
	signal(SIGSEGV, on_count);
	protect_counted(PROT_READ);
	assert_int_equal(drain_wrap(&b.drain, true), 1);
	signal(SIGSEGV, SIG_DFL);
	assert_int_equal(b.seg.procs[0].lost, FULL);
	assert_int_equal(state_then, KRON_CHUNK_TAKEN);
	assert_int_equal(number_then, 0);
	end_sleeper(a);
	board_close(&b, false);
}

/* A recorder was killed before it had counted it; whose it was lives.  Recovered, its samples are lost, and counted. */
static void what_a_killed_recorder_let_go_is_lost(void **state)
{
	pid_t a = start_sleeper();
	struct recording b;

	(void)state;
	board_open(&b, "killed", KRON_WHEN_FULL_WRAP);
	slot_claim(&b, 0, 1, a, 0);
	fill(&b, 0, FULL);
	claim(&b, 0, KRON_CHUNK_FULL, 0, 1, a);
	b.seg.states[0] = KRON_TAKEN_BY_RECORDER;
	drain_all(&b.drain);
	assert_int_equal(b.drain.totals.samples, 0);
	assert_int_equal(b.seg.ctl->lost_unowned, FULL);
	assert_int_equal(segment_chunk(&b.seg, 0)->seq, 0);
	end_sleeper(a);
	board_close(&b, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_being_taken_is_nobodys),
		cmocka_unit_test(what_is_being_taken_counts_as_lost),
		cmocka_unit_test(what_a_dead_one_was_taking_is_free_again),
		cmocka_unit_test(a_time_in_the_future_drops_nobody_elses),
		cmocka_unit_test(what_is_filled_during_the_look_stays),
		cmocka_unit_test(what_is_let_go_is_nobodys),
		cmocka_unit_test(what_a_killed_recorder_let_go_is_lost),
	};

	return cmocka_run_group_tests(tests, make_base, remove_base);
}
