/* SPDX-License-Identifier: MIT */
/*
 * test_sparse.c - samples that share readings of the clock, made up at random with the true time of each: bounds
 * contain it, order stays, and estimates are between the bounds.  Signal handlers come between a claim and
 * what follows it, in each other too, as they may in thunk_sparse.S.  And how a length is written of which no more
 * is known than bounds.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/search.h"
#include "trace/sparse.h"
#include "trace/text.h"

#define SAMPLES 20000u
#define DEEPEST 3u

struct taken {
	struct sparse_sample s;
	uint64_t truth;
	uint64_t looked; /* that it had not been switched away */
	bool is_there;
};

static struct taken slots[SAMPLES + 4096];
static uint32_t nslots;
static uint64_t now, stamp;
static unsigned every;
static struct sparse_off off[8 * SAMPLES];
static size_t noff;
static bool has_mark, may_leave;

static uint64_t rnd(uint64_t below)
{
	return (uint64_t)random() % below;
}

/* Another thread has the processor meanwhile. */
static void maybe_leave(void)
{
	struct sparse_off *o = &off[noff];

	if (!may_leave || rnd(50) || noff == sizeof(off) / sizeof(*off))
		return;
	o->out = ++now;
	now += 1 + rnd(3000000);
	o->in = now++;
	noff++;
	has_mark = false;
}

static void pass_time(void)
{
	now += rnd(40) ? 1 + rnd(30) : 1 + rnd(100000);
	maybe_leave();
}

static void sample(unsigned depth);

/* A handler may come now. */
static void maybe_signal(unsigned depth)
{
	if (depth == DEEPEST || rnd(60))
		return;
	has_mark = false;
	for (uint64_t n = rnd(40); n; n--)
		sample(depth + 1);
}

/* The steps of kron_rt_probe_sparse, with a handler between any two. */
static void sample(unsigned depth)
{
	uint32_t slot = nslots++;
	struct taken *t = &slots[slot];
	uint64_t before, reading;

	if (nslots > SAMPLES)
		return;
	pass_time();
	maybe_signal(depth);
	t->looked = now;
	if (slot % every == 0 || !stamp || !has_mark) {
		has_mark = true;
		do {
			before = stamp;
			maybe_signal(depth);
			pass_time();
			reading = now & ~1ull;
			now |= 1; /* what is later has another number */
			maybe_signal(depth);
		} while (stamp != before);
		stamp = reading | 1;
		t->s.tsc = t->truth = reading;
	} else {
		pass_time();
		t->s.tsc = stamp;
		t->truth = now;
	}
	maybe_signal(depth);
	pass_time();
	t->s.s.time_lo = (uint32_t)t->s.tsc;
	t->s.s.head = 1;
	t->s.s.event = slot;
	t->is_there = true;
}

static uint64_t next_leave(uint64_t after)
{
	size_t at = partition_point(i, noff, off[i].out <= after);

	return at < noff ? off[at].out : UINT64_MAX;
}

static void compare(const struct sparse_sample *s, uint32_t slot, uint64_t *last)
{
	assert_int_equal(s->s.event, slot);
	assert_true(s->lo <= slots[slot].truth);
	assert_true((may_leave ? slots[slot].looked : slots[slot].truth) <= s->hi);
	assert_true(s->hi <= next_leave(s->lo) || s->hi == s->lo);
	assert_true(s->lo <= s->tsc && s->tsc <= s->hi);
	if (!(s->s.time_lo & 1))
		assert_true(s->lo == s->hi && s->tsc == slots[slot].truth);
	*last = s->tsc;
}

static void run_once(unsigned n)
{
	struct sparse x = {.off = off};
	const struct sparse_sample *s;
	uint32_t put = 0, given = 0;
	uint64_t last = 0;

	every = n;
	nslots = 0;
	now = 1000001;
	stamp = 0;
	noff = 0;
	for (uint32_t i = 0; i < SAMPLES + 4096; i++)
		slots[i] = (struct taken){0};
	while (nslots < SAMPLES)
		sample(0);
	x.noff = noff;
	while (put < SAMPLES && slots[put].is_there) {
		sparse_put(&x, &slots[put++].s);
		while ((s = sparse_next(&x)))
			compare(s, given++, &last);
	}
	sparse_end(&x, now);
	while ((s = sparse_next(&x)))
		compare(s, given++, &last);
	assert_int_equal(given, put);
	assert_true(put > SAMPLES / 2);
	sparse_free(&x);
}

static void bounds_contain_the_truth(void **state)
{
	(void)state;
	srandom(15);
	may_leave = false;
	for (unsigned n = 2; n <= 256; n *= 2)
		for (int i = 0; i < 4; i++)
			run_once(n);
}

/* The kernel's records say when the thread was switched away: what copies a reading was before that. */
static void bounds_end_where_it_left(void **state)
{
	(void)state;
	srandom(16);
	may_leave = true;
	for (unsigned n = 2; n <= 256; n *= 2)
		for (int i = 0; i < 4; i++)
			run_once(n);
}

static struct sparse_sample made(uint64_t tsc, uint32_t event)
{
	return (struct sparse_sample){.s = {.head = 1, .event = event, .time_lo = (uint32_t)tsc},
				      .tsc = tsc};
}

/* What borrows its memory goes on while the thread stands still. */
static void a_child_is_not_the_thread(void **state)
{
	const struct sparse_off away = {2000, 9000};
	const struct sparse_sample in[] = {made(1000, 1), made(1200, KRON_EVENT_VFORK),
					   made(1001, 2), made(5000, KRON_EVENT_CHILD_ENDS),
					   made(9100, 3)};
	const struct sparse_sample foreign[] = {made(1000, 1), made(1001, 2), made(5000, 3)};
	struct sparse x = {.off = &away, .noff = 1}, y = {.off = &away, .noff = 1};
	const struct sparse_sample *s;

	(void)state;
	for (unsigned i = 0; i < 5; i++)
		sparse_put(&x, &in[i]);
	while ((s = sparse_next(&x)))
		if (s->s.event == 2)
			assert_int_equal(s->hi, 5000);
	for (unsigned i = 0; i < 3; i++)
		sparse_put(&y, &foreign[i]);
	while ((s = sparse_next(&y)))
		if (s->s.event == 2)
			assert_int_equal(s->hi, 5000);
	sparse_free(&x);
	sparse_free(&y);
}

/* Without handlers times never go back. */
static void estimates_go_on(void **state)
{
	struct sparse x = {0};
	const struct sparse_sample *s;
	uint64_t last = 0, t = 1000;
	unsigned given = 0;

	(void)state;
	for (unsigned i = 0; i < 1000; i++) {
		struct sparse_sample in = {.s.head = 1, .s.event = i};

		if (i % 8 == 0)
			t += 2 * (1 + rnd(500));
		in.tsc = i % 8 ? t | 1 : t;
		in.s.time_lo = (uint32_t)in.tsc;
		sparse_put(&x, &in);
		while ((s = sparse_next(&x))) {
			assert_true(s->tsc >= last);
			last = s->tsc;
			given++;
		}
	}
	assert_true(given >= 992);
	sparse_free(&x);
}

static struct sparse_sample at(uint64_t tsc, bool always_reads)
{
	return (struct sparse_sample){.s = {.head = 1, .time_lo = (uint32_t)tsc},
				      .tsc = tsc,
				      .always_reads = always_reads};
}

/* Readings of --timed come before their turn and say nothing of a wait: the distances follow what there is. */
static void a_slow_phase_is_learnt(void **state)
{
	struct sparse x = {.every = 256};
	const struct sparse_sample *s;
	uint64_t t = 1000, last = 0, first_step = 0;

	(void)state;
	for (unsigned i = 0; i < 513; i++) {
		struct sparse_sample in = at(i % 256 ? t | 1 : t, false);

		sparse_put(&x, &in);
		t += i % 256 == 255 ? 256 * 6 : 0;
	}
	for (unsigned round = 0; round < 200; round++, t += 1000)
		for (unsigned k = 0; k < 3; k++) {
			struct sparse_sample in = at(k ? t | 1 : t, !k);

			sparse_put(&x, &in);
		}
	while ((s = sparse_next(&x))) {
		if (s->always_reads)
			last = s->tsc;
		else if (last && s->tsc > last)
			first_step = s->tsc - last, last = 0;
	}
	assert_in_range(first_step, 200, 400);
	sparse_free(&x);
}

/* A thread slept before the reading that a record of its processor has: the samples were before that. */
static void a_sleep_is_not_shared_out(void **state)
{
	struct sparse x = {0};
	const struct sparse_sample *s;
	uint64_t t = 1000, most = 0;

	(void)state;
	for (unsigned i = 0; i < 64; i++) {
		struct sparse_sample in = {.s.head = 1, .s.event = i};

		t += i % 8 ? 0 : 160;
		in.tsc = i % 8 ? t | 1 : t;
		in.s.time_lo = (uint32_t)in.tsc;
		sparse_put(&x, &in);
	}
	sparse_put(&x, &(struct sparse_sample){
			       .s = {.head = 1, .event = KRON_EVENT_CPU, .time_lo = 2000000},
			       .tsc = 2000000});
	while ((s = sparse_next(&x)))
		most = s->s.event == KRON_EVENT_CPU ? most : s->tsc;
	assert_true(most > t && most < t + 400);
	sparse_free(&x);
}

static void garbage_without_a_reading(void **state)
{
	struct sparse x = {0};
	unsigned given = 0;

	(void)state;
	for (unsigned i = 0; i < 100000; i++) {
		struct sparse_sample in = {.s.head = 1, .s.event = i, .tsc = rnd(1000) | 1};

		in.s.time_lo = (uint32_t)in.tsc;
		sparse_put(&x, &in);
		while (sparse_next(&x))
			given++;
	}
	assert_true(x.held.n <= 20000);
	sparse_end(&x, UINT64_MAX);
	while (sparse_next(&x))
		given++;
	assert_int_equal(given, 100000);
	sparse_free(&x);
}

/* How a length is written of which this is known. */
static void expect_length(uint64_t ns, uint64_t low, uint64_t high, const char *text)
{
	char buf[64] = "";
	FILE *f = fmemopen(buf, sizeof(buf), "w");

	assert_non_null(f);
	text_put_bounded(f, ns, low, high);
	fclose(f);
	assert_string_equal(buf, text);
}

static void lengths_as_bounds(void **state)
{
	(void)state;
	expect_length(1500, 1500, 1500, "  1.500 us");
	expect_length(1500, 1000, 3000, "  1.500 us");
	expect_length(0, 0, 0, "  0.000 us");
	/* what has no least, or may be more than twice as long, or less than half */
	expect_length(377, 188, 718, "  0.377 us");
	expect_length(377, 187, 718, " <0.718 us");
	expect_length(1500, 0, 3000, " <3.000 us");
	expect_length(1500, 1000, 3002, " <3.002 us");
	/* whose end nobody knows */
	expect_length(1500, 1000, UINT64_MAX, " >1.000 us");
	expect_length(1500000, 1, UINT64_MAX, " >0.001 us");
	expect_length(1500, 0, UINT64_MAX, "        <?");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bounds_contain_the_truth),
		cmocka_unit_test(bounds_end_where_it_left),
		cmocka_unit_test(a_child_is_not_the_thread),
		cmocka_unit_test(estimates_go_on),
		cmocka_unit_test(a_slow_phase_is_learnt),
		cmocka_unit_test(a_sleep_is_not_shared_out),
		cmocka_unit_test(garbage_without_a_reading),
		cmocka_unit_test(lengths_as_bounds),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
