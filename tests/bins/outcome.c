/* SPDX-License-Identifier: MIT */
/*
 * outcome.c - runs a program and writes down how it ended; a shell cannot tell exit status 139
 * from death by SIGSEGV.
 *
 *   outcome FILE SECONDS CMD ARG...
 *
 * FILE gets "exited N", "signal N" or "timeout", and a line "left N" when processes of the
 * program were still there a second after its end; those are killed.  The program starts with
 * descriptors 0, 1 and 2 alone, default signal actions and an empty mask.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void nap(void)
{
	const struct timespec t = {0, 2000000};

	nanosleep(&t, NULL);
}

static void run(char **argv)
{
	static const unsigned long all_default[4]; /* struct sigaction as the kernel has it */
	sigset_t none;

	/* the kernel's call: libc's keeps two of them to itself */
	for (int sig = 1; sig < NSIG; sig++)
		syscall(SYS_rt_sigaction, sig, all_default, NULL, 8);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setpgid(0, 0);
	syscall(SYS_close_range, 3u, ~0u, 0u);
	execvp(argv[0], argv);
	_exit(errno == ENOENT ? 127 : 126);
}

/* Orphans become our children.  Gives them until the deadline; how many had to be killed. */
static int reap_orphans(double deadline)
{
	int left = 0;
	char path[64];

	while (waitpid(-1, NULL, WNOHANG) >= 0) {
		if (now() > deadline) {
			FILE *f;
			int pid;

			snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
			f = fopen(path, "r");
			while (f && fscanf(f, "%d", &pid) == 1) {
				left++;
				kill(pid, SIGKILL);
				waitpid(pid, NULL, 0);
			}
			if (f)
				fclose(f);
			if (left > 1000)
				break;
		}
		nap();
	}
	return left;
}

int main(int argc, char **argv)
{
	const struct rlimit no_core = {0, 0};
	double deadline;
	int status, left;
	pid_t pid;
	FILE *f;

	if (argc < 4) {
		fprintf(stderr, "usage: outcome FILE SECONDS CMD ARG...\n");
		return 99;
	}
	setrlimit(RLIMIT_CORE, &no_core);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	pid = fork();
	if (pid < 0)
		return 99;
	if (pid == 0)
		run(argv + 3);
	f = fopen(argv[1], "we");
	if (!f)
		return 99;
	deadline = now() + atof(argv[2]);
	while (waitpid(pid, &status, WNOHANG) == 0) {
		if (now() > deadline) {
			fprintf(f, "timeout\n");
			kill(-pid, SIGTERM);
			deadline = now() + 2;
			while (waitpid(pid, &status, WNOHANG) == 0 && now() < deadline)
				nap();
			kill(-pid, SIGKILL);
			waitpid(pid, &status, 0);
			status = -1;
			break;
		}
		nap();
	}
	if (status >= 0 && WIFEXITED(status))
		fprintf(f, "exited %d\n", WEXITSTATUS(status));
	else if (status >= 0)
		fprintf(f, "signal %d\n", WTERMSIG(status));
	left = reap_orphans(now() + 1);
	if (left)
		fprintf(f, "left %d\n", left);
	return fclose(f) ? 99 : 0;
}
