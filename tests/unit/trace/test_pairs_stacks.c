/* SPDX-License-Identifier: MIT */
/* test_pairs_stacks.c - calls of threads with several stacks: handlers and coroutines. */
#include "tests/unit/trace/pairs_rig.h"

/* ---- several stacks ---- */

/* Of all functions, how they are left. */
static void ways(uint8_t all)
{
	for (uint32_t i = 0; i < 26; i++)
		functions[i].ways = all;
}

static void handler_that_jumps_off_its_stack(void **state)
{
	static const char script[] = ">m@9000 >f@8ff0 >r@8fe0 >h@50000f00 >i@50000e00 <i@50000e00 "
				     ">a@8ff0 <a@8ff0 <m@9000";

	(void)state;
	/* r waits for h, and would have been seen to return: both are over */
	ways(TRACE_RETURNS);
	expect_calls(script, "i<h:10/10 h:30/20~ r<f:40/10~ f<m:50/10~ a<m:10/10 m:80/20");
	/* out of two stacks; an exit tells it as well */
	expect_calls(">m@9000 >f@8ff0 >h@50000f00 >i@60000f00 <m@9000",
		     "i:10/10~ h:20/10~ f<m:30/10~ m:40/10");
	/* r may have returned unseen: h may go on */
	ways(TRACE_RETURNS | TRACE_UNSEEN);
	expect_calls(script, "i<h:10/10 r<f:40/10~ f<m:50/10~ a<m:10/10 m:80/20 h:30/20~");
	ways(0);
	expect_calls(script, "i<h:10/10 r<f:40/10~ f<m:50/10~ a<m:10/10 m:80/20 h:30/20~");
	/* r ended with a jump to what switches stacks, and no sample was to come: b goes on */
	ways(TRACE_RETURNS | TRACE_JUMPS);
	expect_calls(">m@9000 >r@8ff0 /r=z@8ff0 >b@50000f00 >y@50000e00 >r@8ff0 /r=z@8ff0"
		     " <y@50000e00 <b@50000f00 <m@9000",
		     "r<m:40/20j~ y<b:30/10 b:50/20 r<m:20/20j~ m:90/20");
	ways(0);
	/* as here */
	expect_calls(">m@9000 >r@8ff0 >b@50000f00 >x@8ff0 <x@8ff0 <b@50000f00 <m@9000",
		     "r<m:20/10~ x<m:10/10 b:30/10 m:60/30");
}

static void signal_stack_in_the_middle(void **state)
{
	(void)state;
	/* handler h on another stack while b runs: b's own time is without it */
	expect(">m@fff09000 >b@fff08ff0 >h@5000 >x@4fe0 <x@4fe0 <h@5000 <b@fff08ff0 <m@fff09000",
	       "x:10/10 h:30/20 b:50/20 m:70/20");
}

static void handler_depth_goes_on(void **state)
{
	struct out o = {0};

	(void)state;
	run(">m@fff09000 >b@fff08ff0 >h@5000", &o);
	assert_int_equal(o.depth_of_last, 2);
}

static void siglongjmp_out_of_handler(void **state)
{
	(void)state;
	/* h never exits: m goes on, and b waited for it until then.  Nobody knows that h is over */
	expect(">m@fff09000 >b@fff08ff0 >h@5000 >c@fff08ff0 <c@fff08ff0 <m@fff09000",
	       "b:20/10~ c:10/10 m:50/20 h:10/10~");
	/* the next handler on the same stack shows that the first one is dead */
	expect(">m@fff09000 >b@fff08ff0 >h@5000 >c@fff08ff0 <c@fff08ff0 >h@5000 <h@5000 <m@fff09000",
	       "b:20/10~ c:10/10 h:10/10~ h:10/10 m:70/30");
}

static void coroutines_far_apart(void **state)
{
	struct out o = {0};
	struct pair_counts c;

	(void)state;
	/* m runs a, b and c in turn; each yields from inside y, twice */
	c = run(">m@fff09000"
		" >r@fff08ff0 >a@10005000 >y@10004fe0 <r@fff08ff0"
		" >r@fff08ff0 >b@20005000 >y@20004fe0 <r@fff08ff0"
		" >r@fff08ff0 >c@30005000 >y@30004fe0 <r@fff08ff0"
		" >r@fff08ff0 <y@10004fe0 >y@10004fe0 <r@fff08ff0"
		" >r@fff08ff0 <y@20004fe0 >y@20004fe0 <r@fff08ff0"
		" >r@fff08ff0 <y@30004fe0 >y@30004fe0 <r@fff08ff0"
		" >r@fff08ff0 <y@10004fe0 <a@10005000 <r@fff08ff0"
		" >r@fff08ff0 <y@20004fe0 <b@20005000 <r@fff08ff0"
		" >r@fff08ff0 <y@30004fe0 <c@30005000 <r@fff08ff0"
		" <m@fff09000",
		&o);
	assert_int_equal(c.inferred, 0);
	assert_int_equal(c.orphans, 0);
	assert_int_equal(c.open, 0);
	assert_int_equal(c.calls, 19);
}

/* The stacks of c, b and a are one array: 16 KiB each, c highest. */
static void coroutines_side_by_side(void **state)
{
	static const char *const orders[] = {"abc", "cba", "bca", "acb"};

	(void)state;
	for (size_t k = 0; k < 4; k++) {
		struct out o = {0};
		struct pair_counts c;
		char script[2000] = ">m@fff09000", word[80];

		for (int round = 0; round < 5; round++) {
			for (int i = 0; i < 3; i++) {
				char co = orders[k][i];
				unsigned top = 0x10004000u + 0x4000u * (unsigned)(co - 'a') - 0x20;

				snprintf(word, sizeof(word), " >r@fff08ff0 %s%c@%x",
					 round ? "<" : ">", round ? 'y' : co,
					 round ? top - 0x60 : top);
				strcat(script, word);
				if (round == 4)
					snprintf(word, sizeof(word), " <%c@%x <r@fff08ff0", co,
						 top);
				else
					snprintf(word, sizeof(word), " >y@%x <r@fff08ff0",
						 top - 0x60);
				strcat(script, word);
			}
		}
		strcat(script, " <m@fff09000");
		c = run(script, &o);
		assert_int_equal(c.inferred, 0);
		assert_int_equal(c.orphans, 0);
		assert_int_equal(c.open, 0);
	}
}

/* Symmetric: each passes control straight to the next, whose stack lies below its own. */
static void coroutines_pass_control(void **state)
{
	struct out o = {0};
	struct pair_counts c;

	(void)state;
	c = run(">m@fff09000 >c@1000bfe0 >b@10007fe0 >a@10003fe0"
		" >x@1000bf80 <x@1000bf80 >x@10007f80 <x@10007f80 >x@10003f80 <x@10003f80"
		" >x@1000bf80 <x@1000bf80 >x@10007f80 <x@10007f80 >x@10003f80 <x@10003f80"
		" <c@1000bfe0 <b@10007fe0 <a@10003fe0 <m@fff09000",
		&o);
	assert_int_equal(c.inferred, 0);
	assert_int_equal(c.orphans, 0);
	assert_int_equal(c.open, 0);
}

/* Coroutine stacks are local arrays of m: they lie between m's frame and its callees'. */
static void coroutines_on_local_arrays(void **state)
{
	struct out o = {0};
	struct pair_counts c;

	(void)state;
	c = run(">m@f0100000"
		" >r@f00f0000 >a@f00f7f00 >y@f00f7e00 <r@f00f0000"
		" >r@f00f0000 >b@f00fbf00 >y@f00fbe00 <r@f00f0000"
		" >r@f00f0000 <y@f00f7e00 >y@f00f7e00 <r@f00f0000"
		" >r@f00f0000 <y@f00fbe00 >y@f00fbe00 <r@f00f0000"
		" >r@f00f0000 <y@f00f7e00 <a@f00f7f00 <r@f00f0000"
		" >r@f00f0000 <y@f00fbe00 <b@f00fbf00 <r@f00f0000"
		" <m@f0100000",
		&o);
	assert_int_equal(c.inferred, 0);
	assert_int_equal(c.orphans, 0);
	assert_int_equal(c.open, 0);
}

/* The same where neither the callees of m nor what yields has probed exits. */
static void coroutines_on_local_arrays_without_exits(void **state)
{
	struct out o = {0};
	struct pair_counts c;

	(void)state;
	c = run(">m@f0100000"
		" >r@f00f0000 >a@f00f7f00 >y@f00f7e00"
		" >r@f00f0000 >b@f00fbf00 >y@f00fbe00"
		" >r@f00f0000 >y@f00f7e00"
		" >r@f00f0000 >y@f00fbe00"
		" >r@f00f0000 <a@f00f7f00"
		" >r@f00f0000 <b@f00fbf00"
		" >h@20001000" /* and a handler that jumps out */
		" >l@f00f0000 <l@f00f0000 <m@f0100000",
		&o);
	assert_int_equal(c.orphans, 0);
	assert_int_equal(c.open, 0);
	assert_non_null(strstr(o.text, " l:10/10 m:180/"));
	assert_non_null(strstr(o.text, " h:10/10~"));
}

/* What a coroutine had been begun by runs on when that ends; but what is never seen again ended when it was left. */
static void who_inherits_runs_on(void **state)
{
	static const char script[] =
		">m@9000 >f@8ff0 >b@50000 <f@8ff0 >g@8ff0 >x@4fff0 <x@4fff0 <b@50000 >c@20000 <c@20000%s";
	char whole[200];

	(void)state;
	snprintf(whole, sizeof(whole), script, "");
	expect(whole, "f:20/10 x:10/10 b:50/20 c:10/10 g:10/10~ m:50/20~");
	snprintf(whole, sizeof(whole), script, " <g@8ff0 <m@9000");
	expect(whole, "f:20/10 x:10/10 b:50/20 c:10/10 g:60/30 m:110/30");
}

static void thousands_of_coroutines(void **state)
{
	struct out o = {0};
	struct pair_sink sink = sink_to(&o);
	struct pairs *p = pairs_open(&fake, &sink);
	const uint32_t n = 5000;
	uint64_t tsc = 0;

	(void)state;
	for (uint32_t round = 0; round < 4; round++) {
		for (uint32_t i = 0; i < n; i++) {
			uint32_t top = 0x10000000u + 0x10000u * i;
			struct trace_event e = event(++tsc, round < 3 ? 2 : 3, top - round * 0x40);

			if (round == 3)
				e = event(tsc, KRON_EVENT_EXIT(1), top - 0x80);
			pairs_feed(p, &e);
		}
	}
	pairs_finish(p);
	assert_int_equal(pairs_counts(p)->orphans, 0);
	/* all but the last one wait for ever */
	assert_int_equal(pairs_counts(p)->inferred + pairs_counts(p)->open, 2 * n);
	assert_int_equal(pairs_counts(p)->calls, 3 * n);
	pairs_close(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(handler_that_jumps_off_its_stack),
		cmocka_unit_test(signal_stack_in_the_middle),
		cmocka_unit_test(handler_depth_goes_on),
		cmocka_unit_test(siglongjmp_out_of_handler),
		cmocka_unit_test(coroutines_far_apart),
		cmocka_unit_test(coroutines_side_by_side),
		cmocka_unit_test(coroutines_pass_control),
		cmocka_unit_test(coroutines_on_local_arrays),
		cmocka_unit_test(coroutines_on_local_arrays_without_exits),
		cmocka_unit_test(who_inherits_runs_on),
		cmocka_unit_test(thousands_of_coroutines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
