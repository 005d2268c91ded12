/* SPDX-License-Identifier: MIT */
/*
 * thread_data.c - three threads count their calls of counted(), whose argument says who calls: a number
 * of the thread in the upper 8 bits, of the call in the lower 24, from 1.
 *
 *   thread_data KIND ROUNDS   500 calls a round; 0 rounds: until a signal ends it
 *
 * The main thread is number 1, one of pthread_create() number 2, and number 3 is
 *   own      another one
 *   shared   a thread that clone() has made without data of its own
 *   small    one whose data ends 64 bytes after %fs; what follows cannot be read
 *   copy     one whose data is a copy of the main thread's, with the word at %fs:0 and the number in it
 * With KIND "gs" it is as with "own", and all check at each round that %gs leads where the main thread
 * has set it, or with "gs0" that its base is 0.
 *
 * Build it with -fno-stack-protector: number 3 has no stack guard.
 */
#define _GNU_SOURCE
#include <asm/prctl.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define THREADS 3
#define CALLS 500
#define STACK 65536

static uint64_t gs_word = 0x676f6f6467736773;
static long rounds;
static int sets_gs, has_no_gs;
static volatile int ended[THREADS + 1];

/* No library: number 3 has no data for it. */
static long system_call(long nr, long a, long b)
{
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(nr), "D"(a), "S"(b), "d"(0)
			 : "rcx", "r11", "memory");
	return ret;
}

__attribute__((noinline)) void counted(uint32_t call)
{
	__asm__ volatile("nop; nop; nop; nop; nop; nop" : : "r"(call));
}

static void check_gs(void)
{
	uint64_t found = 0;

	if (sets_gs)
		__asm__ volatile("mov %%gs:0, %0" : "=r"(found));
	if (has_no_gs)
		system_call(SYS_arch_prctl, ARCH_GET_GS, (long)&found);
	if (found != (sets_gs ? gs_word : 0))
		system_call(SYS_exit_group, 3, 0);
}

static void count(uint32_t number)
{
	const struct {
		long s, ns;
	} nap = {0, 500000};
	uint32_t n = 0;

	for (long r = 0; !rounds || r < rounds; r++) {
		for (int i = 0; i < CALLS; i++)
			counted(number << 24 | (++n & 0xffffff));
		check_gs();
		system_call(SYS_nanosleep, (long)&nap, 0);
	}
	ended[number] = 1;
}

static void *with_data(void *number)
{
	count((uint32_t)(uintptr_t)number);
	return NULL;
}

static int without_data(void *number)
{
	count((uint32_t)(uintptr_t)number);
	for (;;)
		system_call(SYS_exit, 0, 0);
}

static void start_bare(int flags, void *data)
{
	char *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	flags |= CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;
	if (stack == MAP_FAILED ||
	    clone(without_data, stack + STACK, flags, (void *)3, NULL, data, NULL) < 0)
		exit(99);
}

static char *small_data(void)
{
	char *at = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED || mprotect(at + 4096, 4096, PROT_NONE))
		exit(99);
	return at + 4096 - 64;
}

static char *copied_data(void)
{
	char *at = mmap(NULL, 16384, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *main_data;

	__asm__("mov %%fs:0, %0" : "=r"(main_data));
	if (at == MAP_FAILED)
		exit(99);
	return memcpy(at + 8192, main_data, 1024);
}

static void start_third(const char *kind)
{
	pthread_t t;

	if (!strcmp(kind, "shared"))
		start_bare(0, NULL);
	else if (!strcmp(kind, "small"))
		start_bare(CLONE_SETTLS, small_data());
	else if (!strcmp(kind, "copy"))
		start_bare(CLONE_SETTLS, copied_data());
	else if (pthread_create(&t, NULL, with_data, (void *)3))
		exit(99);
}

int main(int argc, char **argv)
{
	const char *kind = argc > 1 ? argv[1] : "own";
	pthread_t t;

	rounds = argc > 2 ? atol(argv[2]) : 1;
	sets_gs = !strcmp(kind, "gs");
	has_no_gs = !strcmp(kind, "gs0");
	if (sets_gs && syscall(SYS_arch_prctl, ARCH_SET_GS, &gs_word))
		exit(99);
	if (pthread_create(&t, NULL, with_data, (void *)2))
		exit(99);
	start_third(kind);
	puts("ready");
	fflush(stdout);
	count(1);
	while (!ended[2] || !ended[3])
		usleep(1000);
	return 0;
}
