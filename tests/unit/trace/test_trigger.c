/* SPDX-License-Identifier: MIT */
/*
 * test_trigger.c - the words of triggers, and when they fire: rows of samples, made up here, with
 * what is to come of them.
 *
 * Functions are f (events 0, 1), g (2, 3), h (4, 5) and a user's event u (6); a tick is a nanosecond.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "trace/analysis/pairs.h"
#include "trace/reader_impl.h"
#include "trace/analysis/trigger_impl.h"

enum { F, F_END, G, G_END, H, H_END, U };
enum { LANES = 4 };

static struct trace_function functions[] = {
	{.n = 0, .name = "f"}, {.n = 1, .name = "g"}, {.n = 2, .name = "h"}};
static struct trace_user_event user_events[] = {{.n = 3, .name = "u", .payload = ""}};
static struct trace_module modules[] = {{.path = "/bin/m"}};
static struct trace_lane lanes[LANES] = {
	{.proc_uid = 1, .tid = 10, .name = "main"},
	{.proc_uid = 1, .tid = 11, .name = "helper"},
	{.proc_uid = 2, .tid = 20, .name = "main"},
	{.proc_uid = 2, .tid = 21, .name = ""},
};
static struct trace_proc procs[] = {{.uid = 1, .pid = 10, .exe = "/bin/a"},
				    {.uid = 2, .pid = 20, .exe = "/bin/b"}};
static struct trace_priv nothing;
static struct trace trace = {
	.modules = modules,
	.nmodules = 1,
	.functions = functions,
	.nfunctions = 3,
	.user_events = user_events,
	.nuser_events = 1,
	.lanes = lanes,
	.nlanes = LANES,
	.procs = procs,
	.nprocs = 2,
	.tsc_hz = 1e9,
	.priv = &nothing,
};

/* ---- rows of samples ---- */

static struct trigger *g;
static char fired[4096]; /* "AT " or "AT-SINCE " for each */

static void start(const char *text)
{
	struct err err;

	fired[0] = 0;
	if (trigger_parse(&g, "--trigger", text, &err))
		fail_msg("%s", err.msg);
	trigger_bind(g, &trace);
}

static void note_fired(uint64_t at, uint64_t since)
{
	size_t n = strlen(fired);

	snprintf(fired + n, sizeof(fired) - n, since ? "%llu-%llu " : "%llu ",
		 (unsigned long long)at, (unsigned long long)since);
}

static void pass_time(uint64_t t)
{
	struct trigger_due due;

	while (trigger_due(g, t, &due)) {
		note_fired(due.at, due.since);
		assert_int_equal(due.note, due.since + 1000000);
		trigger_settle(g, true);
	}
}

static void feed(struct trace_event e)
{
	struct trigger_wants w;
	uint8_t bits;

	pass_time(e.tsc);
	w = trigger_wants(g, e.lane);
	bits = trigger_may_want_event(&w, &e) ? trigger_test(g, &w, &e) : 0;
	switch (bits ? trigger_feed(g, &e, bits) : TRIGGER_NOTHING) {
	case TRIGGER_FIRES:
		note_fired(e.tsc, 0);
		break;
	case TRIGGER_WAITS:
		trigger_note(g, e.tsc + 1000000);
		break;
	case TRIGGER_NOTHING:
		break;
	}
}

static void sample(uint64_t tsc, uint32_t lane, uint32_t event, uint32_t sp)
{
	feed((struct trace_event){
		.tsc = tsc,
		.lane = lane,
		.s = {.head = KRON_HEAD_TRACE(0), .event = event, .payload = sp}});
}

static void expect(const char *wanted)
{
	assert_string_equal(fired, wanted);
	trigger_free(g);
}

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

/*
 * The same as the pairing of calls says, of a program made up at random.  Its functions are a to e, whose
 * numbers are 0 to 4; f of the others' words is a.
 */
enum { RANDOM_FUNCTIONS = 5, MAIN = RANDOM_FUNCTIONS, RESOLVER, RANDOM_SAMPLES = 4000 };
enum { RANDOM_LIMIT = 40, RESOLVERS_JUMP = RANDOM_FUNCTIONS * (RANDOM_FUNCTIONS + 2) };
static struct trace_event called[RANDOM_SAMPLES];
static uint32_t ncalled, seed;
static uint64_t clock_now;
static struct trace_jump random_jumps[RESOLVERS_JUMP + 1];
static struct trace_function random_functions[RESOLVER + 1] = {
	{.n = 0, .name = "f"},       {.n = 1, .name = "b"}, {.n = 2, .name = "c"},
	{.n = 3, .name = "d"},       {.n = 4, .name = "e"}, {.n = 5, .name = "main"},
	{.n = 6, .name = "resolver"}};

static uint32_t chance(uint32_t below)
{
	seed = seed * 1664525u + 1013904223u;
	return (seed >> 10) % below;
}

static void put_called(uint32_t event, uint32_t jump, uint32_t sp)
{
	clock_now += 1 + chance(4);
	assert_true(ncalled < RANDOM_SAMPLES);
	called[ncalled++] = (struct trace_event){
		.tsc = clock_now,
		.jump = jump,
		.s = {.head = KRON_HEAD_TRACE(0), .event = event, .payload = sp}};
}

static void run_function(uint32_t sp, int depth);

static void run_body(uint32_t sp, int depth)
{
	for (uint32_t calls = depth > 4 ? 0 : chance(4); calls && ncalled < RANDOM_SAMPLES / 2;
	     calls--)
		run_function(sp - 16 * (1 + chance(3)), depth + 1);
}

/*
 * A linker's stub that binds lazily: it pushes some words, which the resolver pops before it jumps.  Three,
 * so that nothing else begins at its place: what comes next after a jump is ambiguous enough.
 */
static void bind_lazily(uint32_t sp)
{
	put_called(KRON_EVENT_ENTRY(RESOLVER), 0, sp - 24);
	if (chance(2)) {
		put_called(KRON_EVENT_ENTRY(MAIN), 0, sp - 64);
		put_called(KRON_EVENT_EXIT(MAIN), 0, sp - 64);
	}
	put_called(KRON_EVENT_EXIT(RESOLVER), 1 + RESOLVERS_JUMP, sp);
}

/* Of each function: to each of them, through a pointer, to what has no probes. */
static void run_function(uint32_t sp, int depth)
{
	uint32_t n = chance(RANDOM_FUNCTIONS), how, to;

	for (;;) {
		if (chance(8) == 0)
			bind_lazily(sp);
		put_called(KRON_EVENT_ENTRY(n), 0, sp);
		run_body(sp, depth);
		how = ncalled < RANDOM_SAMPLES / 2 ? chance(5) : 0;
		to = chance(RANDOM_FUNCTIONS);
		if (how < 2) {
			put_called(KRON_EVENT_EXIT(n), 0, sp);
			return;
		}
		if (how == 3)
			to = RANDOM_FUNCTIONS;
		if (how == 4)
			to = RANDOM_FUNCTIONS + 1;
		put_called(KRON_EVENT_EXIT(n), 1 + n * (RANDOM_FUNCTIONS + 2) + to, sp);
		if (how == 4 || (how == 3 && chance(3) == 0)) { /* no probes, but calls */
			clock_now += chance(30);
			run_body(sp, depth);
			return;
		}
		n = how == 3 ? chance(RANDOM_FUNCTIONS) : to;
	}
}

struct found {
	uint64_t entry, exit;
};
static struct found found[RANDOM_SAMPLES];
static size_t nfound;

static void note_call(void *ctx, const struct trace_event *e, const struct pair_call *c)
{
	(void)ctx;
	(void)e;
	if (!c->function)
		found[nfound++] = (struct found){c->entry_tsc, c->exit_tsc};
}

static int by_entry(const void *a, const void *b)
{
	const struct found *x = a, *y = b;

	return x->entry < y->entry ? -1 : x->entry > y->entry;
}

/* A call inside one that waits does not. */
static void expect_of_pairs(char *out, size_t size)
{
	uint64_t until = 0, waiting_to = 0;
	size_t n = 0;

	qsort(found, nfound, sizeof(*found), by_entry);
	out[0] = 0;
	for (size_t i = 0; i < nfound; i++) {
		const struct found *c = &found[i];

		if (c->entry < until && c->entry <= waiting_to)
			continue;
		until = c->exit;
		waiting_to = c->entry + RANDOM_LIMIT;
		if (c->exit > waiting_to && n < size)
			n += (size_t)snprintf(out + n, size - n, "%llu-%llu ",
					      (unsigned long long)waiting_to,
					      (unsigned long long)c->entry);
	}
}

/* As the recorder's look at a lane: an exit by a jump is in no table, and ends the look. */
static bool is_call_undone(uint32_t i)
{
	struct trigger_wants w = trigger_wants(g, 0);
	enum trigger_ahead a = TRIGGER_GO_ON;

	if (called[i].jump || !trigger_may_want(&w, &called[i].s) ||
	    !trigger_may_undo(&w, &called[i].s, called[i].tsc))
		return false;
	if (trigger_is_nothing(&w, &called[i].s))
		return true;
	for (uint32_t n = i + 1; a == TRIGGER_GO_ON && n < ncalled && n < i + 16; n++) {
		if (called[n].jump)
			return false;
		a = trigger_look_ahead(&w, &called[i].s, called[i].tsc, &called[n].s,
				       called[n].tsc);
	}
	return a == TRIGGER_UNDONE;
}

/* The same without what later samples undo. */
static uint32_t look_ahead(const struct trace *t)
{
	uint32_t undone = 0;

	fired[0] = 0;
	assert_int_equal(trigger_parse(&g, "", "f>40ns", NULL), 0);
	trigger_bind(g, t);
	for (uint32_t i = 0; i < ncalled; i++) {
		if (is_call_undone(i))
			undone++;
		else
			feed(called[i]);
	}
	pass_time(UINT64_MAX / 2);
	trigger_free(g);
	return undone;
}

static void calls_last_as_long_as_pairs_say(void **state)
{
	struct trace t = trace;
	struct pair_sink sink = {.leave = note_call};
	char wanted[sizeof(fired)];
	struct pairs *p;
	uint64_t fires = 0, undone = 0;

	(void)state;
	random_jumps[RESOLVERS_JUMP] =
		(struct trace_jump){.function = RESOLVER, .to = JUMP_TO_ANYTHING};
	for (uint32_t i = 0; i < RESOLVERS_JUMP; i++) {
		uint32_t to = i % (RANDOM_FUNCTIONS + 2);

		random_jumps[i] =
			(struct trace_jump){.function = i / (RANDOM_FUNCTIONS + 2),
					    .to = to < RANDOM_FUNCTIONS    ? JUMP_TO_FUNCTION
						  : to == RANDOM_FUNCTIONS ? JUMP_TO_ANYTHING
									   : JUMP_TO_NAME,
					    .target = to < RANDOM_FUNCTIONS ? to : 0};
	}
	t.functions = random_functions;
	t.nfunctions = RESOLVER + 1;
	t.nuser_events = 0;
	t.jumps = random_jumps;
	t.njumps = sizeof(random_jumps) / sizeof(random_jumps[0]);
	t.jump_targets = no_targets;
	for (uint32_t round = 0; round < 1500; round++) {
		seed = round;
		ncalled = 0;
		nfound = 0;
		clock_now = 100;
		put_called(KRON_EVENT_ENTRY(MAIN), 0, 0x9000);
		run_function(0x8000, 0);
		run_function(0x8000, 0);
		put_called(KRON_EVENT_EXIT(MAIN), 0, 0x9000);
		fired[0] = 0;
		assert_int_equal(trigger_parse(&g, "", "f>40ns", NULL), 0);
		trigger_bind(g, &t);
		p = pairs_open(&t, &sink);
		for (uint32_t i = 0; i < ncalled; i++) {
			pairs_feed(p, &called[i]);
			feed(called[i]);
		}
		pairs_finish(p);
		pairs_close(p);
		trigger_free(g);
		expect_of_pairs(wanted, sizeof(wanted));
		if (strlen(wanted) + 1 < sizeof(wanted) && strcmp(wanted, fired))
			fail_msg("round %u: %s, not %s", round, fired, wanted);
		fires += fired[0] != 0;
		memcpy(wanted, fired, sizeof(wanted));
		undone += look_ahead(&t);
		if (strcmp(wanted, fired))
			fail_msg("round %u, ahead: %s, not %s", round, fired, wanted);
	}
	assert_true(fires > 500 && undone > 500);
}

static void calls_of_some(void **state)
{
	(void)state;
	start("g then \"f\" > 50ns and thread=helper and process=a");
	sample(100, 0, F, 0x8000);
	sample(100, 1, F, 0x9000);
	sample(200, 1, F_END, 0x9000);
	sample(300, 1, G_END, 0x9000);
	sample(310, 1, F, 0x9000);
	sample(320, 0, G, 0x9000);
	sample(330, 0, F, 0x9000);
	pass_time(1000);
	expect("360-310 ");
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

/* ---- looking ahead ---- */

enum { ROW = 4000 };

static struct row {
	uint64_t tsc;
	struct kron_sample s;
	uint32_t lane;
} row[ROW];
static uint64_t drawn;

static uint32_t draw(uint32_t n)
{
	drawn = drawn * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(drawn >> 33) % n;
}

/* Calls of f, g and h that return, mostly; some are left, some run on another stack, some are long. */
struct drawn_lane {
	uint32_t depth, sp[64], event[64];
};

static struct kron_sample draw_sample(struct drawn_lane *l)
{
	struct kron_sample s = {.head = KRON_HEAD_TRACE(0)};
	uint32_t what = draw(100), sp = l->depth ? l->sp[l->depth - 1] : 0x80000;

	if (what < 4) {
		s.event = U;
		s.payload = draw(2) ? sp + 8 * draw(3) : draw(1000);
	} else if (l->depth && (what < 48 || l->depth == 64)) {
		s.event = l->event[--l->depth] + 1;
		s.payload = draw(20) ? sp : 0;
		if (!draw(12))
			l->depth -= draw(l->depth + 1);
	} else {
		sp -= draw(30) ? 16 + 16 * draw(8) : 3000 + draw(0x4000);
		if (!draw(40))
			sp = 0x300000 + 0x40000 * draw(4);
		l->event[l->depth] = s.event = draw(2) ? F : G + 2 * draw(2);
		l->sp[l->depth++] = sp;
		s.payload = draw(60) ? sp : 0;
	}
	return s;
}

static void draw_row(uint64_t seed)
{
	struct drawn_lane l[LANES] = {{.depth = 0}};
	uint64_t tsc = 1000;

	drawn = seed;
	for (size_t i = 0; i < ROW; i++) {
		uint32_t lane = draw(8) ? 0 : draw(LANES);

		tsc += draw(50) ? draw(12) : draw(150);
		row[i] = (struct row){tsc, draw_sample(&l[lane]), lane};
	}
}

/* As the recorder's look at a lane: false where it sees none that undoes row[i]. */
static bool is_undone(size_t i, uint32_t most)
{
	struct trigger_wants w = trigger_wants(g, row[i].lane);
	enum trigger_ahead a = TRIGGER_GO_ON;

	if (!trigger_may_want(&w, &row[i].s) || !trigger_may_undo(&w, &row[i].s, row[i].tsc))
		return false;
	if (trigger_is_nothing(&w, &row[i].s))
		return true;
	for (size_t n = i + 1; a == TRIGGER_GO_ON && most && n < ROW; n++) {
		if (row[n].lane != row[i].lane)
			continue;
		a = trigger_look_ahead(&w, &row[i].s, row[i].tsc, &row[n].s, row[n].tsc);
		most--;
	}
	return a == TRIGGER_UNDONE;
}

/* All that fired; ahead: so far is looked; *undone: how many were not fed. */
static void run_row(const char *text, uint32_t ahead, char *out, size_t size, uint32_t *undone)
{
	out[0] = 0;
	start(text);
	for (size_t i = 0; i < ROW; i++) {
		/* A lane is ahead of the time that has passed. */
		if (ahead && is_undone(i, ahead))
			++*undone;
		else
			sample(row[i].tsc, row[i].lane, row[i].s.event, row[i].s.payload);
		snprintf(out + strlen(out), size - strlen(out), "%s", fired);
		fired[0] = 0;
	}
	pass_time(UINT64_MAX / 2);
	snprintf(out + strlen(out), size - strlen(out), "%s", fired);
	trigger_free(g);
}

/* What is passed by because a later sample undoes it changes nothing, whatever the program. */
static void what_is_undone_changes_nothing(void **state)
{
	static const struct {
		const char *text;
		bool none; /* across threads, and where each sample may complete it */
	} words[] = {
		{"f>40ns", false},
		{"f>150ns", false},
		{"g then f>60ns", false},
		{"h then g within 200ns then f>30ns", false},
		{"f without f within 60ns", false},
		{"f without g within 50ns", false},
		{"f without entry=g within 80ns", false},
		{"u without f within 40ns", false},
		{"g then f without h within 60ns", false},
		{"f then u within 20ns", false},
		{"entry=f then exit=f within 9ns then g", false},
		{"f then g within 8ns then u without exit=h within 40ns", false},
		{"f then f>60ns", false},
		{"f without g and data<0x7ff80 within 50ns", false},
		{"f then f within 5ns", true},
		{"f then f within 30ns without g within 40ns", true},
		{"g then f then h within 8ns across threads", true},
		{"f without g within 30ns across threads", true},
	};
	static char plain[1 << 20], looked[1 << 20];

	(void)state;
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		uint32_t undone = 0, seeds = 60, n = 0;

		for (uint64_t seed = 1; seed <= seeds; seed++) {
			draw_row(seed);
			run_row(words[i].text, 0, plain, sizeof(plain), NULL);
			run_row(words[i].text, 1 + draw(16), looked, sizeof(looked), &undone);
			if (strcmp(plain, looked))
				fail_msg("%s, seed %llu:\n%.300s\n%.300s", words[i].text,
					 (unsigned long long)seed, plain, looked);
			n += plain[0] != 0;
		}
		if (n < seeds / 2)
			fail_msg("%s fired in %u of %u rows", words[i].text, n, seeds);
		if (words[i].none ? undone : undone < 1000)
			fail_msg("%s: %u were undone", words[i].text, undone);
	}
}

/* Calls that return at once, and what comes in time, need not be fed at all. */
static void short_calls_are_passed_by(void **state)
{
	static const char *const words[] = {"f>50ns", "f without f within 50ns",
					    "entry=f without exit=f within 50ns",
					    "f then g within 50ns"};

	(void)state;
	for (size_t i = 0; i < ROW; i++)
		row[i] = (struct row){.tsc = 100 + i,
				      .s = {.head = KRON_HEAD_TRACE(0),
					    .event = i % 2 ? F_END : F,
					    .payload = 0x8000}};
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		uint32_t fed = 0;

		start(words[i]);
		for (size_t k = 0; k < ROW; k++) {
			struct trigger_wants w = trigger_wants(g, 0);

			if (!trigger_may_want(&w, &row[k].s) || is_undone(k, 1))
				continue;
			fed++;
			sample(row[k].tsc, 0, row[k].s.event, row[k].s.payload);
		}
		assert_in_range(fed, 0, 1); /* the last one, that nothing follows */
		trigger_free(g);
	}
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
		cmocka_unit_test(a_call_that_takes_longer),
		cmocka_unit_test(a_call_inside_its_own),
		cmocka_unit_test(a_call_that_is_left),
		cmocka_unit_test(a_call_on_another_stack),
		cmocka_unit_test(calls_without_stack_pointers),
		cmocka_unit_test(a_call_that_goes_on_by_a_jump),
		cmocka_unit_test(a_call_that_jumps_through_a_pointer),
		cmocka_unit_test(a_call_that_jumps_to_itself),
		cmocka_unit_test(calls_last_as_long_as_pairs_say),
		cmocka_unit_test(calls_of_some),
		cmocka_unit_test(events_are_no_frames),
		cmocka_unit_test(what_is_undone_changes_nothing),
		cmocka_unit_test(short_calls_are_passed_by),
		cmocka_unit_test(many_threads_wait),
		cmocka_unit_test(what_means_nothing_is_refused),
		cmocka_unit_test(what_means_something_is_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
