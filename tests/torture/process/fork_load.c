/* SPDX-License-Identifier: MIT */
/*
 * fork_load.c - forks under load: the parent keeps calling while children call, fork again
 * and exit, some by _exit, some by exit, some by a signal.
 *
 * Build: O2 O0
 * Calls: work=130000 child=120 grandchild=40 main=1
 */
#include "torture.h"
#include <sys/wait.h>

#define CHILDREN 120

OPAQUE static unsigned long work(unsigned long x)
{
	return x * 2862933555777941757ul + 3037000493ul;
}
static unsigned long works(unsigned long x, int n)
{
	while (n--)
		x = work(x);
	return x;
}
OPAQUE static void grandchild(unsigned long x)
{
	x = works(x, 250);
	_exit(x == 0);
}
OPAQUE static void child(int i)
{
	unsigned long x = works((unsigned long)i, 500);

	if (i % 3 == 0) {
		pid_t pid = fork();
		int status;

		CHECK(pid >= 0);
		if (pid == 0)
			grandchild(x);
		CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	}
	if (i % 3 == 1) {
		raise(SIGKILL);
		CHECK(0);
	}
	if (i % 2)
		_exit(i % 100);
	exit(i % 100);
}

int main(void)
{
	pid_t pids[CHILDREN];
	unsigned long x = 1;

	for (int i = 0; i < CHILDREN; i++) {
		pids[i] = fork();
		CHECK(pids[i] >= 0);
		if (pids[i] == 0)
			child(i);
		x = works(x, 500);
	}
	for (int i = 0; i < CHILDREN; i++) {
		int status;

		CHECK(waitpid(pids[i], &status, 0) == pids[i]);
		if (i % 3 == 1)
			CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
		else
			CHECK(WIFEXITED(status) && WEXITSTATUS(status) == i % 100);
	}
	printf("forked %lu\n", x);
	return 0;
}
