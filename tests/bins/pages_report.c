/* SPDX-License-Identifier: MIT */
/*
 * pages_report.c - touches variables and pages so often as its assembly says, for the reports of kron pages:
 *
 *   phases MS   pages 0..15, then, MS ms later, pages 16..47, then again 0..15; waits between them
 *   lines       two threads write to neighbours on one line, two to lines of their own; accesses across lines,
 *               string instructions, and what is longer than a line
 *   nodes MS    two threads, bound to processors 0 and 1, use pages; each waits MS ms then
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define AT ((char *)0x300000000000)

struct __attribute__((aligned(64))) {
	long a, b, rest[6]; /* one line, two writers */
} together;
struct __attribute__((aligned(64))) {
	long a, rest_a[7], b, rest_b[7]; /* two lines */
} apart;
static char *m;
static long ms = 100;

static __attribute__((noinline)) void touch(char *p, long reads, long writes)
{
	for (long i = 0; i < reads; i++)
		__asm__ volatile("movq (%0), %%rax" : : "r"(p) : "rax");
	for (long i = 0; i < writes; i++)
		__asm__ volatile("movq %%rax, (%0)" : : "r"(p) : "memory");
}

static void wait_ms(long n)
{
	const struct timespec t = {n / 1000, n % 1000 * 1000000};

	nanosleep(&t, NULL);
}

static void phases(void)
{
	for (long i = 0; i < 16; i++)
		touch(m + i * 4096, 100, 10);
	wait_ms(ms);
	for (long i = 16; i < 48; i++)
		touch(m + i * 4096, 7, 1000);
	wait_ms(ms);
	for (long i = 0; i < 16; i++)
		touch(m + i * 4096, 5, 0);
	wait_ms(ms);
}

static void *left(void *p)
{
	(void)p;
	touch((char *)&together.a, 3000, 1000);
	touch((char *)&apart.a, 30, 2000);
	return NULL;
}

static void *right(void *p)
{
	(void)p;
	touch((char *)&together.b, 500, 4000);
	touch((char *)&apart.b, 60, 5000);
	return NULL;
}

static __attribute__((noinline)) void strings(void)
{
	void *d = m + 32, *s;
	long n = 100;

	/* 32..131: lines 0: 32, 1: 64, 2: 4 writes */
	__asm__ volatile("rep stosb" : "+D"(d), "+c"(n) : "a"(0) : "memory");
	/* down from 512+56: 10 reads of words, of lines 8 and 7; to 1024+56: writes of lines 16 and 15 */
	d = m + 1024 + 56;
	s = m + 512 + 56;
	n = 10;
	__asm__ volatile("std\n rep movsq\n cld" : "+D"(d), "+S"(s), "+c"(n) : : "memory");
	/* across lines 20 and 21: 9 reads of each */
	for (int i = 0; i < 9; i++)
		__asm__ volatile("movq (%0), %%rax" : : "r"(m + 21 * 64 - 4) : "rax");
	/* 512 bytes at once: a write of each of lines 32..39 */
	__asm__ volatile("fxsave (%0)" : : "r"(m + 32 * 64) : "memory");
	/* two of one base, 64 bytes from first to last, in two lines: 50 and 51 */
	for (int i = 0; i < 5; i++)
		__asm__ volatile("movq 8(%0), %%rax\n movq %%rax, 64(%0)"
				 :
				 : "r"(m + 50 * 64)
				 : "rax", "memory");
}

static void *first(void *p)
{
	(void)p;
	for (long i = 0; i < 8; i++)
		touch(m + i * 4096, 300, 100);
	for (long i = 8; i < 16; i++)
		touch(m + i * 4096, 10, 0);
	wait_ms(ms); /* so that it is seen there */
	return NULL;
}

static void *second(void *p)
{
	(void)p;
	for (long i = 8; i < 16; i++)
		touch(m + i * 4096, 5000, 2000);
	for (long i = 16; i < 20; i++)
		touch(m + i * 4096, 50, 50);
	wait_ms(ms);
	return NULL;
}

static void both(void *(*a)(void *), void *(*b)(void *))
{
	pthread_t t[2];
	pthread_attr_t attr;
	cpu_set_t set;

	for (int i = 0; i < 2; i++) {
		CPU_ZERO(&set);
		CPU_SET(i, &set);
		pthread_attr_init(&attr);
		pthread_attr_setaffinity_np(&attr, sizeof(set), &set);
		if (pthread_create(&t[i], &attr, i ? b : a, NULL))
			exit(3);
	}
	pthread_join(t[0], NULL);
	pthread_join(t[1], NULL);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "phases";

	m = mmap(AT, 80 * 4096, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE | MAP_POPULATE, -1, 0);
	if (m == MAP_FAILED)
		return 1;
	if (argc > 2)
		ms = atol(argv[2]);
	if (!strcmp(what, "phases"))
		phases();
	if (!strcmp(what, "lines")) {
		both(left, right);
		strings();
	}
	if (!strcmp(what, "nodes"))
		both(first, second);
	return 0;
}
