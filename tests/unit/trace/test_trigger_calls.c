/* SPDX-License-Identifier: MIT */
/* test_trigger_calls.c - triggers on calls that take long, with the jumps by which calls go on. */
#include "tests/unit/trace/trigger_rig.h"

/* ---- calls ---- */

static void a_call_that_takes_longer(void **state)
{
	(void)state;
	start("f>50ns");
	sample(100, 0, F, 0x8000);
	sample(110, 0, G, 0x7f00);
	sample(149, 0, G_END, 0x7f00);
	sample(150, 0, F_END, 0x8000);
	sample(200, 0, F, 0x8000);
	sample(210, 1, F_END, 0x8000); /* another thread's */
	sample(300, 0, F_END, 0x8000);
	sample(400, 0, F, 0x8000);
	sample(401, 0, F_END, 0x8000);
	pass_time(1000);
	expect("250-200 ");
}

/* Its end was not to be seen: who knows how long it took. */
static void a_call_whose_function_went_to_sleep(void **state)
{
	struct trace_range of_f = {F / 2, F / 2}, of_g = {G / 2, G / 2};
	struct trace_range beyond = {1000, UINT32_MAX - 1};
	struct trace_sleep rows[] = {
		{.since = 120, .until = 130, .numbers = &of_f, .n = 1},
		{.since = 220, .until = 230, .numbers = &of_f, .n = 1, .wakes = true},
		{.since = 320, .until = 330, .numbers = &of_g, .n = 1},
		{.since = 500, .until = 510, .numbers = &of_f, .n = 1},
	};

	(void)state;
	trace.sleeps = rows;
	trace.nsleeps = sizeof(rows) / sizeof(*rows);
	start("f>50ns");
	sample(100, 0, F, 0x8000); /* asleep from 120 on */
	sample(240, 0, F, 0x8000);
	sample(250, 0, F_END, 0x8000);
	sample(310, 0, F, 0x8000); /* another one goes to sleep */
	sample(400, 0, F_END, 0x8000);
	sample(420, 0, F, 0x8000); /* over before it sleeps */
	pass_time(1000);
	assert_int_equal(trigger_unsure(g), 1);
	expect("360-310 470-420 ");
	rows[3].numbers = &beyond;
	start("g without f within 50ns");
	sample(95, 0, G, 0x8000); /* f may have come */
	sample(200, 0, G, 0x8000);
	sample(240, 0, F, 0x8000);
	sample(340, 0, G, 0x8000);
	sample(480, 0, G, 0x8000); /* what sleeps then is no function that there is */
	pass_time(1000);
	assert_int_equal(trigger_unsure(g), 1);
	expect("390-340 530-480 ");
	trace.sleeps = NULL;
	trace.nsleeps = 0;
}

/* What would have come slept all the time: nobody knows whether it did. */
static void what_has_slept_since_before(void **state)
{
	struct trace_range of_f = {F / 2, F / 2};
	struct trace_sleep rows[] = {
		{.since = 120, .until = 130, .numbers = &of_f, .n = 1},
		{.since = 520, .until = 530, .numbers = &of_f, .n = 1, .wakes = true},
		{.since = 920, .until = 930, .numbers = &of_f, .n = 1},
	};

	(void)state;
	trace.sleeps = rows;
	trace.nsleeps = sizeof(rows) / sizeof(*rows);
	start("g without f within 50ns");
	sample(10, 0, G, 0x8000);
	sample(200, 0, G, 0x8000);
	sample(300, 0, G, 0x8000);
	sample(525, 0, G, 0x8000);
	sample(600, 0, G, 0x8000);
	sample(2000, 0, G, 0x8000);
	pass_time(3000);
	assert_int_equal(trigger_unsure(g), 4);
	expect("60-10 650-600 ");
	lanes[1].node = 1; /* nothing has slept there */
	start("g without f within 50ns");
	sample(200, 0, G, 0x8000);
	sample(300, 1, G, 0x8000);
	pass_time(400);
	expect("350-300 ");
	lanes[1].node = 0;
	trace.sleeps = NULL;
	trace.nsleeps = 0;
}

/* What is inside ends before what is outside; its exits are not the outer one's. */
static void a_call_inside_its_own(void **state)
{
	(void)state;
	start("f>50ns");
	sample(100, 0, F, 0x8000);
	sample(110, 0, F, 0x7f00);
	sample(120, 0, F, 0x7e00);
	sample(130, 0, F_END, 0x7e00);
	sample(135, 0, F_END, 0x7f00);
	sample(200, 0, F_END, 0x8000);
	sample(300, 0, F, 0x8000);
	for (uint32_t i = 1; i < 1000; i++)
		sample(300, 0, F, 0x8000 - 16 * i);
	assert_in_range(g->waits.n, 1, 4 + 16000 / 4096);
	for (uint32_t i = 1000; i-- > 1;)
		sample(310, 0, F_END, 0x8000 - 16 * i);
	sample(349, 0, F_END, 0x8000);
	pass_time(1000);
	expect("150-100 ");
}

/* Exceptions and longjmp leave it: what comes then lies at its place or above. */
static void a_call_that_is_left(void **state)
{
	(void)state;
	start("f>50ns");
	sample(100, 0, F, 0x8000);
	sample(110, 0, G_END, 0x8040); /* its caller ends */
	sample(200, 0, F, 0x8000);
	sample(210, 0, H, 0x8000); /* somebody else is there */
	sample(300, 0, F, 0x8000);
	sample(310, 0, F, 0x8000); /* a new call at the same place */
	sample(362, 0, F_END, 0x8000);
	sample(400, 0, F, 0x8000);
	sample(410, 0, G_END, 0x18000); /* caught far up */
	sample(500, 0, G, 0x18000);
	pass_time(1000);
	expect("360-310 ");
}

/* Coroutines: who comes back is known from then on to have been away only. */
static void a_call_on_another_stack(void **state)
{
	(void)state;
	start("f>50ns");
	sample(100, 0, F, 0x8000);
	sample(105, 0, G, 0x18000); /* a stack above, near */
	sample(110, 0, G_END, 0x18000);
	sample(120, 0, F_END, 0x8000); /* it has come back */
	sample(200, 0, F, 0x8000);
	sample(205, 0, F, 0x18000);
	sample(210, 0, G, 0x28000);
	pass_time(600);
	sample(610, 0, F, 0x8000);
	sample(620, 0, G_END, 0x8040); /* this stack goes on without it */
	sample(700, 1, F, 0x8000);     /* far away, as signal stacks are: no question */
	sample(710, 1, G, 0x70000000);
	sample(720, 1, G_END, 0x70000000);
	pass_time(1000);
	expect("250-200 255-205 750-700 ");
}

static void calls_without_stack_pointers(void **state)
{
	(void)state;
	start("f>50ns");
	sample(100, 0, F, 0);
	sample(110, 0, F, 0);
	sample(120, 0, G, 0);
	sample(130, 0, F_END, 0);
	sample(140, 0, F_END, 0);
	sample(200, 0, F, 0);
	sample(210, 0, F, 0);
	sample(220, 0, F_END, 0);
	pass_time(1000);
	expect("250-200 ");
}

/* ---- exits by a jump ---- */

/* f jumps to g; f through a pointer; g to what has no probes; h to f. */
enum { F_TO_G, F_ANYWHERE, G_OUT, H_TO_F };
static struct trace_jump some_jumps[] = {
	{.function = 0, .to = JUMP_TO_FUNCTION, .target = 1},
	{.function = 0, .to = JUMP_TO_ANYTHING},
	{.function = 1, .to = JUMP_TO_NAME},
	{.function = 2, .to = JUMP_TO_FUNCTION, .target = 0},
};
static uint32_t no_targets[1];

static void start_with_jumps(const char *text)
{
	trace.jumps = some_jumps;
	trace.njumps = sizeof(some_jumps) / sizeof(some_jumps[0]);
	trace.jump_targets = no_targets;
	start(text);
}

static void expect_with_jumps(const char *wanted)
{
	trace.njumps = 0;
	expect(wanted);
}

static void jump_at(uint64_t tsc, uint32_t lane, uint32_t jump, uint32_t sp)
{
	feed((struct trace_event){.tsc = tsc,
				  .lane = lane,
				  .jump = jump + 1,
				  .s = {.head = KRON_HEAD_TRACE(0),
					.event = KRON_EVENT_EXIT(some_jumps[jump].function),
					.payload = sp}});
}

static void a_call_that_goes_on_by_a_jump(void **state)
{
	(void)state;
	start_with_jumps("f>50ns");
	sample(90, 0, H, 0x9000); /* who waits for f */
	sample(100, 0, F, 0x8000);
	jump_at(110, 0, F_TO_G, 0x8000);
	sample(111, 0, G, 0x8000);
	sample(160, 0, G_END, 0x8000); /* with it f has ended */
	sample(200, 0, F, 0x8000);
	jump_at(210, 0, F_TO_G, 0x8000);
	sample(211, 0, G, 0x8000);
	sample(240, 0, G_END, 0x8000);
	sample(300, 0, F,
	       0x8000); /* and on, to what has no probes: until something is at its place */
	jump_at(310, 0, F_TO_G, 0x8000);
	sample(311, 0, G, 0x8000);
	jump_at(320, 0, G_OUT, 0x8000);
	sample(330, 0, H, 0x7f00);
	sample(340, 0, H_END, 0x7f00);
	sample(400, 0, H, 0x8000);
	sample(500, 0, F, 0x8000);
	jump_at(510, 0, F_TO_G, 0x8000);
	sample(520, 0, H, 0x8000); /* not what it jumped to, so that has ended */
	pass_time(1000);
	expect_with_jumps("150-100 350-300 ");
}

/* Nobody is recorded who waits for it, nor what it jumps to: it ends with its jump. */
static void a_call_that_jumps_away(void **state)
{
	(void)state;
	start_with_jumps("f>50ns");
	sample(100, 0, F, 0x8000);
	jump_at(110, 0, F_TO_G, 0x8000);
	sample(111, 0, G, 0x8000);
	jump_at(120, 0, G_OUT, 0x8000);
	sample(300, 0, F, 0x8000);
	jump_at(360, 0, F_TO_G, 0x8000); /* too late by then */
	sample(361, 0, G, 0x8000);
	jump_at(370, 0, G_OUT, 0x8000);
	sample(500, 0, F, 0x8000);
	jump_at(510, 0, F_ANYWHERE, 0x8000); /* what comes next is not it */
	sample(600, 0, G, 0x7f00);
	sample(610, 0, G_END, 0x7f00);
	sample(700, 0, F, 0x8000);
	jump_at(710, 0, F_ANYWHERE, 0x8000); /* nothing comes */
	sample(800, 1, F, 0x8000);
	jump_at(810, 1, F_ANYWHERE, 0x8000);
	sample(900, 1, H, 0x8000); /* that is it: so it lasted on */
	sample(910, 1, H_END, 0x8000);
	pass_time(2000);
	expect_with_jumps("350-300 850-800 ");
}

/* Likewise, asked for those that took longer: so long. */
static void calls_that_jumped_away(void **state)
{
	(void)state;
	trace.jumps = some_jumps;
	trace.njumps = sizeof(some_jumps) / sizeof(some_jumps[0]);
	trace.jump_targets = no_targets;
	start("g>1ns");
	trigger_fire_at_end(g);
	trigger_set_limit(g, 50);
	sample(100, 0, G, 0x8000);
	jump_at(120, 0, G_OUT, 0x8000);
	sample(300, 0, G, 0x8000);
	jump_at(360, 0, G_OUT, 0x8000);
	sample(500, 0, H, 0x8000);
	trigger_free(g);
	assert_string_equal(fired, "360-300 ");
	start("f>1ns");
	trigger_fire_at_end(g);
	trigger_set_limit(g, 50);
	sample(600, 0, F, 0x8000);
	jump_at(610, 0, F_ANYWHERE, 0x8000);
	sample(700, 0, F, 0x8100);
	jump_at(760, 0, F_ANYWHERE, 0x8100);
	sample(900, 0, G, 0x7f00);
	expect_with_jumps("760-700 ");
}

static void a_call_that_jumps_through_a_pointer(void **state)
{
	(void)state;
	start_with_jumps("f>50ns");
	sample(100, 0, F, 0x8000);
	jump_at(110, 0, F_ANYWHERE, 0x8000);
	sample(111, 0, H, 0x8000); /* next: so it is what it led to */
	sample(112, 0, G, 0x7f00);
	sample(120, 0, G_END, 0x7f00);
	sample(170, 0, H_END, 0x8000);
	sample(200, 0, F, 0x8000);
	jump_at(210, 0, F_ANYWHERE, 0x8000);
	sample(211, 0, G, 0x7f00); /* what it led to has called this */
	sample(220, 0, G_END, 0x7f00);
	sample(230, 0, H, 0x8000);
	sample(290, 0, H_END, 0x8000);
	sample(300, 0, F, 0x8000);
	jump_at(310, 0, F_ANYWHERE, 0x8000);
	sample(311, 1, G, 0x7f00); /* another thread's */
	sample(330, 0, H, 0x8000);
	sample(390, 0, H_END, 0x8000);
	pass_time(1000);
	expect_with_jumps("150-100 350-300 ");
}

/* What comes to itself by jumps is called anew. */
static void a_call_that_jumps_to_itself(void **state)
{
	(void)state;
	start_with_jumps("f>50ns");
	sample(100, 0, F, 0x8000);
	jump_at(110, 0, F_ANYWHERE, 0x8000);
	sample(120, 0, H, 0x8000);
	jump_at(130, 0, H_TO_F, 0x8000);
	sample(140, 0, F, 0x8000);
	sample(180, 0, F_END, 0x8000);
	pass_time(1000);
	expect_with_jumps("");
}

/* Asked for the calls themselves: each that took longer, when it has ended. */
static void calls_that_took_longer(void **state)
{
	(void)state;
	start("f>1ns");
	trigger_fire_at_end(g);
	trigger_set_limit(g, 50);
	sample(100, 0, F, 0x8000);
	sample(110, 0, G, 0x7f00);
	sample(149, 0, G_END, 0x7f00);
	sample(150, 0, F_END, 0x8000); /* no longer */
	sample(200, 0, F, 0x8000);
	sample(300, 0, F_END, 0x8000);
	sample(400, 0, F, 0x8000); /* the outer one of its own */
	sample(410, 0, F, 0x7f00);
	sample(470, 0, F_END, 0x7f00);
	sample(480, 1, F_END, 0x8000); /* another thread's */
	sample(500, 0, F_END, 0x8000);
	sample(600, 0, F, 0x8000);
	sample(700, 0, G_END, 0x8040); /* left: its caller ends */
	sample(800, 0, F, 0x8000);
	trigger_lost(g, 0);
	sample(900, 0, F_END, 0x8000);
	assert_int_equal(trigger_unsure(g), 1);
	trigger_set_limit(g, 200);
	trigger_set_rate(g, 1e9);
	sample(1000, 0, F, 0x8000);
	sample(1150, 0, F_END, 0x8000);
	sample(1200, 0, F, 0x8000);
	pass_time(5000); /* it still runs */
	assert_int_equal(trigger_until(g), UINT64_MAX);
	sample(6000, 0, F_END, 0x8000);
	expect("300-200 500-400 700-600 6000-1200 ");
}

/* An unwinder, or longjmp, tells at once. */
static void calls_that_are_left(void **state)
{
	(void)state;
	start("f>50ns");
	sample(100, 0, F, 0x8000);
	sample(110, 0, KRON_EVENT_UNWINDS, 0x7f00);
	sample(120, 0, KRON_EVENT_UNWOUND, 0x18000); /* far above */
	sample(200, 0, F, 0x8000);
	sample(210, 0, KRON_EVENT_UNWOUND, 0x8010);
	sample(300, 0, F, 0x8000);
	sample(310, 0, KRON_EVENT_UNWINDS, 0x7e00); /* inside of it */
	sample(320, 0, KRON_EVENT_UNWOUND, 0x7f00);
	sample(330, 1, KRON_EVENT_UNWOUND, 0x8010); /* another thread's */
	pass_time(1000);
	expect("350-300 ");
	start("f>1ns");
	trigger_fire_at_end(g);
	trigger_set_limit(g, 50);
	sample(100, 0, F, 0x8000);
	sample(200, 0, KRON_EVENT_UNWOUND, 0x8010);
	expect("200-100 ");
}

/* A user's event has no stack pointer, whatever its payload looks like. */
static void events_are_no_frames(void **state)
{
	(void)state;
	start("f>50ns");
	sample(100, 0, F, 0x8000);
	sample(110, 0, U, 0x8000);
	sample(120, 0, U, 0x8010);
	pass_time(1000);
	expect("150-100 ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_call_that_takes_longer),
		cmocka_unit_test(a_call_whose_function_went_to_sleep),
		cmocka_unit_test(what_has_slept_since_before),
		cmocka_unit_test(a_call_inside_its_own),
		cmocka_unit_test(a_call_that_is_left),
		cmocka_unit_test(a_call_on_another_stack),
		cmocka_unit_test(calls_without_stack_pointers),
		cmocka_unit_test(a_call_that_goes_on_by_a_jump),
		cmocka_unit_test(a_call_that_jumps_away),
		cmocka_unit_test(calls_that_jumped_away),
		cmocka_unit_test(a_call_that_jumps_through_a_pointer),
		cmocka_unit_test(a_call_that_jumps_to_itself),
		cmocka_unit_test(calls_that_took_longer),
		cmocka_unit_test(calls_that_are_left),
		cmocka_unit_test(events_are_no_frames),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
