/* SPDX-License-Identifier: MIT */
/*
 * live_life.c - a program that is attached to while it runs, and that notices what it should not.
 *
 *   live_life N    N threads of each kind, until SIGTERM; then a line of what they have seen:
 *
 *   counters   call counted() with 1, 2, 3 …, each from its own thread
 *   waiters    wait in a system call of each kind, some with a time limit: none may fail with EINTR,
 *              none may wait shorter or much longer than it asked for
 *   handlers   are interrupted by a timer anywhere in their code, on their stack and on another one; the
 *              handler takes its time and returns
 *   throwers   leave by longjmp from ten calls deep
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LATE_MS 3000
#define EARLY_MS 5
#define SHORT_MS 40
#define LONG_MS 400

static atomic_int over;
static atomic_ulong interrupted, early, late, wrong, handled;

/* ---- counters ---- */

static volatile unsigned long sink;

__attribute__((noinline)) unsigned long counted(unsigned long n)
{
	sink += n;
	return n + 1;
}

static void *count(void *arg)
{
	unsigned long n = 1;

	(void)arg;
	while (!over) {
		for (int i = 0; i < 100; i++)
			n = counted(n);
		usleep(500);
	}
	return NULL;
}

/* ---- waiters ---- */

static long now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static int pipe_fds[2], sockets[2], queue, semaphores, epoll;

static int wait_read(int ms)
{
	char byte;

	(void)ms; /* the socket has its own limit */
	return recv(sockets[0], &byte, 1, 0) < 0 && errno != EAGAIN ? errno : 0;
}

static int wait_poll(int ms)
{
	struct pollfd p = {.fd = pipe_fds[0], .events = POLLIN};

	return poll(&p, 1, ms) < 0 ? errno : 0;
}

static int wait_select(int ms)
{
	struct timeval tv = {.tv_usec = ms * 1000};
	fd_set set;

	FD_ZERO(&set);
	FD_SET(pipe_fds[0], &set);
	return select(pipe_fds[0] + 1, &set, NULL, NULL, &tv) < 0 ? errno : 0;
}

static int wait_epoll(int ms)
{
	struct epoll_event e;

	return epoll_wait(epoll, &e, 1, ms) < 0 ? errno : 0;
}

static int wait_nap(int ms)
{
	struct timespec ts = {.tv_nsec = ms * 1000000l};

	return nanosleep(&ts, NULL) ? errno : 0;
}

static int wait_signal(int ms)
{
	struct timespec ts = {.tv_nsec = ms * 1000000l};
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	return sigtimedwait(&set, NULL, &ts) < 0 && errno != EAGAIN ? errno : 0;
}

static int wait_semop(int ms)
{
	struct timespec ts = {.tv_nsec = ms * 1000000l};
	struct sembuf op = {.sem_op = -1};

	return semtimedop(semaphores, &op, 1, &ts) < 0 && errno != EAGAIN ? errno : 0;
}

static int wait_lock(int ms)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
	struct timespec ts;
	int code;

	clock_gettime(CLOCK_REALTIME, &ts);
	ts.tv_nsec += ms * 1000000l;
	ts.tv_sec += ts.tv_nsec / 1000000000;
	ts.tv_nsec %= 1000000000;
	pthread_mutex_lock(&lock);
	code = pthread_cond_timedwait(&never, &lock, &ts);
	pthread_mutex_unlock(&lock);
	return code == ETIMEDOUT ? 0 : code;
}

static int wait_child(int ms)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		usleep((unsigned)ms * 1000);
		_exit(3);
	}
	if (pid < 0)
		return 0;
	return waitpid(pid, &status, 0) != pid || WEXITSTATUS(status) != 3 ? errno : 0;
}

static int (*const ways[])(int) = {wait_read,   wait_poll,  wait_select, wait_epoll, wait_nap,
				   wait_signal, wait_semop, wait_lock,   wait_child};
enum { WAYS = sizeof(ways) / sizeof(*ways) };

static void *wait_in_turn(void *arg)
{
	for (unsigned long i = (unsigned long)arg; !over; i += 7) {
		const int ms = i % 5 ? SHORT_MS : LONG_MS;
		const long least = i % WAYS ? ms : SHORT_MS; /* wait_read() */
		const long start = now_ms();
		long took;
		int code = ways[i % WAYS](ms);

		if (code)
			fprintf(stderr, "way %lu: %s\n", i % WAYS, strerror(code));
		interrupted += code == EINTR;
		wrong += code && code != EINTR;
		took = now_ms() - start;
		if (!code && !over && took < least - EARLY_MS) {
			fprintf(stderr, "way %lu: %ld ms of %ld\n", i % WAYS, took, least);
			early++;
		}
		late += took > ms + LATE_MS;
	}
	return NULL;
}

/* One for each kind that waits without a limit, from the first moment to the last. */
static void *wait_for_ever(void *arg)
{
	const long kind = (long)arg;
	struct epoll_event e;
	char byte, message[64];
	int code = 0;

	if (kind == 0)
		code = read(pipe_fds[0], &byte, 1) == 1 ? 0 : errno;
	else if (kind == 1)
		code = epoll_wait(epoll, &e, 1, -1) == 1 ? 0 : errno;
	else
		code = msgrcv(queue, message, sizeof(message) - sizeof(long), 0, 0) < 0 ? errno : 0;
	interrupted += code == EINTR;
	wrong += code && code != EINTR;
	return NULL;
}

/* ---- handlers ---- */

static void on_timer(int signal)
{
	unsigned long n = 0;

	(void)signal;
	for (int i = 0; i < 2000; i++)
		n = counted(n & 7);
	handled++;
}

__attribute__((noinline)) static int fib(int n)
{
	return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

static void *be_interrupted(void *arg)
{
	static __thread char stack[65536];
	stack_t s = {.ss_sp = stack, .ss_size = sizeof(stack)};
	struct sigevent ev = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN};
	struct itimerspec every = {{0, 2000000}, {0, 2000000}};
	timer_t timer;

	ev.sigev_signo = SIGRTMIN + ((long)arg & 1);
	ev._sigev_un._tid = gettid();
	sigaltstack(&s, NULL);
	if (timer_create(CLOCK_MONOTONIC, &ev, &timer) || timer_settime(timer, 0, &every, NULL))
		wrong++;
	while (!over) {
		wrong += fib(14) != 377;
		usleep(1000); /* it may be interrupted, by right */
	}
	timer_delete(timer);
	s.ss_flags = SS_DISABLE;
	sigaltstack(&s, NULL);
	return NULL;
}

/* ---- throwers ---- */

__attribute__((noinline)) static int deep(jmp_buf *buf, int n)
{
	if (!n && sink + 1)
		longjmp(*buf, 1);
	return n ? deep(buf, n - 1) + 1 : 0;
}

static void *leave(void *arg)
{
	jmp_buf buf;

	(void)arg;
	while (!over) {
		if (!setjmp(buf))
			wrong += deep(&buf, 10) != 0;
		usleep(300);
	}
	return NULL;
}

/* ---- all of them ---- */

static void end(int signal)
{
	(void)signal;
	over = 1;
}

int main(int argc, char **argv)
{
	static void *(*const kinds[])(void *) = {count, wait_in_turn, be_interrupted, leave};
	const long n = argc > 1 ? atol(argv[1]) : 2;
	pthread_t threads[4 * n + 3];
	struct sigaction act = {.sa_handler = on_timer};
	struct timeval limit = {.tv_usec = SHORT_MS * 1000};
	struct epoll_event e = {.events = EPOLLIN};
	struct {
		long type;
		char text[8];
	} message = {1, ""};
	long k = 0;
	sigset_t set;

	if (pipe(pipe_fds) || socketpair(AF_UNIX, SOCK_DGRAM, 0, sockets))
		return 2;
	setsockopt(sockets[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	epoll = epoll_create1(0);
	epoll_ctl(epoll, EPOLL_CTL_ADD, pipe_fds[0], &e);
	queue = msgget(IPC_PRIVATE, 0600);
	semaphores = semget(IPC_PRIVATE, 1, 0600);
	sigaction(SIGRTMIN, &act, NULL);
	act.sa_flags = SA_ONSTACK | SA_RESTART;
	sigaction(SIGRTMIN + 1, &act, NULL);
	signal(SIGTERM, end);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	sigaddset(&set, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	for (long i = 0; i < 4 * n; i++)
		pthread_create(&threads[k++], NULL, kinds[i % 4], (void *)(i / 4));
	for (long i = 0; i < 3; i++)
		pthread_create(&threads[k++], NULL, wait_for_ever, (void *)i);
	sigdelset(&set, SIGUSR2);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	puts("ready");
	fflush(stdout);
	while (!over)
		usleep(1000);
	if (write(pipe_fds[1], "xx", 2) != 2 || msgsnd(queue, &message, sizeof(message.text), 0))
		return 2;
	while (k)
		pthread_join(threads[--k], NULL);
	msgctl(queue, IPC_RMID, NULL);
	semctl(semaphores, 0, IPC_RMID);
	printf("interrupted %lu early %lu late %lu wrong %lu handled %s\n", interrupted, early,
	       late, wrong, handled ? "some" : "none");
	return interrupted || early || late || wrong;
}
