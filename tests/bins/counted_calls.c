/* SPDX-License-Identifier: MIT */
/*
 * counted_calls.c - counted_calls COUNTERS THREADS END: each thread calls tick(n), n = 1, 2, ..., with the
 * number in its word of the file COUNTERS before each call, until there is a file "stop".  Then, or after
 * END = "N:HOW" with its N-th call, the program ends: exit, abort, segv.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static volatile uint32_t *counters;
static uint32_t last;
static const char *how = "exit";
volatile uint32_t sink;

__attribute__((noinline)) void tick(uint32_t n)
{
	sink = n;
}

static void end(void)
{
	if (!strcmp(how, "abort"))
		abort();
	if (!strcmp(how, "segv"))
		*(volatile int *)8 = 1;
}

static void *work(void *arg)
{
	volatile uint32_t *counter = &counters[(uintptr_t)arg];

	for (uint32_t n = 1; !last || n <= last; n++) {
		*counter = n;
		tick(n);
		if (!last && !(n % 4096) && !access("stop", F_OK))
			break;
	}
	if (!arg)
		end();
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[64];
	uintptr_t n = argc > 2 ? strtoul(argv[2], NULL, 10) : 1;
	int fd = open(argv[1], O_RDWR | O_CREAT, 0600);

	if (fd < 0 || ftruncate(fd, 4096))
		return 2;
	counters = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (argc > 3) {
		last = (uint32_t)strtoul(argv[3], NULL, 10);
		how = strchr(argv[3], ':') + 1;
	}
	puts("started");
	fflush(stdout);
	for (uintptr_t i = 1; i < n; i++)
		pthread_create(&threads[i], NULL, work, (void *)i);
	work(NULL);
	for (uintptr_t i = 1; i < n; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
