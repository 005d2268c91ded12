/* SPDX-License-Identifier: MIT */
/*
 * test_trigger_random.c - rows of samples at random: triggers fire as the pairing of calls says, and as without
 * the recorder's look ahead.
 */
#include "tests/unit/trace/trigger_rig.h"
#include "trace/analysis/pairs.h"

static uint64_t drawn;

static uint32_t draw(uint32_t n)
{
	drawn = drawn * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(drawn >> 33) % n;
}

/*
 * As the recorder's look at a lane, at most `most` samples ahead: false where none undoes v[i].
 * An exit by a jump is in no table, nor is an unwinder's record, and ends the look.
 */
static bool is_undone(const struct trace_event *v, size_t nv, size_t i, uint32_t most)
{
	const struct trace_event *e = &v[i];
	struct trigger_wants w = trigger_wants(g, e->lane);
	enum trigger_ahead a = TRIGGER_GO_ON;

	if (e->jump || e->s.event >= w.nevents || !trigger_may_want(&w, &e->s) ||
	    !trigger_may_undo(&w, &e->s, e->tsc))
		return false;
	if (trigger_is_nothing(&w, &e->s))
		return true;
	for (size_t n = i + 1; a == TRIGGER_GO_ON && most && n < nv; n++) {
		if (v[n].lane != e->lane)
			continue;
		if (v[n].jump || v[n].s.event >= w.nevents)
			return false;
		a = trigger_look_ahead(&w, &e->s, e->tsc, &v[n].s, v[n].tsc);
		most--;
	}
	return a == TRIGGER_UNDONE;
}

/*
 * The same as the pairing of calls says, of a program made up at random.  Its functions are a to e, whose
 * numbers are 0 to 4; f of the others' words is a.
 */
enum { RANDOM_FUNCTIONS = 5, MAIN = RANDOM_FUNCTIONS, RESOLVER, RANDOM_SAMPLES = 4000 };
enum { RANDOM_LIMIT = 40, RESOLVERS_JUMP = RANDOM_FUNCTIONS * (RANDOM_FUNCTIONS + 2) };
static struct trace_event called[RANDOM_SAMPLES];
static uint32_t ncalled;
static uint64_t clock_now;
static uint32_t no_targets[1];
static struct trace_jump random_jumps[RESOLVERS_JUMP + 1];
static struct trace_function random_functions[RESOLVER + 1] = {
	{.n = 0, .name = "f"},       {.n = 1, .name = "b"}, {.n = 2, .name = "c"},
	{.n = 3, .name = "d"},       {.n = 4, .name = "e"}, {.n = 5, .name = "main"},
	{.n = 6, .name = "resolver"}};

static void put_called(uint32_t event, uint32_t jump, uint32_t sp)
{
	clock_now += 1 + draw(4);
	assert_true(ncalled < RANDOM_SAMPLES);
	called[ncalled++] = (struct trace_event){
		.tsc = clock_now,
		.jump = jump,
		.s = {.head = KRON_HEAD_TRACE(0), .event = event, .payload = sp}};
}

static void run_function(uint32_t sp, int depth);

static void run_body(uint32_t sp, int depth)
{
	for (uint32_t calls = depth > 4 ? 0 : draw(4); calls && ncalled < RANDOM_SAMPLES / 2;
	     calls--)
		run_function(sp - 16 * (1 + draw(3)), depth + 1);
}

/*
 * A linker's stub that binds lazily: it pushes some words, which the resolver pops before it jumps.  Three,
 * so that nothing else begins at its place: what comes next after a jump is ambiguous enough.
 */
static void bind_lazily(uint32_t sp)
{
	put_called(KRON_EVENT_ENTRY(RESOLVER), 0, sp - 24);
	if (draw(2)) {
		put_called(KRON_EVENT_ENTRY(MAIN), 0, sp - 64);
		put_called(KRON_EVENT_EXIT(MAIN), 0, sp - 64);
	}
	put_called(KRON_EVENT_EXIT(RESOLVER), 1 + RESOLVERS_JUMP, sp);
}

/* Of each function: to each of them, through a pointer, to what has no probes. */
static void run_function(uint32_t sp, int depth)
{
	uint32_t n = draw(RANDOM_FUNCTIONS), how, to;

	for (;;) {
		if (draw(8) == 0)
			bind_lazily(sp);
		put_called(KRON_EVENT_ENTRY(n), 0, sp);
		run_body(sp, depth);
		how = ncalled < RANDOM_SAMPLES / 2 ? draw(5) : 0;
		if (how < 2 && draw(4) == 0) { /* left: its caller goes on */
			if (draw(2))           /* else by longjmp */
				put_called(KRON_EVENT_UNWINDS, 0, sp - 8);
			put_called(KRON_EVENT_UNWOUND, 0, sp + 8);
			return;
		}
		to = draw(RANDOM_FUNCTIONS);
		if (how < 2) {
			put_called(KRON_EVENT_EXIT(n), 0, sp);
			return;
		}
		if (how == 3)
			to = RANDOM_FUNCTIONS;
		if (how == 4)
			to = RANDOM_FUNCTIONS + 1;
		put_called(KRON_EVENT_EXIT(n), 1 + n * (RANDOM_FUNCTIONS + 2) + to, sp);
		if (how == 4 || (how == 3 && draw(3) == 0)) { /* no probes, but calls */
			clock_now += draw(30);
			run_body(sp, depth);
			return;
		}
		n = how == 3 ? draw(RANDOM_FUNCTIONS) : to;
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

/* The same without what later samples undo. */
static uint32_t look_ahead(const struct trace *t)
{
	uint32_t undone = 0;

	fired[0] = 0;
	assert_int_equal(trigger_parse(&g, "", "f>40ns", NULL), 0);
	trigger_bind(g, t);
	for (uint32_t i = 0; i < ncalled; i++) {
		if (is_undone(called, ncalled, i, 15))
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
	for (uint32_t round = 0; round < 3000; round++) {
		drawn = round;
		ncalled = 0;
		nfound = 0;
		clock_now = 100;
		if (round & 1) { /* else nobody who waits is recorded */
			put_called(KRON_EVENT_ENTRY(MAIN), 0, 0x9000);
			run_function(0x8000, 0);
			run_function(0x8000, 0);
			put_called(KRON_EVENT_EXIT(MAIN), 0, 0x9000);
		}
		for (uint32_t n = round & 1 ? 0 : 6; n; n--) {
			run_function(0x8000 + 8 * draw(20), 0);
			clock_now += draw(60);
		}
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
	assert_true(fires > 1000 && undone > 1000);
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

/* ---- looking ahead ---- */

enum { ROW = 4000 };

static struct trace_event row[ROW];
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
		row[i] = (struct trace_event){.tsc = tsc, .s = draw_sample(&l[lane]), .lane = lane};
	}
}

/* All that fired; ahead: so far is looked; *undone: how many were not fed. */
static void run_row(const char *text, uint32_t ahead, char *out, size_t size, uint32_t *undone)
{
	out[0] = 0;
	start(text);
	for (size_t i = 0; i < ROW; i++) {
		/* A lane is ahead of the time that has passed. */
		if (ahead && is_undone(row, ROW, i, ahead))
			++*undone;
		else
			feed(row[i]);
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
		row[i] = (struct trace_event){.tsc = 100 + i,
					      .s = {.head = KRON_HEAD_TRACE(0),
						    .event = i % 2 ? F_END : F,
						    .payload = 0x8000}};
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		uint32_t fed = 0;

		start(words[i]);
		for (size_t k = 0; k < ROW; k++) {
			struct trigger_wants w = trigger_wants(g, 0);

			if (!trigger_may_want(&w, &row[k].s) || is_undone(row, ROW, k, 1))
				continue;
			fed++;
			feed(row[k]);
		}
		assert_in_range(fed, 0, 1); /* the last one, that nothing follows */
		trigger_free(g);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_last_as_long_as_pairs_say),
		cmocka_unit_test(calls_of_some),
		cmocka_unit_test(what_is_undone_changes_nothing),
		cmocka_unit_test(short_calls_are_passed_by),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
