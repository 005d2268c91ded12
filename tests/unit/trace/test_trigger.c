/* SPDX-License-Identifier: MIT */
/* test_trigger.c - the words of triggers, and when they fire. */
#include "tests/unit/trace/trigger_rig.h"

/* ---- sequences ---- */

static void a_sequence_is_within_a_thread(void **state)
{
	(void)state;
	start("entry=f then entry=g");
	sample(100, 0, F, 0);
	sample(110, 1, G, 0);
	sample(120, 2, G, 0);
	sample(130, 0, H, 0);
	sample(140, 0, G, 0);
	sample(150, 0, G, 0);
	sample(160, 1, F, 0);
	sample(170, 1, G, 0);
	expect("140 170 ");
}

static void a_sequence_across_threads(void **state)
{
	(void)state;
	start("entry=f then entry=g across threads");
	sample(100, 0, F, 0);
	sample(110, 1, G, 0);
	sample(120, 2, G, 0);
	sample(130, 2, F, 0);
	sample(140, 3, F, 0);
	sample(150, 0, G, 0);
	expect("110 150 ");
}

static void a_limit_is_met_to_the_tick(void **state)
{
	(void)state;
	start("entry=f then entry=g within 50ns");
	sample(100, 0, F, 0);
	sample(151, 0, G, 0);
	sample(200, 0, F, 0);
	sample(250, 0, G, 0);
	sample(300, 0, F, 0);
	sample(310, 0, F, 0); /* the latest counts */
	sample(355, 0, G, 0);
	expect("250 355 ");
}

/* No sample counts for two steps; three of the same make three. */
static void steps_of_one_kind(void **state)
{
	(void)state;
	start("f then f then f");
	for (uint64_t t = 100; t < 170; t += 10)
		sample(t, t % 20 ? 1 : 0, F, 0);
	expect("140 150 ");
}

static void a_single_step(void **state)
{
	(void)state;
	start("name=g and not thread=helper");
	sample(100, 0, G, 0);
	sample(110, 1, G, 0);
	sample(120, 2, G_END, 0);
	sample(130, 0, U, 0);
	expect("100 120 ");
}

/* ---- without ---- */

static void what_does_not_come(void **state)
{
	(void)state;
	start("entry=f without exit=f within 50ns");
	sample(100, 0, F, 0);
	sample(150, 0, F_END, 0); /* in time */
	sample(200, 0, F, 0);
	sample(251, 0, F_END, 0); /* too late */
	sample(300, 0, F, 0);
	pass_time(350);
	pass_time(351); /* no sample comes, time does */
	pass_time(1000);
	expect("250-200 350-300 ");
}

static void the_first_of_several_waits(void **state)
{
	(void)state;
	start("f without u within 50ns");
	sample(100, 0, F, 0);
	sample(110, 0, F, 0);
	sample(120, 0, F, 0);
	sample(145, 0, U, 0); /* for all three */
	sample(200, 0, F, 0);
	sample(220, 0, F, 0);
	sample(300, 0, H, 0); /* 200's time was over at 250, and 220 does not count any more */
	sample(310, 0, F, 0);
	pass_time(1000);
	expect("250-200 360-310 ");
}

static void one_sample_ends_and_begins(void **state)
{
	(void)state;
	start("f without f within 50ns");
	sample(100, 0, F, 0);
	sample(140, 0, F, 0);
	sample(190, 0, F, 0);
	pass_time(1000);
	expect("240-190 ");
}

static void each_thread_waits_for_itself(void **state)
{
	(void)state;
	start("f without u within 50ns");
	sample(100, 0, F, 0);
	sample(110, 1, F, 0);
	sample(120, 2, F, 0);
	sample(130, 1, U, 0);
	sample(140, 3, U, 0);
	pass_time(1000);
	expect("150-100 170-120 ");
}

static void waiting_across_threads(void **state)
{
	(void)state;
	start("f without u within 50ns across threads");
	sample(100, 0, F, 0);
	sample(110, 1, F, 0);
	sample(130, 2, U, 0);
	sample(200, 3, F, 0);
	sample(220, 0, F, 0);
	pass_time(1000);
	expect("250-200 ");
}

static void a_sequence_that_ends_without(void **state)
{
	(void)state;
	start("entry=f then entry=g within 20ns without u within 50ns");
	sample(100, 0, G, 0);
	sample(110, 0, F, 0);
	sample(120, 1, G, 0);
	sample(131, 0, G, 0); /* too late after f */
	sample(200, 0, F, 0);
	sample(210, 0, G, 0);
	sample(240, 0, U, 0);
	sample(300, 0, F, 0);
	sample(310, 0, G, 0);
	sample(370, 0, G, 0); /* begins anew: it wants an f again */
	pass_time(1000);
	expect("360-310 ");
}

/* The pool is in order of time also when a sample comes late. */
static void a_late_sample_waits_in_its_place(void **state)
{
	struct trigger_due due;

	(void)state;
	start("f without u within 50ns");
	sample(100, 0, F, 0);
	sample(120, 1, F, 0);
	sample(105, 2, F, 0);
	assert_int_equal(trigger_since(g), 100);
	assert_true(trigger_due(g, 151, &due));
	assert_int_equal(due.lane, 0);
	trigger_settle(g, false);
	assert_true(trigger_due(g, 200, &due));
	assert_int_equal(due.lane, 2);
	assert_int_equal(due.at, 155);
	sample(121, 2, U, 0); /* late, too, but in time */
	pass_time(1000);
	expect("170-120 ");
}

static void after_a_loss_nobody_knows(void **state)
{
	(void)state;
	start("f without u within 50ns");
	sample(100, 0, F, 0);
	sample(100, 1, F, 0);
	trigger_lost(g, 0);
	pass_time(200);
	assert_int_equal(trigger_unsure(g), 1);
	sample(300, 0, F, 0);
	sample(300, 1, F, 0);
	trigger_lost_any(g);
	pass_time(1000);
	assert_int_equal(trigger_unsure(g), 3);
	assert_int_equal(trigger_since(g), UINT64_MAX);
	expect("150-100 ");
}

/* ---- threads by the thousand ---- */

static void many_threads_wait(void **state)
{
	const uint32_t n = 5000;
	struct trace_lane l = {.proc_uid = 1, .name = ""};

	(void)state;
	start("f without u within 50ns");
	for (uint32_t i = 0; i < n; i++) {
		l.tid = 100 + i;
		trigger_bind_lane(g, i, &l, &procs[0]);
	}
	for (uint32_t round = 1; round <= 20; round++) {
		for (uint32_t i = 0; i < n; i++)
			sample(100 * round, i, F, 0);
		for (uint32_t i = 0; i < n; i++)
			if (i != 7)
				sample(100 * round + 10, i, U, 0);
		assert_false(trigger_forget_lane(g, 7));
		assert_true(trigger_forget_lane(g, 8));
		pass_time(100 * round + 99);
		assert_true(trigger_forget_lane(g, 7));
	}
	assert_in_range(g->waits.n, 1, n);
	assert_memory_equal(fired, "150-100 250-200 ", 16);
	trigger_free(g);
}

/* ---- words ---- */

static void refuses(const char *text, size_t column, const char *word)
{
	struct err err;
	struct trigger *t;
	char where[32];
	const char *caret;

	assert_int_not_equal(trigger_parse(&t, "--trigger", text, &err), 0);
	snprintf(where, sizeof(where), "--trigger:%zu: ", column);
	if (strncmp(err.msg, where, strlen(where)) || !strstr(err.msg, word))
		fail_msg("%s: wanted %s...%s...", err.msg, where, word);
	caret = strrchr(err.msg, '\n');
	assert_non_null(caret);
	assert_int_equal(strchr(caret, '^') - caret - 1, 4 + column - 1);
}

static void what_means_nothing_is_refused(void **state)
{
	(void)state;
	refuses("entry=f then not exit=f within 20ms", 14, "without");
	refuses("f then not (g or event=5)", 8, "without");
	refuses("f without g", 12, "within 20ms");
	refuses("f without g within 5", 20, "a time");
	refuses("f without", 10, "condition");
	refuses("f without g within 1ms then h", 24, "last step");
	refuses("f>20ms then g", 8, "last step");
	refuses("f>20", 3, "a time");
	refuses("f>20ms across threads", 8, "without");
	refuses("f across threads", 3, "nothing");
	refuses("f then g across", 16, "threads");
	refuses("f then g across threads then h", 25, "the end");
	refuses("f within 1ms", 3, "first step");
	refuses("f>20ms within 1s", 8, "and");
	refuses("f>20ms or g", 8, "and");
	refuses("data>5ms", 6, "a number");
	refuses("f and g>20ms", 7, "a step of");
	refuses("f then g then h then u then f", 29, "more than 4");
}

static void what_means_something_is_taken(void **state)
{
	static const char *const texts[] = {
		"f then not cpu=0 within 1ms",
		"f then (not g)",
		"f then not g and thread=main",
		"not f then g",
		"without then within",
		"f then g within 1ms without h within 2s across threads",
		"\"operator>\">1.5us",
		"f > 20ms",
		"std::*>20ms and process=a",
		"f then g>20ms",
		"data>5 then data&0xf0>=0x10",
	};
	struct err err;
	struct trigger *t;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (trigger_parse(&t, "--trigger", texts[i], &err))
			fail_msg("%s", err.msg);
		trigger_free(t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sequence_is_within_a_thread),
		cmocka_unit_test(a_sequence_across_threads),
		cmocka_unit_test(a_limit_is_met_to_the_tick),
		cmocka_unit_test(steps_of_one_kind),
		cmocka_unit_test(a_single_step),
		cmocka_unit_test(what_does_not_come),
		cmocka_unit_test(the_first_of_several_waits),
		cmocka_unit_test(one_sample_ends_and_begins),
		cmocka_unit_test(each_thread_waits_for_itself),
		cmocka_unit_test(waiting_across_threads),
		cmocka_unit_test(a_sequence_that_ends_without),
		cmocka_unit_test(a_late_sample_waits_in_its_place),
		cmocka_unit_test(after_a_loss_nobody_knows),
		cmocka_unit_test(many_threads_wait),
		cmocka_unit_test(what_means_nothing_is_refused),
		cmocka_unit_test(what_means_something_is_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
