/* SPDX-License-Identifier: MIT */
/*
 * close_everything.c - a daemon's start: closes every descriptor, enters an empty chroot,
 * drops to another user, and then does its work, with new threads and children.
 *
 * What a tracer needs must not hang on a descriptor, a path or a right.
 *
 * Build: O2
 * Flags: -pthread
 * Needs: root
 * Calls: before=1000 after=1000 in_thread=1000 in_child=1000 many=400000 main=1
 * Exits: before=1000 after=1000 in_thread=1000 in_child=1000 many=400000
 */
#include "torture.h"
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define WORK(name)                                        \
	OPAQUE static unsigned long name(unsigned long x) \
	{                                                 \
		return x * 3 + 1;                         \
	}
WORK(before)
WORK(after)
WORK(in_thread)
WORK(in_child)
WORK(many)

static void *thread_main(void *arg)
{
	unsigned long x = 1;

	for (int i = 0; i < 1000; i++)
		x = in_thread(x);
	*(unsigned long *)arg = x;
	return NULL;
}

int main(void)
{
	unsigned long x = 1, y = 0, z = 1;
	pthread_t t;
	int status;
	pid_t pid;

	for (int i = 0; i < 1000; i++)
		x = before(x);
	CHECK(!mkdir("empty", 0755));
	CHECK(!chroot("empty") && !chdir("/"));
	/* Descriptor 1 comes back at the end, from a copy that no one closes. */
	CHECK(dup2(1, 3) == 3);
	CHECK(dup2(2, 4) == 4);
	CHECK(!syscall(SYS_close_range, 5u, ~0u, 0u));
	close(0);
	close(1);
	close(2);
	CHECK(!setgroups(0, NULL) && !setgid(65534) && !setuid(65534));
	CHECK(setuid(0) < 0);
	for (int i = 0; i < 1000; i++)
		x = after(x);
	CHECK(!pthread_create(&t, NULL, thread_main, &y));
	CHECK(!pthread_join(t, NULL));
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		for (int i = 0; i < 1000; i++)
			z = in_child(z);
		_exit((int)(z & 1) + 40);
	}
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	for (int i = 0; i < 400000; i++)
		z = many(z);
	/* The next descriptor is the lowest one: nobody took 0, 1, 2. */
	CHECK(dup(3) == 0 && dup(3) == 1 && dup(3) == 2);
	dprintf(1, "closed %lu %lu %d %lu\n", x, y, WEXITSTATUS(status), z);
	return 0;
}
