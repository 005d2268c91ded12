/* SPDX-License-Identifier: MIT */
/*
 * fault_memory.c - handlers of faults in displaced instructions that give the program the memory
 * which it lacks, that run on a stack of their own, that fault themselves, that are good for once.
 *
 * Build: O2
 * Calls?: store_first=34 load_next=22
 */
#define _GNU_SOURCE
#include "torture.h"
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>

#define RESTORER 0x04000000 /* libc's own */
#define PAGES 20
#define PAGE 4096ul

long store_first(long *p, long v);
long load_next(const long *p);

__asm__(".text\n.p2align 4\n.globl store_first\n.type store_first,@function\n"
	"store_first:\n"
	"	mov %rsi,(%rdi)\n"
	"	lea 1(%rsi),%rax\n"
	"	ret\n"
	".size store_first,.-store_first\n"
	".p2align 4\n.globl load_next\n.type load_next,@function\n"
	"load_next:\n"
	"	xor %eax,%eax\n"
	"	mov (%rdi),%rax\n"
	"	add $1,%rax\n"
	"	ret\n"
	".size load_next,.-load_next\n");

static char *pages;
static char other_stack[16 * 4096];
static volatile int depth, deepest, seen;

static int is_on_other_stack(void)
{
	char here;

	return &here >= other_stack && &here < other_stack + sizeof(other_stack);
}

/* The first fault meets another one on its way: the next page lacks, too. */
static void on_fault(int sig, siginfo_t *info, void *context)
{
	const greg_t *g = ((ucontext_t *)context)->uc_mcontext.gregs;
	char *at = info->si_addr, *page = (char *)((uintptr_t)at & -PAGE);
	uintptr_t pc = (uintptr_t)g[REG_RIP];

	CHECK(sig == SIGSEGV && info->si_code == SEGV_ACCERR && is_on_other_stack());
	CHECK(pc == (uintptr_t)store_first || pc == (uintptr_t)load_next + 2);
	CHECK(at == (char *)g[REG_RDI] && at >= pages && at < pages + PAGES * PAGE);
	deepest = ++depth > deepest ? depth : deepest;
	if (depth < 3 && page + PAGE < pages + PAGES * PAGE)
		CHECK(store_first((long *)(page + PAGE), depth) == depth + 1);
	CHECK(!mprotect(page, PAGE, PROT_READ | PROT_WRITE));
	depth--;
	seen++;
}

static void on_once(int sig)
{
	printf("once: %d\n", sig);
	fflush(stdout);
}

static void test_once(void)
{
	struct sigaction sa = {.sa_handler = on_once, .sa_flags = SA_RESETHAND}, old;
	pid_t child = fork();
	int status;

	if (child == 0) {
		CHECK(!sigaction(SIGSEGV, &sa, &old) && old.sa_sigaction == on_fault &&
		      (old.sa_flags & ~RESTORER) == (SA_SIGINFO | SA_ONSTACK | SA_NODEFER));
		load_next(NULL);
		_exit(1);
	}
	CHECK(child > 0 && waitpid(child, &status, 0) == child);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
}

int main(void)
{
	const stack_t stack = {.ss_sp = other_stack, .ss_size = sizeof(other_stack)};
	struct sigaction sa = {.sa_sigaction = on_fault,
			       .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};

	pages = mmap(NULL, PAGES * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(pages != MAP_FAILED && !sigaltstack(&stack, NULL) && !sigaction(SIGSEGV, &sa, NULL));
	for (size_t i = 0; i < PAGES; i++) {
		CHECK(store_first((long *)(pages + i * PAGE), 7) == 8);
		CHECK(load_next((long *)(pages + i * PAGE)) == 8);
	}
	CHECK(deepest == 3 && seen == PAGES);
	CHECK(!mprotect(pages, PAGE, PROT_NONE));
	CHECK(load_next((long *)pages) == 8);
	fflush(stdout);
	test_once();
	printf("%d deep, %d faults\n", deepest, seen);
	return 0;
}
