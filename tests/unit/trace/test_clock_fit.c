/* SPDX-License-Identifier: MIT */
/*
 * test_clock_fit.c - clocks that are put together by readings over a link.
 *
 * The truth is made here: a node's clock with an offset of up to a second either way, and a drift of up to 50 ppm; a link
 * whose ways there and back take a least time each, and now and then much more.  What clock_fit.h makes of the readings
 * is held against it at moments between them.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "trace/times/clock_fit.h"

#define HZ 2.4e9
#define START_NS 5000000000.0 /* of the reference, when the node begins */

static uint64_t state = 88172645463325252u;

static double dice(void) /* 0 to 1 */
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (double)(state >> 11) / 9007199254740992.0;
}

struct world {
	double offset_ns, drift;          /* of the node's clock */
	double least_ns;                  /* of each way */
	double noise_ns;                  /* its mean */
	double wobble_ns, wobble_seconds; /* a clock that is not straight */
};

/* The node's tick at a true time, which is the reference's. */
static uint64_t tick_at(const struct world *w, double ns)
{
	double since = ns - START_NS;
	double wobble = w->wobble_ns ? w->wobble_ns * sin(since / 1e9 / w->wobble_seconds) : 0;

	return (uint64_t)(HZ / 1e9 * (1e12 + w->offset_ns + since * (1 + w->drift) + wobble));
}

static double way(const struct world *w)
{
	return w->least_ns - w->noise_ns * log(1 - dice());
}

/* The best of eight exchanges, as a sender takes it. */
static struct clock_reading read_clock(const struct world *w, double at)
{
	struct clock_reading best = {.error_ns = UINT64_MAX};

	for (int i = 0; i < 8; i++) {
		double there = way(w), back = way(w), total = there + back;
		uint64_t t0 = tick_at(w, at), t1 = tick_at(w, at + total);
		uint64_t error = (uint64_t)((double)(t1 - t0) / HZ * 1e9 / 2) + 1;

		if (error < best.error_ns)
			best = (struct clock_reading){t0 + (t1 - t0) / 2, (uint64_t)(at + there),
						      error};
		at += total;
	}
	return best;
}

static double worst_error(const struct world *w, const struct clock_fit *f, double seconds)
{
	double worst = 0;

	for (int i = 0; i < 200; i++) {
		double ns = START_NS + seconds * 1e9 * dice();
		double got = (double)f->base_ns + clock_fit_ns(f, tick_at(w, ns));

		if (fabs(got - ns) > worst)
			worst = fabs(got - ns);
	}
	return worst;
}

static struct world random_world(void)
{
	static const double ways[] = {25e3, 50e3, 500e3, 5e6,
				      25e6}; /* 0.05 to 50 ms there and back */

	return (struct world){.offset_ns = (dice() * 2 - 1) * 1e9,
			      .drift = (dice() * 2 - 1) * 50e-6,
			      .least_ns = ways[(int)(dice() * 5)],
			      .noise_ns = dice() * 1e6};
}

static double least_ns; /* of the last fit: half of its shortest round trip */

static bool fit(struct clock_fit *f, const struct world *w, unsigned n, double apart_ns)
{
	struct clock_reading v[128];

	least_ns = INFINITY;
	for (unsigned i = 0; i < n; i++) {
		v[i] = read_clock(w, START_NS + i * apart_ns);
		least_ns = fmin(least_ns, (double)v[i].error_ns);
	}
	return clock_fit_make(f, v, n, HZ);
}

/* After the fit no more is left than half of the least round trip, and what it says of itself is true. */
static void test_straight(void **arg)
{
	unsigned wrong = 0, untrue = 0, rounds = 2000;

	(void)arg;
	for (unsigned i = 0; i < rounds; i++) {
		struct world w = random_world();
		unsigned n = 2 + (unsigned)(dice() * 100);
		struct clock_fit f;
		double error;

		assert_true(fit(&f, &w, n, 1e9));
		error = worst_error(&w, &f, n - 1);
		wrong += error > least_ns + 100;
		untrue += error > (double)f.error_ns + 100;
		clock_fit_free(&f);
	}
	print_message("# %u of %u left more than half a round trip, %u said less than was left\n",
		      wrong, rounds, untrue);
	/* where two readings are all there is, their noise is what is left */
	assert_in_range(wrong, 0, rounds / 50);
	assert_in_range(untrue, 0, rounds / 100);
}

/* Readings that came late, and close together: what is said of times long before them is true, too, and of use. */
static void test_late_readings(void **arg)
{
	unsigned untrue = 0, rounds = 2000;
	double worst_stated = 0;

	(void)arg;
	for (unsigned i = 0; i < rounds; i++) {
		struct world w = random_world();
		const double before_ns = dice() * 1e9;
		const uint64_t from = tick_at(&w, START_NS - before_ns);
		struct clock_fit f;
		double error, stated;

		w.least_ns = 25e3;
		w.noise_ns = dice() * 1e5;
		assert_true(fit(&f, &w, 2 + (unsigned)(dice() * 4), 3e6 + dice() * 5e6));
		error = fabs((double)f.base_ns + clock_fit_ns(&f, from) - (START_NS - before_ns));
		stated = (double)clock_fit_error(&f, from, from);
		untrue += error > stated + 100;
		worst_stated = fmax(worst_stated, stated);
		clock_fit_free(&f);
	}
	print_message("# %u of %u said less than was left; at most %.0f us\n", untrue, rounds,
		      worst_stated / 1e3);
	assert_in_range(untrue, 0, rounds / 100);
	assert_true(worst_stated < 5e6); /* a second at 2000 ppm, and the readings */
}

/* A clock that is not straight: no line passes all readings, and it goes from one to the next. */
static void test_crooked(void **arg)
{
	struct world w = {
		.least_ns = 25e3, .noise_ns = 1e3, .wobble_ns = 3e6, .wobble_seconds = 20};
	struct clock_fit f;

	(void)arg;
	assert_true(fit(&f, &w, 100, 1e9));
	assert_false(f.is_line);
	assert_true(worst_error(&w, &f, 99) < 25e3 + 30e3);
	clock_fit_free(&f);
}

static void test_back_and_forth(void **arg)
{
	struct world w = random_world();
	struct clock_fit f;

	(void)arg;
	assert_true(fit(&f, &w, 50, 1e9));
	for (int i = 0; i < 1000; i++) {
		uint64_t tick = tick_at(&w, START_NS + 60e9 * (dice() - 0.1));
		double back = clock_fit_ticks(&f, clock_fit_ns(&f, tick), tick);

		assert_true(fabs(back) < 100);
	}
	clock_fit_free(&f);
}

static void test_few(void **arg)
{
	struct clock_reading v[2] = {{1000, 2000, 10}, {1000, 3000, 10}};
	struct clock_fit f;

	(void)arg;
	assert_false(clock_fit_make(&f, v, 0, HZ));
	assert_false(clock_fit_make(&f, v, 2, HZ)); /* time that stands still */
	assert_true(clock_fit_make(&f, v, 1, HZ));
	assert_true(f.error_ns == UINT64_MAX);
	assert_true(fabs(clock_fit_ns(&f, 1000 + (uint64_t)HZ) - 1e9) < 1);
	clock_fit_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_straight), cmocka_unit_test(test_late_readings),
		cmocka_unit_test(test_crooked),  cmocka_unit_test(test_back_and_forth),
		cmocka_unit_test(test_few),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
