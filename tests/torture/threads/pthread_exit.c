/* SPDX-License-Identifier: MIT */
/*
 * pthread_exit.c - threads leave from twenty frames down; clean-up handlers and destructors
 * of thread data run, instrumented like everything else.  Last, main itself leaves by
 * pthread_exit while a thread goes on.
 *
 * Build: O2 O0
 * Flags: -pthread -fexceptions
 * Calls: descend=4200 on_cleanup=4200 destroy=200 worker=200 outlive=1
 */
#include "torture.h"
#include <pthread.h>

static pthread_key_t key;
static int cleaned, destroyed;

OPAQUE static void on_cleanup(void *arg)
{
	__atomic_add_fetch((int *)arg, 1, __ATOMIC_RELAXED);
}
OPAQUE static void destroy(void *value)
{
	CHECK(value == &key);
	__atomic_add_fetch(&destroyed, 1, __ATOMIC_RELAXED);
}
OPAQUE static void descend(int n)
{
	pthread_cleanup_push(on_cleanup, &cleaned);
	if (n == 0)
		pthread_exit(&cleaned);
	descend(n - 1);
	pthread_cleanup_pop(0);
}
OPAQUE static void *worker(void *arg)
{
	CHECK(!pthread_setspecific(key, &key));
	descend(20);
	return arg;
}
OPAQUE static void *outlive(void *main_thread)
{
	CHECK(!pthread_join(*(pthread_t *)main_thread, NULL));
	printf("main left first\n");
	return NULL;
}

int main(void)
{
	static pthread_t self;
	pthread_t t[4];
	void *got;

	CHECK(!pthread_key_create(&key, destroy));
	for (int round = 0; round < 50; round++) {
		for (int i = 0; i < 4; i++)
			CHECK(!pthread_create(&t[i], NULL, worker, NULL));
		for (int i = 0; i < 4; i++) {
			CHECK(!pthread_join(t[i], &got));
			CHECK(got == &cleaned);
		}
	}
	CHECK(cleaned == 50 * 4 * 21);
	CHECK(destroyed == 50 * 4);
	self = pthread_self();
	CHECK(!pthread_create(&t[0], NULL, outlive, &self));
	pthread_exit(NULL);
}
