/* SPDX-License-Identifier: MIT */
/* Unit tests of collect/kernel/scheduler.c.  Ground truth: what a thread reads from its clock before it sleeps. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "collect/kernel/process_maps.h"
#include "collect/kernel/scheduler.h"

#define SLACK_NS 50000000
#define NAP_NS 300000000

static volatile pid_t sleeper;
static volatile uint64_t began;
static int ends[2]; /* it sleeps until there is something to read */

static void *sleep_once(void *arg)
{
	char c;

	(void)arg;
	began = clock_ns(CLOCK_MONOTONIC);
	sleeper = gettid();
	if (read(ends[0], &c, 1) != 1)
		abort();
	return NULL;
}

/* It sleeps now: returns when that was seen. */
static uint64_t see_it_sleep(void)
{
	const struct timespec ts = {.tv_nsec = 1000000};
	struct process_stat st = {0};

	while (!sleeper || !process_read_stat(getpid(), sleeper, &st) || st.state != 'S')
		nanosleep(&ts, NULL);
	return clock_ns(CLOCK_MONOTONIC);
}

/* What a hypervisor and interrupts have taken from all processors: the scheduler's clocks do not count it. */
static uint64_t taken_ns(void)
{
	unsigned long long irq, softirq, steal;
	FILE *f = fopen("/proc/stat", "r");

	assert_non_null(f);
	assert_int_equal(
		fscanf(f, "cpu %*u %*u %*u %*u %*u %llu %llu %llu", &irq, &softirq, &steal), 3);
	fclose(f);
	return (irq + softirq + steal) * (1000000000 / (uint64_t)sysconf(_SC_CLK_TCK));
}

static void test_since_when(void **state)
{
	const struct timespec nap = {.tv_nsec = NAP_NS};
	struct thread_run run;
	struct processor_clock c;
	const uint64_t taken = taken_ns();
	uint64_t seen, since;
	pthread_t thread;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(pthread_create(&thread, NULL, sleep_once, NULL), 0);
	seen = see_it_sleep();
	nanosleep(&nap, NULL);
	run = thread_run_read(getpid(), sleeper);
	if (!run.at)
		skip(); /* the kernel has no /proc/PID/sched */
	assert_true(run.switches >= 1);
	c = (struct processor_clock){.cpu = run.cpu};
	for (int i = 0; i < 100 && !c.now; i++) /* others may leave no time there */
		processor_clocks_read(&c, 1);
	assert_true(c.now >= run.at);
	since = c.mono - (c.now - run.at);
	assert_true(since + SLACK_NS >= began);
	assert_true(since <= seen + SLACK_NS + taken_ns() - taken);
	assert_int_equal(write(ends[1], "x", 1), 1);
	pthread_join(thread, NULL);
}

/* The processors that we may use have a clock each, others none; and we run where we did. */
static void test_processors(void **state)
{
	struct processor_clock c[CPU_SETSIZE + 2];
	cpu_set_t before, after;
	size_t found = 0;

	(void)state;
	if (!thread_run_read(getpid(), gettid()).at)
		skip();
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	for (int turn = 0; turn < 100 && !found; turn++) {
		for (int i = 0; i < CPU_SETSIZE + 2; i++)
			c[i] = (struct processor_clock){.cpu = i - 1};
		processor_clocks_read(c, CPU_SETSIZE + 2);
		for (int i = 0; i < CPU_SETSIZE + 2; i++) {
			const int cpu = i - 1;

			assert_int_equal(c[i].cpu, cpu);
			if (cpu < 0 || cpu >= CPU_SETSIZE || !CPU_ISSET((size_t)cpu, &before))
				assert_int_equal(c[i].now, 0);
			else
				found += c[i].now != 0;
		}
	}
	assert_true(found > 0);
	assert_int_equal(sched_getaffinity(0, sizeof(after), &after), 0);
	assert_true(CPU_EQUAL(&before, &after));
}

static void test_nobody(void **state)
{
	struct processor_clock c = {.cpu = 7, .now = 3};

	(void)state;
	processor_clocks_read(NULL, 0);
	processor_clocks_read(&c, 0);
	assert_int_equal(c.now, 3);
	assert_int_equal(thread_run_read(getpid(), 0x3fffffff).at, 0);
	assert_int_equal(thread_run_read(getpid(), 0x3fffffff).cpu, -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_since_when),
		cmocka_unit_test(test_processors),
		cmocka_unit_test(test_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
