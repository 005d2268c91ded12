/* SPDX-License-Identifier: MIT */
/* test_jobs.c - jobs.h: each number once, never more threads than allowed, calls within calls. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/jobs.h"

#define MANY 500u
#define INNER 40u

struct counting {
	unsigned times[MANY];
	unsigned inner[MANY][INNER];
	unsigned now, most; /* threads inside */
};

static void come_in(struct counting *c)
{
	unsigned now = __atomic_add_fetch(&c->now, 1, __ATOMIC_SEQ_CST);
	unsigned most = __atomic_load_n(&c->most, __ATOMIC_SEQ_CST);

	while (now > most && !__atomic_compare_exchange_n(&c->most, &most, now, 0, __ATOMIC_SEQ_CST,
							  __ATOMIC_SEQ_CST))
		;
	sched_yield(); /* others get a chance to come too many */
}

static void go_out(struct counting *c)
{
	__atomic_sub_fetch(&c->now, 1, __ATOMIC_SEQ_CST);
}

static void count(size_t i, void *ctx)
{
	struct counting *c = ctx;

	come_in(c);
	c->times[i]++; /* not atomic: nobody else has this number */
	go_out(c);
}

static void each_number_once(void **state)
{
	static struct counting c;

	(void)state;
	for (unsigned limit = 1; limit <= 8; limit++) {
		memset(&c, 0, sizeof(c));
		jobs_set_limit(limit);
		jobs_run(MANY, count, &c);
		for (size_t i = 0; i < MANY; i++)
			assert_int_equal(c.times[i], 1);
		assert_in_range(c.most, 1, limit);
	}
}

static void nothing_to_do(void **state)
{
	static struct counting c;

	(void)state;
	jobs_run(0, count, &c);
	assert_int_equal(c.times[0], 0);
	jobs_run(1, count, &c);
	assert_int_equal(c.times[0], 1);
}

struct inside {
	struct counting *c;
	size_t outer;
};

static void count_inner(size_t i, void *ctx)
{
	struct inside *in = ctx;

	come_in(in->c);
	in->c->inner[in->outer][i]++;
	go_out(in->c);
}

static void count_outer(size_t i, void *ctx)
{
	struct inside in = {ctx, i};

	jobs_run(INNER, count_inner, &in);
	in.c->times[i]++;
}

static void calls_within_calls(void **state)
{
	static struct counting c;

	(void)state;
	for (unsigned limit = 1; limit <= 8; limit *= 2) {
		memset(&c, 0, sizeof(c));
		jobs_set_limit(limit);
		jobs_run(MANY, count_outer, &c);
		for (size_t i = 0; i < MANY; i++) {
			assert_int_equal(c.times[i], 1);
			for (size_t k = 0; k < INNER; k++)
				assert_int_equal(c.inner[i][k], 1);
		}
		assert_in_range(c.most, 1, limit);
	}
}

/* ---- several callers at once ---- */

#define CALLERS 6

static struct counting of_caller[CALLERS];

static void *call(void *arg)
{
	jobs_run(MANY, count_outer, arg);
	return NULL;
}

static void callers_do_not_meet(void **state)
{
	pthread_t thread[CALLERS];

	(void)state;
	jobs_set_limit(3);
	for (int i = 0; i < CALLERS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, call, &of_caller[i]), 0);
	for (int i = 0; i < CALLERS; i++)
		pthread_join(thread[i], NULL);
	for (int t = 0; t < CALLERS; t++)
		for (size_t i = 0; i < MANY; i++)
			for (size_t k = 0; k < INNER; k++)
				assert_int_equal(of_caller[t].inner[i][k], 1);
}

/* ---- the other processors do come, and take no signals ---- */

struct meeting {
	pthread_barrier_t all;
	unsigned open; /* threads that signals may interrupt */
};

static void meet(size_t i, void *ctx)
{
	struct meeting *m = ctx;
	sigset_t set;

	(void)i;
	pthread_sigmask(SIG_BLOCK, NULL, &set);
	if (!sigismember(&set, SIGINT))
		__atomic_fetch_add(&m->open, 1, __ATOMIC_SEQ_CST);
	pthread_barrier_wait(&m->all);
}

static void helpers_come(void **state)
{
	struct meeting m = {.open = 0};

	(void)state;
	jobs_set_limit(4);
	pthread_barrier_init(&m.all, NULL, 4);
	jobs_run(4, meet, &m); /* hangs if they do not */
	pthread_barrier_destroy(&m.all);
	assert_int_equal(m.open, 1);
}

static void the_limit_is_that_of_the_processors(void **state)
{
	cpu_set_t set, one;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
	jobs_set_limit(0);
	assert_int_equal(jobs_limit(), CPU_COUNT(&set));
	CPU_ZERO(&one);
	for (int i = 0; !CPU_COUNT(&one); i++)
		if (CPU_ISSET(i, &set))
			CPU_SET(i, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	jobs_set_limit(0);
	assert_int_equal(jobs_limit(), 1);
	sched_setaffinity(0, sizeof(set), &set);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_number_once),
		cmocka_unit_test(nothing_to_do),
		cmocka_unit_test(calls_within_calls),
		cmocka_unit_test(callers_do_not_meet),
		cmocka_unit_test(helpers_come),
		cmocka_unit_test(the_limit_is_that_of_the_processors),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
