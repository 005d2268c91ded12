/* SPDX-License-Identifier: MIT */
/*
 * seccomp_strict.c - installs a filter that kills the process at any system call but read,
 * write and exit_group, and then works on, over many more samples than a chunk holds.
 *
 * Build: O2
 * Args: filter
 * Calls: before=100 main=1
 * Calls?: after=20000
 */
#include "torture.h"
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

OPAQUE static long before(long x)
{
	return x + 1;
}
OPAQUE static long after(long x)
{
	return x + 3;
}

static void filter(int by_syscall)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_read, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = {sizeof(code) / sizeof(*code), code};

	CHECK(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	if (by_syscall)
		CHECK(!syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog));
	else
		CHECK(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog));
}

/* What libseccomp does to learn what the kernel can: calls that must fail and change nothing. */
static void ask(void)
{
	CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 1, NULL) == -1);
	CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, NULL) == -1);
	CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL, 0, 0) == -1);
}

int main(int argc, char **argv)
{
	char text[64];
	long x = 0;
	int n;

	for (int i = 0; i < 100; i++)
		x = before(x);
	if (argc > 1 && !strcmp(argv[1], "ask"))
		ask();
	else if (argc > 1 && !strcmp(argv[1], "strict"))
		CHECK(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT));
	else
		filter(argc > 1 && !strcmp(argv[1], "syscall"));
	for (int i = 0; i < 20000; i++)
		x = after(x);
	n = snprintf(text, sizeof(text), "filtered %ld\n", x);
	if (write(1, text, (size_t)n) != n)
		syscall(SYS_exit_group, 1);
	/* strict mode knows exit alone */
	syscall(argc > 1 && !strcmp(argv[1], "strict") ? SYS_exit : SYS_exit_group, 0);
}
