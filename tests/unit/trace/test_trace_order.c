/* SPDX-License-Identifier: MIT */
/* test_trace_order.c - trace directories: lanes merged by time, and where each of them ends. */
#define _GNU_SOURCE
#include "tests/unit/trace/trace_rig.h"

/* ---- order ---- */

static void merged_by_time(void **state)
{
	struct trace_writer *w = begin("t");

	(void)state;
	CHUNK(w, 2, 1, 6, 60, 150, 160);
	CHUNK(w, 1, 1, 3, 30, 300, 500);
	CHUNK(w, 1, 1, 1, 10, 100, 200);
	CHUNK(w, 1, 2, 2, 20, 50, 155, 400);
	CHUNK(w, 2, 1, 9, 90, 1000);
	CHUNK(w, 1, 1, 5, 50, 600);
	trace_writer_close(w);
	expect_order("t", "20 10 60 21 61 11 30 22 31 50 90");
}

static void ties_keep_lane_order(void **state)
{
	struct trace_writer *w = begin("t");

	(void)state;
	CHUNK(w, 1, 2, 1, 20, 100, 100, 200);
	CHUNK(w, 1, 1, 2, 10, 100, 100, 200);
	CHUNK(w, 1, 3, 3, 30, 100, 200, 200);
	trace_writer_close(w);
	expect_order("t", "10 11 20 21 30 12 22 31 32");
}

/* A handler's probe between claim and clock of another: the lane's own order stays. */
static void clock_that_steps_back(void **state)
{
	struct trace_writer *w = begin("t");

	(void)state;
	CHUNK(w, 1, 1, 1, 10, 100, 300, 200, 210, 400);
	CHUNK(w, 1, 2, 2, 20, 250, 299, 301);
	trace_writer_close(w);
	expect_order("t", "10 20 21 11 12 13 22 14");
}

static void double_chunks_count_once(void **state)
{
	struct trace_writer *w = begin("t");

	(void)state;
	CHUNK(w, 1, 1, 1, 10, 100, 200);
	CHUNK(w, 1, 1, 2, 20, 300);
	CHUNK(w, 1, 1, 1, 10, 100, 200);
	CHUNK(w, 1, 2, 1, 30, 150); /* another lane's: not the same chunk */
	trace_writer_close(w);
	expect_order("t", "10 30 11 20");
}

/* ---- the ends of lanes ---- */

/* A trace from 100 to 9000 of two threads, 10 and 11, whose last samples are at 200; `more` adds to it. */
static void begin_lanes(struct trace_writer **w, const char *when_full)
{
	*w = begin("ends");
	trace_writer_session(*w, "start_tsc", "100");
	trace_writer_session(*w, "start_mono_ns", "100");
	trace_writer_session(*w, "tsc_hz", "1000000000");
	trace_writer_session(*w, "when_full", "%s", when_full);
	CHUNK(*w, 1, 10, 1, 0, 150, 200);
	CHUNK(*w, 1, 11, 2, 0, 150, 200);
}

static void end_lanes(struct trace_writer *w)
{
	trace_writer_session(w, "end_tsc", "9000");
	trace_writer_session(w, "end_mono_ns", "9000");
	assert_int_equal(trace_writer_close(w), 0);
}

static void expect_ends(uint64_t first, uint64_t second)
{
	struct trace *t = open_trace("ends");

	assert_int_equal(t->nlanes, 2);
	assert_int_equal(trace_lane_end(t, 0, 200), first);
	assert_int_equal(trace_lane_end(t, 1, 200), second);
	trace_close(t);
}

static void lanes_end_with_what_they_are_in(void **state)
{
	struct trace_writer *w;

	(void)state;
	begin_lanes(&w, "discard");
	end_lanes(w);
	expect_ends(9000, 9000);
	begin_lanes(&w, "discard");
	trace_writer_proc_end(w, &(struct trace_proc_end_line){.uid = 1, .end_tsc = 7000});
	trace_writer_thread(w, &(struct trace_thread_line){
				       .uid = 1, .tid = 11, .name = "second", .end_tsc = 5000});
	trace_writer_thread(
		w, &(struct trace_thread_line){.uid = 1, .tid = 11, .name = "its later name"});
	end_lanes(w);
	expect_ends(7000, 5000);
	/* a later thread of that number has gone on */
	begin_lanes(&w, "discard");
	trace_writer_thread(w, &(struct trace_thread_line){
				       .uid = 1, .tid = 11, .name = "second", .end_tsc = 180});
	end_lanes(w);
	expect_ends(9000, 9000);
	/* the recorder was killed */
	begin_lanes(&w, "discard");
	trace_writer_thread(w, &(struct trace_thread_line){
				       .uid = 1, .tid = 11, .name = "second", .end_tsc = 5000});
	assert_int_equal(trace_writer_close(w), 0);
	expect_ends(200, 5000);
}

/* A record of so many that were lost, after the last sample of thread 10. */
static void tell_losses(struct trace_writer *w, uint32_t n)
{
	struct trace_chunk head = {.nbytes = KRON_SAMPLE_SIZE, .seq = 3, .proc_uid = 1, .tid = 10};
	struct kron_sample s = sample(200, KRON_EVENT_LOST);

	s.payload = n;
	assert_int_equal(trace_writer_chunk(w, &head, &s), 0);
}

static void lanes_end_where_samples_may_be_missing(void **state)
{
	struct trace_writer *w;

	(void)state;
	begin_lanes(&w, "discard");
	tell_losses(w, 7);
	trace_writer_proc_end(w,
			      &(struct trace_proc_end_line){.uid = 1, .end_tsc = 7000, .lost = 7});
	end_lanes(w);
	expect_ends(7000, 7000);
	begin_lanes(&w, "discard");
	tell_losses(w, 7);
	trace_writer_proc_end(w,
			      &(struct trace_proc_end_line){.uid = 1, .end_tsc = 7000, .lost = 8});
	end_lanes(w);
	expect_ends(200, 200);
	/* what has been overwritten was older */
	begin_lanes(&w, "wrap");
	trace_writer_proc_end(w,
			      &(struct trace_proc_end_line){.uid = 1, .end_tsc = 7000, .lost = 8});
	end_lanes(w);
	expect_ends(7000, 7000);
	/* the process lives, and only all losses together are known */
	begin_lanes(&w, "discard");
	tell_losses(w, 7);
	trace_writer_session(w, "lost", "8");
	end_lanes(w);
	expect_ends(200, 200);
	begin_lanes(&w, "discard");
	tell_losses(w, 7);
	trace_writer_session(w, "lost", "7");
	end_lanes(w);
	expect_ends(9000, 9000);
	/* gates were closed */
	begin_lanes(&w, "discard");
	trace_writer_session(w, "closed_tsc", "300");
	end_lanes(w);
	expect_ends(300, 300);
	/* a window around a trigger */
	begin_lanes(&w, "discard");
	trace_writer_session(w, "trigger", "f>1ms");
	trace_writer_session(w, "trigger_ns", "400");
	end_lanes(w);
	expect_ends(500, 500);
}

static void holes_and_foreign_samples(void **state)
{
	struct trace_writer *w = begin("t");
	struct kron_sample s[8] = {[0] = sample(100, 10), [2] = sample(200, 11)};
	struct trace_chunk head = {.nbytes = sizeof(s), .seq = 1, .holes = 1};
	struct trace *t;

	(void)state;
	s[3].head = 0x00000001;                                      /* no type that exists */
	s[4].head = KRON_HEAD_TYPE_RESOURCE << KRON_HEAD_TYPE_SHIFT; /* 84 bytes, 80 are left */
	trace_writer_chunk(w, &head, s);
	trace_writer_close(w);
	expect_order("t", "10 11");
	t = open_trace("t");
	trace_count(t);
	assert_int_equal(t->samples, 2);
	assert_int_equal(t->cut_off, 1);
	assert_int_equal(t->damaged, 2 * KRON_SAMPLE_SIZE + 1); /* and no tsc_hz */
	trace_close(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(merged_by_time),
		T(ties_keep_lane_order),
		T(clock_that_steps_back),
		T(double_chunks_count_once),
		T(lanes_end_with_what_they_are_in),
		T(lanes_end_where_samples_may_be_missing),
		T(holes_and_foreign_samples),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
