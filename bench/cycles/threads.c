/* SPDX-License-Identifier: MIT */
/*
 * threads.c - for cycles.py: a thousand threads that count their own calls.
 *
 *   threads N FILE    N threads, until standard input ends
 *
 * Each thread writes the number of its call to FILE before it makes the call, and hands it over.  One of ten
 * waits in a system call between its calls, each time another: none may fail with EINTR, none may be
 * shorter or much longer than was asked for.  What goes wrong is written to standard output.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <time.h>
#include <unistd.h>

#define LATE_MS 5000
#define EARLY_MS 5
#define ID_SHIFT 22 /* what is handed over has 32 bits: the thread, and the number of the call */

static atomic_int over, bad;
static volatile unsigned long *now;
static int pipe_fds[2], epoll, semaphores;

__attribute__((noinline)) unsigned long counted(unsigned long n)
{
	__asm__ volatile("" : "+r"(n));
	return n * 3 + 1;
}

__attribute__((noinline)) unsigned long other(unsigned long n)
{
	__asm__ volatile("" : "+r"(n));
	return n * 5 + 1;
}

static long now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static int way_nap(struct timespec *ts)
{
	return nanosleep(ts, NULL);
}

static int way_poll(struct timespec *ts)
{
	struct pollfd p = {.fd = pipe_fds[0], .events = POLLIN};

	return poll(&p, 1, (int)(ts->tv_nsec / 1000000));
}

static int way_select(struct timespec *ts)
{
	struct timeval tv = {.tv_usec = ts->tv_nsec / 1000};
	fd_set set;

	FD_ZERO(&set);
	FD_SET(pipe_fds[0], &set);
	return select(pipe_fds[0] + 1, &set, NULL, NULL, &tv);
}

static int way_epoll(struct timespec *ts)
{
	struct epoll_event e;

	return epoll_wait(epoll, &e, 1, (int)(ts->tv_nsec / 1000000));
}

static int way_signal(struct timespec *ts)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	return sigtimedwait(&set, NULL, ts) < 0 && errno != EAGAIN ? -1 : 0;
}

static int way_semop(struct timespec *ts)
{
	struct sembuf op = {.sem_op = -1};

	return semtimedop(semaphores, &op, 1, ts) < 0 && errno != EAGAIN ? -1 : 0;
}

static int way_lock(struct timespec *ts)
{
	struct timespec until;
	sem_t never;

	sem_init(&never, 0, 0);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += ts->tv_nsec;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	return sem_timedwait(&never, &until) < 0 && errno != ETIMEDOUT ? -1 : 0;
}

static int way_clock(struct timespec *ts)
{
	errno = clock_nanosleep(CLOCK_MONOTONIC, 0, ts, NULL);
	return errno ? -1 : 0;
}

static const struct {
	const char *name;
	int (*wait)(struct timespec *);
} ways[] = {{"nanosleep", way_nap},       {"poll", way_poll},
	    {"select", way_select},       {"epoll_wait", way_epoll},
	    {"sigtimedwait", way_signal}, {"semtimedop", way_semop},
	    {"sem_timedwait", way_lock},  {"clock_nanosleep", way_clock}};
enum { WAYS = sizeof(ways) / sizeof(*ways) };

static void wait_some_way(unsigned long turn)
{
	const long ms = turn % 9 ? 40 : 400, start = now_ms();
	struct timespec ts = {.tv_nsec = ms * 1000000};
	const int r = ways[turn % WAYS].wait(&ts);
	const int code = errno;
	const long took = now_ms() - start;

	if (over || (!r && took >= ms - EARLY_MS && took <= ms + LATE_MS))
		return;
	bad++;
	printf("%s: %s after %ld ms of %ld\n", ways[turn % WAYS].name,
	       r < 0 ? strerror(code) : "done", took, ms);
	fflush(stdout);
}

static void *run(void *arg)
{
	const unsigned long id = (unsigned long)arg;
	unsigned long n = 0;

	while (!over) {
		const unsigned long both = id << ID_SHIFT | ++n;

		now[id] = n;
		if (counted(both) != both * 3 + 1 || other(n) != n * 5 + 1) {
			bad++;
			printf("a wrong result\n");
		}
		if (id % 10)
			usleep((unsigned)(100000 + id * 200));
		else
			wait_some_way(id / 10 + n);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	const unsigned long threads = argc > 2 ? strtoul(argv[1], NULL, 10) : 10;
	const int fd = open(argc > 2 ? argv[2] : "now", O_RDWR | O_CREAT, 0600);
	struct epoll_event e = {.events = EPOLLIN};
	pthread_t *t = calloc(threads, sizeof(*t));
	pthread_attr_t attr;
	sigset_t set;
	char byte;

	if (pipe(pipe_fds) || ftruncate(fd, (off_t)(threads * sizeof(*now))))
		return 2;
	now = mmap(NULL, threads * sizeof(*now), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	epoll = epoll_create1(0);
	epoll_ctl(epoll, EPOLL_CTL_ADD, pipe_fds[0], &e);
	semaphores = semget(IPC_PRIVATE, 1, 0600);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 65536);
	for (unsigned long i = 0; i < threads; i++)
		if (pthread_create(&t[i], &attr, run, (void *)i))
			return 2;
	puts("ready");
	fflush(stdout);
	if (read(0, &byte, 1)) { /* its end, and not EINTR */
		bad++;
		printf("read: %s\n", strerror(errno));
	}
	over = 1;
	for (unsigned long i = 0; i < threads; i++)
		pthread_join(t[i], NULL);
	semctl(semaphores, 0, IPC_RMID);
	return bad != 0;
}
