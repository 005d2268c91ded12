/* SPDX-License-Identifier: MIT */
/*
 * descriptors.c - the open descriptors are those of the untraced program: at start, after
 * dlopen, in a thread, in a child, after an exec.
 *
 * Build: O2
 * Flags: -pthread -ldl
 * Plugins: libplug0.so:plug.c
 * Calls: list=5 main=2
 */
#include "torture.h"
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/wait.h>

OPAQUE static void list(const char *when)
{
	DIR *d = opendir("/proc/self/fd");
	char open_ones[1024] = "", text[8192];
	struct dirent *e;
	int fd, n;

	CHECK(d);
	while ((e = readdir(d))) {
		fd = atoi(e->d_name);
		if (e->d_name[0] != '.' && fd != dirfd(d)) {
			CHECK(fd >= 0 && fd < 1024);
			open_ones[fd] = 1;
		}
	}
	closedir(d);
	n = snprintf(text, sizeof(text), "%s:", when);
	for (fd = 0; fd < 1024; fd++)
		if (open_ones[fd])
			n += snprintf(text + n, sizeof(text) - (size_t)n, " %d", fd);
	n += snprintf(text + n, sizeof(text) - (size_t)n, "\n");
	CHECK(write(1, text, (size_t)n) == n);
	fd = open("/dev/null", O_RDONLY);
	CHECK(fd >= 0 && !open_ones[fd]); /* the lowest free one */
	close(fd);
}

static void *thread_main(void *arg)
{
	list(arg);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t t;
	pid_t pid;

	if (argc == 2) {
		list("exec");
		return 0;
	}
	list("start");
	CHECK(dlopen("./libplug0.so", RTLD_NOW));
	list("dlopen");
	CHECK(!pthread_create(&t, NULL, thread_main, "thread"));
	CHECK(!pthread_join(t, NULL));
	pid = fork();
	if (pid == 0) {
		list("child");
		_exit(0);
	}
	CHECK(waitpid(pid, NULL, 0) == pid);
	execl(argv[0], argv[0], "again", NULL);
	CHECK(0);
}
