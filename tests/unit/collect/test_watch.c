/* SPDX-License-Identifier: MIT */
/*
 * test_watch.c - record --trigger, the collector's side: the test plays the traced threads, which
 * fill chunks of a real segment by the rules of kron/segment.h, and knows every sample.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/vec.h"
#include "collect/drain.h"
#include "collect/grow.h"
#include "collect/watch/watch.h"
#include "tests/unit/collect/base_folder.h"
#include "trace/reader.h"

#define LANES 6
enum { FIRES = 4711 };

struct truth { /* a sample, as it was stored */
	uint64_t tsc;
	uint32_t lane, event;
};

static struct {
	char *dir;
	struct trace_writer *w;
	struct segment seg;
	struct journal journal;
	struct tasks tasks;
	struct drain drain;
	struct watch *watch;
	uint64_t seed;
	struct {
		uint32_t chunk, used; /* chunk: index + 1 */
		uint32_t lost;        /* to be said before the next sample */
	} lane[LANES];
	VEC(struct truth) all;
} r;

static bool is_early;   /* start() does not wait until the clock's rate is known */
static uint32_t nlanes; /* that work_a_while() uses */

static uint32_t random_number(void)
{
	r.seed ^= r.seed << 13;
	r.seed ^= r.seed >> 7;
	r.seed ^= r.seed << 17;
	return (uint32_t)(r.seed >> 16);
}

static void nap_us(long us)
{
	struct timespec ts = {.tv_nsec = us * 1000};

	nanosleep(&ts, NULL);
}

static void start(const char *name, const struct watch_options *o, uint64_t seed)
{
	struct segment_options so = {
		.buffer = 64 << 20, .when_full = KRON_WHEN_FULL_DISCARD, .filter = 0xffff};
	struct err err;

	memset(&r, 0, sizeof(r));
	r.seed = seed * 0x9e3779b97f4a7c15ull + 88172645463325252ull;
	r.dir = xasprintf("%s/%s", base, name);
	if (trace_writer_create(&r.w, r.dir, &err) || segment_create(&r.seg, &so, &err))
		fail_msg("%s", err.msg);
	journal_init(&r.journal, r.w);
	journal_session(&r.journal, "start_tsc", "%llu", (unsigned long long)clock_tsc());
	journal_session(&r.journal, "start_mono_ns", "1000");
	journal_session(&r.journal, "tsc_hz", "3000000000");
	tasks_init(&r.tasks, &r.seg, &r.journal);
	drain_init(&r.drain, &r.seg, &r.journal, &r.tasks);
	segment_set_sampling(&r.seg, true);
	r.seg.procs[0].pid = getpid();
	r.seg.procs[0].origin = KRON_PROC_EXEC;
	r.seg.procs[0].start_tsc = clock_tsc();
	r.seg.procs[0].state = 1u << 8 | KRON_PROC_LIVE;
	r.seg.ctl->next_uid = 2;
	if (watch_check(o, &err))
		fail_msg("%s", err.msg);
	r.watch = watch_open(o, &r.drain);
	r.drain.sink = watch_sink(r.watch);
	trace_writer_module(r.w, &(struct trace_module_line){.nfunctions = 1, .path = "/m"});
	trace_writer_function(r.w, &(struct trace_function_line){
					   .n = 0, .vaddr = 0x1000, .size = 16, .name = "f"});
	nlanes = LANES;
	if (!is_early)
		nap_us(2000); /* the rate of the clock is known from the first look on */
}

static void end(void)
{
	watch_close(r.watch);
	tasks_free(&r.tasks);
	trace_writer_close(r.w);
	segment_unlink(&r.seg);
	segment_close(&r.seg);
	vec_free(&r.all);
	xfree(r.dir);
}

/* ---- the threads ---- */

static struct kron_sample *samples_of(uint32_t chunk)
{
	return (struct kron_sample *)(segment_chunk(&r.seg, chunk) + 1);
}

static uint64_t word_of(uint32_t lane, unsigned state)
{
	/* one of them can be asked about */
	return kron_chunk_word(state, lane ? 3000000 + lane : (uint32_t)gettid(), 0, 1);
}

static void take_chunk(uint32_t lane)
{
	uint32_t i = 0;

	grow_pool(&r.seg, 0);
	while (r.seg.states[i] != KRON_CHUNK_FREE)
		i++;
	assert_true(i < segment_ready(&r.seg));
	r.seg.states[i] = word_of(lane, KRON_CHUNK_OWNED);
	r.seg.ctl->free_count--;
	segment_chunk(&r.seg, i)->seq = r.seg.ctl->next_seq++;
	r.lane[lane].chunk = i + 1;
	r.lane[lane].used = 0;
}

/* A place of the lane's own, in order. */
static struct kron_sample *claim(uint32_t lane)
{
	if (!r.lane[lane].chunk)
		take_chunk(lane);
	if (r.lane[lane].used == KRON_CHUNK_SAMPLES) {
		r.seg.states[r.lane[lane].chunk - 1] = word_of(lane, KRON_CHUNK_FULL);
		take_chunk(lane);
	}
	return samples_of(r.lane[lane].chunk - 1) + r.lane[lane].used++;
}

static void store(struct kron_sample *s, uint64_t tsc, uint32_t event, uint32_t payload)
{
	s->time_lo = (uint32_t)tsc;
	s->source = 77;
	s->payload = payload;
	s->event = event;
	__atomic_store_n(&s->head,
			 KRON_HEAD_TRACE(0) | ((uint32_t)(tsc >> 32) & KRON_HEAD_TIME_MASK),
			 __ATOMIC_RELEASE);
}

static uint64_t put(uint32_t lane, uint32_t event, uint32_t payload)
{
	struct kron_sample *s = claim(lane);
	uint64_t tsc = clock_tsc();

	store(s, tsc, event, payload);
	if (event < KRON_EVENT_SPECIAL)
		*vec_push(&r.all) = (struct truth){tsc, lane, event};
	return tsc;
}

/* What the drain thread does in a round. */
static void round_of_collector(void)
{
	sink_look(r.drain.sink, false);
	drain_round(&r.drain, false, false);
	sink_settle(r.drain.sink);
}

static bool is_sampling(void)
{
	return r.seg.ctl->gate[0] != 0;
}

/* ---- what is in the trace ---- */

static int by_time(const void *a, const void *b)
{
	const struct truth *x = a, *y = b;

	return x->tsc != y->tsc ? (x->tsc < y->tsc ? -1 : 1) : (int)x->lane - (int)y->lane;
}

static size_t in_trace(uint64_t *first, uint64_t *last)
{
	struct trace_cursor *c;
	struct trace_event e;
	struct trace *t;
	struct err err;
	size_t n = 0;

	*first = UINT64_MAX, *last = 0;
	assert_int_equal(journal_flush(&r.journal), 0);
	if (trace_open(&t, r.dir, &err))
		fail_msg("%s", err.msg);
	c = trace_cursor_open(t, -1);
	while (trace_cursor_next(c, &e)) {
		if (e.s.event >= KRON_EVENT_SPECIAL)
			continue;
		*first = e.tsc < *first ? e.tsc : *first;
		*last = e.tsc > *last ? e.tsc : *last;
		n++;
	}
	trace_cursor_close(c);
	assert_int_equal(t->damaged, 0);
	trace_close(t);
	return n;
}

/* The trace has samples [from, to) of all, by time, and the rest was let go. */
static void expect_window(size_t from, size_t to)
{
	uint64_t first, last;

	assert_int_equal(in_trace(&first, &last), to - from);
	assert_int_equal(watch_outside(r.watch), r.all.n - (to - from));
	if (from == to)
		return;
	assert_int_equal(first, r.all.v[from].tsc);
	assert_int_equal(last, r.all.v[to - 1].tsc);
}

static size_t position_of(uint64_t tsc)
{
	size_t i = 0;

	while (i < r.all.n && r.all.v[i].tsc < tsc)
		i++;
	return i;
}

/* ---- random programs ---- */

static void work_a_while(bool slowly)
{
	uint32_t n = random_number() % (slowly ? 40 : 9000);

	for (uint32_t i = 0; i < n; i++)
		put(random_number() % nlanes, random_number() % 50, 0);
}

static size_t smaller(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* pre and post in samples: exact, whatever was dropped, packed or is still in the pool. */
static void windows_are_exact(void **state)
{
	static const uint32_t spans[] = {0, 1, 7, 1000, 5000, 40000};

	(void)state;
	for (uint64_t seed = 1; seed <= 24; seed++) {
		uint32_t pre = spans[seed % 6], post = spans[seed * 7 / 6 % 6];
		uint32_t before = seed % 3 ? 12 : 2, rounds = 0;
		char pre_text[16], post_text[16];
		struct watch_options o = {
			.trigger = "event=4711", .pre = pre_text, .post = post_text};
		size_t fired;
		uint64_t tsc;

		snprintf(pre_text, sizeof(pre_text), "%u", pre);
		snprintf(post_text, sizeof(post_text), "%u", post);
		start("exact", &o, seed);
		nlanes = seed % 2 ? 1 : LANES;
		for (uint32_t i = 0; i < before; i++) {
			work_a_while(seed % 5 == 0);
			nap_us(random_number() % 600);
			round_of_collector();
		}
		work_a_while(false);
		tsc = put(random_number() % nlanes, FIRES, 0);
		do {
			work_a_while(seed % 5 == 0);
			nap_us(400);
			round_of_collector();
		} while (is_sampling() && ++rounds < 40);
		work_a_while(true); /* with gates that have just been closed */
		drain_all(&r.drain);
		qsort(r.all.v, r.all.n, sizeof(*r.all.v), by_time);
		fired = position_of(tsc);
		assert_int_equal(watch_fired_tsc(r.watch), tsc);
		expect_window(fired - smaller(fired, pre), smaller(fired + post + 1, r.all.n));
		end();
	}
}

/* The same in time. */
static void windows_of_time_are_exact(void **state)
{
	struct watch_options o = {.trigger = "event=4711", .pre = "3ms", .post = "2ms"};

	(void)state;
	for (uint64_t seed = 1; seed <= 8; seed++) {
		uint64_t tsc, first, last;
		struct time_point a, b;
		double per_ms;
		size_t n;

		time_point_take(&a);
		start("time", &o, seed);
		for (uint32_t i = 0; i < 10; i++) {
			work_a_while(false);
			nap_us(500);
			round_of_collector();
		}
		tsc = put(2, FIRES, 0);
		while (is_sampling()) {
			work_a_while(false);
			nap_us(300);
			round_of_collector();
		}
		drain_all(&r.drain);
		time_point_take(&b);
		per_ms = tsc_hz(&a, &b) / 1e3;
		n = in_trace(&first, &last);
		assert_int_equal(watch_fired_tsc(r.watch), tsc);
		assert_int_equal(n + watch_outside(r.watch), r.all.n);
		qsort(r.all.v, r.all.n, sizeof(*r.all.v), by_time);
		/* the first sample is the first that is so near, as well as the clock's rate is known */
		assert_true((double)(tsc - first) <= 3.01 * per_ms);
		assert_true((double)(last - tsc) <= 2.01 * per_ms);
		assert_in_range(n,
				position_of(tsc + (uint64_t)(1.99 * per_ms)) -
					position_of(tsc - (uint64_t)(2.99 * per_ms)),
				r.all.n);
		end();
	}
}

/* It never fires: everything is let go, and the pool is free again. */
static void nothing_fires(void **state)
{
	struct watch_options o = {.trigger = "event=4712 then f>1s", .pre = "100", .post = "100"};

	(void)state;
	start("nothing", &o, 5);
	for (uint32_t i = 0; i < 60; i++) {
		work_a_while(false);
		nap_us(300);
		round_of_collector();
		/* what waits for a decision is bounded */
		assert_in_range(segment_ready(&r.seg) - (uint32_t)r.seg.ctl->free_count, 0, 80);
	}
	drain_all(&r.drain);
	qsort(r.all.v, r.all.n, sizeof(*r.all.v), by_time);
	assert_int_equal(watch_fired_tsc(r.watch), 0);
	expect_window(0, 0);
	end();
}

/* ---- without ---- */

static void work_for_ms(uint32_t ms)
{
	for (uint32_t i = 0; i < 2 * ms; i++) {
		put(5, 3, 0);
		nap_us(500);
		round_of_collector();
	}
}

/* Time is over without any sample of that thread: its end is far away, and asleep. */
static void what_does_not_come(void **state)
{
	struct watch_options o = {
		.trigger = "event=10 without event=11 within 200ms", .pre = "2", .post = "3"};
	uint64_t since, at;

	(void)state;
	start("without", &o, 1);
	put(0, 1, 0);
	put(0, 10, 0);
	work_for_ms(8);
	put(0, 11, 0); /* in time */
	put(0, 2, 0);
	put(1, 2, 0);
	since = put(0, 10, 0);
	put(1, 11, 0); /* of another thread */
	while (is_sampling())
		work_for_ms(1);
	work_for_ms(2);
	drain_all(&r.drain);
	at = watch_fired_tsc(r.watch);
	assert_in_range(at, since + 1, r.all.v[r.all.n - 1].tsc);
	expect_window(position_of(since) - 2, position_of(at) + 3);
	end();
}

/* In the first millisecond nobody knows how long 200 ms are. */
static void it_is_too_early_to_say(void **state)
{
	struct watch_options o = {
		.trigger = "event=10 without event=11 within 200ms", .pre = "2", .post = "3"};

	(void)state;
	is_early = true;
	start("early", &o, 1);
	is_early = false;
	put(0, 10, 0);
	put(0, 2, 0);
	nap_us(150);
	for (uint32_t i = 0; i < 20; i++) {
		put(0, 2, 0);
		round_of_collector();
	}
	assert_true(is_sampling());
	put(0, 11, 0);
	drain_all(&r.drain);
	assert_int_equal(watch_fired_tsc(r.watch), 0);
	end();
}

/* The sample that it waits for was claimed in time, and is stored by a thread that was away. */
static void a_late_store_is_in_time(void **state)
{
	struct watch_options o = {
		.trigger = "event=10 without event=11 within 5ms", .pre = "2", .post = "3"};
	struct kron_sample *hole;
	uint64_t tsc;

	(void)state;
	start("late", &o, 1);
	put(0, 10, 0);
	hole = claim(0);
	tsc = clock_tsc();
	*vec_push(&r.all) = (struct truth){tsc, 0, 11};
	for (uint32_t i = 0; i < 12; i++)
		put(0, 3, 0); /* a signal handler runs meanwhile */
	work_for_ms(7);
	put(0, 3, 0);
	work_for_ms(2);
	assert_true(is_sampling());
	store(hole, tsc, 11, 0);
	work_for_ms(10);
	assert_true(is_sampling());
	drain_all(&r.drain);
	assert_int_equal(watch_fired_tsc(r.watch), 0);
	assert_int_equal(watch_outside(r.watch), r.all.n);
	end();
}

/* A place that nobody fills does not keep what comes after it from being seen. */
static void a_hole_stops_nobody(void **state)
{
	struct watch_options o = {.trigger = "event=4711", .pre = "3", .post = "0"};
	uint64_t tsc;

	(void)state;
	start("hole", &o, 1);
	for (uint32_t i = 0; i < 100; i++) {
		put(0, 1, 0);
		if (i % 7 == 3)
			claim(0);
	}
	tsc = put(0, FIRES, 0);
	put(0, 1, 0);
	nap_us(500);
	round_of_collector();
	assert_int_equal(watch_fired_tsc(r.watch), tsc);
	drain_all(&r.drain);
	expect_window(97, 101);
	end();
}

/* A thread loses samples, and tells of it with the next for which there is room. */
static void lose(uint32_t lane, uint32_t n)
{
	(void)lane;
	__atomic_fetch_add(&r.seg.procs[0].lost, n, __ATOMIC_RELAXED);
}

static void tell(uint32_t lane, uint32_t n)
{
	put(lane, KRON_EVENT_CPU, 0);
	put(lane, KRON_EVENT_LOST, n);
}

/* What was lost may have been what it waits for. */
static void after_a_loss_it_does_not_fire(void **state)
{
	struct watch_options o = {
		.trigger = "event=10 without event=11 within 200ms", .pre = "2", .post = "3"};

	(void)state;
	start("loss", &o, 1);
	put(0, 10, 0);
	lose(0, 3);
	tell(0, 3);
	put(1, 10, 0);
	nap_us(500);
	round_of_collector();
	lose(1, 3); /* no record says so yet */
	work_for_ms(250);
	assert_true(is_sampling());
	assert_int_equal(watch_unsure(r.watch), 2);
	drain_all(&r.drain);
	assert_int_equal(watch_fired_tsc(r.watch), 0);
	end();
}

/* The same, where nobody looked while they were lost. */
static void after_a_long_loss_it_does_not_fire(void **state)
{
	static const char *const triggers[] = {
		"event=10 without event=11 within 5ms",
		"event=10 without event=11 within 5ms across threads",
		"f>5ms",
	};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct watch_options o = {.trigger = triggers[i], .pre = "2", .post = "3"};

		start("long_loss", &o, i + 1);
		put(0, i == 2 ? 0 : 10, 0x7000);
		nap_us(9000);
		lose(0, 3);
		tell(0, 3);
		put(0, 3, 0);
		nap_us(500);
		round_of_collector();
		work_for_ms(12);
		assert_int_equal(watch_fired_tsc(r.watch), 0);
		assert_int_equal(watch_unsure(r.watch), 1);
		drain_all(&r.drain);
		end();
	}
}

/* What was over before the last sample before them was over. */
static void before_a_loss_it_fires(void **state)
{
	struct watch_options o = {
		.trigger = "event=10 without event=11 within 5ms", .pre = "2", .post = "3"};
	uint64_t since, later;

	(void)state;
	start("before_loss", &o, 1);
	since = put(0, 10, 0);
	nap_us(7000);
	later = put(0, 3, 0);
	nap_us(1000);
	lose(0, 3);
	tell(0, 3);
	put(0, 3, 0);
	nap_us(500);
	round_of_collector();
	assert_in_range(watch_fired_tsc(r.watch), since + 1, later);
	assert_int_equal(watch_unsure(r.watch), 0);
	drain_all(&r.drain);
	end();
}

/*
 * It lost some right after its sample, before anybody looked, and is silent since; another thread
 * has told of its own.
 */
static void a_loss_that_is_not_told_of(void **state)
{
	struct watch_options o = {
		.trigger = "event=10 without event=11 within 20ms", .pre = "2", .post = "3"};

	(void)state;
	start("untold", &o, 1);
	lose(1, 2);
	put(0, 10, 0);
	lose(0, 3);
	tell(1, 2);
	nap_us(500);
	work_for_ms(40);
	assert_true(is_sampling());
	assert_int_equal(watch_unsure(r.watch), 1);
	drain_all(&r.drain);
	assert_int_equal(watch_fired_tsc(r.watch), 0);
	end();
}

/* The same at the end of the recording. */
static void a_loss_at_the_end(void **state)
{
	struct watch_options o = {
		.trigger = "event=10 without event=11 within 2ms", .pre = "2", .post = "3"};

	(void)state;
	start("at_end", &o, 1);
	put(0, 10, 0);
	lose(0, 3);
	nap_us(6000);
	drain_all(&r.drain);
	assert_int_equal(watch_fired_tsc(r.watch), 0);
	assert_int_equal(watch_unsure(r.watch), 1);
	end();
}

/* All that was lost has been told of before: what is silent since does not do it. */
static void after_all_was_told_it_fires(void **state)
{
	struct watch_options o = {
		.trigger = "event=10 without event=11 within 20ms", .pre = "2", .post = "3"};
	uint64_t since;

	(void)state;
	start("told", &o, 1);
	lose(0, 3);
	tell(0, 3);
	since = put(0, 10, 0);
	nap_us(500);
	for (uint32_t i = 0; i < 300 && is_sampling(); i++)
		work_for_ms(1);
	assert_in_range(watch_fired_tsc(r.watch), since + 1, UINT64_MAX);
	assert_int_equal(watch_unsure(r.watch), 0);
	drain_all(&r.drain);
	end();
}

/* ---- calls ---- */

/* Of the samples' clock, in Hz. */
static uint64_t clock_rate(void)
{
	struct timespec a, b;
	uint64_t tsc;

	clock_gettime(CLOCK_MONOTONIC, &a);
	tsc = clock_tsc();
	nap_us(50000);
	clock_gettime(CLOCK_MONOTONIC, &b);
	tsc = clock_tsc() - tsc;
	return (uint64_t)((double)tsc * 1e9 /
			  ((double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec)));
}

/*
 * Random programs on a clock of their own, which is not ahead of the real one, so calls last as long
 * as the test wants: short ones of a handful of samples, and of more than is looked ahead.
 */
enum { SLOW, OTHER, LAST, FUNCTIONS };
static uint64_t clock_now;

static void put_call(uint32_t lane, uint32_t event, uint32_t sp)
{
	store(claim(lane), clock_now, event, sp);
	*vec_push(&r.all) = (struct truth){clock_now, lane, event};
	clock_now += 1 + random_number() % 60;
}

static void call(uint32_t lane, uint32_t function, uint32_t sp, int depth, uint64_t wait)
{
	uint32_t calls = depth > 3 ? 0 : random_number() % (random_number() % 8 ? 4 : 40);

	put_call(lane, KRON_EVENT_ENTRY(function), sp);
	clock_now += wait;
	for (uint32_t i = 0; i < calls; i++)
		call(lane, random_number() % FUNCTIONS, sp - 16 * (1 + random_number() % 3),
		     depth + 1, 0);
	if (random_number() % 16) /* else it was left by longjmp() */
		put_call(lane, KRON_EVENT_EXIT(function), sp);
}

static void call_a_while(uint32_t n)
{
	for (size_t end = r.all.n + n; r.all.n < end;) {
		call(random_number() % 3, random_number() % FUNCTIONS, 100000, 0, 0);
		put_call(random_number() % 3, 2 * FUNCTIONS, 100016);
	}
	for (uint32_t lane = 0; lane < 3; lane++) { /* whatever was waited for is over */
		put_call(lane, KRON_EVENT_ENTRY(LAST), 100016);
		put_call(lane, KRON_EVENT_EXIT(LAST), 100016);
	}
	while (clock_tsc() < clock_now + 2000000)
		nap_us(200);
	round_of_collector();
}

static void random_programs_fire(const char *trigger)
{
	struct watch_options o = {.trigger = trigger, .pre = "20", .post = "20"};
	uint64_t since, limit = clock_rate() / 500;

	for (uint64_t seed = 1; seed <= 12; seed++) {
		start("calls", &o, seed);
		for (uint32_t n = 1; n <= FUNCTIONS; n++)
			trace_writer_function(
				r.w, &(struct trace_function_line){.n = n,
								   .vaddr = 0x1000 + 16 * n,
								   .size = 16,
								   .name = n == 1 ? "g" : "h"});
		clock_now = clock_tsc();
		for (uint32_t i = 0; i < 4; i++)
			call_a_while(random_number() % 30000);

		call(0, OTHER, 100000, 0, 2 * limit); /* another one's */
		call_a_while(100);
		call(0, SLOW, 100000, 4, limit / 2); /* not as long */
		call_a_while(10);
		assert_true(is_sampling());
		call(1, SLOW, 99000, 4, 0);
		call(1, LAST, 99000, 4, 0);
		since = clock_now;
		call(1, SLOW, 99000, seed % 2 ? 4 : 0, 2 * limit);
		call_a_while(3000);
		call_a_while(3000);
		assert_false(is_sampling());
		drain_all(&r.drain);
		assert_in_range(watch_fired_tsc(r.watch), since + limit - limit / 20,
				since + limit + limit / 20);
		end();
	}
}

static void a_call_fires_when_it_takes_too_long(void **state)
{
	(void)state;
	random_programs_fire("f>2ms");
}

static void what_does_not_come_is_missed_in_any_program(void **state)
{
	(void)state;
	random_programs_fire("entry=f without entry=h within 2ms");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(windows_are_exact),
		cmocka_unit_test(windows_of_time_are_exact),
		cmocka_unit_test(nothing_fires),
		cmocka_unit_test(what_does_not_come),
		cmocka_unit_test(it_is_too_early_to_say),
		cmocka_unit_test(a_late_store_is_in_time),
		cmocka_unit_test(a_hole_stops_nobody),
		cmocka_unit_test(after_a_loss_it_does_not_fire),
		cmocka_unit_test(after_a_long_loss_it_does_not_fire),
		cmocka_unit_test(before_a_loss_it_fires),
		cmocka_unit_test(a_loss_that_is_not_told_of),
		cmocka_unit_test(a_loss_at_the_end),
		cmocka_unit_test(after_all_was_told_it_fires),
		cmocka_unit_test(a_call_fires_when_it_takes_too_long),
		cmocka_unit_test(what_does_not_come_is_missed_in_any_program),
	};

	return cmocka_run_group_tests(tests, make_base, remove_base);
}
