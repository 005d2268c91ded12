/* SPDX-License-Identifier: MIT */
/*
 * fault_steps.c - a program steps through itself (the processor's trap flag): its SIGTRAP
 * handler must see each instruction of its functions once, in order, at its own address.
 *
 * Build: O2, no-pie
 * Calls: stepped=3 inner=6 main=1
 */
#define _GNU_SOURCE
#include "torture.h"
#include <ucontext.h>

__asm__(".text\n"
	"	.p2align 4\n"
	"	.globl stepped\n"
	"	.type stepped, @function\n"
	"stepped:\n"
	"	push %rbx\n"
	"	mov %rdi,%rbx\n"
	"	mov $2,%ecx\n"
	"1:	add %rcx,%rbx\n"
	"	dec %ecx\n"
	"	jnz 1b\n"
	"	call inner\n"
	"	add %rbx,%rax\n"
	"	lea 4(%rax),%rdi\n"
	"	call inner\n"
	"	pop %rbx\n"
	"	ret\n"
	"	.size stepped, . - stepped\n"
	"	.p2align 4\n"
	"	.globl inner\n"
	"	.type inner, @function\n"
	"inner:\n"
	"	lea 1(%rdi),%rax\n"
	"	test %rax,%rax\n"
	"	jns 2f\n"
	"	neg %rax\n"
	"2:	imul $3,%rax,%rax\n"
	"	ret\n"
	"	.size inner, . - inner\n");
long stepped(long x);
long inner(long x);

static char path[4096];
static size_t length;
static int code = -1;

static void note(const char *name, long offset)
{
	length += (size_t)snprintf(path + length, sizeof(path) - length, " %s+%ld", name, offset);
}

static void on_step(int sig, siginfo_t *info, void *context)
{
	greg_t *g = ((ucontext_t *)context)->uc_mcontext.gregs;
	uintptr_t pc = (uintptr_t)g[REG_RIP];

	(void)sig;
	code = info->si_code;
	CHECK((uintptr_t)info->si_addr == pc);
	if (pc - (uintptr_t)stepped < 48)
		note("stepped", (long)(pc - (uintptr_t)stepped));
	else if (pc - (uintptr_t)inner < 32)
		note("inner", (long)(pc - (uintptr_t)inner));
}

int main(void)
{
	struct sigaction sa = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO};

	CHECK(!sigaction(SIGTRAP, &sa, NULL));
	for (long i = -5; i < 10; i += 5) {
		long result;

		length = 0;
		__asm__ volatile("sub $128,%%rsp; pushfq; orl $0x100,(%%rsp); popfq\n\t"
				 "call stepped\n\t"
				 "pushfq; andl $~0x100,(%%rsp); popfq; add $128,%%rsp"
				 : "=a"(result)
				 : "D"(i)
				 : "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "memory", "cc");
		printf("%ld: code %d,%s\n", result, code, path);
	}
	return 0;
}
