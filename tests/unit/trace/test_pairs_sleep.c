/* SPDX-License-Identifier: MIT */
/*
 * test_pairs_sleep.c - calls that are open when their functions go to sleep.  Each event takes 10 ticks, the first
 * is at 1010.
 */
#include "tests/unit/trace/pairs_rig.h"

static struct trace_range ranges[2];
static struct trace_sleep rows[2];

/* This function sleeps between these moments; others are awake. */
static void sleeps(char function, uint64_t since, uint64_t until)
{
	const uint32_t n = (uint32_t)(function - 'a');
	struct trace_sleep *row = &rows[fake.nsleeps];

	ranges[fake.nsleeps] = (struct trace_range){n, n};
	*row = (struct trace_sleep){
		.since = since, .until = until, .numbers = &ranges[fake.nsleeps], .n = 1};
	fake.sleeps = rows;
	fake.nsleeps++;
}

static int awake(void **state)
{
	(void)state;
	fake.nsleeps = 0;
	return 0;
}

/* Nothing above it: it ends with the last that was seen before. */
static void at_the_top(void **state)
{
	(void)state;
	sleeps('f', 1045, 1048);
	expect(">m@9000 >f@8ff0 >g@8fe0 <g@8fe0 >g@8ff0 <g@8ff0 <m@9000",
	       "g:10/10 f:25/15~% g:10/10 m:60/25");
}

/* What it has called goes on: it lasted at least as long. */
static void below_others(void **state)
{
	(void)state;
	sleeps('f', 1035, 1038);
	expect(">m@9000 >f@8ff0 >g@8fe0 >h@8fd0 <h@8fd0 <g@8fe0 >x@8ff0 <x@8ff0 <m@9000",
	       "h:10/10 g:30/20 f:40/10~% x:10/10 m:80/30");
}

/* Several of one stack, and one of them twice. */
static void all_that_sleep(void **state)
{
	(void)state;
	sleeps('f', 1055, 1058);
	expect(">m@9000 >f@8ff0 >g@8fe0 >f@8fd0 >x@8fc0 <x@8fc0 <g@8fe0 <m@9000",
	       "x:10/10 f:20/10~%^ g:40/20 f:50/10~% m:70/20");
}

/* Its exit is seen after it has woken: of the same call, or of a later one, so nobody knows how long it took. */
static void woken_before_its_exit(void **state)
{
	(void)state;
	sleeps('f', 1035, 1038);
	expect(">m@9000 >f@8ff0 >g@8fe0 >h@8fd0 <f@8ff0 <m@9000",
	       "h:10/10~ g:20/10~ f:30/10% m:50/20");
}

/* An exit without its entry, which came while it slept, is an orphan; what is open below goes on. */
static void entered_asleep(void **state)
{
	(void)state;
	sleeps('f', 1005, 1008);
	expect(">m@9000 >g@8ff0 <g@8ff0 <f@8ff0 <m@9000", "g:10/10 ?f m:40/30");
}

/* Before `until` a process may still run with its probes: what began then had its entry seen. */
static void while_it_turns(void **state)
{
	(void)state;
	sleeps('f', 1015, 1045);
	expect(">m@9000 >f@8ff0 <f@8ff0 >f@8ff0 <m@9000", "f:10/10 f:0/0~% m:40/30");
}

/* Nothing more comes of its thread: it does not last until that one's end. */
static void nothing_comes_after(void **state)
{
	(void)state;
	sleeps('f', 1035, 1038);
	lanes[0].end_tsc = 1100;
	expect(">m@9000 >f@8ff0", "f:15/15~% m:90/75*");
	fake.nsleeps = 0;
	sleeps('f', 1090, 1098);
	expect(">m@9000 >f@8ff0 >g@8fe0", "g:70/70* f:80/10*% m:90/10*");
	lanes[0].end_tsc = 1050; /* the thread ends before it goes */
	expect(">m@9000 >f@8ff0", "f:30/30* m:40/10*");
	lanes[0].end_tsc = 0;
}

/* A row of another node, and one that wakes, change nothing. */
static void others_rows(void **state)
{
	(void)state;
	sleeps('f', 1015, 1018);
	rows[0].node = 1;
	sleeps('f', 1015, 1018);
	rows[1].wakes = true;
	expect(">m@9000 >f@8ff0 >g@8fe0 <g@8fe0 <f@8ff0 <m@9000", "g:10/10 f:30/20 m:50/20");
}

/* Without stack pointers, too. */
static void without_stack_pointers(void **state)
{
	(void)state;
	sleeps('f', 1035, 1038);
	expect(">m@0 >f@0 >g@0 <g@0 >x@0 <x@0 <m@0", "g:10/10 f:20/10~% x:10/10 m:60/30");
}

/* The same of groups: f and g, which are in one that is off. */
static void groups_off(void **state)
{
	static struct trace_range group = {3, 4};

	(void)state;
	functions['f' - 'a'].level = functions['g' - 'a'].level = 4;
	rows[0] = (struct trace_sleep){
		.since = 1035, .until = 1038, .of_groups = true, .numbers = &group, .n = 1};
	rows[1] = rows[0];
	rows[1].since = rows[1].until = 1065;
	rows[1].wakes = true;
	fake.sleeps = rows;
	fake.nsleeps = 2;
	/* between them f has ended, and begun anew */
	expect(">m@9000 >f@8ff0 >g@8fe0 >h@8fe0 <h@8fe0 >h@8fd0 <f@8ff0 >f@8ff0 <f@8ff0 <m@9000",
	       "g:5/5~% f:15/10~% h:10/10 ?f h:10/10~ f:10/10 m:90/45");
	functions['f' - 'a'].level = functions['g' - 'a'].level = 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(at_the_top, awake),
		cmocka_unit_test_setup(below_others, awake),
		cmocka_unit_test_setup(all_that_sleep, awake),
		cmocka_unit_test_setup(woken_before_its_exit, awake),
		cmocka_unit_test_setup(entered_asleep, awake),
		cmocka_unit_test_setup(while_it_turns, awake),
		cmocka_unit_test_setup(nothing_comes_after, awake),
		cmocka_unit_test_setup(others_rows, awake),
		cmocka_unit_test_setup(without_stack_pointers, awake),
		cmocka_unit_test_setup(groups_off, awake),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
