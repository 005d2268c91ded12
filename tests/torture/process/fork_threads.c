/* SPDX-License-Identifier: MIT */
/*
 * fork_threads.c - four threads fork at the same time while others work and call malloc; the
 * children call, start a thread of their own, and exit.
 *
 * Build: O2
 * Flags: -pthread
 * Calls: in_child=20000 forker=4 child_thread=100 main=1
 */
#include "torture.h"
#include <pthread.h>
#include <sys/wait.h>

static volatile int stop;

OPAQUE static unsigned long in_child(unsigned long x)
{
	return x * 5 + 1;
}
OPAQUE static unsigned long in_parent(unsigned long x)
{
	free(malloc(x % 5000));
	return x * 7 + 3;
}
OPAQUE static void *child_thread(void *arg)
{
	unsigned long x = 1;

	for (int i = 0; i < 100; i++)
		x = in_child(x);
	return (void *)(x & 1 ? arg : NULL);
}
OPAQUE static void *forker(void *arg)
{
	for (int i = 0; i < 25; i++) {
		pid_t pid = fork();
		int status;

		CHECK(pid >= 0);
		if (pid == 0) {
			pthread_t t;
			unsigned long x = 1;

			for (int k = 0; k < 100; k++)
				x = in_child(x);
			CHECK(!pthread_create(&t, NULL, child_thread, NULL));
			CHECK(!pthread_join(t, NULL));
			_exit((int)(x % 50));
		}
		CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	}
	return arg;
}
static void *worker(void *arg)
{
	unsigned long x = 1;

	while (!stop)
		x = in_parent(x);
	return arg;
}

int main(void)
{
	pthread_t f[4], w[2];

	for (int i = 0; i < 2; i++)
		CHECK(!pthread_create(&w[i], NULL, worker, NULL));
	for (int i = 0; i < 4; i++)
		CHECK(!pthread_create(&f[i], NULL, forker, NULL));
	for (int i = 0; i < 4; i++)
		CHECK(!pthread_join(f[i], NULL));
	stop = 1;
	for (int i = 0; i < 2; i++)
		CHECK(!pthread_join(w[i], NULL));
	puts("threads forked");
	return 0;
}
