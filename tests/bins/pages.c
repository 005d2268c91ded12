/* SPDX-License-Identifier: MIT */
/*
 * pages.c - touches pages so often as its assembly says.  Prints the address of its memory, and with
 * "stack" anything else that is asked for:
 *
 *   kernel    loads, stores and both in a stride; an access across two pages; strings, down as well
 *   threads   four threads, each the same
 *   fork      the same in a child, which is killed
 *   kill      the same, and then it is killed
 *   exec      the same, and it executes itself
 *   handlers  the same, while handlers on the same thread do it, too
 *   live      loads by several registers while all registers and flags are in use; exits 2 if one changes
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGES 80L
#define ROUNDS 500
static char *m;

/* Of each page 0..63: 2 reads and 2 writes a round. */
static __attribute__((noinline)) void stride(void)
{
	for (int r = 0; r < ROUNDS; r++)
		for (long i = 0; i < 64; i++)
			__asm__ volatile("movq (%0), %%rax\n"
					 "movq %%rax, 8(%0)\n"
					 "addl $1, 16(%0)\n"
					 :
					 : "r"(m + i * 4096)
					 : "rax", "memory", "cc");
}

static __attribute__((noinline)) void others(void)
{
	char *p = m + 64 * 4096, *q = p + 4096;
	long n = 5000;
	void *d = p, *s;

	/* across 64 and 65: a write of each */
	__asm__ volatile("movl $7, -2(%0)" : : "r"(q) : "memory");
	/* 64: 4096 writes, 65: 904 */
	__asm__ volatile("rep stosb" : "+D"(d), "+c"(n) : "a"(0) : "memory");
	/* 66: 512 reads; 68, from its last quadword down: 512 writes of words of 8 */
	d = m + 69 * 4096 - 8;
	s = m + 67 * 4096 - 8;
	n = 512;
	__asm__ volatile("std\n rep movsq\n cld" : "+D"(d), "+S"(s), "+c"(n) : : "memory");
	/* 70: one read, 71: one write, none of both */
	d = m + 71 * 4096;
	s = m + 70 * 4096;
	__asm__ volatile("movsb" : "+D"(d), "+S"(s) : : "memory");
	n = 0;
	__asm__ volatile("rep movsb" : "+D"(d), "+S"(s), "+c"(n) : : "memory");
	/* 72: 100 reads and writes by a lock, with the flags alive; 73: 16 bytes at once, 10 reads */
	for (int i = 0; i < 100; i++)
		__asm__ volatile("stc\n lock incl (%0)\n jnc 1f\n 1:"
				 :
				 : "r"(m + 72 * 4096)
				 : "memory", "cc");
	for (int i = 0; i < 10; i++)
		__asm__ volatile("movdqa 32(%0), %%xmm3" : : "r"(m + 73 * 4096) : "xmm3");
	/* 74: a pushed and a popped operand; the other halves are the stack's */
	__asm__ volatile(
		"lea -128(%%rsp), %%rsp\n pushq 8(%0)\n popq 16(%0)\n lea 128(%%rsp), %%rsp"
		:
		: "r"(m + 74 * 4096)
		: "memory");
	/* 75: hints are none; 76: an index, and what is only computed */
	__asm__ volatile("prefetcht0 (%0)\n nopl (%0)\n lea (%0), %%rax"
			 :
			 : "r"(m + 75 * 4096)
			 : "rax");
	__asm__ volatile("movb 5(%0, %1, 8), %%al" : : "r"(m + 76 * 4096 - 80), "r"(10L) : "rax");
}

static void *thread(void *p)
{
	(void)p;
	stride();
	return NULL;
}

static void on_timer(int sig)
{
	(void)sig;
	__asm__ volatile("incq 24(%0)" : : "r"(m + 77 * 4096) : "memory", "cc");
}

static void threads(void)
{
	pthread_t t[4];

	for (int i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, thread, NULL);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
}

static void handlers(void)
{
	const struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};

	signal(SIGALRM, on_timer);
	setitimer(ITIMER_REAL, &often, NULL);
	for (int i = 0; i < 20; i++)
		stride();
	setitimer(ITIMER_REAL, &never, NULL);
	fprintf(stderr, "%lu\n", *(unsigned long *)(m + 77 * 4096 + 24));
}

/* The carry, overflow and sign flags are set, and registers hold `k` and more, before and after. */
static __attribute__((noinline)) long load_live(const char *a, const char *b, const char *c, long k)
{
	unsigned long flags, sum;

	__asm__ volatile("lea -256(%%rsp), %%rsp\n"
			 "movq %[k], 8(%%rsp)\n"
			 "movq %[k], 16(%%rsp)\n"
			 "movq %[k], %%rax\n"
			 "movq %[k], %%rdx\n"
			 "movl $0x7fffffff, %%ecx\n"
			 "addl $1, %%ecx\n"
			 "stc\n"
			 "movq 8(%%rsp), %%r8\n"
			 "movq (%[a]), %%r9\n"
			 "movq 16(%%rsp), %%r10\n"
			 "movq %%r8, 24(%%rsp)\n"
			 "movq (%[b]), %%r11\n"
			 "movq 24(%%rsp), %%r8\n"
			 "movq (%[c], %[k], 8), %%r13\n"
			 "pushq (%[b])\n"
			 "popq %%r12\n"
			 "pushfq\n"
			 "popq %[flags]\n"
			 "leaq (%%rax, %%rdx), %[sum]\n"
			 "leaq (%[sum], %%r8), %[sum]\n"
			 "addq %%rcx, %[sum]\n"
			 "addq %%r9, %[sum]\n"
			 "addq %%r10, %[sum]\n"
			 "addq %%r11, %[sum]\n"
			 "addq %%r12, %[sum]\n"
			 "addq %%r13, %[sum]\n"
			 "lea 256(%%rsp), %%rsp\n"
			 : [flags] "=&r"(flags), [sum] "=&r"(sum)
			 : [a] "D"(a), [b] "S"(b), [c] "b"(c), [k] "r"(k)
			 : "rax", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "memory",
			   "cc");
	return (flags & 0x881) == 0x881 && sum == 0x80000000ul + 4 * (unsigned long)k;
}

/* 64: 512 reads, the last one of 65, too; 66 and 67 by turns, two a time; 68: 512 */
static void live(void)
{
	for (long k = 0; k < 512; k++)
		if (!load_live(m + 64 * 4096 + 4 + 8 * k, m + (66 + k % 2) * 4096, m + 68 * 4096,
			       k))
			exit(2);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "kernel";

	m = mmap((void *)0x300000000000, PAGES * 4096, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE | MAP_POPULATE, -1, 0);
	if (m == MAP_FAILED)
		return 1;
	if (!strcmp(what, "threads"))
		threads();
	else if (!strcmp(what, "handlers"))
		handlers();
	else if (!strcmp(what, "live"))
		live();
	else
		stride();
	if (!strcmp(what, "kernel"))
		others();
	if (!strcmp(what, "exec"))
		execl(argv[0], argv[0], "kernel", NULL);
	if (!strcmp(what, "kill"))
		raise(SIGKILL);
	if (!strcmp(what, "fork")) {
		pid_t pid = fork();

		if (!pid) {
			stride();
			raise(SIGKILL);
		}
		waitpid(pid, NULL, 0);
		stride();
	}
	return 0;
}
