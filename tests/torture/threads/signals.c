/* SPDX-License-Identifier: MIT */
/*
 * signals.c - instrumented handlers under a storm: a fast timer and a thread that sends
 * SIGUSR1 without pause, both into the same thread's instrumented loop, handlers nesting.
 *
 * The work's result and its count of calls are exact whatever the signals do.
 *
 * Build: O2 O0
 * Flags: -pthread
 * Calls: work=20000 leaf=2000000 main=1
 * Exits: work=20000 leaf=2000000
 */
#include "torture.h"
#include <pthread.h>
#include <sys/time.h>

static volatile sig_atomic_t stop;
static unsigned long alarms, users;

OPAQUE static unsigned long leaf(unsigned long x)
{
	return x * 2862933555777941757ul + 3037000493ul;
}
OPAQUE static unsigned long work(unsigned long x)
{
	for (int i = 0; i < 100; i++)
		x = leaf(x);
	return x;
}
OPAQUE static void count(unsigned long *counter)
{
	(*counter)++;
}
OPAQUE static void on_alarm(int sig)
{
	int saved = errno;

	(void)sig;
	errno = 77;
	count(&alarms);
	CHECK(errno == 77);
	errno = saved;
}
OPAQUE static void on_user(int sig, siginfo_t *info, void *context)
{
	(void)context;
	CHECK(sig == SIGUSR1 && info->si_pid == getpid());
	count(&users);
}
static void *sender(void *target)
{
	/* Until the target has seen enough; it handles them as fast as they come. */
	while (!stop) {
		pthread_kill(*(pthread_t *)target, SIGUSR1);
		for (int i = 0; i < 200; i++)
			__builtin_ia32_pause();
	}
	return NULL;
}

int main(void)
{
	const struct itimerval fast = {{0, 100}, {0, 100}}, off = {{0, 0}, {0, 0}};
	struct sigaction alarm_action = {.sa_handler = on_alarm};
	struct sigaction user_action = {.sa_sigaction = on_user, .sa_flags = SA_SIGINFO};
	pthread_t self = pthread_self(), t;
	unsigned long x = 1;
	sigset_t mask;

	CHECK(!sigaction(SIGALRM, &alarm_action, NULL));
	CHECK(!sigaction(SIGUSR1, &user_action, NULL));
	CHECK(!sigemptyset(&mask) && !sigaddset(&mask, SIGALRM));
	CHECK(!pthread_sigmask(SIG_BLOCK, &mask, NULL));
	CHECK(!pthread_create(&t, NULL, sender, &self));
	CHECK(!pthread_sigmask(SIG_UNBLOCK, &mask, NULL));
	CHECK(!setitimer(ITIMER_REAL, &fast, NULL));
	for (int i = 0; i < 20000; i++)
		x = work(x);
	while (__atomic_load_n(&alarms, __ATOMIC_RELAXED) < 20 ||
	       __atomic_load_n(&users, __ATOMIC_RELAXED) < 200)
		usleep(100);
	CHECK(!setitimer(ITIMER_REAL, &off, NULL));
	stop = 1;
	CHECK(!pthread_join(t, NULL));
	printf("signals %lu\n", x);
	return 0;
}
