/* SPDX-License-Identifier: MIT */
/*
 * tap_fork.h - a test program whose tests each run in a child of their own: the runtime's
 * state is the process's, and some tests kill it.  Prints TAP.
 *
 *     int main(int argc, char **argv) { return tap_main(tests, NTESTS, argc, argv); }
 *
 * With an argument, only the test of that name runs, without a child: for the debugger.
 */
#ifndef TESTS_TAP_FORK_H
#define TESTS_TAP_FORK_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct tap_test {
	const char *name;
	void (*run)(void);
};

#define TAP_LIMIT_SECONDS 60
#define TAP_SKIP 77

#define CHECK(condition)                                                               \
	do {                                                                           \
		if (!(condition)) {                                                    \
			fprintf(stderr, "# %s:%d: not true: %s\n", __FILE__, __LINE__, \
				#condition);                                           \
			_exit(1);                                                      \
		}                                                                      \
	} while (0)

#define CHECK_EQ(a, b)                                                                       \
	do {                                                                                 \
		unsigned long long a_ = (unsigned long long)(a);                             \
		unsigned long long b_ = (unsigned long long)(b);                             \
		if (a_ != b_) {                                                              \
			fprintf(stderr, "# %s:%d: %s = %llu (0x%llx), %s = %llu (0x%llx)\n", \
				__FILE__, __LINE__, #a, a_, a_, #b, b_, b_);                 \
			_exit(1);                                                            \
		}                                                                            \
	} while (0)

static int tap_run(const struct tap_test *t)
{
	int status = 0;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		alarm(TAP_LIMIT_SECONDS);
		t->run();
		fflush(NULL);
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return 99;
	if (WIFSIGNALED(status)) {
		fprintf(stderr, "# %s: %s\n", t->name, strsignal(WTERMSIG(status)));
		return 128 + WTERMSIG(status);
	}
	return WEXITSTATUS(status);
}

static int tap_main(const struct tap_test *tests, size_t n, int argc, char **argv)
{
	int failed = 0;
	size_t i;

	if (argc > 1) {
		for (i = 0; i < n; i++) {
			if (strcmp(tests[i].name, argv[1]) == 0) {
				tests[i].run();
				return 0;
			}
		}
		fprintf(stderr, "no test of that name: %s\n", argv[1]);
		return 99;
	}
	printf("1..%zu\n", n);
	for (i = 0; i < n; i++) {
		int status = tap_run(&tests[i]);

		printf("%s %zu - %s%s\n", status == 0 || status == TAP_SKIP ? "ok" : "not ok",
		       i + 1, tests[i].name, status == TAP_SKIP ? " # SKIP" : "");
		failed += status != 0 && status != TAP_SKIP;
	}
	return failed != 0;
}

#endif
