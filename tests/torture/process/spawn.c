/* SPDX-License-Identifier: MIT */
/*
 * spawn.c - every way to start a process: vfork + exec, vfork + _exit, posix_spawn, spawnp
 * with file actions, raw clone with CLONE_VM | CLONE_VFORK, raw clone(SIGCHLD), popen, system,
 * and fexecve.  The program itself, called with an argument, is the child.
 *
 * Build: O2 O2,no-pie
 * Calls: child_work=900 in_vfork=200 in_clone=200 main=10
 */
#include "torture.h"
#include <fcntl.h>
#include <sched.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>

extern char **environ;
static char *self;

OPAQUE static int child_work(int x)
{
	return x + 1;
}
OPAQUE static int in_vfork(int x)
{
	return x + 2;
}
OPAQUE static int in_clone(int x)
{
	return x + 3;
}

static void reap(pid_t pid, int want)
{
	int status;

	CHECK(pid > 0);
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == want);
}

static char *const *args(void)
{
	static char *argv[3];

	argv[0] = self;
	argv[1] = "child";
	return argv;
}

static int clone_exec(void *arg)
{
	execv(self, args());
	_exit(*(int *)arg);
}

static void by_vfork(void)
{
	volatile int x = 0;
	pid_t pid = vfork();

	CHECK(pid >= 0);
	if (pid == 0) {
		for (int i = 0; i < 100; i++)
			x = in_vfork(x);
		execv(self, args());
		_exit(98);
	}
	CHECK(x == 200); /* the child ran in this memory */
	reap(pid, 42);
	pid = vfork();
	if (pid == 0) {
		for (int i = 0; i < 100; i++)
			x = in_vfork(x);
		_exit(17);
	}
	CHECK(x == 400);
	reap(pid, 17);
}

static void by_spawn(void)
{
	posix_spawn_file_actions_t fa;
	pid_t pid;

	CHECK(!posix_spawn(&pid, self, NULL, NULL, args(), environ));
	reap(pid, 42);
	CHECK(!posix_spawn_file_actions_init(&fa));
	CHECK(!posix_spawn_file_actions_addopen(&fa, 0, "/dev/null", O_RDONLY, 0));
	CHECK(!posix_spawn_file_actions_adddup2(&fa, 1, 9));
	CHECK(!posix_spawnp(&pid, self, &fa, NULL, args(), environ));
	reap(pid, 42);
	CHECK(posix_spawn(&pid, "/nonexistent", NULL, NULL, args(), environ) == ENOENT);
}

static void by_clone(void)
{
	static char stack[65536];
	int fallback = 97;
	pid_t pid = clone(clone_exec, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | SIGCHLD,
			  &fallback);

	reap(pid, 42);
	for (int n = 0; n < 2; n++) {
		int x = 0;

		pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
		if (pid == 0) {
			for (int i = 0; i < 100; i++)
				x = in_clone(x);
			syscall(SYS_exit_group, x == 300 ? 33 : 1);
		}
		reap(pid, 33);
	}
}

static void by_shell(void)
{
	char line[256], command[256];
	int status;
	FILE *f;

	snprintf(command, sizeof(command), "%s child; echo $?", self);
	f = popen(command, "r");
	CHECK(f && fgets(line, sizeof(line), f));
	CHECK(!strcmp(line, "42\n"));
	CHECK(pclose(f) == 0);
	snprintf(command, sizeof(command), "%s child", self);
	status = system(command);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 42);
}

int main(int argc, char **argv)
{
	pid_t pid;

	if (argc == 2) {
		int x = 0;

		for (int i = 0; i < 100; i++)
			x = child_work(x);
		return x == 100 ? 42 : 1;
	}
	self = argv[0];
	by_vfork();
	by_spawn();
	by_clone();
	by_shell();
	pid = fork();
	if (pid == 0) {
		execv(self, args());
		_exit(98);
	}
	reap(pid, 42);
	pid = fork();
	if (pid == 0) {
		int fd = open(self, O_RDONLY | O_CLOEXEC);

		fexecve(fd, args(), environ);
		_exit(98);
	}
	reap(pid, 42);
	pid = fork();
	if (pid == 0) {
		syscall(SYS_execve, self, args(), environ);
		_exit(98);
	}
	reap(pid, 42);
	puts("spawned");
	return 0;
}
