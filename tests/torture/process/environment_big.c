/* SPDX-License-Identifier: MIT */
/*
 * environment_big.c - executes itself with 2,000 variables, then with an odd and an even
 * number of few, and with an LD_PRELOAD of its own in first, middle and last place.
 *
 * Build: O2
 * Plugins: libplug0.so:plug.c
 * Calls: check=8 main=9
 */
#include "torture.h"
#include <sys/wait.h>

extern char **environ;

OPAQUE static void check(int n, int preload_at)
{
	int i;

	for (i = 0; environ[i]; i++) {
		char want[32];

		snprintf(want, sizeof(want), "VARIABLE_%d=%d", i, i * i);
		if (i == preload_at)
			CHECK(!strcmp(environ[i], "LD_PRELOAD=./libplug0.so"));
		else
			CHECK(!strcmp(environ[i], want));
	}
	CHECK(i == n);
}

static void again(char *self, int n, int preload_at)
{
	char **env = calloc((size_t)n + 1, sizeof(*env)), a[16], b[16];
	char *args[] = {self, a, b, NULL};
	int status;
	pid_t pid;

	snprintf(a, sizeof(a), "%d", n);
	snprintf(b, sizeof(b), "%d", preload_at);
	for (int i = 0; i < n; i++) {
		env[i] = malloc(32);
		snprintf(env[i], 32, "VARIABLE_%d=%d", i, i * i);
		if (i == preload_at)
			strcpy(env[i], "LD_PRELOAD=./libplug0.so");
	}
	pid = fork();
	if (pid == 0) {
		execve(self, args, env);
		_exit(98);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

int main(int argc, char **argv)
{
	if (argc == 3) {
		check(atoi(argv[1]), atoi(argv[2]));
		return 0;
	}
	again(argv[0], 2000, -1);
	again(argv[0], 0, -1);
	again(argv[0], 1, -1);
	again(argv[0], 2, -1);
	again(argv[0], 3, 0);
	again(argv[0], 3, 1);
	again(argv[0], 4, 3);
	again(argv[0], 1, 0);
	puts("environments kept");
	return 0;
}
