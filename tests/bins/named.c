/* SPDX-License-Identifier: MIT */
/*
 * named.c - three threads, "first", "second" and "third", call work() some hundred times each, with
 * naps; prints their numbers.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const char *const names[] = {"first", "second", "third"};

__attribute__((noinline)) static unsigned long work(unsigned long x)
{
	__asm__ volatile("" : "+r"(x));
	return x * 2862933555777941757ul + 3037000493ul;
}

static void *thread_main(void *arg)
{
	const struct timespec nap = {.tv_nsec = 4000000};
	const char *name = arg;
	unsigned long x = 1;

	pthread_setname_np(pthread_self(), name);
	for (int i = 0; i < 150; i++) {
		x = work(x);
		nanosleep(&nap, NULL);
	}
	flockfile(stdout);
	printf("%s %ld\n", name, syscall(SYS_gettid));
	funlockfile(stdout);
	return (void *)x;
}

int main(void)
{
	pthread_t t[3];

	for (int i = 0; i < 3; i++)
		pthread_create(&t[i], NULL, thread_main, (void *)names[i]);
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	return 0;
}
