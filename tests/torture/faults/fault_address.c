/* SPDX-License-Identifier: MIT */
/*
 * fault_address.c - handles SIGSEGV, SIGFPE and SIGILL of instructions that a patch displaces:
 * repairs a register and returns, or jumps out.  The repaired instruction must be run again.
 *
 * Build: O2
 * Calls?: load_first=1000 divide_first=1000 jump_out=1000
 */
#include "torture.h"
#include <setjmp.h>
#include <ucontext.h>

static long good = 42;
static sigjmp_buf back;
static volatile sig_atomic_t leave;

long load_first(long *p);
long divide_first(long n, long by);
long jump_out(long *p);

__asm__(".text\n.p2align 4\n.globl load_first\n.type load_first,@function\n"
	"load_first:\n"
	"	mov (%rdi),%rax\n"
	"	mov %rax,%rdx\n"
	"	ret\n"
	".size load_first,.-load_first\n"
	".p2align 4\n.globl divide_first\n.type divide_first,@function\n"
	"divide_first:\n"
	"	mov %rdi,%rax\n"
	"	mov %rsi,%rcx\n"
	"	cqo\n"
	"	idiv %rcx\n"
	"	ret\n"
	".size divide_first,.-divide_first\n"
	".p2align 4\n.globl jump_out\n.type jump_out,@function\n"
	"jump_out:\n"
	"	mov (%rdi),%rax\n"
	"	nop\n"
	"	nop\n"
	"	ret\n"
	".size jump_out,.-jump_out\n");

static void on_fault(int sig, siginfo_t *info, void *context)
{
	greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;

	(void)info;
	if (leave)
		siglongjmp(back, sig);
	if (sig == SIGSEGV)
		r[REG_RDI] = (greg_t)&good;
	else
		r[REG_RCX] = 7;
}

int main(void)
{
	struct sigaction sa = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
	volatile int left = 0;

	CHECK(!sigaction(SIGSEGV, &sa, NULL) && !sigaction(SIGFPE, &sa, NULL));
	for (int i = 0; i < 1000; i++) {
		CHECK(load_first((long *)8) == 42);
		CHECK(divide_first(700, 0) == 100);
	}
	leave = 1;
	for (volatile int i = 0; i < 1000; i++) {
		if (sigsetjmp(back, 1) == 0)
			jump_out((long *)16);
		else
			left++;
	}
	CHECK(left == 1000);
	puts("faults");
	return 0;
}
