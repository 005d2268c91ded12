/* SPDX-License-Identifier: MIT */
/*
 * children.c - children that borrow their parent's memory, and some that do not.
 *
 *   children vfork     vfork, the child prepares and execs, from below the function that called vfork
 *   children failing   its execs fail, and it ends by _exit
 *   children killed    it is killed by a signal
 *   children inside    it calls vfork itself
 *   children spawn     posix_spawn and posix_spawnp; $PATH has two folders that are not there
 *   children thread    the same on threads with small stacks, two at once
 *   children shell     system and popen
 *   children place     exec in place of the program, three times
 *   children forked    fork, and an exec that fails
 */
#define _GNU_SOURCE
/* clang-format off */
#define CALLS(X)                                                                               \
	X(main, by_vfork) X(main, by_spawn) X(main, by_shell) X(main, by_fork) X(main, again)  \
	X(by_vfork, prepare) X(by_vfork, start) X(start, deeper) X(deeper, execv)              \
	X(by_vfork, reap) X(by_spawn, reap) X(by_fork, reap) X(nobody, hopeless)              \
	X(by_vfork, hopeless) X(hopeless, execv) X(by_vfork, doomed) X(by_vfork, grandparent)  \
	X(grandparent, start) X(grandparent, reap) X(again, execv) X(nobody, on_thread)        \
	X(on_thread, by_spawn) X(by_vfork, last)
/* clang-format on */
#include "truth.h"
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

extern char **environ;
static char *nothing[] = {"true", NULL};
static volatile int prepared;

NOINLINE void reap(pid_t pid)
{
	while (waitpid(pid, NULL, 0) < 0)
		;
	STAYS();
}

NOINLINE void prepare(void)
{
	prepared++;
}

NOINLINE void last(void)
{
	prepared--;
}

NOINLINE void deeper(void)
{
	char room[200];

	__asm__ volatile("" ::"r"(room) : "memory");
	CALL(deeper, execv);
	execv("/bin/true", nothing);
	STAYS();
}

NOINLINE void start(void)
{
	CALL(start, deeper);
	deeper();
	STAYS();
}

NOINLINE void hopeless(void)
{
	for (int i = 0; i < 3; i++) {
		CALL(hopeless, execv);
		execv("/nowhere/at/all", nothing);
	}
	STAYS();
}

NOINLINE void doomed(void)
{
	kill(getpid(), SIGKILL);
	STAYS();
}

NOINLINE void grandparent(void)
{
	pid_t pid = vfork();

	if (!pid) {
		CALL(grandparent, start);
		start();
		_exit(1);
	}
	CALL(grandparent, reap);
	reap(pid);
}

NOINLINE void by_vfork(int how)
{
	pid_t pid = vfork();

	if (!pid) {
		CALL(by_vfork, prepare);
		prepare();
		if (how == 'v') {
			CALL(by_vfork, start);
			start();
		} else if (how == 'f') {
			CALL(by_vfork, hopeless);
			hopeless();
		} else if (how == 'k') {
			CALL(by_vfork, doomed);
			doomed();
		} else {
			CALL(by_vfork, grandparent);
			grandparent();
		}
		_exit(1);
	}
	CALL(by_vfork, reap);
	reap(pid);
	CALL(by_vfork, last);
	last();
	STAYS();
}

NOINLINE void by_spawn(int with_path)
{
	pid_t pid;

	if (with_path ? posix_spawnp(&pid, "true", NULL, NULL, nothing, environ)
		      : posix_spawn(&pid, "/bin/true", NULL, NULL, nothing, environ))
		abort();
	CALL(by_spawn, reap);
	reap(pid);
	STAYS();
}

NOINLINE void by_shell(void)
{
	FILE *f;

	if (system("exit 0"))
		abort();
	f = popen("exit 0", "r");
	if (!f || pclose(f))
		abort();
}

NOINLINE void by_fork(void)
{
	pid_t pid = fork();

	if (!pid) { /* its trace begins here */
		CALL(nobody, hopeless);
		hopeless();
		_exit(1);
	}
	CALL(by_fork, reap);
	reap(pid);
	STAYS();
}

NOINLINE void again(char **argv)
{
	CALL(again, execv);
	execv("/proc/self/exe", argv);
	STAYS();
}

NOINLINE void *on_thread(void *arg)
{
	CALL(nobody, on_thread);
	for (int i = 0; i < 3; i++) {
		CALL(on_thread, by_spawn);
		by_spawn(i & 1);
	}
	return arg;
}

static void with_threads(void)
{
	pthread_attr_t a;
	pthread_t t[2];

	pthread_attr_init(&a);
	pthread_attr_setstacksize(&a, 128 << 10);
	for (int i = 0; i < 2; i++)
		pthread_create(&t[i], &a, on_thread, NULL);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	pthread_attr_destroy(&a);
}

int main(int argc, char **argv)
{
	int how = argc > 1 ? argv[1][0] : 0, left = argc > 2 ? argv[2][0] - '0' : 2;
	char count[] = {(char)('0' + left - 1), 0};
	char *next[] = {argv[0], argv[1], count, NULL};

	setenv("PATH", "/nowhere1:/nowhere2:/bin", 1);
	if (how == 'p' && left) {
		CALL(main, again);
		again(next);
	}
	if (how == 't')
		with_threads();
	for (int i = 0; i < 3 && how != 'p' && how != 't'; i++) {
		if (how == 's' && argv[1][1] == 'h') {
			CALL(main, by_shell);
			by_shell();
		} else if (how == 's') {
			CALL(main, by_spawn);
			by_spawn(i & 1);
		} else if (!strcmp(argv[1], "forked")) {
			CALL(main, by_fork);
			by_fork();
		} else {
			CALL(main, by_vfork);
			by_vfork(how);
		}
	}
	return 0;
}
