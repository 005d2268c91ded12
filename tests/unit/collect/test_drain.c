/* SPDX-License-Identifier: MIT */
/* test_drain.c - drain on a segment made by hand: chunks that move, and the pool that grows. */
#define _GNU_SOURCE
#include <sys/stat.h>

#include "collect/calibrate.h"
#include "collect/grow.h"
#include "collect/lane_counters.h"
#include "tests/unit/collect/drain_rig.h"

/* ---- drain ---- */

static void a_full_chunk_moves(void **state)
{
	struct recording b;
	int32_t before;

	(void)state;
	board_open(&b, "full", KRON_WHEN_FULL_DISCARD);
	before = b.seg.ctl->free_count;
	slot_claim(&b, 0, 1, getpid(), 0);
	fill(&b, 0, KRON_CHUNK_SAMPLES);
	claim(&b, 0, KRON_CHUNK_FULL, 0, 1, getpid());
	assert_int_equal(drain_round(&b.drain, false, false), 1);
	assert_int_equal(state_of(&b, 0), KRON_CHUNK_FREE);
	assert_true(is_zero(&b, 0));
	assert_int_equal(b.seg.ctl->free_count, before);
	assert_int_equal(b.drain.totals.samples, KRON_CHUNK_SAMPLES);
	assert_int_equal(samples_in(b.dir), KRON_CHUNK_SAMPLES);
	board_close(&b, false);
}

static void a_living_threads_chunk_stays(void **state)
{
	struct recording b;

	(void)state;
	board_open(&b, "living", KRON_WHEN_FULL_DISCARD);
	slot_claim(&b, 0, 1, getpid(), 0);
	fill(&b, 0, 10);
	claim(&b, 0, KRON_CHUNK_OWNED, 0, 1, getpid());
	assert_int_equal(drain_round(&b.drain, true, true), 0);
	assert_int_equal(state_of(&b, 0), KRON_CHUNK_OWNED);
	drain_all(&b.drain);
	assert_int_equal(b.drain.totals.samples, 10);
	assert_int_equal(samples_in(b.dir), 10);
	board_close(&b, false);
}

static void a_hole_waits_for_its_owner(void **state)
{
	pid_t pid = start_sleeper();
	struct recording b;

	(void)state;
	board_open(&b, "hole", KRON_WHEN_FULL_DISCARD);
	slot_claim(&b, 0, 1, pid, 0);
	fill(&b, 0, KRON_CHUNK_SAMPLES);
	samples_of(&b, 0)[100].head = 0;
	claim(&b, 0, KRON_CHUNK_FULL, 0, 1, pid);
	fill(&b, 1, KRON_CHUNK_SAMPLES);
	samples_of(&b, 1)[7].head = 0;
	claim(&b, 1, KRON_CHUNK_FULL, 0, 1, pid);
	assert_int_equal(drain_round(&b.drain, true, true), 0);
	samples_of(&b, 0)[100].head = KRON_HEAD_TRACE(0); /* the handler has returned */
	assert_int_equal(drain_round(&b.drain, false, false), 1);
	assert_int_equal(b.drain.totals.cut_off, 0);
	end_sleeper(pid);
	assert_int_equal(drain_round(&b.drain, true, false), 1);
	assert_int_equal(b.drain.totals.cut_off, 1);
	assert_int_equal(b.drain.totals.samples, 2 * KRON_CHUNK_SAMPLES - 1);
	board_close(&b, false);
}

static void special_records_are_no_samples(void **state)
{
	struct chunk_count n;
	struct recording b;

	(void)state;
	board_open(&b, "special", KRON_WHEN_FULL_DISCARD);
	slot_claim(&b, 0, 1, getpid(), 0);
	fill(&b, 0, 10);
	samples_of(&b, 0)[0].event = KRON_EVENT_CPU;
	samples_of(&b, 0)[5].event = KRON_EVENT_LOST;
	samples_of(&b, 0)[8].head = 0;
	chunk_count(segment_chunk(&b.seg, 0), &n);
	assert_int_equal(n.samples, 7);
	assert_int_equal(n.specials, 2);
	assert_int_equal(n.holes, 1);
	assert_int_equal(n.tail, KRON_CHUNK_SAMPLES - 10);
	assert_int_equal(n.nbytes, 200);
	board_close(&b, false);
}

/* A trigger and its counters, as the runtime puts them: 100, 101, ... */
static void put_resource(struct kron_sample *s, uint32_t time, uint32_t event)
{
	for (uint32_t k = 0; k < KRON_RESOURCE_SLOTS; k++)
		s[k] = (struct kron_sample){.head = KRON_HEAD_TRACE(0), .time_lo = time};
	s[0].event = event;
	s[0].source = 77;
	for (uint32_t k = 0; k < KRON_COUNTERS; k++) {
		struct kron_sample *c = &s[1 + k / 2];

		c->event = KRON_EVENT_COUNTERS + k / 2;
		*(k % 2 ? &c->payload : &c->source) = 100 + k;
	}
}

/* Whole ones are folded; of those that a kill cut off a hole is left, or nothing. */
static void counters_join_their_sample(void **state)
{
	struct kron_sample s[64] = {0};
	struct kron_resource_sample r;
	uint8_t out[sizeof(s)];
	size_t n;

	(void)state;
	s[0] = (struct kron_sample){.head = KRON_HEAD_TRACE(0), .event = 5};
	assert_false(lane_counters_are_there(s, sizeof(s)));
	put_resource(s + 1, 3000, 6);
	put_resource(s + 10, 3001, 8);
	s[10].head = 0; /* cut off before its sample was there */
	put_resource(s + 19, 3002, 10);
	memset(s + 24, 0, 4 * sizeof(*s)); /* its counters were not all there: no sample */
	s[19].head = 0;
	s[28] = (struct kron_sample){.head = KRON_HEAD_TRACE(0), .event = 12};
	put_resource(s + 29, 3003, KRON_EVENT_COUNTERS); /* a claim in vain */
	put_resource(s + 38, 3004, 14);
	assert_true(lane_counters_are_there(s, sizeof(s)));
	n = lane_counters_fold(out, s, 47 * sizeof(*s));
	/* two samples, two Resource samples, the holes: one, one, four */
	assert_int_equal(n, 2 * KRON_SAMPLE_SIZE + 2 * KRON_RESOURCE_SIZE + 6 * KRON_SAMPLE_SIZE);
	memcpy(&r, out + KRON_SAMPLE_SIZE, sizeof(r));
	assert_int_equal(r.sample.event, 6);
	assert_int_equal(r.sample.source, 77);
	assert_int_equal(r.sample.head >> KRON_HEAD_TYPE_SHIFT & KRON_HEAD_TYPE_MASK,
			 KRON_HEAD_TYPE_RESOURCE);
	for (uint32_t k = 0; k < KRON_COUNTERS; k++)
		assert_int_equal(r.counter[k], 100 + k);
	memcpy(&r, out + n - sizeof(r), sizeof(r));
	assert_int_equal(r.sample.event, 14);
	/* an end between them: what is there is a Trace sample */
	assert_int_equal(lane_counters_fold(out, s + 38, 5 * sizeof(*s)), KRON_SAMPLE_SIZE);
}

static void a_chunk_in_preparation_counts_nothing(void **state)
{
	pid_t pid = start_sleeper();
	struct recording b;

	(void)state;
	board_open(&b, "prepared", KRON_WHEN_FULL_DISCARD);
	slot_claim(&b, 0, 1, pid, 0);
	fill(&b, 0, 10);
	segment_chunk(&b.seg, 0)->seq = 0;
	claim(&b, 0, KRON_CHUNK_OWNED, 0, 1, pid);
	end_sleeper(pid);
	assert_int_equal(drain_round(&b.drain, true, false), 1);
	assert_true(is_zero(&b, 0));
	assert_int_equal(b.drain.totals.samples, 0);
	assert_int_equal(samples_in(b.dir), 0);
	board_close(&b, false);
}

static void wrap_takes_all_at_the_end(void **state)
{
	pid_t pid = start_sleeper();
	struct recording b;

	(void)state;
	board_open(&b, "wrap", KRON_WHEN_FULL_WRAP);
	slot_claim(&b, 0, 1, pid, 0);
	fill(&b, 0, KRON_CHUNK_SAMPLES);
	claim(&b, 0, KRON_CHUNK_FULL, 0, 1, pid);
	fill(&b, 1, 3);
	claim(&b, 1, KRON_CHUNK_OWNED, 0, 1, pid);
	end_sleeper(pid);
	assert_int_equal(drain_round(&b.drain, true, true), 0);
	assert_int_equal(state_of(&b, 0), KRON_CHUNK_FULL);
	assert_int_equal(state_of(&b, 1), KRON_CHUNK_FULL); /* free for the taking */
	drain_all(&b.drain);
	assert_int_equal(b.drain.totals.samples, KRON_CHUNK_SAMPLES + 3);
	board_close(&b, false);
}

/* Many processes and chunks, all kinds mixed: not one sample more or less. */
static void accounting_is_exact(void **state)
{
	uint64_t want = 0, holes = 0;
	unsigned seed = 42;
	struct recording b;
	pid_t pid[8];

	(void)state;
	board_open(&b, "exact", KRON_WHEN_FULL_DISCARD);
	segment_grow(&b.seg, 40);
	assert_true(segment_ready(&b.seg) > 40);
	for (uint32_t i = 0; i < 8; i++) {
		pid[i] = start_sleeper();
		slot_claim(&b, i, i + 1, pid[i], 0);
	}
	for (int round = 0; round < 60; round++) {
		uint32_t ready = segment_ready(&b.seg);

		for (uint32_t i = 0; i < ready; i++) {
			uint32_t slot = (uint32_t)rand_r(&seed) % 8, n;
			bool full = rand_r(&seed) % 2;

			if (b.seg.states[i] != KRON_CHUNK_FREE || rand_r(&seed) % 3)
				continue;
			n = full ? KRON_CHUNK_SAMPLES
				 : (uint32_t)rand_r(&seed) % KRON_CHUNK_SAMPLES;
			fill(&b, i, n);
			if (n > 2 && rand_r(&seed) % 4 == 0) {
				samples_of(&b, i)[n - 2].head = 0;
				n--;
				holes++;
			}
			want += n;
			claim(&b, i, full ? KRON_CHUNK_FULL : KRON_CHUNK_OWNED, slot, slot + 1,
			      pid[slot]);
		}
		drain_round(&b.drain, round % 3 == 0, round % 9 == 0);
	}
	for (uint32_t i = 0; i < 8; i++)
		end_sleeper(pid[i]);
	drain_round(&b.drain, true, true);
	drain_all(&b.drain);
	assert_int_equal(b.drain.totals.samples, want);
	assert_int_equal(b.drain.totals.cut_off, holes);
	assert_int_equal(b.drain.totals.stranded, 0);
	assert_int_equal(samples_in(b.dir), want);
	board_close(&b, false);
}

static off_t bytes_of(const struct recording *b)
{
	struct stat st;

	assert_int_equal(fstat(b->seg.fd, &st), 0);
	return (off_t)st.st_blocks * 512;
}

/* A first touch could not fail as others do: everything has its pages beforehand. */
static bool is_account_strict(void)
{
	FILE *f = fopen("/proc/sys/vm/overcommit_memory", "r");
	int policy = f ? fgetc(f) : '2';

	if (f)
		fclose(f);
	return policy == '2';
}

/* What a short recording never touches costs it nothing, and who takes them has as many as ever. */
static void the_first_chunks_have_pages_when_they_are_used(void **state)
{
	const bool strict = is_account_strict();
	struct recording b;
	off_t before;

	(void)state;
	board_open(&b, "late", KRON_WHEN_FULL_DISCARD);
	before = bytes_of(&b);
	assert_int_equal(b.seg.ctl->free_count,
			 strict ? SEGMENT_CHUNKS_START : SEGMENT_CHUNKS_FIRST);
	if (strict) {
		assert_true(before > (off_t)SEGMENT_CHUNKS_START * KRON_CHUNK_SIZE);
	} else {
		assert_true(before < 4 * (off_t)KRON_CHUNK_SIZE);
		fill(&b, 3, KRON_CHUNK_SAMPLES);
		assert_true(bytes_of(&b) >= before + (off_t)KRON_CHUNK_SIZE);
	}
	board_close(&b, false);
}

static void the_pool_grows_and_stops(void **state)
{
	struct recording b;
	struct grow g;
	struct err err;

	(void)state;
	board_open(&b, "grow", KRON_WHEN_FULL_DISCARD);
	assert_int_equal(segment_ready(&b.seg),
			 is_account_strict() ? SEGMENT_CHUNKS_START : SEGMENT_CHUNKS_FIRST);
	assert_int_equal(grow_start(&g, &b.seg, &err), 0);
	for (int i = 0; i < 2000 && segment_ready(&b.seg) < SEGMENT_CHUNKS_FIRST; i++)
		usleep(1000);
	grow_stop(&g);
	assert_int_equal(segment_ready(&b.seg), SEGMENT_CHUNKS_FIRST); /* = 4 MiB, the limit */
	assert_int_equal(segment_grow(&b.seg, 1), 0);
	assert_int_equal(b.seg.ctl->free_count, SEGMENT_CHUNKS_FIRST);
	board_close(&b, false);
}

/* The pool is OWNED by a thread that sleeps, all but `free` chunks; others wait. */
static void own_all_but(struct recording *b, uint32_t free, uint32_t waiters)
{
	uint64_t owned = kron_chunk_word(KRON_CHUNK_OWNED, (uint32_t)gettid(), 0, 1);
	uint32_t ready = segment_ready(&b->seg);

	__atomic_store_n(&b->seg.ctl->waiters, 0, __ATOMIC_SEQ_CST);
	for (uint32_t i = 0; i < ready; i++)
		__atomic_store_n(&b->seg.states[i], i < free ? KRON_CHUNK_FREE : owned,
				 __ATOMIC_RELEASE);
	__atomic_store_n(&b->seg.ctl->free_count, (int32_t)free, __ATOMIC_RELEASE);
	__atomic_store_n(&b->seg.ctl->waiters, waiters, __ATOMIC_SEQ_CST);
	segment_wake_collector(&b->seg);
}

static bool grows_to(struct recording *b, uint32_t chunks)
{
	for (int i = 0; i < 5000 && segment_ready(&b->seg) < chunks; i++)
		usleep(1000);
	return segment_ready(&b->seg) == chunks;
}

/* Farther than --buffer only for threads that wait while nothing is free, nor can be freed. */
static void the_pool_grows_for_who_waits(void **state)
{
	struct recording b;
	struct grow g;
	struct err err;

	(void)state;
	board_open(&b, "waiters", KRON_WHEN_FULL_WAIT);
	slot_claim(&b, 0, 1, getpid(), 0); /* else its chunks were a dead one's */
	assert_int_equal(grow_start(&g, &b.seg, &err), 0);
	assert_int_equal(drain_start(&b.drain, &err), 0);
	assert_true(grows_to(&b, SEGMENT_CHUNKS_FIRST));
	own_all_but(&b, 0, 3);
	assert_true(grows_to(&b, SEGMENT_CHUNKS_FIRST + 3));
	/* One of them was killed while it waited, and is counted for ever. */
	own_all_but(&b, 1, 1);
	usleep(100000);
	assert_int_equal(segment_ready(&b.seg), SEGMENT_CHUNKS_FIRST + 3);
	own_all_but(&b, 0, 0);
	usleep(100000);
	assert_int_equal(segment_ready(&b.seg), SEGMENT_CHUNKS_FIRST + 3);
	own_all_but(&b, 0, UINT32_MAX); /* a program wrote there */
	assert_true(grows_to(&b, SEGMENT_CHUNKS_FIRST + 67));
	grow_stop(&g);
	drain_stop(&b.drain);
	board_close(&b, false);
}

/* Its last free chunks; what a chunk in use holds, and all below it, stays. */
static void the_pool_gives_back_what_is_free(void **state)
{
	struct recording b;
	struct stat before, after;

	(void)state;
	board_open(&b, "back", KRON_WHEN_FULL_DISCARD);
	segment_grow(&b.seg, 32);
	assert_int_equal(object_get_pages(b.seg.fd, KRON_POOL_OFFSET,
					  (uint64_t)segment_ready(&b.seg) * KRON_CHUNK_SIZE),
			 0);
	fill(&b, 3, KRON_CHUNK_SAMPLES);
	claim(&b, 3, KRON_CHUNK_OWNED, 0, 1, getpid());
	assert_int_equal(fstat(b.seg.fd, &before), 0);
	segment_give_back(&b.seg);
	assert_int_equal(fstat(b.seg.fd, &after), 0);
	assert_int_equal((before.st_blocks - after.st_blocks) * 512,
			 (off_t)(segment_ready(&b.seg) - 4) * KRON_CHUNK_SIZE);
	drain_all(&b.drain);
	assert_int_equal(b.drain.totals.samples, KRON_CHUNK_SAMPLES);
	board_close(&b, false);
}

/* ---- main ---- */

/* Its rate is measured while the program starts. */
static void the_clock_of_a_recording_of_lanes(void **state)
{
	struct timespec nap = {.tv_nsec = 50000000};
	struct time_point from;
	struct recording b;
	const struct board *board = &b.seg.window.board;
	uint64_t hz, tick, second;

	(void)state;
	board_open(&b, "clock", KRON_WHEN_FULL_DISCARD);
	board_set_rate(board, 1000000); /* as wrong as it gets */
	segment_settle_clock(&b.seg);
	time_point_take(&from);
	nanosleep(&nap, NULL);
	hz = tsc_hz_since(&from, 0);
	tick = board_now(board);
	second = board_tsc_of_tick(board, tick + 40000000) - board_tsc_of_tick(board, tick);
	assert_in_range(second, hz - hz / 500, hz + hz / 500);
	board_close(&b, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_full_chunk_moves),
		cmocka_unit_test(a_living_threads_chunk_stays),
		cmocka_unit_test(the_clock_of_a_recording_of_lanes),
		cmocka_unit_test(a_hole_waits_for_its_owner),
		cmocka_unit_test(special_records_are_no_samples),
		cmocka_unit_test(counters_join_their_sample),
		cmocka_unit_test(a_chunk_in_preparation_counts_nothing),
		cmocka_unit_test(wrap_takes_all_at_the_end),
		cmocka_unit_test(accounting_is_exact),
		cmocka_unit_test(the_first_chunks_have_pages_when_they_are_used),
		cmocka_unit_test(the_pool_grows_and_stops),
		cmocka_unit_test(the_pool_grows_for_who_waits),
		cmocka_unit_test(the_pool_gives_back_what_is_free),
	};

	return cmocka_run_group_tests(tests, make_base, remove_base);
}
