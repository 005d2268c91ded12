/* SPDX-License-Identifier: MIT */
/*
 * fork_late.c - children whose first probes are another thread's, and only then, at the same
 * time, those of the thread that forked.
 *
 * Build: O2
 * Flags: -pthread
 * Calls: in_thread=80000 in_first=80000 in_parent=1 main=1
 */
#include "torture.h"
#include <pthread.h>
#include <sys/wait.h>

static volatile int running;

OPAQUE static unsigned long in_thread(unsigned long x)
{
	running = 1;
	return x * 5 + 1;
}
OPAQUE static unsigned long in_first(unsigned long x)
{
	return x * 7 + 3;
}
OPAQUE static unsigned long in_parent(unsigned long x)
{
	return x + 1;
}

/* Without a function of its own that is traced: it is the kernel's entry into the thread. */
__attribute__((noinline)) static void *thread(void *arg)
{
	unsigned long x = (unsigned long)arg;

	for (int i = 0; i < 20000; i++)
		x = in_thread(x);
	return (void *)x;
}

int main(void)
{
	unsigned long x = in_parent(1);

	for (int child = 0; child < 4; child++) {
		pid_t pid = fork();
		pthread_t t;
		int status;

		CHECK(pid >= 0);
		if (pid == 0) {
			CHECK(!pthread_create(&t, NULL, thread, (void *)x));
			while (!running)
				__asm__ volatile("pause");
			for (int i = 0; i < 20000; i++)
				x = in_first(x);
			CHECK(!pthread_join(t, NULL));
			_exit(x ? 0 : 1);
		}
		CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	}
	puts("children done");
	return 0;
}
