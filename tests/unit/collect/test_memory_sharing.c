/* SPDX-License-Identifier: MIT */
/* Unit tests of collect/kernel/memory_sharing.c, with children of this process. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "collect/kernel/memory_sharing.h"
#include "collect/kernel/process_maps.h"

#define MANY 600 /* more than are asked one by one */

static uint8_t stack[65536] __attribute__((aligned(16)));

static int wait_for_kill(void *arg)
{
	(void)arg;
	while (pause())
		;
	return 0;
}

static pid_t start_child(int flags)
{
	const pid_t pid = clone(wait_for_kill, stack + sizeof(stack), flags | SIGCHLD, NULL);

	assert_true(pid > 0);
	return pid;
}

static void end_child(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void test_child(void **state)
{
	pid_t before, child;

	(void)state;
	assert_false(memory_is_shared(getpid(), 0));
	before = memory_number_now();
	assert_true(before > 0);
	assert_false(memory_is_shared(getpid(), before));
	child = start_child(CLONE_VM);
	assert_true(memory_is_shared(getpid(), 0));
	assert_true(memory_is_shared(getpid(), before));
	assert_true(memory_is_shared(child, 0)); /* by its parent */
	assert_true(memory_is_shared(child, memory_number_now()));
	/* who says that it was not shared by then is believed */
	assert_false(memory_is_shared(getpid(), memory_number_now()));
	assert_true(memory_is_shared(getpid(), 0));
	end_child(child);
	assert_false(memory_is_shared(getpid(), before));
}

static int start_another(void *arg)
{
	static uint8_t others[65536] __attribute__((aligned(16)));

	*(pid_t *)arg = clone(wait_for_kill, others + sizeof(others), CLONE_VM | SIGCHLD, NULL);
	_exit(0);
}

/* The one in between has ended. */
static void test_grandchild(void **state)
{
	const pid_t before = memory_number_now();
	pid_t child, grandchild = 0;

	(void)state;
	child = clone(start_another, stack + sizeof(stack), CLONE_VM | SIGCHLD, &grandchild);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_true(grandchild > 0);
	assert_true(memory_is_shared(getpid(), 0));
	assert_true(memory_is_shared(getpid(), before));
	assert_true(memory_is_shared(grandchild, 0));
	kill(grandchild, SIGKILL);
	while (memory_is_shared(getpid(), 0))
		sched_yield();
	assert_false(memory_is_shared(getpid(), before));
}

static void *wait_for_word(void *arg)
{
	char c;

	return read(*(int *)arg, &c, 1) == 1 ? arg : NULL;
}

static void test_thread(void **state)
{
	const pid_t before = memory_number_now();
	pthread_t thread;
	int word[2];

	(void)state;
	assert_int_equal(pipe(word), 0);
	assert_int_equal(pthread_create(&thread, NULL, wait_for_word, word), 0);
	assert_false(memory_is_shared(getpid(), 0));
	assert_false(memory_is_shared(getpid(), before));
	assert_int_equal(write(word[1], "x", 1), 1);
	pthread_join(thread, NULL);
	close(word[0]);
	close(word[1]);
}

static void test_fork(void **state)
{
	const pid_t before = memory_number_now();
	const pid_t child = start_child(0);

	(void)state;
	assert_false(memory_is_shared(getpid(), 0));
	assert_false(memory_is_shared(getpid(), before));
	end_child(child);
}

static void test_many(void **state)
{
	const pid_t before = memory_number_now();
	const pid_t child = start_child(CLONE_VM);

	(void)state;
	for (int i = 0; i < MANY; i++)
		assert_true(memory_number_now() > 0);
	assert_true(memory_is_shared(getpid(), before));
	end_child(child);
	assert_false(memory_is_shared(getpid(), before));
}

static struct memory_sharers sharers_of(pid_t pid)
{
	struct memory_sharers s;

	memory_sharers_read(&s, pid);
	return s;
}

static void test_sharers(void **state)
{
	struct memory_sharers none = sharers_of(getpid()), one, two, other;
	const pid_t first = start_child(CLONE_VM);
	pid_t second;

	(void)state;
	one = sharers_of(getpid());
	second = start_child(CLONE_VM);
	two = sharers_of(getpid());
	end_child(first);
	other = sharers_of(getpid());
	end_child(second);
	assert_int_equal(none.v.n, 0);
	assert_int_equal(one.v.n, 1);
	assert_int_equal(one.v.v[0], first);
	assert_int_equal(two.v.n, 2);
	assert_int_equal(other.v.n, 1);
	assert_int_equal(other.v.v[0], second);
	assert_false(memory_sharers_meet(&none, &one));
	assert_true(memory_sharers_meet(&one, &two));
	assert_true(memory_sharers_meet(&two, &other));
	assert_false(memory_sharers_meet(&one, &other));
	memory_sharers_free(&none);
	memory_sharers_free(&one);
	memory_sharers_free(&two);
	memory_sharers_free(&other);
}

static int told[2];

/* Nobody is left where the test fails. */
static int wait_for_end(void *arg)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	return wait_for_kill(arg);
}

/* With a child in its memory, where one is asked for. */
static void *be_alone(void *shares)
{
	pid_t pid = 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (!process_is_ending(getpid()))
		sched_yield();
	if (shares)
		pid = clone(wait_for_end, stack + sizeof(stack), CLONE_VM | SIGCHLD, NULL);
	if (write(told[1], &pid, sizeof(pid)) == sizeof(pid))
		pause();
	return NULL;
}

/* It has no memory any more, as little as one that has ended; its other threads have. */
static void first_thread_ended(bool shares)
{
	const pid_t before = memory_number_now(), child = fork();
	pid_t ended, other = 0;
	pthread_t thread;

	if (!child) {
		pthread_create(&thread, NULL, be_alone, shares ? told : NULL);
		pthread_exit(NULL);
	}
	ended = fork();
	if (!ended)
		_exit(0);
	assert_int_equal(read(told[0], &other, sizeof(other)), sizeof(other));
	assert_int_equal(other > 0, shares);
	while (!process_is_ending(ended))
		sched_yield();
	assert_int_not_equal(process_memory_thread(child), child);
	assert_int_equal(process_memory_thread(ended), ended);
	assert_int_equal(memory_is_shared(child, 0), shares);
	assert_int_equal(memory_is_shared(child, before), shares);
	assert_false(memory_is_same(child, ended));
	assert_false(memory_is_same(ended, ended));
	if (shares) {
		assert_true(memory_is_same(child, other));
		kill(other, SIGKILL);
	}
	end_child(child);
	assert_int_equal(waitpid(ended, NULL, 0), ended);
}

static void test_first_thread_ended(void **state)
{
	(void)state;
	assert_int_equal(pipe(told), 0);
	first_thread_ended(false);
	first_thread_ended(true);
	close(told[0]);
	close(told[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_child),
		cmocka_unit_test(test_grandchild),
		cmocka_unit_test(test_thread),
		cmocka_unit_test(test_fork),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_sharers),
		cmocka_unit_test(test_first_thread_ended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
