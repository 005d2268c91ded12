/* SPDX-License-Identifier: MIT */
/*
 * process_state.c - what a process can ask about itself stays as it was: signals caught,
 * ignored and blocked, errno across calls, alternate stack, name, umask, limits, personality,
 * dumpable, no_new_privs, seccomp mode, thread count, children, timer slack, working directory.
 *
 * Build: O2 O0
 * Calls: touches_nothing=20000 main=1
 */
#include "torture.h"
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

OPAQUE static long touches_nothing(long x)
{
	return x + 1;
}

static void show_status(void)
{
	static const char *const keys[] = {
		"Name:",   "Umask:",  "Threads:",    "SigPnd:",  "ShdPnd:",    "SigBlk:",
		"SigIgn:", "SigCgt:", "NoNewPrivs:", "Seccomp:", "TracerPid:", "CapEff:"};
	FILE *f = fopen("/proc/self/status", "r");
	char line[512];

	CHECK(f);
	while (fgets(line, sizeof(line), f))
		for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
			if (!strncmp(line, keys[i], strlen(keys[i])))
				fputs(line, stdout);
	fclose(f);
}

int main(void)
{
	struct rlimit r;
	stack_t st;
	char name[17] = "";
	long x = 0;

	show_status();
	for (int sig = 1; sig < 65; sig++) {
		struct sigaction sa;

		if (!sigaction(sig, NULL, &sa))
			printf("%d:%s ", sig,
			       sa.sa_handler == SIG_DFL   ? "default"
			       : sa.sa_handler == SIG_IGN ? "ignored"
							  : "caught");
	}
	CHECK(!sigaltstack(NULL, &st));
	printf("\naltstack %d\n", st.ss_flags);
	CHECK(!prctl(PR_GET_NAME, name));
	printf("name %s\n", name);
	printf("umask %o\n", umask(077));
	for (int i = 0; i < RLIM_NLIMITS; i++) {
		CHECK(!getrlimit((__rlimit_resource_t)i, &r));
		printf("%lx/%lx ", (unsigned long)r.rlim_cur, (unsigned long)r.rlim_max);
	}
	printf("\npersonality %x\n", personality(0xffffffff));
	printf("dumpable %d\n", prctl(PR_GET_DUMPABLE));
	printf("slack %d\n", prctl(PR_GET_TIMERSLACK));
	printf("subreaper %d\n", (prctl(PR_GET_CHILD_SUBREAPER, name), name[0]));
	printf("pdeathsig %d\n", (prctl(PR_GET_PDEATHSIG, name), name[0]));
	CHECK(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
	for (int i = 0; i < 20000; i++) {
		errno = i % 133;
		x = touches_nothing(x);
		if (errno != i % 133)
			check_failed("errno changed", __FILE__, __LINE__);
	}
	show_status();
	printf("%ld\n", x);
	return 0;
}
