/* SPDX-License-Identifier: MIT */
/* test_choice.c - which functions --budget takes out, and that no choice costs more than it says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "collect/budget/choice.h"

#define N 6u

static uint8_t sleeps[N];

static double choose(const struct choice_function *v, double budget)
{
	memset(sleeps, 0xff, sizeof(sleeps));
	return choice_make(v, N, budget, sleeps);
}

static void expect(const char *want)
{
	char got[N + 1] = {0};

	for (uint32_t i = 0; i < N; i++)
		got[i] = sleeps[i] == 1 ? 'z' : sleeps[i] == 0 ? '.' : '?';
	assert_string_equal(got, want);
}

static void short_and_frequent_ones_go_first(void **state)
{
	static const struct choice_function v[N] = {
		{.cost = 0.10, .longs = 0, .may_sleep = true},
		{.cost = 0.002, .longs = 900, .may_sleep = true},
		{.cost = 0.04, .longs = 10, .may_sleep = true},
		{.cost = 1e-7, .longs = 0, .may_sleep = true}, /* main: it has not ended yet */
		{.cost = 0.003, .longs = 0, .may_sleep = true},
		{.cost = 0, .longs = 0, .may_sleep = false},
	};

	(void)state;
	assert_true(choose(v, 0.2) > 0.14);
	expect("......");
	assert_true(choose(v, 0.05) <= 0.05);
	expect("z.....");
	assert_true(choose(v, 0.006) <= 0.006);
	expect("z.z...");
	assert_true(choose(v, 0.0025) <= 0.0025);
	expect("z.z.z.");
}

/* What went before one that costs much more stays, if there is room then. */
static void no_more_than_needed(void **state)
{
	static const struct choice_function v[N] = {
		{.cost = 0.08, .longs = 2.2e6, .may_sleep = true},
		{.cost = 3e-5, .may_sleep = true},
		{.cost = 4e-5, .may_sleep = true},
		{.cost = 1e-5, .may_sleep = true},
	};

	(void)state;
	assert_true(choose(v, 0.035) <= 0.035);
	expect("z.....");
}

static void what_may_not_sleep_stays(void **state)
{
	static const struct choice_function v[N] = {
		{.cost = 0.5, .longs = 0},
		{.cost = 0.01, .longs = 0, .may_sleep = true},
		{.cost = 0.3, .longs = 0, .may_sleep = true},
		{.cost = 0.0005, .longs = 0, .may_sleep = true},
	};
	double rest;

	(void)state;
	rest = choose(v, 0.01);
	expect(".zz...");
	assert_true(rest >= 0.5005 - 1e-9 && rest <= 0.5005 + 1e-9);
}

/* Whatever the functions: what stays costs what is said, and nothing sleeps that need not. */
static void any_functions(void **state)
{
	struct choice_function v[N];

	(void)state;
	srand(5993);
	for (int round = 0; round < 20000; round++) {
		double budget = (rand() % 1000) / 1e4, rest, sum = 0, movable = 0;

		for (uint32_t i = 0; i < N; i++)
			v[i] = (struct choice_function){.cost = (rand() % 1000) / 1e4,
							.longs = rand() % 3 ? 0 : rand() % 1000,
							.may_sleep = rand() % 4 != 0};
		rest = choose(v, budget);
		for (uint32_t i = 0; i < N; i++) {
			assert_true(sleeps[i] == 0 || (sleeps[i] == 1 && v[i].may_sleep));
			sum += sleeps[i] ? 0 : v[i].cost;
			movable += !sleeps[i] && v[i].may_sleep ? v[i].cost : 0;
		}
		assert_true(sum - rest < 1e-9 && rest - sum < 1e-9);
		assert_true(rest <= budget + 1e-9 || movable <= budget / 10 + 1e-9);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(short_and_frequent_ones_go_first),
		cmocka_unit_test(no_more_than_needed),
		cmocka_unit_test(what_may_not_sleep_stays),
		cmocka_unit_test(any_functions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
