/* SPDX-License-Identifier: MIT */
/*
 * test_pairs_windows.c - calls that are open where a window ends.  Each event takes 10 ticks, the first is at 1010.
 */
#include "tests/unit/trace/pairs_rig.h"

#define SPLIT 1045 /* the first window ends here, and the other one begins at once */

static uint64_t window_end(const struct trace_filter *f, uint64_t tsc)
{
	(void)f;
	return tsc <= SPLIT ? SPLIT : 2000;
}

/* As with --where besides. */
static uint64_t up_to_the_last(const struct trace_filter *f, uint64_t tsc)
{
	(void)f;
	return tsc;
}

static struct trace_filter filter;

static int two_windows(void **state)
{
	(void)state;
	filter = (struct trace_filter){.until = window_end, .window_end = window_end};
	fake.filter = &filter;
	fake.nsleeps = 0;
	return 0;
}

/* What is open at the end of the first one is over, and the second one is as a trace's begin. */
static void all_end_with_it(void **state)
{
	(void)state;
	expect(">m@9000 >f@8ff0 >g@8fe0 <g@8fe0 <f@8ff0 >f@8ff0 <f@8ff0 <m@9000",
	       "g:10/10 f:25/15* m:35/10* ?f f:10/10 ?m");
	filter.until = up_to_the_last;
	expect(">m@9000 >f@8ff0 >g@8fe0 <g@8fe0 <f@8ff0 >f@8ff0 <f@8ff0 <m@9000",
	       "g:10/10 f:20/10* m:30/10* ?f f:10/10 ?m");
}

static void depth_begins_anew(void **state)
{
	struct out o = {0};

	(void)state;
	run(">m@9000 >f@8ff0 >g@8fe0 >h@8fd0 >x@8fc0", &o);
	assert_int_equal(o.depth_of_last, 0);
}

/* Of all stacks. */
static void on_all_stacks(void **state)
{
	(void)state;
	expect(">m@9000 >f@50000f00 >g@60000f00 >h@60000e00 <m@9000",
	       "h:5/5* g:15/10* f:25/10* m:35/10* ?m");
}

static void without_stack_pointers(void **state)
{
	(void)state;
	expect(">m@0 >f@0 >g@0 <g@0 <f@0 >f@0 <f@0 <m@0",
	       "g:10/10 f:25/15* m:35/10* ?f f:10/10 ?m");
}

/* What was lost before a LOST record may have been lost in the window: then the last sample counts. */
static void losses_after_the_end(void **state)
{
	(void)state;
	expect(">m@9000 >f@8ff0 >g@8fe0 <g@8fe0 !5 <f@8ff0 <m@9000",
	       "g:10/10 f:20/10* m:30/10* ?f ?m");
	/* in the window they are known to be lost */
	expect(">m@9000 >f@8ff0 !5 >g@8fe0 <f@8ff0 <m@9000", "g:5/5* f:25/20*% m:35/10*% ?f ?m");
}

/* What is entered at the place of a jump is another call. */
static void calls_left_by_a_jump(void **state)
{
	(void)state;
	expect(">m@9000 >f@8ff0 /f=g@8ff0 >x@8fe0 >g@8ff0 <g@8ff0 <m@9000",
	       "x:5/5* f:25/20j* m:35/10* g:10/10 ?m");
}

/* vfork's second return is of a call that has ended: it takes no child with it. */
static void children(void **state)
{
	(void)state;
	expect(">m@9000 >v@8ff0 V1@8ff0 >p@8fe0 <v@8ff0 >q@8fe0 E2@0 <m@9000",
	       "p:5/5* v:25/20* m:35/10* ?v q:20/20~ ?m");
}

/* A function that went to sleep in the window has no known end; one that did so later, that of the window. */
static void sleeps(void **state)
{
	static struct trace_range f = {5, 5}, m = {12, 12};
	static struct trace_sleep rows[] = {
		{.since = 1041, .until = 1043, .numbers = &f, .n = 1},
		{.since = 1046, .until = 1048, .numbers = &m, .n = 1},
	};

	(void)state;
	fake.sleeps = rows;
	fake.nsleeps = 2;
	expect(">m@9000 >f@8ff0 >g@8fe0 <g@8fe0 <f@8ff0 <m@9000",
	       "g:10/10 f:21/11~% m:35/14* ?f ?m");
	fake.nsleeps = 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(all_end_with_it, two_windows),
		cmocka_unit_test_setup(depth_begins_anew, two_windows),
		cmocka_unit_test_setup(on_all_stacks, two_windows),
		cmocka_unit_test_setup(without_stack_pointers, two_windows),
		cmocka_unit_test_setup(losses_after_the_end, two_windows),
		cmocka_unit_test_setup(calls_left_by_a_jump, two_windows),
		cmocka_unit_test_setup(children, two_windows),
		cmocka_unit_test_setup(sleeps, two_windows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
