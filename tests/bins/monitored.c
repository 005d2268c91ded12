/* SPDX-License-Identifier: MIT */
/*
 * monitored.c THREADS ROUNDS [apart] - does what can be counted, counts it itself, and says so: for kron monitor.
 *
 *   calls N faults N switches N major N cpu_us N wall_us N
 *
 * "apart" lets a child do it, whose numbers the kernel says when it has ended: to its last moment.
 * With 0 ROUNDS threads wait in system calls that a stop would end with EINTR, and it says how often one did:
 *
 *   waits N interrupted N late N
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define THREADS 8
#define PAGES 3000

volatile unsigned long turns;
int level = -7;
double share = 0.25;
static unsigned long calls[THREADS][16], rounds;
static unsigned long waits, interrupted, late;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

__attribute__((noinline)) void work(int k)
{
	calls[k][0]++;
	for (volatile int i = 0; i < 2000; i++)
		;
}

static void *run(void *arg)
{
	const int k = (int)(long)arg;

	for (unsigned long i = 0; i < rounds; i++) {
		work(k);
		if (!k)
			turns++;
	}
	return NULL;
}

static int wait_once(int kind, int *fd)
{
	struct timespec ts = {.tv_nsec = 50000000};
	struct epoll_event e;
	struct sembuf op = {.sem_op = -1};
	sigset_t set;
	char byte;

	switch (kind) {
	case 0:
		return epoll_wait(*fd, &e, 1, 50);
	case 1:
		sigemptyset(&set);
		sigaddset(&set, SIGUSR1);
		return sigtimedwait(&set, NULL, &ts);
	case 2:
		return semtimedop(*fd, &op, 1, &ts);
	case 3:
		return (int)recv(*fd, &byte, 1, 0);
	default:
		return nanosleep(&ts, NULL);
	}
}

static void *wait_often(void *arg)
{
	const int kind = (int)(long)arg;
	struct timeval tv = {.tv_usec = 50000};
	int fd = -1, pair[2];

	if (kind == 0)
		fd = epoll_create1(0);
	if (kind == 2)
		fd = semget(IPC_PRIVATE, 1, 0600);
	if (kind == 3 && !socketpair(AF_UNIX, SOCK_STREAM, 0, pair)) {
		fd = pair[0];
		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	}
	for (int i = 0; i < 20; i++) {
		const double start = now();

		if (wait_once(kind, &fd) < 0 && errno == EINTR)
			__atomic_fetch_add(&interrupted, 1, __ATOMIC_RELAXED);
		if (now() - start < 0.049)
			__atomic_fetch_add(&late, 1, __ATOMIC_RELAXED);
		__atomic_fetch_add(&waits, 1, __ATOMIC_RELAXED);
	}
	if (kind == 2)
		semctl(fd, 0, IPC_RMID);
	return NULL;
}

static unsigned long do_it(int n)
{
	char *m = mmap(NULL, PAGES * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		       0);
	unsigned long all = 0;
	pthread_t t[THREADS];

	madvise(m, PAGES * 4096, MADV_NOHUGEPAGE);
	for (int i = 0; i < PAGES; i++)
		m[i * 4096] = 1;
	for (long k = 0; k < n; k++)
		pthread_create(&t[k], NULL, rounds ? run : wait_often, (void *)k);
	for (int k = 0; k < n; k++)
		pthread_join(t[k], NULL);
	for (int k = 0; k < n; k++)
		all += calls[k][0];
	return all;
}

static void add(struct rusage *to, const struct rusage *r)
{
	to->ru_minflt += r->ru_minflt;
	to->ru_majflt += r->ru_majflt;
	to->ru_nvcsw += r->ru_nvcsw;
	to->ru_nivcsw += r->ru_nivcsw;
	timeradd(&to->ru_utime, &r->ru_utime, &to->ru_utime);
	timeradd(&to->ru_stime, &r->ru_stime, &to->ru_stime);
}

int main(int argc, char **argv)
{
	const double start = now();
	const int n = argc > 1 ? atoi(argv[1]) : 1;
	struct rusage r, childs = {0};
	unsigned long all = 0;
	sigset_t set;
	pid_t pid = 0;

	rounds = argc > 2 ? strtoul(argv[2], NULL, 10) : 1000;
	if (n < 1 || n > THREADS)
		return 2;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	if (argc > 3)
		pid = fork();
	if (!pid)
		all = do_it(n);
	if (argc > 3 && !pid)
		_exit(0);
	if (pid)
		wait4(pid, NULL, 0, &childs);
	getrusage(RUSAGE_SELF, &r);
	add(&r, &childs);
	if (rounds)
		printf("calls %lu faults %ld switches %ld cpu_us %ld wall_us %.0f share %g\n", all,
		       r.ru_minflt + r.ru_majflt, r.ru_nvcsw + r.ru_nivcsw,
		       (r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1000000 + r.ru_utime.tv_usec +
			       r.ru_stime.tv_usec,
		       (now() - start) * 1e6, share);
	else
		printf("waits %lu interrupted %lu late %lu\n", waits, interrupted, late);
	return 5;
}
