/* SPDX-License-Identifier: MIT */
/*
 * static_life.c - a program that tells by itself which thread called hit() how often.
 *
 *   static_life all ROUNDS     threads that come and go, a timer's handler in the midst of it,
 *                              fork, vfork; prints "TID CALLS" for each thread, sorted
 *   static_life die CALLS FILE two threads; one kills the process at its CALLS-th call; FILE has
 *                              the calls so far
 *   static_life env            its arguments and environment
 *   static_life exec PROG ARG… becomes PROG
 *   static_life filter CALLS   two threads, one of them new, under a seccomp filter that kills for
 *                              every system call but write and exit_group; "TID CALLS" of each
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#if __has_include(<linux/filter.h>) /* musl has none */
#include <linux/filter.h>
#include <linux/seccomp.h>
#endif

#define TIDS (1 << 22)
#define THREADS 4

extern char **environ;
static uint32_t *calls; /* by thread, in memory that children share */

static pid_t self(void)
{
	return (pid_t)syscall(SYS_gettid);
}

__attribute__((noinline)) void hit(pid_t who)
{
	__asm__ volatile("nop; nop; nop; nop; nop; nop");
	__atomic_fetch_add(&calls[who], 1, __ATOMIC_RELAXED);
}

static void *share(size_t len, const char *file)
{
	int fd = file ? open(file, O_RDWR | O_CREAT | O_TRUNC, 0600) : -1;
	void *at;

	if (file && (fd < 0 || ftruncate(fd, (off_t)len)))
		exit(99);
	at = mmap(NULL, len, PROT_READ | PROT_WRITE,
		  MAP_SHARED | MAP_NORESERVE | (file ? 0 : MAP_ANONYMOUS), fd, 0);
	if (at == MAP_FAILED)
		exit(99);
	return at;
}

/* ---- all ---- */

static void on_alarm(int sig)
{
	(void)sig;
	for (int i = 0; i < 3; i++)
		hit(self());
}

static void start_timer(void)
{
	const struct itimerval often = {{0, 700}, {0, 700}};

	setitimer(ITIMER_REAL, &often, NULL);
}

static void *work(void *n)
{
	for (long i = 0; i < (long)n; i++)
		hit(self());
	return NULL;
}

static void threads(long n)
{
	pthread_t t[THREADS];

	for (long i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, work, (void *)(n + i));
	for (long i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
}

static void child(void)
{
	start_timer();
	work((void *)500L);
	threads(50);
	signal(SIGALRM, SIG_IGN);
	_exit(0);
}

static int all(int rounds)
{
	struct sigaction sa = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
	pid_t me = self(), pid;

	calls = share(TIDS * sizeof(*calls), NULL);
	sigaction(SIGALRM, &sa, NULL);
	start_timer();
	for (int i = 0; i < rounds; i++) {
		threads(200);
		pid = fork();
		if (!pid)
			child();
		waitpid(pid, NULL, 0);
		pid = vfork(); /* runs as the thread that waits for it */
		if (!pid) {
			hit(me);
			_exit(0);
		}
		waitpid(pid, NULL, 0);
	}
	signal(SIGALRM, SIG_IGN);
	for (int i = 0; i < TIDS; i++)
		if (calls[i])
			printf("%d %u\n", i, calls[i]);
	return 0;
}

/* ---- die ---- */

static void *work_until_death(void *unused)
{
	(void)unused;
	for (;;)
		hit(0);
	return NULL;
}

static int die(long n, const char *file)
{
	pthread_t t;

	calls = share(4096, file);
	pthread_create(&t, NULL, work_until_death, NULL);
	while (n--)
		hit(1);
	kill(getpid(), SIGKILL);
	return 1;
}

/* ---- filter ---- */

#ifdef SECCOMP_SET_MODE_FILTER
static volatile pid_t other;
static volatile int go, done;

static void *work_filtered(void *n)
{
	pid_t me = self();

	other = me;
	while (!go)
		;
	for (long i = 0; i < (long)n; i++)
		hit(me);
	done = 1;
	for (;;)
		;
	return NULL;
}

static void set_filter(void)
{
	struct sock_filter f[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog p = {sizeof(f) / sizeof(f[0]), f};

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &p))
		exit(77);
}

static int filter(long n)
{
	char text[100];
	pid_t me = self();
	pthread_t t;
	int len;

	calls = share(TIDS * sizeof(*calls), NULL);
	hit(me);
	pthread_create(&t, NULL, work_filtered, (void *)n);
	while (!other)
		;
	set_filter();
	go = 1;
	for (long i = 0; i < n; i++)
		hit(me);
	while (!done)
		;
	len = snprintf(text, sizeof(text), "%d %u\n%d %u\n", me, calls[me], other, calls[other]);
	if (write(1, text, (size_t)len) != len)
		_exit(1);
	_exit(0);
}

#else
static int filter(long n)
{
	return (int)n;
}
#endif

/* ---- env ---- */

static int env(char **argv)
{
	for (; *argv; argv++)
		puts(*argv);
	for (char **e = environ; *e; e++)
		if (strncmp(*e, "_=", 2)) /* the shell: who is executed */
			puts(*e);
	return 3;
}

int main(int argc, char **argv)
{
	if (argc > 2 && !strcmp(argv[1], "all"))
		return all(atoi(argv[2]));
	if (argc > 3 && !strcmp(argv[1], "die"))
		return die(atol(argv[2]), argv[3]);
	if (argc > 2 && !strcmp(argv[1], "exec"))
		return execv(argv[2], argv + 2);
	if (argc > 2 && !strcmp(argv[1], "filter"))
		return filter(atol(argv[2]));
	return env(argv + 1);
}
