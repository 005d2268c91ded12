/* SPDX-License-Identifier: MIT */
/*
 * floods.c - the parts of floods.py that have to be quick.
 *
 *   floods starts [CMD...]   begin CMD, print its pid; then, for each number in the input, start /bin/true
 *                            this many times and print how many microseconds each took
 *   floods listen NAME       a socket with this abstract name: take each connection, read once, close it
 */
#define _GNU_SOURCE
#include <spawn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static double now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

static pid_t start(char **argv)
{
	pid_t pid;

	if (posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ))
		exit(1);
	return pid;
}

static int starts(char **command)
{
	char *program[] = {"/bin/true", NULL};
	int n, status;

	if (*command) {
		printf("%d\n", start(command));
		fflush(stdout);
	}
	while (scanf("%d", &n) == 1) {
		for (; n; n--) {
			double began = now_us();

			if (waitpid(start(program), &status, 0) < 0 || status)
				return 1;
			printf("%.0f\n", now_us() - began);
		}
		fflush(stdout);
	}
	return 0;
}

static int take_all(const char *name)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), c;
	char message[4096];

	memcpy(a.sun_path + 1, name, strlen(name));
	if (s < 0 ||
	    bind(s, (struct sockaddr *)&a,
		 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name))) ||
	    listen(s, 1024))
		return 1;
	puts("ready");
	fflush(stdout);
	while ((c = accept4(s, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
		if (recv(c, message, sizeof(message), MSG_DONTWAIT) < 0)
			; /* it has said nothing yet */
		close(c);
	}
	return 1;
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "starts"))
		return starts(argv + 2);
	if (argc == 3 && !strcmp(argv[1], "listen"))
		return take_all(argv[2]);
	return 2;
}
