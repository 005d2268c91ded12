/* SPDX-License-Identifier: MIT */
/*
 * exec_self.c - executes itself twenty times in a row (same process id, new program each
 * time), once through /proc/self/exe, then with an empty environment, then with a NULL one.
 *
 * Build: O2
 * Calls: work=2300 main=23
 */
#include "torture.h"

extern char **environ;

OPAQUE static int work(int x)
{
	return x + 1;
}

int main(int argc, char **argv)
{
	int round = argc > 1 ? atoi(argv[1]) : 0, x = 0;
	char next[16];
	char *args[] = {argv[0], next, NULL};
	char *nothing[] = {NULL};

	for (int i = 0; i < 100; i++)
		x = work(x);
	CHECK(x == 100);
	snprintf(next, sizeof(next), "%d", round + 1);
	if (round < 20)
		execv(round == 7 ? "/proc/self/exe" : argv[0], args);
	else if (round == 20)
		execve(argv[0], args, nothing);
	else if (round == 21)
		execve(argv[0], args, NULL);
	CHECK(round == 22);
	CHECK(!environ || !environ[0]);
	printf("executed %d times\n", round);
	return 0;
}
