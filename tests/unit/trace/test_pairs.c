/* SPDX-License-Identifier: MIT */
/* test_pairs.c - entries and exits as threads produce them, and the calls that must come out. */
#include <time.h>

#include "tests/unit/trace/pairs_rig.h"

/* ---- one stack ---- */

static void nested_calls(void **state)
{
	(void)state;
	expect(">a@9000 >b@8ff0 <b@8ff0 >b@8ff0 <b@8ff0 <a@9000", "b:10/10 b:10/10 a:50/30");
}

static void recursion(void **state)
{
	(void)state;
	expect(">a@9000 >a@8ff0 >a@8fe0 <a@8fe0 <a@8ff0 <a@9000", "a:10/10^ a:30/20^ a:50/20");
	expect(">a@9000 >b@8ff0 >a@8fe0 <a@8fe0 <b@8ff0 <a@9000", "a:10/10^ b:30/20 a:50/20");
}

static void tail_call_with_probed_exit(void **state)
{
	(void)state;
	expect(">m@9000 >a@8ff0 <a@8ff0 >b@8ff0 <b@8ff0 <m@9000", "a:10/10 b:10/10 m:50/30");
}

static void tail_call_without_exit(void **state)
{
	(void)state;
	/* a jumps to b, and its exit has no probe: b's entry at the same S ends it */
	expect(">m@9000 >a@8ff0 >b@8ff0 <b@8ff0 <m@9000", "a:10/10~ b:10/10 m:40/20");
	/* b's entry has none either: its exit ends a, and has no entry */
	expect(">m@9000 >a@8ff0 <b@8ff0 <m@9000", "?b a:10/10~ m:30/20");
}

static void longjmp_over_frames(void **state)
{
	(void)state;
	/* d longjmps to m, which calls b and returns */
	expect(">m@9000 >a@8ff0 >c@8fd0 >d@8fb0 >b@8ff0 <b@8ff0 <m@9000",
	       "d:10/10~ c:20/10~ a:30/10~ b:10/10 m:60/20");
	/* to m, which returns at once */
	expect(">m@9000 >a@8ff0 >c@8fd0 <m@9000", "c:10/10~ a:20/10~ m:30/10");
	/* the new call is deeper than the first dead frame, not than the others */
	expect(">m@9000 >a@8ff0 >c@8fd0 >d@8fb0 >b@8fe0 <b@8fe0 <a@8ff0 <m@9000",
	       "d:10/10~ c:20/10~ b:10/10 a:50/20 m:70/20");
}

static void exception_through_big_frame(void **state)
{
	(void)state;
	/* m has a 64 KiB array and a never exits: at first a stack switch is as likely */
	expect(">m@90000 >a@80000 <m@90000", "m:20/10 a:10/10~");
	/* in a loop the next call at the same place shows that the frame was dead */
	expect(">m@90000 >a@80000 <m@90000 >m@90000 >a@80000 <m@90000 >m@90000 >a@80000 <m@90000",
	       "m:20/10 a:10/10~ a:10/10~ m:20/10 a:10/10~ m:20/10");
	/* and when a was seen to exit properly before, there is no doubt */
	expect(">m@90000 >a@80000 <a@80000 >a@80000 <m@90000", "a:10/10 a:10/10~ m:40/20");
}

static void missing_exits_in_a_loop(void **state)
{
	struct out o = {0};
	char script[100 * 10 + 30] = ">m@9000";
	struct pair_counts c;

	(void)state;
	for (int i = 0; i < 100; i++)
		strcat(script, " >a@8ff0");
	strcat(script, " <m@9000");
	c = run(script, &o);
	assert_int_equal(c.calls, 101);
	assert_int_equal(c.inferred, 100);
	assert_int_equal(c.orphans, 0);
	assert_non_null(strstr(o.text, " m:1010/10"));
}

static void callers_without_probes(void **state)
{
	(void)state;
	/* only a is probed, its callers come from anywhere on the stack */
	expect(">a@9000 <a@9000 >a@7000 <a@7000 >a@a000 <a@a000", "a:10/10 a:10/10 a:10/10");
	/* likewise without exits */
	expect(">a@9000 >a@9010 >a@9018", "a:10/10~ a:10/10~ a:0/0*");
}

static void open_at_the_end(void **state)
{
	(void)state;
	expect(">m@9000 >a@8ff0 >b@8fe0 <b@8fe0", "b:10/10 a:20/10* m:30/10*");
}

static void forked_child_starts_inside(void **state)
{
	struct out o = {0};
	struct pair_counts c;

	(void)state;
	c = run("<f@8f00 >g@8f00 <g@8f00 <b@8f80 >c@8f80 <c@8f80 <a@8ff0 <m@9000", &o);
	assert_string_equal(o.text, "?f g:10/10 ?b c:10/10 ?a ?m");
	assert_int_equal(c.orphans, 4);
	assert_int_equal(c.inferred, 0);
}

static void vfork_child_shares_the_stack(void **state)
{
	(void)state;
	/* vfork returns twice at the same S; the child's frames end in exec */
	expect(">m@9000 >v@8ff0 <v@8ff0 >c@8ff0 >e@8fe0 <v@8ff0 <m@9000",
	       "v:10/10 ?v e:10/10~ c:20/10~ m:60/30");
}

static void stack_address_wraps(void **state)
{
	(void)state;
	expect(">a@20 >b@fffffff0 >c@ffffff00 <c@ffffff00 >c@ffffff80 <b@fffffff0 <a@20",
	       "c:10/10 c:10/10~ b:40/20 a:60/20");
}

static void unknown_functions(void **state)
{
	struct out o = {0};
	struct pair_sink sink = sink_to(&o);
	struct pairs *p = pairs_open(&fake, &sink);
	struct trace_event e[] = {
		event(10, KRON_EVENT_ENTRY(0x7fffff00), 0x9000),
		event(20, KRON_EVENT_ENTRY(0x7fffff00), 0x8000),
		event(30, KRON_EVENT_EXIT(0x7fffff00), 0x8000),
		event(40, KRON_EVENT_EXIT(0x7fffff00), 0x9000),
	};

	(void)state;
	for (size_t i = 0; i < 4; i++)
		pairs_feed(p, &e[i]);
	pairs_finish(p);
	assert_int_equal(o.leaves, 2);
	assert_int_equal(pairs_counts(p)->inferred + pairs_counts(p)->open, 0);
	pairs_close(p);
}

/* ---- exits by a jump ---- */

static void jump_to_a_function(void **state)
{
	(void)state;
	/* a has lasted as long as b, which it jumped to; its own time ends with the jump */
	expect_calls(">m@9000 >a@8ff0 /a=b@8ff0 >b@8ff0 <b@8ff0 <m@9000",
		     "b<a:10/10 a<m:30/20j m:50/20");
	/* a chain; c calls on */
	expect_calls(">m@9000 >a@8ff0 /a=b@8ff0 >b@8ff0 /b=c@8ff0 >c@8ff0 >d@8fe0 <d@8fe0 <c@8ff0"
		     " >e@8ff0 <e@8ff0 <m@9000",
		     "d<c:10/10 c<b:30/20 b<a:50/20j a<m:70/20j e<m:10/10 m:110/30");
}

static void jump_to_what_has_no_probes(void **state)
{
	(void)state;
	/* until m goes on */
	expect_calls(">m@9000 >a@8ff0 /a=z@8ff0 >b@8ff0 <b@8ff0 <m@9000",
		     "a<m:20/20j~ b<m:10/10 m:50/20");
	expect_calls(">m@9000 >a@8ff0 /a=z@8ff0 <m@9000", "a<m:20/20j~ m:30/10");
	/* what it calls is a's callee, as far as anyone can see */
	expect_calls(">m@9000 >a@8ff0 /a=z@8ff0 >b@8f00 <b@8f00 >c@8ff0 <c@8ff0 <m@9000",
		     "b<a:10/10 a<m:40/30j~ c<m:10/10 m:70/20");
	/* in a loop with another call: g is not a callee of a */
	expect_calls(">m@9000 >a@8ff0 /a=z@8ff0 >g@8ff0 <g@8ff0 >a@8ff0 /a=z@8ff0 >g@8ff0 <g@8ff0"
		     " <m@9000",
		     "a<m:20/20j~ g<m:10/10 a<m:20/20j~ g<m:10/10 m:90/30");
	/* the end of the trace */
	expect_calls(">m@9000 >a@8ff0 /a=z@8ff0", "a<m:10/10j* m:20/10*");
}

/* Nobody who waits for a is recorded: the next sample may come much later.  '{': what is not recorded. */
static void jump_away_without_a_caller(void **state)
{
	(void)state;
	expect_calls(">a@8ff0 /a={@8ff0 >a@8ff0 <a@8ff0 >a@8ff0 /a={@8ff0",
		     "a:10/10j+ a:10/10 a:10/10j+");
	/* b may be its callee, or another's */
	expect_calls(">a@8ff0 /a={@8ff0 >b@8f00 <b@8f00 >c@8ff0 <c@8ff0",
		     "a:10/10j+ b:10/10 c:10/10");
	/* the next sample tells */
	expect_calls(">a@8ff0 /a?@8ff0 >c@9f00 <c@9f00 >a@8ff0 /a?@8ff0",
		     "a:10/10j+ c:10/10 a:10/10j+");
	expect_calls(">a@8ff0 /a?@8ff0 >b@8ff0 <b@8ff0", "b<a:10/10 a:30/20j");
	/* a chain of jumps, of which the last leads away */
	expect_calls(">a@8ff0 /a=b@8ff0 >b@8ff0 /b={@8ff0 >c@8ff0 <c@8ff0",
		     "b<a:10/10j+ a:30/20j+ c:10/10");
	expect_calls(">a@8ff0 /a=b@8ff0 >b@8ff0 /b?@8ff0 >c@8f00 <c@8f00",
		     "b<a:10/10j+ a:30/20j+ c:10/10");
	/* b did not leave by a jump: its end is inferred as without it */
	expect_calls(">a@8ff0 /a=b@8ff0 >b@8ff0 >c@8ff0 <c@8ff0", "b<a:10/10~ a:30/20j~ c:10/10");
	/* a handler on another stack: its next sample, or what it interrupted, comes soon */
	expect_calls(">a@8ff0 >h@70000000 /h={@70000000 <a@8ff0", "a:30/10 h:20/20j~");
	/* samples are lost: what it jumped to may be among them */
	expect_calls(">a@8ff0 /a?@8ff0 !3 >c@8ff0 <c@8ff0", "a:30/30j~% c:10/10");
}

static void jump_through_a_pointer(void **state)
{
	(void)state;
	/* the next sample tells */
	expect_calls(">m@9000 >a@8ff0 /a?@8ff0 >b@8ff0 <b@8ff0 <m@9000",
		     "b<a:10/10 a<m:30/20j m:50/20");
	/* something else came first: b need not be it */
	expect_calls(">m@9000 >a@8ff0 /a?@8ff0 >x@8f00 <x@8f00 >b@8ff0 <b@8ff0 <m@9000",
		     "x<a:10/10 a<m:40/30j~ b<m:10/10 m:70/20");
}

static void jump_into_the_middle(void **state)
{
	struct out o = {.callers = true};
	struct pair_counts c;

	(void)state;
	/* b exits without an entry, and a with it */
	c = run(">m@9000 >a@8ff0 /a-b@8ff0 <b@8ff0 >c@8ff0 <c@8ff0 <m@9000", &o);
	assert_string_equal(o.text, "a<m:20/20j c<m:10/10 m:60/30");
	assert_int_equal(c.shared, 1);
	/* an entry of b's is another call */
	expect_calls(">m@9000 >a@8ff0 /a-b@8ff0 >b@8ff0 <b@8ff0 <m@9000",
		     "a<m:20/20j~ b<m:10/10 m:50/20");
}

static void a_handler_before_the_target(void **state)
{
	(void)state;
	expect_calls(">m@9000 >a@8ff0 /a=b@8ff0 >h@8e00 <h@8e00 >b@8ff0 <b@8ff0 <m@9000",
		     "h<a:10/10 b<a:10/10 a<m:50/30j m:70/20");
	/* on a stack of its own */
	expect_calls(">m@9000 >a@8ff0 /a=b@8ff0 >h@70000000 <h@70000000 >b@8ff0 <b@8ff0 <m@9000",
		     "h:10/10 b<a:10/10 a<m:50/30j m:70/20");
}

/*
 * The linker's stub of u pushes two words and jumps to r, which pops them and jumps to u: all this the first
 * time that u is called.
 */
static void jump_to_a_stub_that_binds_lazily(void **state)
{
	struct out o = {.callers = true};
	struct pair_counts c;

	(void)state;
	expect_calls(">m@9000 >a@8ff0 /a=u@8ff0 >r@8fe0 >x@8e00 <x@8e00 /r?@8ff0 >u@8ff0 <u@8ff0"
		     " <m@9000",
		     "x<r:10/10 r<a:30/20 u<a:10/10 a<m:70/30j m:90/20");
	/* a call, not a jump */
	c = run(">m@9000 >r@8fe0 >x@8e00 <x@8e00 /r?@8ff0 >u@8ff0 <u@8ff0 <m@9000", &o);
	assert_string_equal(o.text, "x<r:10/10 r<m:30/20 u<m:10/10 m:70/30");
	assert_int_equal(c.orphans + c.inferred, 0);
	/* through a pointer to the stub; the end of x has no probe */
	expect_calls(">m@9000 >a@8ff0 /a?@8ff0 >r@8fe0 >x@8e00 /r?@8ff0 >u@8ff0 <u@8ff0 <m@9000",
		     "x<r:10/10~ r<a:20/10 u<a:10/10 a<m:60/30j m:80/20");
	/* nobody above it has probes */
	expect_calls(">r@8fe0 /r?@8ff0 >u@8ff0 <u@8ff0", "r:10/10 u:10/10");
	/* u has no probes */
	expect_calls(">m@9000 >a@8ff0 /a=u@8ff0 >r@8fe0 /r?@8ff0 >b@8ff0 <b@8ff0 <m@9000",
		     "r<a:10/10 a<m:40/30j~ b<m:10/10 m:70/20");
	/* not from so far below; nor for somebody who goes on */
	expect_calls(">m@9000 >r@8f00 /r?@8ff0 >u@8ff0 <u@8ff0 <m@9000",
		     "?r r<m:10/10~ u<m:10/10 m:50/30");
	expect_calls(">m@9000 >a@8ff0 >r@8fe0 /r?@8ff0 >u@8ff0 <u@8ff0 <m@9000",
		     "?r r<a:10/10~ a<m:20/10~ u<m:10/10 m:60/30");
}

static void jump_and_loss(void **state)
{
	(void)state;
	expect_calls(">m@9000 >a@8ff0 /a=b@8ff0 !3 >b@8ff0 <b@8ff0 <m@9000",
		     "a<m:30/30j~% b<m:10/10 m:60/20%");
}

static void jump_with_frames_above(void **state)
{
	(void)state;
	/* x was left by an exception; a goes on and jumps */
	expect_calls(">m@9000 >a@8ff0 >x@8fe0 /a=b@8ff0 >b@8ff0 <b@8ff0 <m@9000",
		     "x<a:10/10~ b<a:10/10 a<m:40/20j m:60/20");
	/* a's second exit is that of a call whose entry was not seen */
	expect_calls(">m@9000 >a@8ff0 /a=z@8ff0 <a@8ff0 >b@8ff0 <b@8ff0 <m@9000",
		     "?a a<m:20/20j~ b<m:10/10 m:60/30");
	/* an entry that was not seen */
	expect_calls(">m@9000 /a=b@8ff0 >b@8ff0 <b@8ff0 <m@9000", "?a b<m:10/10 m:40/30");
	/* the exit of what it jumped to has no probe: the next call shows that */
	expect_calls(">m@9000 >a@8ff0 /a=b@8ff0 >b@8ff0 >c@8ff0 <c@8ff0 <m@9000",
		     "b<a:10/10~ a<m:30/20j~ c<m:10/10 m:60/20");
}

static void tail_recursion(void **state)
{
	struct out o = {.callers = true};
	struct pairs *p;
	struct pair_sink sink = sink_to(&o);
	uint64_t tsc = 0;

	(void)state;
	expect_calls(">m@9000 >a@8ff0 /a=a@8ff0 >a@8ff0 /a=a@8ff0 >a@8ff0 <a@8ff0 <m@9000",
		     "a<m:20/20j a<m:20/20j a<m:10/10 m:70/20");
	/* a and b by turns: a's frame there ends when it comes again */
	expect_calls(">m@9000 >a@8ff0 /a=b@8ff0 >b@8ff0 /b=a@8ff0 >a@8ff0 /a=b@8ff0 >b@8ff0 <b@8ff0"
		     " <m@9000",
		     "b<a:20/20j a<m:40/20j b<a:10/10 a<m:30/20j m:90/20");
	/* a million turns */
	o.n = sizeof(o.text);
	p = pairs_open(&fake, &sink);
	for (uint32_t i = 0; i < 1000000; i++) {
		struct trace_event in = event(++tsc, KRON_EVENT_ENTRY(i & 1), 0x8ff0);
		struct trace_event out = parse_jump(i & 1 ? "/b=a@8ff0" : "/a=b@8ff0", ++tsc);

		pairs_feed(p, &in);
		pairs_feed(p, &out);
	}
	pairs_finish(p);
	assert_int_equal(pairs_counts(p)->calls, 1000000);
	assert_int_equal(pairs_counts(p)->open, 2);
	assert_int_equal(pairs_counts(p)->inferred, 0);
	pairs_close(p);
}

/* Without stack pointers a jump is an exit like others. */
static void jump_without_stack_pointers(void **state)
{
	(void)state;
	expect_calls(">m@0 >a@0 /a=b@0 >b@0 <b@0 <m@0", "a<m:10/10 b<m:10/10 m:50/30");
}

/* ---- children that borrow their parent's memory ---- */

static void vfork_child_ends_by_exec(void **state)
{
	(void)state;
	/* v returns in the child and in its parent; e does not return */
	expect_calls(">m@9000 >l@8ff0 >v@8fe0 V1@8fe0 <v@8fe0 >c@8fe0 >e@8fd0 E2@8fc0 <v@8fe0"
		     " >w@8fe0 <w@8fe0 <l@8ff0 <m@9000",
		     "v<l:20/20 e<c:20/20~ c<l:30/10~ w<l:10/10 l<m:100/40 m:120/20");
	/* v is not traced, and the parent calls deeper than the child did */
	expect_calls(">m@9000 >l@8ff0 V1@8fe0 >c@8fe0 E2@8fc0 >w@8fd0 <w@8fd0 <l@8ff0 <m@9000",
		     "c<l:20/20~ w<l:10/10 l<m:60/30 m:80/20");
}

static void vfork_child_whose_exec_fails(void **state)
{
	(void)state;
	expect_calls(">m@9000 V1@8ff0 >e@8ff0 E2@8fe0 L2@8fe0 <e@8ff0 >x@8ff0 E2@8fe0 >w@8ff0"
		     " <w@8ff0 <m@9000",
		     "e<m:30/30 x<m:20/20~ w<m:10/10 m:100/40");
}

static void vfork_child_that_is_killed(void **state)
{
	(void)state;
	/* the second return of v tells */
	expect_calls(
		">m@9000 >v@8ff0 V1@8ff0 <v@8ff0 >c@8ff0 >d@8fe0 <v@8ff0 >w@8fd0 <w@8fd0 <m@9000",
		"v<m:20/20 d<c:10/10~ c<m:20/10~ w<m:10/10 m:90/40");
	/* a later child's end is not its */
	expect_calls(
		">m@9000 V1@8ff0 >c@8ff0 >p@8ff0 >q@8fe0 V1@8fd0 >x@8fd0 E3@8fc0 <q@8fe0 <p@8ff0"
		" <m@9000",
		"c<m:10/10~ x<q:20/20~ q<p:40/20 p<m:60/20 m:100/30");
}

static void vfork_inside_vfork(void **state)
{
	(void)state;
	expect_calls(
		">m@9000 V1@8ff0 >a@8ff0 V2@8fe0 >b@8fe0 E3@8fd0 >c@8fe0 E2@8fd0 >w@8ff0 <w@8ff0"
		" <m@9000",
		"b<a:20/20~ c<a:20/20~ a<m:60/20~ w<m:10/10 m:100/30");
	/* the inner one is killed: 2 says that it ends itself */
	expect_calls(
		">m@9000 V1@8ff0 >a@8ff0 V2@8fe0 >b@8fe0 >c@8fe0 E2@8fd0 >w@8fd0 <w@8fd0 <m@9000",
		"b<a:10/10~ c<a:20/20~ a<m:50/20~ w<m:10/10 m:90/30");
}

static void spawned_child_has_a_stack(void **state)
{
	(void)state;
	/* an exec fails first; the parent's own frames go on */
	expect_calls(
		">m@fff09000 >p@fff08ff0 P1@fff08ff0 >k@fff08fe0 >c@70001000 >e@70000f00 E2@70000e00"
		" L2@70000e00 <e@70000f00 >e@70000f00 E2@70000e00 <k@fff08fe0 <p@fff08ff0 <m@fff09000",
		"e<c:30/30 e<c:20/20~ c:70/20~ k<p:80/10 p<m:110/30 m:130/20");
	/* the same right below a thread's small stack: the gap tells */
	expect_calls(
		">m@70009000 >p@70008ff0 P1@70008ff0 >k@70008fe0 >c@70001000 >e@70000f00 E2@70000e00"
		" >x@70000800 <x@70000800 <k@70008fe0 <p@70008ff0 <m@70009000",
		"e<c:20/20~ c<k:30/10~ x<k:10/10 k<p:60/20 p<m:90/30 m:110/20");
}

/* ---- losses ---- */

static void losses(void **state)
{
	(void)state;
	/* a's exit and another entry of a may be among the lost */
	expect(">m@9000 >a@8ff0 !7 <a@8ff0 <m@9000", "a:20/20% m:40/20%");
	/* an exit whose entry was lost */
	expect(">m@9000 !1 <b@8ff0 >a@8ff0 <a@8ff0 <m@9000", "?b a:10/10 m:50/40%");
	/* frames that ended in the gap */
	expect(">m@9000 >a@8ff0 >b@8fe0 !9 >c@8ff0 <c@8ff0 <m@9000",
	       "b:20/20~% a:30/10~% c:10/10 m:60/20%");
	/* everything before the gap is gone */
	expect(">m@9000 >a@8ff0 !9 <x@9100 >y@9100 <y@9100", "?x a:20/20~% m:30/10~% y:10/10");
}

/* ---- without stack pointers ---- */

static void pairing_by_function(void **state)
{
	(void)state;
	expect(">m@0 >a@0 >b@0 <b@0 <m@0 <a@0", "b:10/10 a:30/20~ m:40/10 ?a");
}

/* ---- size ---- */

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void deep_recursion_is_linear(void **state)
{
	struct out o = {0};
	struct pair_sink sink = sink_to(&o);
	struct pairs *p = pairs_open(&fake, &sink);
	const uint32_t depth = 60000;
	double start = now();
	uint64_t tsc = 0;

	(void)state;
	for (int round = 0; round < 20; round++) {
		for (uint32_t i = 0; i < depth; i++) {
			struct trace_event e =
				event(++tsc, KRON_EVENT_ENTRY(0), 0xf0000000u - 48 * i);

			pairs_feed(p, &e);
		}
		for (uint32_t i = depth; i-- > 0;) {
			struct trace_event e =
				event(++tsc, KRON_EVENT_EXIT(0), 0xf0000000u - 48 * i);

			pairs_feed(p, &e);
		}
	}
	/* and 60,000 frames that a longjmp leaves at once */
	for (uint32_t i = 0; i < depth; i++) {
		struct trace_event e = event(++tsc, KRON_EVENT_ENTRY(0), 0xf0000000u - 48 * i);

		pairs_feed(p, &e);
	}
	pairs_feed(p, &(struct trace_event){.tsc = ++tsc,
					    .s = {.event = KRON_EVENT_EXIT(0),
						  .payload = 0xf0000000u}});
	pairs_finish(p);
	assert_int_equal(pairs_counts(p)->calls, 21 * depth);
	assert_int_equal(pairs_counts(p)->inferred, depth - 1);
	pairs_close(p);
	assert_true(now() - start < 20); /* it takes 0.2 s; O(depth) an event would take an hour */
}

/* Random events keep the books balanced and crash nothing. */
static void random_events(void **state)
{
	struct out o = {0};
	uint32_t seed = 1;

	(void)state;
	for (int round = 0; round < 50; round++) {
		struct pair_sink sink = sink_to(&o);
		struct pairs *p = pairs_open(&fake, &sink);
		const struct pair_counts *c = pairs_counts(p);
		uint32_t mask = round % 3 == 0 ? 0xffffffff : round % 3 == 1 ? 0xffff0 : 0x700;

		for (uint64_t i = 0; i < 20000; i++) {
			uint32_t number, payload;
			struct trace_event e;

			seed = seed * 1664525 + 1013904223;
			number = seed >> 8 & 15;
			seed = seed * 1664525 + 1013904223;
			payload = (seed ^ seed >> 15) & mask;
			e = event(i, number == 15 ? KRON_EVENT_LOST : number, payload);
			if (number & 1 && number < 15 && seed & 4)
				e.jump = 1 + (seed >> 4) % (uint32_t)fake.njumps;
			if (number == 15 && seed & 6)
				e.s.event += 1 + (seed >> 4) % 5;
			e.s.source = seed >> 8 & 3;
			e.lane = seed >> 30 & 1;
			pairs_feed(p, &e);
		}
		pairs_finish(p);
		assert_int_equal(c->entries, c->calls);
		assert_int_equal(c->exits, c->calls - c->inferred - c->open + c->orphans +
						   c->jumped + c->shared);
		pairs_close(p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nested_calls),
		cmocka_unit_test(recursion),
		cmocka_unit_test(tail_call_with_probed_exit),
		cmocka_unit_test(tail_call_without_exit),
		cmocka_unit_test(longjmp_over_frames),
		cmocka_unit_test(exception_through_big_frame),
		cmocka_unit_test(missing_exits_in_a_loop),
		cmocka_unit_test(callers_without_probes),
		cmocka_unit_test(open_at_the_end),
		cmocka_unit_test(forked_child_starts_inside),
		cmocka_unit_test(vfork_child_shares_the_stack),
		cmocka_unit_test(stack_address_wraps),
		cmocka_unit_test(unknown_functions),
		cmocka_unit_test(jump_to_a_function),
		cmocka_unit_test(jump_to_what_has_no_probes),
		cmocka_unit_test(jump_away_without_a_caller),
		cmocka_unit_test(jump_through_a_pointer),
		cmocka_unit_test(jump_into_the_middle),
		cmocka_unit_test(a_handler_before_the_target),
		cmocka_unit_test(jump_to_a_stub_that_binds_lazily),
		cmocka_unit_test(jump_and_loss),
		cmocka_unit_test(jump_with_frames_above),
		cmocka_unit_test(tail_recursion),
		cmocka_unit_test(jump_without_stack_pointers),
		cmocka_unit_test(vfork_child_ends_by_exec),
		cmocka_unit_test(vfork_child_whose_exec_fails),
		cmocka_unit_test(vfork_child_that_is_killed),
		cmocka_unit_test(vfork_inside_vfork),
		cmocka_unit_test(spawned_child_has_a_stack),
		cmocka_unit_test(losses),
		cmocka_unit_test(pairing_by_function),
		cmocka_unit_test(deep_recursion_is_linear),
		cmocka_unit_test(random_events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
