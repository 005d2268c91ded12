/* SPDX-License-Identifier: MIT */
/*
 * seccomp_threads.c - installs a filter that kills for system calls which the program itself
 * never makes, and then starts threads, some of them from threads, and forks.
 *
 * Build: O2 O0
 * Calls: before=100 work=15600 thread=8 child=3 main=1
 */
#include "torture.h"
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define ROUNDS 1200

OPAQUE static long before(long x)
{
	return x + 1;
}
OPAQUE static long work(long x)
{
	return x + 3;
}

/* What a tracer would like to ask, and the program does not. */
static void filter(void)
{
	static const unsigned killed[] = {SYS_getpid,  SYS_gettid,  SYS_getppid,     SYS_kcmp,
					  SYS_kill,    SYS_tgkill,  SYS_sched_yield, SYS_socket,
					  SYS_connect, SYS_sendmsg, SYS_recvmsg,     SYS_mremap};
	struct sock_filter code[64];
	unsigned n = 0;

	code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						 offsetof(struct seccomp_data, nr));
	for (unsigned i = 0; i < sizeof(killed) / sizeof(*killed); i++) {
		code[n++] =
			(struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, killed[i], 0, 1);
		code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	}
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	CHECK(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	CHECK(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER,
		     &(struct sock_fprog){(unsigned short)n, code}));
}

static long rounds(void)
{
	long x = 0;

	for (int i = 0; i < ROUNDS; i++)
		x = work(x);
	return x;
}

OPAQUE static void *thread(void *next)
{
	pthread_t t;

	CHECK(rounds() == 3 * ROUNDS);
	if (!next)
		return NULL;
	CHECK(!pthread_create(&t, NULL, thread, NULL));
	CHECK(!pthread_join(t, NULL));
	return NULL;
}

OPAQUE static int child(int status)
{
	CHECK(rounds() == 3 * ROUNDS);
	return status;
}

int main(void)
{
	pthread_t t[4];
	long x = 0;
	int status;

	for (int i = 0; i < 100; i++)
		x = before(x);
	filter();
	for (int i = 0; i < 4; i++)
		CHECK(!pthread_create(&t[i], NULL, thread, "another"));
	for (int i = 0; i < 3; i++) {
		pid_t pid = fork();

		if (!pid)
			_exit(child(i + 5));
		CHECK(waitpid(pid, &status, 0) == pid);
		CHECK(WEXITSTATUS(status) == i + 5);
	}
	for (int i = 0; i < 4; i++)
		CHECK(!pthread_join(t[i], NULL));
	CHECK(rounds() == 3 * ROUNDS);
	rounds();
	printf("filtered %ld\n", x);
	return 0;
}
