/* SPDX-License-Identifier: MIT */
/* test_pairs_unwind.c - calls that end where an unwinder or longjmp says so. */
#include "tests/unit/trace/pairs_rig.h"

static void exception(void **state)
{
	(void)state;
	/* a catches what d throws, and then takes its time */
	expect(">m@9000 >a@8ff0 >c@8fc0 >d@8fa0 u@8f00 U@8fd0 <a@8ff0 <m@9000",
	       "d:20/20~ c:30/10~ a:50/20 m:70/20");
	/* c's cleanup runs in between */
	expect(">m@9000 >a@8ff0 >c@8fc0 >d@8fa0 u@8f00 U@8fb0 >e@8fa0 <e@8fa0 u@8f80 U@8fd0 <a@8ff0 <m@9000",
	       "d:20/20~ e:10/10 c:70/40~ a:90/20 m:110/20");
	/* nobody who is recorded catches it */
	expect(">c@8fc0 >d@8fa0 u@8f00 U@8fd0 >c@8fc0 <c@8fc0", "d:20/20~ c:30/10~ c:10/10");
	/* nobody who is recorded is left */
	expect(">m@9000 u@8f00 U@8fd0 <m@9000", "m:30/30");
}

static void through_big_frames(void **state)
{
	(void)state;
	/* what lies far away need not be on another stack */
	expect(">m@90000 >a@80000 >b@70000 u@6ff00 U@8ff00 <m@90000", "b:20/20~ a:30/10~ m:50/20");
	expect(">a@80000 >b@70000 u@6ff00 U@8ff00 >z@8fe00 <z@8fe00", "b:20/20~ a:30/10~ z:10/10");
	/* it may with longjmp, but a call ends then, too */
	expect(">m@90000 >a@80000 U@8ff00 <m@90000", "m:30/20 a:10/10~");
}

static void jump(void **state)
{
	(void)state;
	expect(">m@9000 >a@8ff0 >c@8fc0 >d@8fa0 U@8fd0 <a@8ff0 <m@9000",
	       "d:10/10~ c:20/10~ a:40/20 m:60/20");
	/* inside of a call */
	expect(">m@9000 >a@8ff0 U@8fd0 <a@8ff0 <m@9000", "a:20/20 m:40/20");
	/* out of a handler on a stack of its own, to what had called the one that it interrupted */
	for (uint32_t i = 0; i < 26; i++)
		functions[i].ways = TRACE_RETURNS;
	expect(">m@9000 >a@8ff0 >r@8fc0 >h@50000f00 U@8fd0 <a@8ff0 <m@9000",
	       "h:10/10~ r:20/10~ a:40/20 m:60/20");
	for (uint32_t i = 0; i < 26; i++)
		functions[i].ways = 0;
}

/* Each stack goes on by longjmp where it was left. */
static void jumps_between_stacks(void **state)
{
	(void)state;
	expect(">m@9000 >a@8ff0 >b@50000f00 U@8f00 >c@8ef0 <c@8ef0 U@50000e00 <b@50000f00 <a@8ff0 <m@9000",
	       "c:10/10 b:50/20 a:70/40 m:90/20");
	/* one lies below the other in memory */
	expect(">m@90000 >a@8fff0 >b@80000 U@8ff00 >c@8fef0 <c@8fef0 U@7ff00 <b@80000 <a@8fff0 <m@90000",
	       "c:10/10 b:50/20 a:70/40 m:90/20");
}

/* Distances are those of 32 bits: a stack 2 GiB away may seem to lie on both sides. */
static void a_stack_far_away(void **state)
{
	(void)state;
	expect(">f@80001010 u@1000 U@2000 <f@80001010", "f:30/30");
	expect(">m@9000 >f@80009010 u@8f00 U@8fd0 <f@80009010 <m@9000", "f:30/30 m:50/20");
}

/* A record without the other one, as where samples were lost. */
static void half(void **state)
{
	(void)state;
	expect(">m@9000 >a@8ff0 u@8f00 <a@8ff0 <m@9000", "a:20/20 m:40/20");
	expect(">m@90000 >a@80000 u@7ff00 !3 U@8ff00 <m@90000", "m:50/20% a:30/30~%");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exception), cmocka_unit_test(through_big_frames),
		cmocka_unit_test(jump),      cmocka_unit_test(jumps_between_stacks),
		cmocka_unit_test(half),      cmocka_unit_test(a_stack_far_away),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
