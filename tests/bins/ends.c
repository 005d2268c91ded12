/* SPDX-License-Identifier: MIT */
/*
 * ends.c - says when it begins and when it ends: lines "PID begins|ends NANOSECONDS", of
 * CLOCK_MONOTONIC, appended to the file times.
 *
 *   ends MS         sleeps that long in between
 *   ends fork N     N children by fork, one after the other, that do so
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void say(const char *what)
{
	int fd = open("times", O_WRONLY | O_CREAT | O_APPEND, 0600);
	struct timespec ts;
	char line[80];

	clock_gettime(CLOCK_MONOTONIC, &ts);
	snprintf(line, sizeof(line), "%d %s %lld\n", getpid(), what,
		 (long long)ts.tv_sec * 1000000000 + ts.tv_nsec);
	if (write(fd, line, strlen(line)) < 0)
		_exit(9);
	close(fd);
}

__attribute__((noinline)) static void live(long ms)
{
	struct timespec ts = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

	say("begins");
	nanosleep(&ts, NULL);
	say("ends");
}

int main(int argc, char **argv)
{
	if (argc < 3) {
		live(argc > 1 ? atol(argv[1]) : 0);
		_exit(0);
	}
	for (int i = 0; i < atoi(argv[2]); i++) {
		pid_t pid = fork();

		if (!pid) {
			live(i % 3);
			_exit(0);
		}
		waitpid(pid, NULL, 0);
	}
	return 0;
}
