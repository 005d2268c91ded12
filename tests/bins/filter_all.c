/* SPDX-License-Identifier: MIT */
/*
 * filter_all.c - threads make their first calls of counted() while the first thread puts a seccomp filter
 * on all of them, which kills for any system call but pause() and exit_group().
 */
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define THREADS 6
static volatile unsigned long sink;
static int ready, go, done; /* threads; atomic */

__attribute__((noinline)) unsigned long counted(unsigned long n)
{
	sink += n;
	return n + 1;
}

static void *work(void *arg)
{
	unsigned long n = 0;

	__atomic_add_fetch(&ready, 1, __ATOMIC_SEQ_CST);
	while (!__atomic_load_n(&go, __ATOMIC_SEQ_CST))
		;
	/* one after the other */
	for (unsigned long i = (unsigned long)arg * 300; i; i--)
		sink++;
	for (int i = 0; i < 50000; i++)
		n = counted(n);
	__atomic_add_fetch(&done, 1, __ATOMIC_SEQ_CST);
	for (;;)
		pause();
	return arg;
}

int main(void)
{
	struct sock_filter f[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pause, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog p = {sizeof(f) / sizeof(f[0]), f};
	pthread_t t;

	for (long i = 0; i < THREADS; i++)
		pthread_create(&t, NULL, work, (void *)i);
	while (__atomic_load_n(&ready, __ATOMIC_SEQ_CST) < THREADS)
		usleep(100);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return 9;
	__atomic_store_n(&go, 1, __ATOMIC_SEQ_CST);
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &p))
		return 8;
	while (__atomic_load_n(&done, __ATOMIC_SEQ_CST) < THREADS)
		;
	syscall(SYS_exit_group, 0);
}
