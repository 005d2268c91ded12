/* SPDX-License-Identifier: MIT */
/*
 * handed_on.c - what a program gets from who starts it: prints all of it.  With "odd" it first makes
 * all of it unusual, and executes the rest of its arguments.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

extern char **environ;

/* As the kernel has them: glibc keeps two signals to itself. */
static void set_raw(int sig, uintptr_t handler)
{
	const struct {
		uintptr_t handler;
		unsigned long flags;
		uintptr_t restorer;
		uint64_t mask;
	} set = {.handler = handler};

	syscall(SYS_rt_sigaction, sig, &set, NULL, 8);
}

static void become_odd(void)
{
	static const int ignored[] = {SIGINT,   SIGQUIT, SIGCHLD, SIGPIPE, SIGUSR2,
				      SIGWINCH, SIGXCPU, 32,      33,      64};
	static const int blocked[] = {SIGTERM, SIGHUP, SIGUSR1, SIGBUS, 32, 33, 40};
	const struct rlimit files = {77, 777}, size = {300 << 20, 500 << 20},
			    core = {1 << 20, 1 << 20};
	const struct itimerval hour = {.it_value.tv_sec = 3600};
	uint64_t mask = 0;
	cpu_set_t one;

	for (size_t i = 0; i < sizeof(ignored) / sizeof(*ignored); i++)
		set_raw(ignored[i], 1);
	for (size_t i = 0; i < sizeof(blocked) / sizeof(*blocked); i++)
		mask |= 1ull << (blocked[i] - 1);
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, 8);
	setrlimit(RLIMIT_NOFILE, &files);
	setrlimit(RLIMIT_FSIZE, &size);
	setrlimit(RLIMIT_CORE, &core);
	umask(027);
	setpriority(PRIO_PROCESS, 0, 3);
	prctl(PR_SET_TIMERSLACK, 77777);
	setitimer(ITIMER_REAL, &hour, NULL);
	CPU_ZERO(&one);
	CPU_SET(0, &one);
	sched_setaffinity(0, sizeof(one), &one);
	dup2(1, 9);
	setenv("HANDED", "on", 1);
}

static void show_file(const char *path, const char *const *keys)
{
	FILE *f = fopen(path, "r");
	char line[4096];

	while (f && fgets(line, sizeof(line), f))
		for (size_t i = 0; keys[i]; i++)
			if (!strncmp(line, keys[i], strlen(keys[i])))
				printf("%s: %s", path, line);
	if (f)
		fclose(f);
}

static void show_descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	struct dirent *e;

	while ((e = readdir(d))) {
		int fd = atoi(e->d_name);

		if (*e->d_name != '.' && fd != dirfd(d))
			printf("fd %d: flags %x %x\n", fd, fcntl(fd, F_GETFD), fcntl(fd, F_GETFL));
	}
	closedir(d);
}

int main(int argc, char **argv)
{
	static const char *const status[] = {"Umask",  "Threads",       "SigPnd",
					     "ShdPnd", "SigBlk",        "SigIgn",
					     "SigCgt", "NoNewPrivs",    "Seccomp",
					     "Cap",    "Cpus_allowed:", "Uid",
					     "Groups", "Mems_allowed:", NULL},
				 *const all[] = {"", NULL};
	struct itimerval timer;
	char where[4096];
	struct rlimit r;

	if (argc > 2 && !strcmp(argv[1], "odd")) {
		become_odd();
		execv(argv[2], argv + 2);
		return 127;
	}
	show_file("/proc/self/status", status);
	show_file("/proc/self/oom_score_adj", all);
	show_file("/proc/self/coredump_filter", all);
	show_file("/proc/self/cgroup", all);
	for (int i = 0; i < RLIM_NLIMITS; i++)
		if (!getrlimit((__rlimit_resource_t)i, &r))
			printf("limit %d: %llx %llx\n", i, (unsigned long long)r.rlim_cur,
			       (unsigned long long)r.rlim_max);
	for (int i = ITIMER_REAL; i <= ITIMER_PROF; i++)
		printf("timer %d: %d\n", i,
		       !getitimer((__itimer_which_t)i, &timer) && timer.it_value.tv_sec);
	printf("nice %d, policy %d, ioprio %ld, slack %d, dumpable %d, secure bits %d, personality %x\n",
	       getpriority(PRIO_PROCESS, 0), sched_getscheduler(0), syscall(SYS_ioprio_get, 1, 0),
	       prctl(PR_GET_TIMERSLACK), prctl(PR_GET_DUMPABLE), prctl(PR_GET_SECUREBITS),
	       personality(0xffffffff));
	printf("group %d, session %d, name %s, in %s\n", getpgrp(), getsid(0), argv[0],
	       getcwd(where, sizeof(where)));
	show_descriptors();
	for (char **e = environ; *e; e++)
		printf("environment: %s\n", *e);
	return 0;
}
