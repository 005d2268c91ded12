/* SPDX-License-Identifier: MIT */
/*
 * traps.c - a place that only a trap can take, in a program with traps of its own.
 *
 * The `cmc` in narrow() is one byte after a call, and a branch target follows it.  own() has an
 * int3 that the program's handler counts.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>

long narrow(long n);
void own(void);

__asm__(".text\n"
	".p2align 4\n"
	".type leaf, @function\n"
	"leaf: .cfi_startproc\n"
	"	leaq	1(%rdi), %rax\n"
	"	cmpq	$2, %rdi\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size leaf, . - leaf\n"
	".p2align 4\n"
	".globl narrow\n"
	".type narrow, @function\n"
	"narrow: .cfi_startproc\n"
	"	subq	$8, %rsp\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	call	leaf\n"
	"	cmc\n"
	"1:	adcq	$0, %rax\n"
	"	decq	%rdi\n"
	"	jg	1b\n"
	"	addq	$8, %rsp\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size narrow, . - narrow\n"
	".globl own\n"
	".type own, @function\n"
	"own: .cfi_startproc\n"
	"	int3\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size own, . - own\n");

static volatile int traps;
static volatile unsigned long behind;

static void on_trap(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)info;
	(void)context;
	traps++;
	behind = ((ucontext_t *)context)->uc_mcontext.gregs[16]; /* REG_RIP */
}

int main(void)
{
	struct sigaction sa, old;
	long sum = 0;

	memset(&sa, 0, sizeof(sa));
	sa.sa_sigaction = on_trap;
	sa.sa_flags = SA_SIGINFO;
	sigaction(SIGTRAP, &sa, NULL);
	for (long i = 0; i < 1000; i++) {
		sum += narrow(i % 7);
		if (i % 100 == 0)
			own();
	}
	sigaction(SIGTRAP, NULL, &old);
	printf("%ld, %d traps, %s, %s\n", sum, traps,
	       behind == (unsigned long)own + 1 ? "after the int3" : "elsewhere",
	       old.sa_sigaction == on_trap ? "our handler" : "another handler");
	return 0;
}
