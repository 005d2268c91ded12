/* SPDX-License-Identifier: MIT */
/*
 * steps.c - calls on command: for each number N read from stdin, each of PROCESSES processes
 * calls step() N times, and only then is "done" written.  So whoever drives it knows exactly how
 * many calls were made between two moments.
 *
 *   steps PROCESSES
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

__attribute__((noinline)) static unsigned long step(unsigned long x)
{
	__asm__ volatile("" : "+r"(x));
	return x + 1;
}

static void take_steps(long n)
{
	unsigned long x = 0;

	while (n-- > 0)
		x = step(x);
}

/* Answers each number on `in` with itself on `out`, when it is done. */
static void child_main(int in, int out)
{
	long n;

	while (read(in, &n, sizeof(n)) == sizeof(n)) {
		take_steps(n);
		if (write(out, &n, sizeof(n)) != sizeof(n))
			break;
	}
	_exit(0);
}

int main(int argc, char **argv)
{
	int children = (argc > 1 ? atoi(argv[1]) : 1) - 1;
	int to[16][2], from[16][2];
	char line[64];
	long n;

	if (children > 16)
		return 2;
	for (int i = 0; i < children; i++) {
		if (pipe(to[i]) || pipe(from[i]))
			return 3;
		if (!fork()) {
			for (int k = 0; k <= i; k++)
				close(to[k][1]);
			child_main(to[i][0], from[i][1]);
		}
	}
	while (fgets(line, sizeof(line), stdin)) {
		n = atol(line);
		take_steps(n);
		for (int i = 0; i < children; i++)
			if (write(to[i][1], &n, sizeof(n)) != sizeof(n))
				return 4;
		for (int i = 0; i < children; i++)
			if (read(from[i][0], &n, sizeof(n)) != sizeof(n))
				return 5;
		puts("done");
		fflush(stdout);
	}
	return 0;
}
